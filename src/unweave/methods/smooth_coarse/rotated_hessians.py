"""Hessians from noisy answers: rotated four-point stencils of a large radius, with a sample of their error.

With orthonormal q_1 .. q_k and S(u) = f(x + u) + f(x - u) - 2 f(x),

    S(r q_i)                 = r^2 H_ii,
    S(r (q_i +- q_j)/sqrt 2) = r^2/2 (H_ii + H_jj +- 2 H_ij)        up to r^4,

so differences of the last two give H_ij, and all together give the diagonal by least squares. What the sums
leave unexplained, e_ij = (S_+ + S_-)/2r^2 - (H_ii + H_jj)/2, has the variance of the error of H_ij, times
1 - 2/k + 2/k^2 for the diagonal that was fitted: one stencil carries a sample of its own noise, and no second
one is needed to see how many singular values stand out of it.

A random rotation per site makes the step along a weight w only r |w| / sqrt(D), so r may be large, and turns
truncation into something like noise whose mean is a multiple of the identity.
Cost: 2 k^2 + 1 rows per site; standard deviation of H_ij: sigma / r^2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.subspace.symmetric import symmetric_packing

_ROWS_AT_ONCE = 1 << 18  # numbers per call of the target are a multiple of this


@dataclass(frozen=True, eq=False)
class RotatedHessians:
    """Packed Hessians at n sites, K outputs, p = k (k + 1)/2 entries."""

    sites: Array
    """(n, D)"""
    hessians: Array
    """(n, K, p)"""
    errors: Array
    """(n, K, p) a sample of their error, off the (rotated) diagonal"""
    selectors: Array | None = None
    """(n, classes): which contrast of classes each site shows (K = 1 then); None: outputs as they are"""

    def __len__(self) -> int:
        return len(self.sites)

    @staticmethod
    def concatenate(parts: list[RotatedHessians]) -> RotatedHessians:
        """All sites of ``parts``."""
        return RotatedHessians(
            np.concatenate([part.sites for part in parts]),
            np.concatenate([part.hessians for part in parts]),
            np.concatenate([part.errors for part in parts]),
            None
            if parts[0].selectors is None
            else np.concatenate([part.selectors for part in parts if part.selectors is not None]),
        )


def random_rotations(count: int, dimension: int, rng: np.random.Generator) -> Array:
    """(count, k, k) orthogonal matrices, uniformly distributed."""
    q, r = np.linalg.qr(rng.standard_normal((count, dimension, dimension)))
    return np.asarray(q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :])


def rotated_hessians(
    ask: Callable[[Array], Array], sites: Array, radius: float, rotations: Array, frames: Array | None = None
) -> RotatedHessians:
    """Hessians of ``ask``: (N, D) -> (N, K) at ``sites`` (n, D).

    ``rotations`` (n, k, k) turn the stencil within the subspace spanned by the orthonormal rows of ``frames``
    (n, k, D), in whose coordinates the result is; None: all inputs, k = D.
    """
    n, dimension = sites.shape
    k = rotations.shape[1]
    steps = radius * _pattern(k)  # (k^2, k)
    per_site = 2 * len(steps) + 1
    at_once = max(1, _ROWS_AT_ONCE // per_site)
    parts = []
    for start in range(0, n, at_once):
        part = slice(start, min(start + at_once, n))
        moves = steps @ rotations[part]  # (s, k^2, k)
        if frames is not None:
            moves = moves @ frames[part]
        centre = sites[part, None, :]
        rows = np.concatenate([centre, centre + moves, centre - moves], axis=1)
        values = ask(rows.reshape(-1, dimension)).reshape(len(rows), per_site, -1)
        middle, plus, minus = values[:, :1], values[:, 1 : 1 + len(steps)], values[:, 1 + len(steps) :]
        parts.append(_from_second_differences(plus + minus - 2 * middle, rotations[part], radius))
    hessians, errors = (np.concatenate(each) for each in zip(*parts, strict=True))
    return RotatedHessians(sites, hessians, errors)


def _pattern(k: int) -> Array:
    """Unit directions (k^2, k): q_i, then (q_i + q_j)/sqrt 2 and (q_i - q_j)/sqrt 2 for i < j."""
    axes = np.eye(k)
    i, j = np.triu_indices(k, 1)
    return np.concatenate([axes, (axes[i] + axes[j]) / np.sqrt(2), (axes[i] - axes[j]) / np.sqrt(2)])


def _from_second_differences(second: Array, rotations: Array, radius: float) -> tuple[Array, Array]:
    """Packed Hessians and errors (n, K, p) from S (n, k^2, K)."""
    n, _, outputs = second.shape
    k = rotations.shape[1]
    i, j = np.triu_indices(k, 1)
    second = second.transpose(0, 2, 1) / radius**2  # (n, K, k^2)
    axes, plus, minus = np.split(second, [k, k + len(i)], axis=2)
    sums = plus + minus  # H_ii + H_jj, with twice the variance of H_ii from the axes alone
    right = axes.copy()
    for row in range(k):
        right[:, :, row] += 0.5 * sums[:, :, (i == row) | (j == row)].sum(axis=2)
    # Normal equations (k/2) I + (1/2) 1 1^T, inverted in closed form.
    diagonal = (2 / k) * (right - right.sum(axis=2, keepdims=True) / (2 * k))
    full, error = np.zeros((n, outputs, k, k)), np.zeros((n, outputs, k, k))
    full[:, :, np.arange(k), np.arange(k)] = diagonal
    full[:, :, i, j] = full[:, :, j, i] = (plus - minus) / 2
    error[:, :, i, j] = error[:, :, j, i] = (sums - diagonal[:, :, i] - diagonal[:, :, j]) / 2
    packing = symmetric_packing(k)
    turned = [
        packing.pack(rotations[:, None].transpose(0, 1, 3, 2) @ each @ rotations[:, None])
        for each in (full, error)
    ]
    return turned[0], turned[1]
