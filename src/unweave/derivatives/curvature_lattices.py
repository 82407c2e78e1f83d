"""Gradients and Hessians of all outputs on the smallest lattice that holds them.

    points     x + h (e_i + e_j), i <= j, and the same with one or none of the two

are C(d+2, 2) rows, as many as value, gradient and Hessian have entries. With F, F_i, F_ij the answers,

    g_i  = [4 F_i - 3 F - F_ii] / 2h          + O(h^2)
    H_ij = [F_ij - F_i - F_j + F] / h^2       + O(h)

so that rounding sigma/h^2 and truncation h are alike at h = sigma^(1/3): five digits in float64, which is
enough to begin a fit with. Rows are ordered by their largest index, so a lattice in d directions is the
beginning of one in more: `CurvatureSampler.widen_to` only asks for what is new.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.derivatives.stencils import Function
from unweave.subspace.symmetric import symmetric_packing


def curvature_rows(d: int) -> int:
    """C(d+2, 2), the rows of one lattice in ``d`` directions."""
    return (d + 1) * (d + 2) // 2


@dataclass(frozen=True, eq=False)
class Curvatures:
    """First and second derivatives of K outputs at n sites."""

    sites: Array
    """(n, d)"""
    gradients: Array
    """(n, K, d)"""
    hessians: Array
    """(n, K, p) packed"""

    def rescaled(self, unit: float) -> Curvatures:
        """Return the same in coordinates x / ``unit``."""
        return Curvatures(self.sites / unit, unit * self.gradients, unit**2 * self.hessians)


class CurvatureSampler:
    """Lattices around sites in d directions; sites and directions can be added, no row is asked twice.

    ``function`` is asked at (n, d) points for whatever d; further coordinates count as zero.
    """

    def __init__(self, function: Function, step: float) -> None:
        self._function, self._step = function, step
        self._sites: list[Array] = []
        self._answers: list[Array] = []
        self.dimension = 0

    def __len__(self) -> int:
        return len(self._sites)

    def add(self, site: Array) -> None:
        """One more site (d,), of as many coordinates as the sites before."""
        self._answers.append(self._function(self._points(site, 0)))
        self._sites.append(site)
        self.dimension = len(site)

    def widen_to(self, dimension: int) -> None:
        """Take all lattices in ``dimension`` directions, the sites' new coordinates being zero."""
        more = max(dimension - self.dimension, 0)
        sites = [np.concatenate([site, np.zeros(more)]) for site in self._sites]
        new = [self._function(self._points(site, curvature_rows(self.dimension))) for site in sites]
        self._answers = [np.concatenate(pair) for pair in zip(self._answers, new, strict=True)]
        self._sites, self.dimension = sites, self.dimension + more

    def rows(self) -> tuple[Array, Array]:
        """All points (n, d) so far and their answers (n, K)."""
        points = [self._points(site, 0) for site in self._sites]
        return np.concatenate(points), np.concatenate(self._answers)

    def curvatures(self) -> Curvatures:
        """The derivatives that all answers so far give."""
        d, step = self.dimension, self._step
        answers = np.stack(self._answers).transpose(0, 2, 1)  # (n, K, rows)
        index = _pairs(d)
        table = np.empty((d + 1, d + 1), dtype=np.int64)
        table[index[:, 0], index[:, 1]] = table[index[:, 1], index[:, 0]] = np.arange(len(index))
        table = np.roll(table, -1, axis=(0, 1))  # "none" stands last
        every = answers[:, :, table]
        center, first, second = every[..., d, d], every[..., :d, d], every[..., :d, :d]
        diagonal = np.einsum("nkii->nki", second)
        gradients = (4 * first - 3 * center[..., None] - diagonal) / (2 * step)
        moved = first - center[..., None]
        hessians = (second - first[..., None] - moved[..., None, :]) / step**2
        return Curvatures(np.stack(self._sites), gradients, np.asarray(symmetric_packing(d).pack(hessians)))

    def _points(self, site: Array, known: int) -> Array:
        """The lattice around ``site`` without its first ``known`` rows."""
        index = _pairs(len(site))[known:]
        steps = np.concatenate([np.zeros((1, len(site))), self._step * np.eye(len(site))])
        return np.asarray(site + steps[index[:, 0]] + steps[index[:, 1]])


def _pairs(d: int) -> IntArray:
    """(C(d+2, 2), 2) pairs i <= j of 1..d, 0 for none, ordered by the larger one."""
    return np.array([(i, j) for j in range(d + 1) for i in range(j + 1)], dtype=np.int64)
