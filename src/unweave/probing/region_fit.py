"""Whether a region suits a target: it moves and bends there, and all features matter alike."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.numerics.axis_moves import answers_along_axes, one_call_is_enough
from unweave.probing.lines import Lines, bending, is_constant, roughness, slope_share
from unweave.probing.noise import Noise
from unweave.targets.region import NormalisedQueries

_MOST_FEATURES = 1000  # whose slopes are compared where there are too many inputs to ask about all
_BLIND_SLOPE_NOISE = 3e-3  # relative noise above which slopes of single features say nothing
_ONE_SCALE_SLOPE_RATIO = 30.0  # features whose slopes differ by a smaller factor are on one scale
_FEW_FEATURES = 0.05  # share of the features at either end that may be hardly used, as the rim of an image is
_SLOPE_RATIO_EXTREMES = 10.0  # factor by which a few features may be weaker still
_LEAST_BENDING = 0.05  # less, and the units do not leave their linear range within the region
_ROUGH_AS_NOISE = 0.02  # relative scatter of repeatable answers that may be steps too narrow to resolve
_LEAST_SLOPE_SHARE = 0.2  # of short steps against long ones: less is flat
_MOST_ROUGHNESS = 0.6  # more, and the units switch within a fraction of the region: steps on flat ground


def scatters(noise: Noise) -> bool:
    """Whether answers that repeat exactly look like noise: perhaps the target lives on a finer scale."""
    return noise.kind == "noisy" and noise.repeatable and noise.relative > _ROUGH_AS_NOISE


def is_frozen(found: Lines, found_noise: Noise, lines: Lines, noise: Noise) -> bool:
    """Whether answers of a region that was found say less than ``lines`` did: units are saturated there.

    All equal, or so few different ones that the grid they were rounded to is not to be seen any more.
    """
    if is_constant(lines, noise):
        return False
    return is_constant(found, found_noise) or (noise.kind == "rounded" and found_noise.kind != "rounded")


def fits_standard_region(view: NormalisedQueries, lines: Lines, noise: Noise, slope_points: int) -> bool:
    """Whether the standard region is one: the target moves, bends, and all features matter alike.

    The latter is seen at ``slope_points``; where there are none it is taken for granted.
    """
    if is_constant(lines, noise) or scatters(noise):
        return False
    if noise.relative > _BLIND_SLOPE_NOISE:
        return True  # answers as coarse as this would not carry a search either
    frozen = slope_share(lines) < _LEAST_SLOPE_SHARE or roughness(lines, noise) > _MOST_ROUGHNESS
    if frozen or bending(lines) < _LEAST_BENDING:
        return False
    slopes = _feature_slopes(view, lines, noise, slope_points) if slope_points else np.empty(0)
    if slopes.size < 2:
        return True
    few = _FEW_FEATURES * slopes.size
    ordered = np.sort(slopes)[int(few) : slopes.size - int(few)]
    ratio = ordered[-1] / ordered[0]
    typical = np.quantile(slopes, 0.9) / np.quantile(slopes, 0.1)
    return bool(ratio <= _SLOPE_RATIO_EXTREMES * _ONE_SCALE_SLOPE_RATIO and typical <= _ONE_SCALE_SLOPE_RATIO)


def _feature_slopes(view: NormalisedQueries, lines: Lines, noise: Noise, points: int) -> Array:
    """Return the root mean square slopes of the features that have an effect, over a few points."""
    centers, values = lines.centers[:points], lines.center[:points]
    step = float(np.clip(np.sqrt(noise.relative), 1e-6, 0.1))  # balances noise against bending
    n_inputs = view.n_inputs
    if one_call_is_enough(n_inputs):
        moved = centers[:, None, :] + step * np.eye(n_inputs)
        answers = view(moved.reshape(-1, n_inputs)).reshape(centers.shape[0], n_inputs, -1)
    else:  # some of so many features tell how alike they are
        axes = np.linspace(0, n_inputs - 1, _MOST_FEATURES).astype(np.int64)
        steps = np.full(len(axes), step)
        answers = np.stack([answers_along_axes(view, center, steps, axes)[0] for center in centers])
    change = (answers - values[:, None, :]) / noise.sigma_per_output  # in units of the noise
    slopes = np.sqrt(np.mean(change**2, axis=(0, 2)))
    return np.asarray(slopes[slopes > 4.0])  # an unused feature shows noise only: sqrt(2) in these units
