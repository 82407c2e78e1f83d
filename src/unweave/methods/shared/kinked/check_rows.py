"""Rows on which a network of kinked layers is checked: many of them where a missing unit would show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.networks.network import Network


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Where a network that was found is checked, in normalised inputs."""

    near: tuple[float, ...] = (1.0, 3.0, 10.0)
    """Standard deviations of rows that are not far out."""
    far: float = 100.0
    """Standard deviation of rows far out, where biases hardly matter."""
    candidates: int = 20_000
    """Directions among which extreme ones are looked for."""
    extreme: float = 0.05
    """Share of them that counts as extreme."""
    corners: float = 0.35
    """Rows in corners of what the last layer reads, besides the others and relative to them."""
    fewest: int = 2000
    """Rows at least."""
    per_parameter: float = 3.0
    """Rows per parameter."""


_AT_ONCE = 256  # directions in which all candidates are compared: 40 MB
DEFAULT_CHECK_OPTIONS = CheckOptions()


def check_points(
    network: Network, count: int, rng: np.random.Generator, options: CheckOptions = DEFAULT_CHECK_OPTIONS
) -> Array:
    """Return rows (n, d): ``count``, half of them far out in extreme directions, and some in corners.

    A unit that is hardly ever active cuts a corner off all directions: outermost points lie in corners.
    """
    quarter, near = count // 4, np.array(options.near)
    candidates = options.far * rng.standard_normal((options.candidates, network.n_inputs))
    extreme = max(quarter, int(options.extreme * len(candidates)))
    sizes, directions = _last_states(network, candidates)
    unusual = sizes / np.linalg.norm(candidates, axis=1), directions @ directions.mean(axis=0)
    chosen = [rng.permutation(np.argsort(values)[:extreme])[:quarter] for values in unusual]
    rest = count - 2 * quarter
    spreads = np.where(rng.random(rest) < 0.5, options.far, near[rng.integers(len(near), size=rest)])
    usual = spreads[:, None] * rng.standard_normal((rest, network.n_inputs))
    chosen.append(
        _outermost(directions, rng.standard_normal((directions.shape[1], int(options.corners * count))))
    )
    return np.concatenate([usual, *(candidates[rows] for rows in chosen)])


def _outermost(points: Array, towards: Array) -> IntArray:
    """Return which of the points (n, m) lies farthest in each of the directions (m, k)."""
    parts = [towards[:, i : i + _AT_ONCE].T for i in range(0, towards.shape[1], _AT_ONCE)]
    return np.concatenate([np.zeros(0, np.int64), *(np.argmax(part @ points.T, axis=1) for part in parts)])


def _last_states(network: Network, points: Array) -> tuple[Array, Array]:
    """Return sizes (n,) and directions (n, m) of what the last hidden layer reads."""
    below = Network(network.weights[:-2], network.biases[:-2], network.activations[:-2])
    states = below(points)
    sizes = np.linalg.norm(states, axis=1)
    return sizes, states / np.where(sizes > 0, sizes, 1.0)[:, None]
