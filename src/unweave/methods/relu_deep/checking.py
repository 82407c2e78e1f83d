"""Rows that a network found must answer as the target does, chosen so that a missing unit shows.

A unit that is hardly ever active is missed by lines and by rows at random alike. Where it is, what it reads
is unlike what it usually reads: far out, where biases no longer matter, the states before the last hidden
layer are small there for the length of x, or point away from where they point on average. Such directions are
found without asking; rows among the most extreme of them see units that act on one row in thousands some
twenty times as often.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network

_NEAR = np.array([1.0, 3.0, 10.0])
_FAR = 100.0
_CANDIDATES = 20_000
_EXTREME = 0.05  # share of the candidates that counts as extreme


def check_points(network: Network, count: int, rng: np.random.Generator) -> Array:
    """(count, d): half at random, near and far; half far out in extreme directions."""
    quarter = count // 4
    candidates = _FAR * rng.standard_normal((_CANDIDATES, network.n_inputs))
    chosen = [_among_least(values, quarter, rng) for values in _unusualness(network, candidates)]
    rest = count - 2 * quarter
    spreads = np.where(rng.random(rest) < 0.5, _FAR, _NEAR[rng.integers(len(_NEAR), size=rest)])
    usual = spreads[:, None] * rng.standard_normal((rest, network.n_inputs))
    return np.concatenate([usual, *(candidates[rows] for rows in chosen)])


def _unusualness(network: Network, points: Array) -> tuple[Array, Array]:
    """Size and cosine to the mean direction of what the last hidden layer reads, (n,) each."""
    below = Network(network.weights[:-2], network.biases[:-2], network.activations[:-2])
    states = below(points)
    sizes = np.linalg.norm(states, axis=1)
    directions = states / np.where(sizes > 0, sizes, 1.0)[:, None]
    return sizes / np.linalg.norm(points, axis=1), directions @ directions.mean(axis=0)


def _among_least(values: Array, count: int, rng: np.random.Generator) -> Array:
    """Numbers of ``count`` entries at random among the least of them."""
    least = np.argsort(values)[: max(count, int(_EXTREME * len(values)))]
    return rng.permutation(least)[:count]
