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

**The width** is the number of units that stand out of the noise. With M the packed Hessians of all sites and
E the sample of their error, the identity projected out of both (truncation is mostly a multiple of it),

    width = #{ i : s_i(M) > c s_1(E) }.

E has the noise of M and its truncation level, so no model of either is needed (parallel analysis).

**The radius** is found from answers alone. Small radii drown in noise, large ones in the function's own
higher derivatives. Where two stencils turned against each other agree best is in between: it maximizes

    | H_1 + H_2 | / | H_1 - H_2 |

over a ladder, at a few sites, in random subspaces of a few dimensions (a step along a weight is as short
there as in the whole space). On a coarse grid of answers small radii give differences that are all zero, and
say nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unweave.arrays import Array
from unweave.numerics.clock import check, svd_flops
from unweave.subspace.symmetric import symmetric_packing

_STENCIL_ROWS_AT_ONCE = 1 << 18  # rows per call of the target: a block of some tens of megabytes


@dataclass(frozen=True, kw_only=True)
class RadiusOptions:
    """The ladder of radii, in normalized inputs."""

    dimensions: int = 6
    """Dimension of the subspaces in which radii are compared."""
    sites: int = 4
    """Sites at which they are compared."""
    ratio: float = 1.6
    """Ratio of one radius of the ladder to the next."""
    longest: float = 16.0
    """Longest radius, in standard deviations of an input."""
    shortest: float = 1e-3
    """Shortest radius, where even float64 answers are noisier than curved."""
    past: int = 2
    """Radii tried after the best so far before the ladder ends."""


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
        """Join the sites of ``parts``."""
        return RotatedHessians(
            np.concatenate([part.sites for part in parts]),
            np.concatenate([part.hessians for part in parts]),
            np.concatenate([part.errors for part in parts]),
            None
            if parts[0].selectors is None
            else np.concatenate([part.selectors for part in parts if part.selectors is not None]),
        )


def random_rotations(count: int, dimension: int, rng: np.random.Generator) -> Array:
    """Draw orthogonal matrices (count, k, k), uniformly distributed."""
    q, r = np.linalg.qr(rng.standard_normal((count, dimension, dimension)))
    return np.asarray(q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :])


