"""Clusters of networks: starts in a cone, what training does to them, and divergences from their mixture.

Parameters of a network are one vector here. Training takes starts B_j to networks A_j ([mathematics] Secs.
6.3 and 6.5):

- *angle* between A and B, and *dilation* |A| / |B|;
- the *cone of starts*: vectors of the length of B within half-angle theta of it, theta a hundredth of the
  angle index (Def. 26) by default;
- the *spread* of a cluster: mean and largest angle of its members to their mean direction.

The divergence of a Gaussian N(A, s^2) from a mixture of N(B_r, t^2) with weights a_r is at most (Thm. 6.A.1)

    n/2 (s^2/t^2 - 1) + n log(t/s) - log sum_r a_r exp(-|A - B_r|^2 / (2 t^2)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from unweave.arrays import Array
from unweave.certify.margins import require_alike
from unweave.errors import InvalidInput
from unweave.networks.network import Network

_ANGLE_STEP = 0.01  # radians: the grid of half-angles that may be chosen before training


@dataclass(frozen=True)
class Move:
    """What training did to one network."""

    angle: float
    """Radians between the start and the end."""
    dilation: float
    """|end| / |start|."""
    distance: float
    """|end - start|."""


@dataclass(frozen=True)
class Spread:
    """How far members of a cluster point apart."""

    mean: float
    """Mean angle to their mean direction, in radians."""
    largest: float


def flat_parameters(network: Network) -> Array:
    """All weights and biases as one vector."""
    parts = [part.reshape(-1) for pair in _pairs(network) for part in pair]
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])


def _pairs(network: Network) -> list[tuple[Array, Array]]:
    """Weights and biases, layer by layer."""
    return list(zip(network.weights, network.biases, strict=True))


def move(start: Network, end: Network) -> Move:
    """Angle, dilation and distance from ``start`` to ``end``, of one architecture."""
    require_alike(start, (end,))
    before, after = flat_parameters(start), flat_parameters(end)
    size = float(np.linalg.norm(before))
    if not size > 0 or not np.any(after):
        raise InvalidInput("networks must have a parameter that is not zero. Got only zeros instead.")
    return Move(
        _angle(before, after), float(np.linalg.norm(after)) / size, float(np.linalg.norm(after - before))
    )


def angle_index(start: Network, end: Network) -> int:
    """lambda*: the angle in hundredths of a radian, 1 to 314 ([mathematics] Def. 26)."""
    return int(np.clip(round(move(start, end).angle / _ANGLE_STEP), 1, 314))


def cone_of_starts(network: Network, half_angle: float, count: int, seed: int = 0) -> list[Network]:
    """``count`` networks of the same length within ``half_angle`` (radians) of ``network``.

    Angles are uniform up to the half-angle, directions uniform around it. A network without biases keeps
    none.

    Example:
        >>> from unweave import random_network
        >>> start = random_network([4, 3, 2], "relu", seed=0)
        >>> max(move(start, other).angle for other in cone_of_starts(start, 0.1, 20)) <= 0.1
        True
    """
    center = flat_parameters(network)
    length = float(np.linalg.norm(center))
    if not 0 < half_angle <= np.pi or count < 1 or not length > 0 or center.size < 2:
        raise InvalidInput(
            f"half_angle must be above 0 and at most pi, count positive, and the network more than one "
            f"parameter that is not zero. Got {half_angle!r} and {count!r} instead. For example 0.1 and 25."
        )
    rng = np.random.default_rng(seed)
    axis = center / length
    free = np.ones(center.size)
    if not any(np.any(bias) for bias in network.biases):
        free = np.concatenate(
            [np.full(part.size, level) for w, b in _pairs(network) for part, level in ((w, 1.0), (b, 0.0))]
        )
    starts = []
    for angle in rng.uniform(0, half_angle, count):
        across = free * rng.standard_normal(center.size)
        across -= (across @ axis) * axis
        across /= np.linalg.norm(across)
        starts.append(_network_like(network, length * (np.cos(angle) * axis + np.sin(angle) * across)))
    return starts


def spread(networks: Sequence[Network]) -> Spread:
    """Angles of ``networks`` to the mean of their directions."""
    require_alike(networks[0], networks[1:])
    rows = np.array([flat_parameters(network) for network in networks])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    middle = rows.mean(axis=0)
    angles = [_angle(middle, row) for row in rows]
    return Spread(float(np.mean(angles)), float(np.max(angles)))


def mixture_divergence(
    distances: Array, parameters: int, sigma: float, mixture_sigma: float, weights: Array | None = None
) -> float:
    """Bound of KL(N(A, sigma^2) | mixture of N(B_r, mixture_sigma^2)) for distances |A - B_r| (k,).

    ``weights`` (k,) sum to one; equal ones unless given.

    Example:
        >>> mixture_divergence(np.array([2.0]), 10, 1.0, 1.0)       # one Gaussian: |A - B|^2 / 2
        2.0
    """
    apart = np.asarray(distances, dtype=np.float64)
    shares = np.full(len(apart), 1 / len(apart)) if weights is None else np.asarray(weights, dtype=np.float64)
    if sigma <= 0 or mixture_sigma <= 0 or shares.shape != apart.shape or not np.isclose(shares.sum(), 1.0):
        raise InvalidInput(
            f"sigma and mixture_sigma must be positive, and weights one per distance that sum to one. Got "
            f"{sigma!r}, {mixture_sigma!r} and {weights!r} instead. Change those."
        )
    ratio = (sigma / mixture_sigma) ** 2
    size = parameters / 2 * (ratio - 1 - np.log(ratio))
    return float(size - logsumexp(-(apart**2) / (2 * mixture_sigma**2), b=shares))


def _angle(one: Array, other: Array) -> float:
    """Radians between two vectors, precise for small angles too."""
    a, b = one / np.linalg.norm(one), other / np.linalg.norm(other)
    return float(2 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b)))


def _network_like(network: Network, flat: Array) -> Network:
    weights, biases, place = [], [], 0
    for weight, bias in _pairs(network):
        weights.append(flat[place : place + weight.size].reshape(weight.shape))
        place += weight.size
        biases.append(flat[place : place + bias.size])
        place += bias.size
    return Network(weights, biases, network.activations, network.skip)
