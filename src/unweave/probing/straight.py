"""Whether a target is a link and an affine map: T^{-1} of its answers along lines is straight.

Of y = T(x W + b) the numbers z = T^{-1}(y) are a + b t on every line, wherever the link is not saturated. Far
out, where it is, T(a + b t) still tells what the answer must be: units that leave their linear range only
there show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
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
_SQUARES_ROUND = 10.0  # times more than sums of inputs do, where they cancel
_LARGEST_EXPONENT = 50.0  # of exp: farther up nothing is asked


@dataclass(frozen=True, eq=False)
class StraightLines:
    """Lines on which z was read: z = intercept + t slope."""

    link: Link
    references: IntArray | None
    """(L,) class against which the others are read, of a softmax."""
    intercepts: Array
    """(L, K)"""
    slopes: Array
    """(L, K)"""
    intercept_errors: Array
    """(L, K) standard deviations"""
    slope_errors: Array
    """(L, K)"""
    readable: BoolArray
    """(L, K) lines and outputs on which enough points could be read."""
    straight: bool
    """Whether no point that could be read is off its line."""

    @property
    def is_readable(self) -> bool:
        """Whether every output could be read on enough lines."""
        return bool((self.readable.mean(axis=0) >= _READABLE_SHARE).all())


@dataclass(frozen=True, eq=False)
class _ReadLines:
    """What the answers on lines say about z = T^{-1}(y), or about its log ratios."""

    references: IntArray | None
    """(L,) class against which the others are read, of a softmax."""
    t: Array
    """(1, P, 1) where on its line a point lies."""
    z: Array
    """(L, P, K)"""
    weights: Array
    """(L, P, K) one over the variance of z, 0 where it could not be read."""
    readable: BoolArray
    """(L, K) lines and outputs on which enough points could be read."""


def _read(link: Link, lines: Lines, noise: Noise) -> _ReadLines:
    answers = np.concatenate([lines.center[:, None], lines.plus, lines.minus], axis=1)  # (L, 2 T + 1, K)
    # The class that is least often improbable on a line tells most about the others there.
    references = np.argmax(np.median(answers, axis=1), axis=1) if link.name == SOFTMAX else None
    outputs = answers.shape[2]
    classes = (None,) if references is None else tuple(range(outputs))
    sigma, number = noise.sigma_per_output, noise.number_format
    z, errors = np.zeros_like(answers), np.zeros_like(answers)
    for reference in classes:
        own = np.full(len(answers), True) if references is None else references == reference
        if own.any():
            part = answers[own]
            read = link.contrasts(part.reshape(-1, outputs), sigma, number, reference)
            z[own], errors[own] = (each.reshape(part.shape) for each in read)
    t = np.concatenate([[0.0], lines.steps, -lines.steps])[None, :, None]
    weights = np.where(np.isfinite(errors), 1 / np.maximum(errors, np.finfo(np.float64).tiny), 0.0) ** 2
    # The longest steps must be among what was read, or straightness is that of any smooth function.
    far = (weights * (np.abs(t) >= lines.steps[-2])).sum(axis=1) > 0
    readable = ((weights > 0).sum(axis=1) >= _FEWEST_POINTS) & far
    return _ReadLines(references, t, z, weights, readable)


def read_lines(link: Link, lines: Lines, noise: Noise) -> StraightLines:
    """Fit a + b t to z on every line, by least squares weighted by what each answer tells about z."""
    read = _read(link, lines, noise)
    t, z, weights, readable = read.t, read.z, read.weights, read.readable
    total = np.maximum(weights.sum(axis=1), np.finfo(np.float64).tiny)
    middle = (weights * t).sum(axis=1) / total
    away = t - middle[:, None]
    spread = np.maximum((weights * away**2).sum(axis=1), np.finfo(np.float64).tiny)
    slopes = (weights * away * z).sum(axis=1) / spread
    intercepts = (weights * z).sum(axis=1) / total - slopes * middle
    off = np.abs(z - intercepts[:, None] - slopes[:, None] * t) * np.sqrt(weights)
    straight = bool((off.max(axis=1) <= clear_over_sigma(noise))[readable].all())
    slope_errors = 1 / np.sqrt(spread)
    intercept_errors = np.hypot(1 / np.sqrt(total), middle * slope_errors)
    return StraightLines(
        link, read.references, intercepts, slopes, intercept_errors, slope_errors, readable, straight
    )


def are_parabolas(link: Link, lines: Lines, noise: Noise) -> bool:
    """Whether z is a + b t + c t^2 on every line, as that of a quadratic polynomial is."""
    read = _read(link, lines, noise)
    if not (read.readable.mean(axis=0) >= _READABLE_SHARE).all():
        return False
    powers = np.vander(read.t[0, :, 0] / lines.steps[-1], 3)
    for line, output in np.argwhere(read.readable):
        weight = np.sqrt(read.weights[line, :, output])
        design, wanted = powers * weight[:, None], read.z[line, :, output] * weight
        off = wanted - design @ np.linalg.lstsq(design, wanted, rcond=None)[0]
        if np.abs(off).max() > _SQUARES_ROUND * clear_over_sigma(noise):
            return False
    return True


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
    low, high = _range(found.link, z - give, z + give)
    slack = clear_over_sigma(noise) * noise.sigma_per_output
    if noise.number_format is not None:
        # Terms of a sum may cancel on one line, and so do not on the others.
        largest = np.array([np.abs(answers[np.abs(t) == step]).max(axis=0) for step in np.abs(t)])
        slack = slack + _FAR_ROUNDINGS * noise.number_format.eps * largest
    return bool(((answers >= low - slack) & (answers <= high + slack)).all())


def _range(link: Link, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the least and largest answers (n, K) for z between ``low`` and ``high`` (n, K)."""
    with np.errstate(over="ignore"):
        if link.name == SOFTMAX:
            return _each_class(low, high), _each_class(high, low)
        apply = get_activation(link.name)
        return apply(low), apply(high)


def _each_class(own: Array, others: Array) -> Array:
    """Return the probability (n, K) of each class with z ``own`` where all others have ``others``."""
    ratios = np.exp(np.minimum(others[:, None, :] - own[:, :, None], 700.0))
    same = np.arange(own.shape[1])
    ratios[:, same, same] = 1.0
    return np.asarray(1 / ratios.sum(axis=2))