def rotated_hessians(
    ask: Callable[[Array], Array], sites: Array, radius: float, rotations: Array, frames: Array | None = None
) -> RotatedHessians:
    """Take the Hessians of ``ask``: (N, D) -> (N, K) at ``sites`` (n, D).

    ``rotations`` (n, k, k) turn the stencil within the subspace spanned by the orthonormal rows of ``frames``
    (n, k, D), in whose coordinates the result is; None: all inputs, k = D.
    """
    n, dimension = sites.shape
    k = rotations.shape[1]
    steps = radius * _pattern(k)  # (k^2, k)
    per_site = 2 * len(steps) + 1
    at_once = max(1, _STENCIL_ROWS_AT_ONCE // per_site)
    parts = []
    for start in range(0, n, at_once):
        check()
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
    """Return unit directions (k^2, k): q_i, then (q_i + q_j)/sqrt 2 and (q_i - q_j)/sqrt 2 for i < j."""
    axes = np.eye(k)
    i, j = np.triu_indices(k, 1)
    return np.concatenate([axes, (axes[i] + axes[j]) / np.sqrt(2), (axes[i] - axes[j]) / np.sqrt(2)])


def _from_second_differences(second: Array, rotations: Array, radius: float) -> tuple[Array, Array]:
    """Return packed Hessians and errors (n, K, p) from S (n, k^2, K)."""
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


@dataclass(frozen=True, eq=False)
class NoisySpan:
    """The span of noisy Hessians."""

    basis: Array
    """(p, q) left singular vectors, largest first, orthogonal to the identity"""
    singular_values: Array
    """(q,)"""
    noise_level: float
    """Largest singular value of their error"""
    columns: int

    stands_out: ClassVar[float] = 1.15
    """Ratio of a singular value to the largest one of the error above which it counts as a unit."""

    @property
    def width(self) -> int:
        """Number of units: singular values that stand out."""
        return int(np.sum(self.singular_values > self.stands_out * self.noise_level))

    @property
    def gap(self) -> float:
        """s_m over the noise level, for the width m."""
        width = self.width
        if width == 0:
            return 0.0
        level = max(self.noise_level, float(np.finfo(np.float64).tiny))
        return float(self.singular_values[width - 1] / level)

    def with_identity(self, rank: int) -> Array:
        """Return an orthonormal basis (p, rank + 1) of the first ``rank`` directions and the identity."""
        return np.concatenate([self.basis[:, :rank], _identity(len(self.basis))[:, None]], axis=1)


def noisy_span(taken: RotatedHessians, weights: Array) -> NoisySpan:
    """Return the span of the Hessians, outputs weighted by ``weights`` (K,) (one over their noise)."""
    size = taken.hessians.shape[2]
    identity = _identity(size)
    columns, errors = ((part * weights[:, None]).reshape(-1, size) for part in (taken.hessians, taken.errors))
    columns = columns - np.outer(columns @ identity, identity)
    errors = errors - np.outer(errors @ identity, identity)
    check(1.5 * svd_flops(*columns.shape))  # vectors of one matrix, values of another
    _, values, right = np.linalg.svd(columns, full_matrices=False)
    noise = np.linalg.svdvals(errors)
    # The identity was taken out: one dimension of Sym(D) less.
    keep = min(len(values), size - 1)
    return NoisySpan(np.ascontiguousarray(right[:keep].T), values[:keep], float(noise[0]), len(columns))


def _identity(size: int) -> Array:
    """Return the identity matrix of unit norm, packed into ``size`` entries."""
    dimension = round(float((np.sqrt(8 * size + 1) - 1) / 2))
    return np.asarray(symmetric_packing(dimension).pack(np.eye(dimension)) / np.sqrt(dimension))


def choose_radius(
    ask: Callable[[Array], Array],
    draw_sites: Callable[[int, float], Array],
    relative_noise: float,
    longest: float,
    rng: np.random.Generator,
    options: RadiusOptions | None = None,
) -> float:
    """Return the radius at which stencils of ``ask``: (N, D) -> (N, K) tell most, at most ``longest``.

    ``relative_noise`` is sigma over the spread of the answers. The ladder is climbed downwards and left when
    it gets worse. Cost: 4 x 146 rows per rung in six dimensions or more, about five rungs.
    """
    options = options or RadiusOptions()
    longest = min(options.longest, longest)
    # About 6 (sigma / F)^(1/4) is best for unit weights; weights a few times shorter are seen farther out.
    top = min(longest, max(options.shortest, 4 * relative_noise**0.25 * options.ratio**4))
    sites = draw_sites(options.sites, top)
    dimension = sites.shape[1]
    k = min(options.dimensions, dimension)
    frames = np.linalg.qr(rng.standard_normal((options.sites, dimension, k)))[0].transpose(0, 2, 1)
    turned = [random_rotations(options.sites, k, rng) for _ in range(2)]
    best, best_ratio, past, radius = top, -np.inf, 0, top
    while radius >= options.shortest and past <= options.past:
        first, second = (rotated_hessians(ask, sites, radius, each, frames).hessians for each in turned)
        ratio = _agreement(first, second)
        if ratio > best_ratio:
            best, best_ratio, past = radius, ratio, 0
        else:
            past += 1
        radius /= options.ratio
    return float(best)


def _agreement(first: Array, second: Array) -> float:
    """Return |H_1 + H_2| / |H_1 - H_2| over sites and outputs; minus infinity where most entries are zero."""
    if np.mean(first != 0) < 0.5:
        return -np.inf
    difference = float(np.linalg.norm(first - second))
    return float(np.linalg.norm(first + second)) / max(difference, float(np.finfo(np.float64).tiny))
