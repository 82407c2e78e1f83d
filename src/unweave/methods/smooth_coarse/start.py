"""From the span of noisy Hessians to a first network.

1. rank-one members of the span (with the identity added, which truncation is mostly made of);
2. every unit's scale, bias and outgoing weights from its coefficients in the Hessians, per activation;
3. the output layer by linear least squares on answers, where they are not saturated.

Behind a softmax of rounded or noisy probabilities a site shows one contrast of classes (see
`likeliest_contrasts`). Its Hessian is a sum of the units' squares with coefficients

    s^2 g''(s t + b) a . sigma_n,        sigma_n = e_i - e_j:

for given (s, b) the outgoing weights a enter linearly, with another selector at every site.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.profiles.profiles import Profiles, fit_profiles, profile_grid
from unweave.methods.smooth_coarse.noisy_hessians import NoisySpan, RotatedHessians
from unweave.networks.activations import SOFTMAX, Activation, get_activation
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.numerics.clock import check
from unweave.subspace.power_method import PowerMethodOptions, subspace_power_method
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import rank_one_coefficients, symmetric_packing

_FEATURE_RIDGE = 1e-6  # of the mean square of a feature, in the first least squares for the output layer
_CONTRAST_RIDGE = 1e-3  # of the mean diagonal: rare classes, and the common part that no contrast sees
_GRID_AT_ONCE = 512  # pairs (s, b) whose K x K equations are solved together


@dataclass(frozen=True, kw_only=True)
class DirectionOptions:
    """Which rank-one matrices in the span of noisy Hessians count as units."""

    least_objective: float = 0.3
    """Objective of the power method at an end point that may be a unit; under noise true ones stay far
    below one."""
    same_direction: float = 0.1
    """Angle in radians below which two end points are one unit."""
    same_direction_rough: float = 0.2
    """The same for answers with more noise than ``rough_noise``."""
    rough_noise: float = 1e-3
    """Noise relative to the spread of the answers above which they count as rough."""
    patience: int = 6
    """Rounds of the power method without a new unit before it ends."""


def noisy_directions(
    span: NoisySpan,
    width: int,
    relative_noise: float,
    rng: np.random.Generator,
    on_round: Callable[[int, int, int], None] | None = None,
    options: DirectionOptions | None = None,
) -> Array:
    """Return unit directions (at most ``width``, D), the best aligned first."""
    options = options or DirectionOptions()
    rough = relative_noise > options.rough_noise
    dimension = round((np.sqrt(8 * len(span.basis) + 1) - 1) / 2)
    space = RankOneSpace(span.with_identity(width), symmetric_packing(dimension))
    power = PowerMethodOptions(
        min_objective=options.least_objective,
        angle=options.same_direction_rough if rough else options.same_direction,
        patience=options.patience,
    )
    found = subspace_power_method(space, rng, options=power, on_round=on_round)
    return found.directions[:width]


def noisy_profiles(
    taken: RotatedHessians, directions: Array, activation: Activation, rng: np.random.Generator
) -> Profiles:
    """Fit scale, bias and outgoing weights of every direction (m, D)."""
    coefficients = rank_one_coefficients(directions, taken.hessians)
    if taken.selectors is not None:
        return contrast_profiles(
            taken.sites @ directions.T, coefficients[:, :, 0], taken.selectors, activation
        )
    return fit_profiles(taken.sites @ directions.T, coefficients, activation, 2, rng)


def contrast_profiles(
    projections: Array, samples: Array, selectors: Array, activation: Activation
) -> Profiles:
    """Fit scale, bias and outgoing weights (m, K) of units to one contrast per site.

    ``projections`` (n, m), ``samples`` (n, m), ``selectors`` (n, K). The best point of a grid over
    (s, b) is taken; later fits refine it.
    """
    scales, biases = profile_grid(float(np.abs(projections).max(initial=1.0)))
    m, classes = projections.shape[1], selectors.shape[1]
    squares = (selectors[:, :, None] * selectors[:, None, :]).reshape(len(selectors), -1)
    best_scale, best_bias = np.ones(m), np.zeros(m)
    outgoing, left = np.zeros((m, classes)), np.full(m, np.inf)
    for unit in range(m):
        check()
        own = samples[:, unit]
        size = float(own @ own)
        for start in range(0, len(scales), _GRID_AT_ONCE):
            s, b = scales[start : start + _GRID_AT_ONCE], biases[start : start + _GRID_AT_ONCE]
            shape = s**2 * activation.jet(projections[:, unit, None] * s + b, 2)[2]  # (n, grid)
            gram = ((shape**2).T @ squares).reshape(-1, classes, classes)
            ridge = _CONTRAST_RIDGE * np.einsum("gkk->g", gram) / classes + np.finfo(np.float64).tiny
            gram = gram + ridge[:, None, None] * np.eye(classes)
            right = (shape * own[:, None]).T @ selectors  # (grid, K)
            amplitude = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
            misfit = size - 2 * np.einsum("gk,gk->g", amplitude, right)
            misfit += np.einsum("gk,gkl,gl->g", amplitude, gram, amplitude)
            at = int(np.argmin(misfit))
            if misfit[at] < left[unit]:
                best_scale[unit], best_bias[unit] = s[at], b[at]
                outgoing[unit], left[unit] = amplitude[at], misfit[at]
    size = np.maximum(np.einsum("nm,nm->m", samples, samples), np.finfo(np.float64).tiny)
    return Profiles(best_scale, best_bias, outgoing, np.sqrt(np.maximum(left, 0.0) / size))


def first_network(
    directions: Array,
    profiles: Profiles,
    activation: str,
    link: Link,
    points: Array,
    answers: Array,
    sigma: float,
    with_skip: bool,
) -> Network:
    """Return the network of these units, its output layer by linear least squares behind the link.

    Rows are weighted by the link's slope, so that saturated answers, behind which nothing can be seen, do not
    count.
    """
    weights = directions.T * profiles.scales
    features = get_activation(activation)(points @ weights + profiles.biases)
    columns = [features, np.ones((len(points), 1))]
    if with_skip:
        columns.append(points)
    design = np.hstack(columns)
    behind = link.undo(answers, sigma)
    slope = link.slope(answers)
    if link.name == "identity":  # all outputs weigh the rows alike
        solution = _ridge_solution(design, behind)
    else:
        pairs = zip(slope.T, behind.T, strict=True)
        solution = np.stack([_ridge_solution(design * by[:, None], each * by) for by, each in pairs], axis=1)
    if link.name == SOFTMAX:
        solution -= solution.mean(axis=1, keepdims=True)
    m = len(directions)
    skip = solution[m + 1 :] if with_skip else None
    return Network(
        [weights, solution[:m]], [profiles.biases, solution[m]], [activation, link.name], skip=skip
    )


def _ridge_solution(rows: Array, right: Array) -> Array:
    check()
    gram = rows.T @ rows
    gram[np.diag_indices_from(gram)] += _FEATURE_RIDGE * np.diag(gram).mean()
    return np.asarray(np.linalg.solve(gram, rows.T @ right), dtype=np.float64)
