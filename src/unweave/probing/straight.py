"""Whether a target is a link and an affine map: T^{-1} of its answers along lines is straight.

Of y = T(x W + b) the numbers z = T^{-1}(y) are a + b t on every line, wherever the link is not saturated. Far
out, where it is, T(a + b t) still tells what the answer must be: units that leave their linear range only
there show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.errors import NonFiniteAnswers
from unweave.networks.activations import SOFTMAX, get_activation
from unweave.networks.links import Link
from unweave.probing.lines import Lines, clear_over_sigma
from unweave.probing.noise import Noise
from unweave.targets.region import NormalisedQueries

_FEWEST_POINTS = 5  # on a line that must be readable: two for the line itself, three that could contradict
_READABLE_SHARE = 0.3  # of the lines that must be readable for every output
_FAR_STEPS = 10.0 ** np.arange(1, 9)  # in normalised inputs, both ways
_FAR_LINES = 4  # lines that are followed
_SLOPE_SIGMAS = 6.0  # by which the slope of a line may be off
_FAR_ROUNDINGS = 100.0  # times eps |y|: rounding of a sum far out
_LARGEST_EXPONENT = 50.0  # of exp: farther up nothing is asked


@dataclass(frozen=True, eq=False)
class StraightLines:
    """Lines on which z was read: z = intercept + t slope."""

    link: Link
    reference: int | None
    """Class against which the others are read, of a softmax."""
    intercepts: Array
    """(L, C)"""
    slopes: Array
    """(L, C)"""
    intercept_errors: Array
    """(L, C) standard deviations"""
    slope_errors: Array
    """(L, C)"""
    readable: BoolArray
    """(L, C) lines and outputs on which enough points could be read."""
    straight: bool
    """Whether no point that could be read is off its line."""

    @property
    def is_readable(self) -> bool:
        """Whether every output could be read on enough lines."""
        return bool((self.readable.mean(axis=0) >= _READABLE_SHARE).all())


def read_lines(link: Link, lines: Lines, noise: Noise) -> StraightLines:
    """Fit a + b t to z on every line, by least squares weighted by what each answer tells about z."""
    reference = _reference(lines.answers) if link.name == SOFTMAX else None
    z, errors = link.contrasts(lines.answers, noise.sigma_per_output, noise.number_format, reference)
    n_lines, n_steps = lines.plus.shape[:2]

    def by_line(rows: Array) -> Array:
        """(L, 2 T + 1, C): center first, then plus, then minus."""
        center, plus, minus = np.split(rows, [n_lines, n_lines * (1 + n_steps)])
        sides = [side.reshape(n_lines, n_steps, -1) for side in (plus, minus)]
        return np.concatenate([center[:, None], *sides], axis=1)

    z, errors = by_line(z), by_line(errors)
    t = np.concatenate([[0.0], lines.steps, -lines.steps])[None, :, None]
    weights = np.where(np.isfinite(errors), 1 / np.maximum(errors, np.finfo(np.float64).tiny), 0.0) ** 2
    total = np.maximum(weights.sum(axis=1), np.finfo(np.float64).tiny)
    middle = (weights * t).sum(axis=1) / total
    away = t - middle[:, None]
    spread = np.maximum((weights * away**2).sum(axis=1), np.finfo(np.float64).tiny)
    slopes = (weights * away * z).sum(axis=1) / spread
    intercepts = (weights * z).sum(axis=1) / total - slopes * middle
    off = np.abs(z - intercepts[:, None] - slopes[:, None] * t) * np.sqrt(weights)
    # The longest steps must be among what was read, or straightness is that of any smooth function.
    far = (weights * (np.abs(t) >= lines.steps[-2])).sum(axis=1) > 0
    readable = ((weights > 0).sum(axis=1) >= _FEWEST_POINTS) & far
    straight = bool((off.max(axis=1) <= clear_over_sigma(noise))[readable].all())
    slope_errors = 1 / np.sqrt(spread)
    intercept_errors = np.hypot(1 / np.sqrt(total), middle * slope_errors)
    return StraightLines(
        link, reference, intercepts, slopes, intercept_errors, slope_errors, readable, straight
    )


def stays_straight(view: NormalisedQueries, found: StraightLines, lines: Lines, noise: Noise) -> bool:
    """Whether answers far along the lines are what z = a + b t says: 64 rows at most.

    False if no line could be read for all outputs.
    """
    chosen = np.flatnonzero(found.readable.all(axis=1))[:_FAR_LINES]
    if not len(chosen):
        return False
    t = np.concatenate([_FAR_STEPS, -_FAR_STEPS])
    line, t = np.repeat(chosen, len(t)), np.tile(t, len(chosen))
    z = found.intercepts[line] + t[:, None] * found.slopes[line]
    give = _SLOPE_SIGMAS * (np.abs(t)[:, None] * found.slope_errors[line] + found.intercept_errors[line])
    if found.link.name == "exp":
        kept = ((z + give) < _LARGEST_EXPONENT).all(axis=1)
        line, t, z, give = line[kept], t[kept], z[kept], give[kept]
    if not len(t):
        return False
    try:
        answers = view(lines.centers[line] + t[:, None] * lines.directions[line])
    except NonFiniteAnswers:
        return False
    low, high = _range(found, z - give, z + give)
    slack = clear_over_sigma(noise) * noise.sigma_per_output
    if noise.number_format is not None:
        # Terms of a sum may cancel on one line, and so do not on the others.
        largest = np.array([np.abs(answers[np.abs(t) == step]).max(axis=0) for step in np.abs(t)])
        slack = slack + _FAR_ROUNDINGS * noise.number_format.eps * largest
    return bool(((answers >= low - slack) & (answers <= high + slack)).all())


def _range(found: StraightLines, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the least and largest answers (n, K) for z between ``low`` and ``high`` (n, C)."""
    with np.errstate(over="ignore"):
        if found.reference is None:
            apply = get_activation(found.link.name)
            return apply(low), apply(high)
        least, most = (np.insert(z, found.reference, 0.0, axis=1) for z in (low, high))
        return _each_class(least, most), _each_class(most, least)


def _each_class(own: Array, others: Array) -> Array:
    """Return the probability (n, K) of each class with z ``own`` where all others have ``others``."""
    ratios = np.exp(np.minimum(others[:, None, :] - own[:, :, None], 700.0))
    same = np.arange(own.shape[1])
    ratios[:, same, same] = 1.0
    return np.asarray(1 / ratios.sum(axis=2))


def _reference(answers: Array) -> int:
    """Return the class that is least often improbable."""
    return int(np.argmax(np.quantile(answers, 0.1, axis=0) + 1e-3 * answers.mean(axis=0)))
