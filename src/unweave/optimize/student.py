r"""Teacher and student: fit a network of the same architecture to another's answers by stochastic gradients.

    minimize  J = E |f(x) - f^(x)|^2,      x ~ N(0, I),      theta <- theta - rate grad J_batch,

from a random start, epoch by epoch over N training inputs ([identification] secs. 1.3 and 3.4). Training ends
when J over the training inputs is below a tolerance, or after a number of steps. What is measured along the
way is the caller's: ``on_record`` is called with the network at steps 1, 2, 4, ... or at those given.

Where N inputs would take too much memory, every batch is drawn anew: they are then so many that few would be
seen twice.

Cost: 6 batch P flops per step, P the number of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations import get_activation
from unweave.networks.network import Network

OnRecord = Callable[[int, Network], None]
"""Called with the number of steps taken and the network."""


@dataclass(frozen=True, kw_only=True)
class StudentOptions:
    """How a student is trained; the values of [identification] sec. 1.3.1."""

    samples: int
    """N, training inputs."""
    steps: int
    """Most steps. The source stops by the clock instead: ten minutes to two hours of a GPU."""
    rate: float = 0.005
    batch: int = 64
    tolerance: float = 1e-8
    """J at which training ends."""
    frozen_output: bool = True
    """Whether the output layer keeps its values, as for sums of units."""
    records: Sequence[int] = ()
    """Steps at which ``on_record`` is called."""
    most_numbers: int = 20_000_000
    """Most input values kept in memory; above, every batch is drawn anew."""


@dataclass(frozen=True, eq=False)
class StudentFit:
    """End of a training."""

    network: Network
    loss: float
    """J over training inputs, 20,000 of them where there are more; infinite where training diverged."""
    steps: int


_CHECKED_STEPS = 500  # steps between two looks at the loss of the training inputs
_CHECKED_ROWS = 20_000  # training inputs that such a look takes


def train_student(
    teacher: Callable[[Array], Array],
    start: Network,
    options: StudentOptions,
    rng: np.random.Generator,
    on_record: OnRecord | None = None,
) -> StudentFit:
    """Fit ``start`` to the answers of ``teacher``, (n, D) to (n, K), by stochastic gradients.

    Example:
        >>> from unweave import random_network
        >>> teacher, start = (random_network([4, 2, 1], "tanh", seed=seed, outer="ones") for seed in (0, 1))
        >>> options = StudentOptions(samples=2000, steps=20_000, rate=0.05)
        >>> train_student(teacher, start, options, np.random.default_rng(0)).loss < 1e-7
        True
    """
    if options.steps < 1 or not options.rate > 0 or not 1 <= options.batch <= options.samples:
        raise InvalidInput(
            f"steps and rate must be positive and batch at most samples. Got {options.steps}, "
            f"{options.rate}, {options.batch} and {options.samples} instead."
        )
    rows = _Rows(teacher, start.n_inputs, options, rng)
    weights = [np.array(weight) for weight in start.weights]
    biases = [np.array(bias) for bias in start.biases]
    learned = len(weights) - int(options.frozen_output)
    jets = [get_activation(name).jet for name in start.activations]
    wanted = set(options.records)

    def network() -> Network:
        return Network(weights, biases, start.activations)

    loss, taken = np.inf, 0
    for taken in range(1, options.steps + 1):
        x, y = rows.next()
        values, slopes = [x], []
        for weight, bias, jet in zip(weights, biases, jets, strict=True):
            value, slope = jet(values[-1] @ weight + bias, 1)[:2]
            values.append(value)
            slopes.append(slope)
        signal = (2 * options.rate / len(x)) * (values[-1] - y)
        for layer in reversed(range(len(weights))):
            signal = signal * slopes[layer]
            before = signal @ weights[layer].T if layer else signal
            if layer < learned:
                weights[layer] -= values[layer].T @ signal
                biases[layer] -= signal.sum(axis=0)
            signal = before
        if on_record is not None and taken in wanted:
            on_record(taken, network())
        if taken % _CHECKED_STEPS == 0 or taken == options.steps:
            loss = _loss(weights, biases, jets, *rows.checked)
            if not loss > options.tolerance:
                break
    if not np.isfinite(loss):
        return StudentFit(start, np.inf, taken)
    return StudentFit(network(), loss, taken)


def _loss(
    weights: list[Array], biases: list[Array], jets: list[Callable[..., Any]], x: Array, y: Array
) -> float:
    for weight, bias, jet in zip(weights, biases, jets, strict=True):
        x = jet(x @ weight + bias, 0)[0]
    return float(np.mean(np.sum((x - y) ** 2, axis=1)))


class _Rows:
    """Training inputs with their answers, a batch at a time, every epoch in a new order."""

    def __init__(
        self,
        teacher: Callable[[Array], Array],
        inputs: int,
        options: StudentOptions,
        rng: np.random.Generator,
    ) -> None:
        self._teacher, self._inputs, self._options, self._rng = teacher, inputs, options, rng
        self._kept = options.samples * inputs <= options.most_numbers
        count = options.samples if self._kept else _CHECKED_ROWS
        self._x = rng.standard_normal((count, inputs))
        self._y = np.asarray(teacher(self._x))
        self._order, self._place = rng.permutation(count), 0
        if not self._kept:
            self._place = count  # those in memory are only looked at

    @property
    def checked(self) -> tuple[Array, Array]:
        return self._x[:_CHECKED_ROWS], self._y[:_CHECKED_ROWS]

    def next(self) -> tuple[Array, Array]:
        size = self._options.batch
        if not self._kept:
            x = self._rng.standard_normal((size, self._inputs))
            return x, np.asarray(self._teacher(x))
        if self._place + size > len(self._order):
            self._order, self._place = self._rng.permutation(len(self._x)), 0
        chosen = self._order[self._place : self._place + size]
        self._place += size
        return self._x[chosen], self._y[chosen]
