"""The published pipeline for wide one-hidden-layer networks ([identification] Algs. 3.1, 3.2, 3.3).

From answers of

    f(x) = sum_{k=1..m} g(w_k . x + tau_k),      |w_k| = 1, |tau_k| <= T, scalar output, m and g known,

it recovers the directions from the span of sampled Hessians (Alg. 3.2), signs and first shifts from
two derivatives per unit (Alg. 3.3), and refines the shifts by gradient descent with the weights
frozen. Kept as a reference to measure against: the default route (`search`) needs none of
these restrictions and does not stop at the error of the frozen weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.stencils import hessian_jets
from unweave.errors import InvalidInput, UnweaveError
from unweave.networks.activations import Activation, get_activation
from unweave.networks.network import Network
from unweave.numerics.clock import check
from unweave.published.shallow.options import PublishedOptions
from unweave.published.shallow.shifts import refine_shifts, signs_and_shifts
from unweave.subspace.collector import RankOneDirections, distinct_directions
from unweave.subspace.hessian_span import HessianSpan, hessian_span
from unweave.subspace.power_method import power_iterations, uniform_starts
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing

_STARTS_PER_BATCH = 512  # starts iterated at once: limits memory


@dataclass(frozen=True, eq=False)
class PublishedWeights:
    """Directions found by [identification] Alg. 3.2."""

    directions: RankOneDirections
    """At most m, best first, each up to sign."""
    span: HessianSpan
    """Of the sampled Hessians; ``span.gap(m)`` is how clearly the width shows."""
    queries: int


@dataclass(frozen=True, eq=False)
class PublishedRecovery:
    """Result of [identification] Alg. 3.1, with the figures of its parts."""

    network: Network
    """sum_k g(w_k . x + t_k) with the refined shifts."""
    weights: Array
    """(D, m) unit columns, signs applied."""
    signs: Array
    """(m,) signs that were applied to the directions."""
    initial_shifts: Array
    """(m,) of [identification] Alg. 3.3."""
    shifts: Array
    """(m,) refined."""
    misalignment: Array
    """(m,) 1 - Phi of every direction."""
    complete: bool
    """Whether all m directions were found; if not, the rest is fitted without the missing ones."""
    restarts: int
    gap: float
    """sigma_m / sigma_{m+1} of the sampled Hessians."""
    queries: dict[str, int]
    """Rows asked by part: "hessians", "derivatives", "training"."""
    seconds: dict[str, float]
    """Seconds by part: "hessians and span", "directions", "signs and shifts", "training answers",
    "refinement"."""
    training_mse: tuple[float, ...]
    """Of the refinement: at its start and after every step or epoch."""


def recover_published(
    function: Callable[[Array], Array],
    dimension: int,
    width: int,
    activation: str | Activation = "tanh",
    seed: int | np.random.Generator = 0,
    options: PublishedOptions | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> PublishedRecovery:
    """Recover f(x) = sum_k g(w_k . x + tau_k) from its answers ([identification] Alg. 3.1).

    ``function`` maps (n, D) to (n, 1). Rows: N_h (D^2 + D + 1) + 4 m + 1 + N_train; see `PublishedOptions`.

    Example:
        >>> from unweave.networks.random import random_network
        >>> target = random_network([6, 9, 1], seed=1)
        >>> options = PublishedOptions(seconds=0.5, training_samples=500)
        >>> found = recover_published(target, 6, 9, options=options)
        >>> found.complete
        True
    """
    options = options or PublishedOptions()
    rng = np.random.default_rng(seed)
    g = get_activation(activation) if isinstance(activation, str) else activation
    target = _Counted(function)
    watch = _Stopwatch(clock)
    span, asked = _sampled_span(target, dimension, width, rng, options)
    watch.lap("hessians and span")
    found = _best_directions(span, dimension, width, rng, options)
    watch.lap("directions")
    if not len(found):
        raise UnweaveError(
            "Hessians must span rank-one matrices. None was found with Phi above "
            f"{options.accepted_objective(dimension, width)} "
            f"(sigma_m / sigma_m+1 = {span.gap(width):.2g}). "
            "Check the width, or use the default route, which finds it."
        )
    initial = signs_and_shifts(target, found.directions, g, options)
    weights = np.ascontiguousarray((found.directions * initial.signs[:, None]).T)
    watch.lap("signs and shifts")
    samples = 0 if options.refinement == "none" else options.sample_count(dimension, width)
    inputs = rng.standard_normal((samples, dimension))
    answers = target(inputs)[:, 0] if samples else np.zeros(0)
    watch.lap("training answers")
    shifts: Array = initial.shifts
    history: tuple[float, ...] = ()
    if samples:
        refined = refine_shifts(inputs, answers, weights, initial.shifts, g, rng, options, clock)
        shifts, history = refined.shifts, refined.training_mse
    watch.lap("refinement")
    return PublishedRecovery(
        network=Network([weights, np.ones((len(found), 1))], [shifts, np.zeros(1)], [g.name, "identity"]),
        weights=weights,
        signs=initial.signs,
        initial_shifts=initial.shifts,
        shifts=shifts,
        misalignment=found.misalignment,
        complete=len(found) == width,
        restarts=found.restarts,
        gap=span.gap(width),
        queries={
            "hessians": asked,
            "derivatives": target.rows - asked - len(answers),
            "training": len(answers),
        },
        seconds=watch.laps,
        training_mse=history,
    )


def recover_weights(
    function: Callable[[Array], Array],
    dimension: int,
    width: int,
    rng: np.random.Generator,
    options: PublishedOptions | None = None,
) -> PublishedWeights:
    """Weights up to sign from Hessians at Gaussian sites ([identification] Alg. 3.2).

    Guarantee (Thm. 3.3): error at most C (m/alpha)^{1/4} eps^{1/2} for derivatives exact to eps, with
    alpha the learnability; measured, it is linear in eps. The theory asks for N_h >= m + m^2 log(m)/D.
    """
    options = options or PublishedOptions()
    target = _Counted(function)
    span, asked = _sampled_span(target, dimension, width, rng, options)
    return PublishedWeights(_best_directions(span, dimension, width, rng, options), span, asked)


def _sampled_span(
    target: _Counted, dimension: int, width: int, rng: np.random.Generator, options: PublishedOptions
) -> tuple[HessianSpan, int]:
    """Span of Hessians at N(0, I) sites, and the rows asked."""
    size = symmetric_packing(dimension).size
    if not 1 <= width < size:
        raise InvalidInput(
            f"width must be at least 1 and less than D(D+1)/2 = {size}, so that the Hessians span a proper "
            f"subspace. Got {width} instead."
        )
    sites = rng.standard_normal((options.hessian_count(dimension, width), dimension))
    before = target.rows
    jets = hessian_jets(target, sites, options.step, options.scheme)
    assert jets.hessians is not None
    return hessian_span(jets.hessians[:, 0]), target.rows - before


def _best_directions(
    span: HessianSpan, dimension: int, width: int, rng: np.random.Generator, options: PublishedOptions
) -> RankOneDirections:
    """[identification] Alg. 2.2 as run in the experiments: all starts first, then the m best distinct ends.

    Stopping at the m-th accepted end instead may keep a spurious maximizer: some exceed the threshold when m
    is close to its limit.
    """
    space = RankOneSpace(span.basis(width), symmetric_packing(dimension))
    least = options.accepted_objective(dimension, width)
    limit = max(options.start_count(dimension, width), int(options.max_restarts * width))
    due = options.start_count(dimension, width)
    kept, misalignment = np.zeros((0, dimension)), np.zeros(0)
    rejected: list[Array] = [np.zeros(0)]
    restarts = 0
    while due > 0:
        check()
        count = min(due, _STARTS_PER_BATCH)
        starts = uniform_starts(count, dimension, rng)
        ends = power_iterations(space, starts, options.gamma, options.power_steps, options.power_tolerance)
        missed = space.misalignment(ends)
        accepted = 1 - missed >= least
        rejected.append(missed[~accepted])
        candidates = np.concatenate([kept, ends[accepted]])
        levels = np.concatenate([misalignment, missed[accepted]])
        order = np.argsort(levels)
        chosen = order[distinct_directions(candidates[order], np.zeros((0, dimension)), options.angle)]
        kept, misalignment = candidates[chosen], levels[chosen]
        restarts += count
        due -= count
        if due <= 0 and len(kept) < width and restarts < limit:
            due = min(_STARTS_PER_BATCH, limit - restarts)
    return RankOneDirections(kept[:width], misalignment[:width], restarts, np.concatenate(rejected))


class _Counted:
    """Counts the rows that a function of scalar output is asked."""

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self._function = function
        self.rows = 0

    def __call__(self, points: Array) -> Array:
        answers = np.asarray(self._function(points), dtype=np.float64)
        self.rows += len(points)
        if answers.shape != (len(points), 1):
            raise InvalidInput(
                f"function must map (n, D) to (n, 1). Got {answers.shape} for {points.shape} instead. "
                "The published pipeline has one output; the default route takes several."
            )
        return answers


class _Stopwatch:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = clock()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = self._clock()
        self.laps[name], self._last = now - self._last, now
