"""Directions of ReLU units from Hermite coefficients by Jennrich ([hermite] Algs. 1 and 4, any order l).

T_{2l+1} and T_{2l+2}, flattened to (w^{(x) l}) (x) (w^{(x) l}) (x) (the rest), are sums of one rank-one
term per unit with coefficients a He_{2l-1}(b) phi(b) and a He_{2l}(b) phi(b) up to sign. The w_i^{(x) l}
are independent for generic m <= C(d + l - 1, l), so Jennrich finds all terms with nonzero coefficient; two
consecutive Hermite polynomials have no common root, so every unit is found in one of the two lists. Then

    1. rank of each flattening: singular values above eta_1;
    2. Jennrich on each, terms weaker than eta_2 dropped;
    3. the union, strongest (against its own noise) first, without duplicates closer than eta_3 up to sign.

With noise levels nu_k from half samples eta_1 = 3 nu_k and eta_2 = 3 nu_k / sqrt(m) (Alg. 4); without,
nu_k is rounding (Alg. 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.errors import InvalidInput
from unweave.numerics.hermite.tensors import HermiteTensors
from unweave.published.relu.jennrich import PENCIL_DRAWS, folded_directions, jennrich
from unweave.published.relu.unit_scalars import term_weights
from unweave.subspace.collector import best_distinct

_ROUNDING_NOISE = 1e-13  # noise of exact coefficients over the largest singular value of the flattening


@dataclass(frozen=True)
class SpectralOptions:
    """Thresholds of [hermite] Alg. 4, in units of the noise."""

    rank_factor: float = 3.0
    """eta_1 / nu_k"""
    strength_factor: float = 3.0
    """eta_2 sqrt(m) / nu_k"""
    duplicate_radii: tuple[float, ...] = (0.5, 0.3, 0.2, 0.1, 0.05, 1e-2, 1e-3, 1e-5)
    """eta_3: radians, tried in turn until as many directions remain as there are units."""
    draws: int = PENCIL_DRAWS
    """Random pencils tried."""


@dataclass(frozen=True, eq=False)
class SpectralDirections:
    """Directions up to sign, and where they were seen."""

    weights: Array
    """w~, (d, m) unit columns."""
    orders: IntArray
    """(m,) order of the coefficient that each was taken from."""
    strengths: Array
    """(m,) |coefficient of its term| over the noise of that order."""
    gaps: tuple[float, float]
    """Relative eigenvalue gaps of the two pencils."""


def count_units(
    coefficients: HermiteTensors,
    order: int = 1,
    noise: Mapping[int, float] | None = None,
    options: SpectralOptions | None = None,
) -> int:
    """The number of units: rank of the flattenings (l, .) of T_{2l} and T_{2l+1} side by side.

    Their coefficients He_{2l-2}(b), He_{2l-1}(b) have no common root, so no unit is missed by both; for l = 1
    T_2 alone sees every unit. Blocks are divided by their noise, so that the threshold is the same for both.
    """
    options = options or SpectralOptions()
    blocks = []
    for k in (2 * order, 2 * order + 1):
        matrix = coefficients.flattened(order, k - order)
        level = _noise_of(matrix, k, noise)
        blocks.append(matrix / level)
    # Two independent blocks of unit noise: the sum of their operator norms bounds the noise of both.
    singular_values = np.linalg.svd(np.concatenate(blocks, axis=1), compute_uv=False)
    return int(np.sum(singular_values > options.rank_factor * np.sqrt(len(blocks))))


def published_directions(
    coefficients: HermiteTensors,
    rng: np.random.Generator,
    order: int = 1,
    width: int | None = None,
    noise: Mapping[int, float] | None = None,
    options: SpectralOptions | None = None,
) -> SpectralDirections:
    """Steps 1-4 of [hermite] Alg. 1 (``noise`` None: exact coefficients) or of Alg. 4.

    Args:
        coefficients: T_0 .. T_{2l+2}.
        width: m if known; else `count_units` decides.
        noise: nu_k by order k, of the flattenings (l, k - l): `EstimatedCoefficients.noise_levels`.
    """
    options = options or SpectralOptions()
    if coefficients.order < 2 * order + 2:
        raise InvalidInput(
            f"coefficients must reach order {2 * order + 2} for an analysis of order {order}. "
            f"Got order {coefficients.order} instead. Compute the higher moments too."
        )
    if width is None:
        width = count_units(coefficients, order, noise, options)
    dimension = coefficients.dimension
    found, strengths, orders, gaps = [], [], [], []
    for k in (2 * order + 1, 2 * order + 2):
        tensor = coefficients.flattened(order, order, k - 2 * order)
        matrix = tensor.reshape(len(tensor), -1)
        level = _noise_of(matrix, k, noise)
        values = np.linalg.svd(matrix, compute_uv=False)
        rank = min(width, int(np.sum(values > options.rank_factor * level)))
        terms = jennrich(tensor, rank, rng, options.draws)
        weights = folded_directions(terms.vectors, dimension, order)
        size = np.abs(term_weights(coefficients, k, weights))
        keep = size >= options.strength_factor * level / np.sqrt(max(width, 1))
        found.append(weights[:, keep])
        strengths.append(size[keep] / level)
        orders.append(np.full(int(keep.sum()), k))
        gaps.append(terms.gap)
    candidates, strength = np.concatenate(found, axis=1), np.concatenate(strengths)
    ranked = np.argsort(-strength)
    chosen = ranked[best_distinct(candidates.T[ranked], width, options.duplicate_radii)]
    return SpectralDirections(
        weights=candidates[:, chosen],
        orders=np.concatenate(orders)[chosen].astype(np.int64),
        strengths=strength[chosen],
        gaps=(gaps[0], gaps[1]),
    )


def _noise_of(matrix: Array, order: int, noise: Mapping[int, float] | None) -> float:
    rounding = _ROUNDING_NOISE * float(np.linalg.norm(matrix, 2))
    measured = 0.0 if noise is None else noise[order]
    return max(rounding, measured, np.finfo(np.float64).tiny)
