"""Train a bias-free ReLU classifier by ADAM on the cross-entropy ([mathematics] sec. 6.4).

Glorot-uniform weights, mini-batches in a new order every epoch, the usual constants of ADAM. In float32,
which is what the source's tools compute in, and twice as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from unweave.arrays import Array, IntArray, RealArray
from unweave.networks.network import Network


@dataclass(frozen=True, kw_only=True)
class ClassifierOptions:
    """How a classifier is trained."""

    epochs: int
    batch: int = 100
    rate: float = 1e-3
    """Step of ADAM. The source does not state it; this is the default of its tool."""
    beta1: float = 0.9
    beta2: float = 0.999
    shift: float = 1e-7


def glorot_network(widths: Sequence[int], rng: np.random.Generator) -> Network:
    """Bias-free ReLU network with weights uniform in +-sqrt(6 / (n_in + n_out))."""
    weights = [rng.uniform(-1, 1, (a, b)) * np.sqrt(6 / (a + b)) for a, b in pairwise(widths)]
    names = ["relu"] * (len(weights) - 1) + ["identity"]
    return Network(weights, [np.zeros(width) for width in widths[1:]], names)


def train_classifier(start: Network, x: Array, y: IntArray, options: ClassifierOptions, seed: int) -> Network:
    """Weights after training on samples x (m, n) with labels y (m,); biases stay zero.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = rng.standard_normal((200, 3))
        >>> y = (x[:, 0] > 0).astype(int)
        >>> end = train_classifier(glorot_network([3, 20, 2], rng), x, y, ClassifierOptions(epochs=200), 0)
        >>> bool(np.mean(end(x).argmax(axis=1) == y) > 0.95)
        True
    """
    weights: list[RealArray] = [np.array(weight, dtype=np.float32) for weight in start.weights]
    averages = [_Averages(weight, options) for weight in weights]
    slopes = [np.empty_like(weight) for weight in weights]
    rows, rng, time = np.asarray(x, dtype=np.float32), np.random.default_rng(seed), 0
    for _ in range(options.epochs):
        order = rng.permutation(len(rows))
        for place in range(0, len(rows), options.batch):
            chosen = order[place : place + options.batch]
            time += 1
            _gradients(weights, rows[chosen], y[chosen], slopes)
            for weight, average, slope in zip(weights, averages, slopes, strict=True):
                average.step(weight, slope, time)
    return Network([weight.astype(np.float64) for weight in weights], start.biases, start.activations)


class _Averages:
    """ADAM of one matrix, in place: memory is what it costs.

    The averages are kept as sums, m / (1 - beta1) and v / (1 - beta2), which saves two passes.
    """

    def __init__(self, weight: RealArray, options: ClassifierOptions) -> None:
        self._options = options
        self._first, self._second, self._held = np.zeros((3, *weight.shape), dtype=np.float32)

    def step(self, weight: RealArray, slope: RealArray, time: int) -> None:
        """Move ``weight`` by the step of this time; ``slope`` is overwritten."""
        of, first, second, held = self._options, self._first, self._second, self._held
        root = np.sqrt(1 - of.beta2)
        size = of.rate * np.sqrt(1 - of.beta2**time) / (1 - of.beta1**time) * (1 - of.beta1) / root
        first *= of.beta1
        first += slope
        second *= of.beta2
        slope *= slope
        second += slope
        np.sqrt(second, out=held)
        held += np.float32(of.shift / root)
        np.divide(first, held, out=held)
        held *= np.float32(size)
        weight -= held


def _gradients(weights: list[RealArray], x: RealArray, y: IntArray, slopes: list[RealArray]) -> None:
    """Gradients of the mean cross-entropy, layer by layer, into ``slopes``."""
    values: list[RealArray] = [x]
    for weight in weights[:-1]:
        values.append(np.maximum(values[-1] @ weight, 0))
    scores = values[-1] @ weights[-1]
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(y)), y] -= 1
    signal: RealArray = shares / len(y)
    for index in reversed(range(len(weights))):
        np.matmul(values[index].T, signal, out=slopes[index])
        if index:
            signal = (signal @ weights[index].T) * (values[index] > 0)
