"""From the span of noisy Hessians to a first network.

1. rank-one members of the span (with the identity added, which truncation is mostly made of);
2. every neuron's scale, bias and outgoing weights from its coefficients in the Hessians, per activation;
3. the output layer by linear least squares on answers, where they are not saturated.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.profiles.profiles import Profiles, fit_profiles
from unweave.methods.smooth_coarse.contrasts import contrast_profiles
from unweave.methods.smooth_coarse.rotated_hessians import RotatedHessians
from unweave.methods.smooth_coarse.width import NoisySpan
from unweave.networks.activations import SOFTMAX, Activation, get_activation
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.subspace.power_method import PowerMethodOptions, subspace_power_method
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import rank_one_coefficients, symmetric_packing

_LEAST_OBJECTIVE = 0.3  # Phi of an end point that may be a neuron; under noise true ones stay far below one
_SAME_DIRECTION = (0.1, 0.2)  # radians, for answers better and worse than ...
_ROUGH = 1e-3  # ... this relative noise
_RIDGE = 1e-6  # of the mean square of a feature, in the first least squares


def noisy_directions(
    span: NoisySpan,
    width: int,
    relative_noise: float,
    rng: np.random.Generator,
    on_round: Callable[[int, int, int], None] | None = None,
) -> Array:
    """Unit directions (at most ``width``, D), the best aligned first."""
    dimension = round((np.sqrt(8 * len(span.basis) + 1) - 1) / 2)
    space = RankOneSpace(span.with_identity(width), symmetric_packing(dimension))
    options = PowerMethodOptions(
        min_objective=_LEAST_OBJECTIVE,
        angle=_SAME_DIRECTION[int(relative_noise > _ROUGH)],
        patience=6,
    )
    found = subspace_power_method(space, rng, options=options, on_round=on_round)
    return found.directions[:width]


def noisy_profiles(
    taken: RotatedHessians, directions: Array, activation: Activation, rng: np.random.Generator
) -> Profiles:
    """Scale, bias and outgoing weights of every direction (m, D)."""
    coefficients = rank_one_coefficients(directions, taken.hessians)
    if taken.selectors is not None:
        return contrast_profiles(
            taken.sites @ directions.T, coefficients[:, :, 0], taken.selectors, activation
        )
    return fit_profiles(taken.sites @ directions.T, coefficients, activation, 2, rng)


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
    """The network of these neurons, its output layer by linear least squares behind the link.

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
    solution = np.empty((design.shape[1], behind.shape[1]))
    for output in range(behind.shape[1]):
        rows = design * slope[:, output, None]
        gram = rows.T @ rows
        gram[np.diag_indices_from(gram)] += _RIDGE * np.diag(gram).mean()
        solution[:, output] = np.linalg.solve(gram, rows.T @ (behind[:, output] * slope[:, output]))
    if link.name == SOFTMAX:
        solution -= solution.mean(axis=1, keepdims=True)
    m = len(directions)
    skip = solution[m + 1 :] if with_skip else None
    return Network(
        [weights, solution[:m]], [profiles.biases, solution[m]], [activation, link.name], skip=skip
    )
