"""The range test: a wrong layer assignment shows without the truth, and can be repaired.

V^l = V^{l-1} diag(g') W^l, so every column of V^l lies in the range of V^{l-1}. For a right assignment

    r_l = || V^l - V^{l-1} (V^{l-1})^+ V^l ||_F / || V^l ||_F,      l = 2 .. L,

is as small as the error of the entangled weights; one unit in the wrong layer makes it larger by orders of
magnitude. The test says nothing where V^{l-1} has D columns: then its range is everything.

Swapping column a of V^{l-1} for a column b of V^l in the range that must hold V^{l+1}: with Q an
orthonormal basis of V^l without its column, E = (I - Q Q^T) V^{l+1} and q = (I - Q Q^T) a, the new squared
residual is ||E||^2 - |q^T E|^2 / |q|^2; all m_{l-1} m_l swaps together cost O(m_l D m_l^2) flops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.linalg

from unweave.arrays import Array

_SWAPS_MEASURED = 8  # best swaps by the quick formula, of which the full residual is computed


@dataclass(frozen=True, eq=False)
class RepairedLayers:
    """Layers after the swaps of the range test."""

    layers: tuple[Array, ...]
    """(D, m_l) per layer."""
    swaps: int
    residuals: Array
    """(L - 1,) r_2 .. r_L after the swaps."""
    residuals_before: Array
    """(L - 1,) r_2 .. r_L as given."""


def range_residuals(layers: Sequence[Array]) -> Array:
    """(L - 1,) relative residuals r_2 .. r_L of matrices (D, m_l); zero where the range is everything."""
    return np.array([_outside(before, after) for before, after in pairwise(layers)])


def swap_residuals(lower: Array, upper: Array, after: Array) -> Array:
    """(m_{l-1}, m_l) residuals of ``after`` in the range of ``upper`` (D, m_l) once column j of it was
    swapped for column i of ``lower`` (D, m_{l-1})."""
    total = float(np.sum(after**2))
    residuals = np.empty((lower.shape[1], upper.shape[1]))
    for j in range(upper.shape[1]):
        rest = np.delete(upper, j, axis=1)
        basis = scipy.linalg.qr(rest, mode="economic", check_finite=False)[0]
        remainder = after - basis @ (basis.T @ after)
        columns = lower - basis @ (basis.T @ lower)
        sizes = np.maximum(np.sum(columns**2, axis=0), np.finfo(np.float64).tiny)
        explained = np.sum((columns.T @ remainder) ** 2, axis=1) / sizes
        residuals[:, j] = np.sqrt(np.maximum(np.sum(remainder**2) - explained, 0.0) / total)
    return residuals


def repair_by_swaps(
    layers: Sequence[Array], max_swaps: int = 20, swap_ratio: float = 0.95, total_ratio: float = 0.5
) -> RepairedLayers:
    """Swap single columns between neighboring hidden layers while that clearly lowers the residuals.

    ``layers`` are (D, m_1), .., (D, m_L) with unit columns. The last layer is taken as right. Every swap must
    lower the total residual to less than ``swap_ratio`` of itself. All are undone unless together they lower
    it to less than ``total_ratio``: wrong units raise it tenfold and more.
    """
    current = list(layers)
    before = range_residuals(current)
    first = total = float(np.linalg.norm(before))
    swaps = 0
    while swaps < max_swaps:
        best, changed = min(
            (_best_swap(current, index) for index in range(len(current) - 2)),
            key=lambda found: found[0],
            default=(np.inf, current),
        )
        if not best < swap_ratio * total:
            break
        current, total = changed, best
        swaps += 1
    if not total < total_ratio * first:
        return RepairedLayers(tuple(layers), 0, before, before)
    return RepairedLayers(tuple(current), swaps, range_residuals(current), before)


def _best_swap(layers: list[Array], index: int) -> tuple[float, list[Array]]:
    """Total residual and layers after the best swap between layers ``index`` and ``index + 1``."""
    quick = swap_residuals(layers[index], layers[index + 1], layers[index + 2])
    best: tuple[float, list[Array]] = (np.inf, layers)
    for flat in np.argsort(quick, axis=None)[:_SWAPS_MEASURED]:
        i, j = np.unravel_index(int(flat), quick.shape)
        trial = list(layers)
        lower, upper = layers[index].copy(), layers[index + 1].copy()
        lower[:, i], upper[:, j] = layers[index + 1][:, j], layers[index][:, i]
        trial[index], trial[index + 1] = lower, upper
        total = float(np.linalg.norm(range_residuals(trial)))
        if total < best[0]:
            best = (total, trial)
    return best


def _outside(before: Array, after: Array) -> float:
    if before.shape[1] >= before.shape[0]:
        return 0.0
    basis = scipy.linalg.qr(before, mode="economic", check_finite=False)[0]
    return float(np.linalg.norm(after - basis @ (basis.T @ after)) / np.linalg.norm(after))
