"""Answers along random lines: what they say about kinks, straightness and frozen regions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.networks.links import Link
from unweave.probing.noise import Noise
from unweave.targets.region import NormalisedQueries

SHORT_STEPS = (5e-4, 0.01, 0.05, 0.2)  # second differences of a smooth target scale like their squares
_LONG_STEPS = (1.0, 3.0)  # without a box: as far as Gaussian points go
_BOX_LONG_STEPS = (0.5, 1.0)  # in a box: the line ends at its two random end points
# Standard deviations of its error that a difference must exceed to count; more where sigma itself is known
# within a factor of two only.
_CLEAR_SIGMAS = {"float64": 10.0, "float32": 10.0, "noisy": 5.0}
_ROUNDING_SIGMAS = 2.0 * np.sqrt(12.0) * 1.01  # four times half a grid step, in sigmas: no S errs by more
_ZERO_BY_KINK_SIGMAS = 100.0  # on long steps: the smooth second difference that must be missing
_SAME_CURVATURE_SHARE = 0.5  # two steps see the same curvature, up to this share, where nothing breaks


@dataclass(frozen=True, eq=False)
class Lines:
    """Answers at center + t d and center - t d on L lines.

    ``centers`` and ``directions`` (L, D) are normalised coordinates; ``steps`` (T,) the t in growing order;
    ``center`` (L, m), ``plus`` and ``minus`` (L, T, m) the answers.
    """

    centers: Array
    directions: Array
    steps: Array
    center: Array
    plus: Array
    minus: Array

    @property
    def even(self) -> Array:
        """Second differences f(t) + f(-t) - 2 f(0). Shape (L, T, m)."""
        return self.plus + self.minus - 2 * self.center[:, None, :]

    @property
    def odd(self) -> Array:
        """Differences f(t) - f(-t). Shape (L, T, m)."""
        return self.plus - self.minus

    @property
    def answers(self) -> Array:
        """All answers as rows (L (2 T + 1), m)."""
        parts = self.center, self.plus, self.minus
        return np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts])

    def mapped(self, function: Callable[[Array], Array]) -> Lines:
        """Return the lines of ``function`` of the answers, which maps rows (n, m) to rows (n, m)."""
        ends = [len(self.center), len(self.center) + self.plus[..., 0].size]
        center, plus, minus = np.split(function(self.answers), ends)
        shape = self.plus.shape
        return replace(self, center=center, plus=plus.reshape(shape), minus=minus.reshape(shape))


@dataclass(frozen=True, eq=False)
class KinkEvidence:
    """What the second differences say: a smooth target has the same curvature at every step.

    ``medians`` and ``maxima`` of |f(t) + f(-t) - 2 f(0)| / t^2 for the short ``steps``: at a kink the median
    collapses and the maximum grows like 1/t. ``judged`` counts pairs (line, output) where differences were
    clear of the noise, ``broken`` those among them whose curvature is not the same at two steps.
    """

    steps: tuple[float, ...]
    medians: Array
    maxima: Array
    judged: int
    broken: int

    @property
    def kinks(self) -> bool:
        """Whether half of the lines that can be judged are broken: a smooth target breaks hardly any."""
        return 0 < self.judged <= 2 * self.broken

    @property
    def share(self) -> float:
        """Share of the lines that can be judged that are broken: all of them where pieces are straight."""
        return self.broken / max(self.judged, 1)


def ask_lines(
    queries: NormalisedQueries, n_lines: int, rng: np.random.Generator, centers: Array | None = None
) -> Lines:
    """Ask 13 points on each of ``n_lines`` lines.

    Without a box the lines go through ``centers`` (n_lines, D), or Gaussian points, in Gaussian directions;
    in a box they join two uniform points, so that every point of theirs is inside.
    """
    region = queries.region
    if region.has_box:
        ends = region.sample(2 * n_lines, rng).reshape(2, n_lines, -1)
        centers, directions = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
        steps = np.array(SHORT_STEPS + _BOX_LONG_STEPS)
    else:
        centers = region.sample(n_lines, rng) if centers is None else centers
        directions = rng.standard_normal(centers.shape)
        steps = np.array(SHORT_STEPS + _LONG_STEPS)
    t = np.concatenate([[0.0], steps, -steps])
    points = centers[:, None, :] + t[:, None] * directions[:, None, :]
    answers = queries(points.reshape(-1, region.n_inputs)).reshape(n_lines, t.size, -1)
    n = steps.size
    return Lines(centers, directions, steps, answers[:, 0], answers[:, 1 : n + 1], answers[:, n + 1 :])


def look_for_kinks(lines: Lines, noise: Noise) -> KinkEvidence:
    """Compare the curvature that each line and output shows at two steps, the shortest that are clear.

    With S(t) = f(t) + f(-t) - 2 f(0), smooth means S(s) / s^2 = S(t) / t^2 for short s < t. A pair is clear
    when |S(t)|, and the S(s) that it predicts, exceed the noise. Where all short second differences
    vanish but the line as a whole bends, it is broken as well: a piecewise linear function.
    """
    return _compared(lines, np.broadcast_to(_clear(noise), lines.even.shape))


def look_for_kinks_behind(link: Link, lines: Lines, noise: Noise) -> KinkEvidence:
    """Return the same of z where the answers are T(z): between its kinks, T bends what would be straight."""
    z = lines.mapped(lambda answers: link.undo(answers, noise.edge_sigma))
    sigma, number = noise.sigma_per_output, noise.number_format
    errors = lines.mapped(lambda answers: link.undone_errors(answers, sigma, number))
    largest = np.maximum(np.maximum(errors.plus, errors.minus), errors.center[:, None, :])
    return _compared(z, clear_over_sigma(noise) * largest)


def _compared(lines: Lines, clear: Array) -> KinkEvidence:
    """Evidence of second differences that are no error of their answers beyond ``clear`` (L, T, m)."""
    second = lines.even
    judged = np.zeros(second[:, 0].shape, dtype=np.bool_)
    broken = np.zeros_like(judged)
    short = len(SHORT_STEPS)
    for j in range(1, lines.steps.size):
        for i in range(min(j, short)):
            predicted = second[:, j] * (lines.steps[i] / lines.steps[j]) ** 2
            known = ~judged & (np.abs(second[:, j]) > clear[:, j])
            if j < short:
                new = known & (np.abs(predicted) > clear[:, i])
                differs = np.abs(second[:, i] - predicted) > _SAME_CURVATURE_SHARE * np.abs(predicted)
            else:
                new = known & (np.abs(predicted) > _ZERO_BY_KINK_SIGMAS * clear[:, i])
                differs = np.abs(second[:, i]) <= clear[:, i]
            broken |= new & differs
            judged |= new
    curvature = np.abs(second[:, :short]) / lines.steps[:short, None] ** 2
    flat = np.moveaxis(curvature, 1, 0).reshape(short, -1)
    medians, maxima = np.median(flat, axis=1), flat.max(axis=1)
    return KinkEvidence(SHORT_STEPS, medians, maxima, int(judged.sum()), int(broken.sum()))


def is_constant(lines: Lines, noise: Noise) -> bool:
    """Whether all answers on the lines are the same up to the noise; for rounded answers, equal."""
    allowed = 0.0 if noise.kind == "rounded" else _clear(noise)
    return bool((np.ptp(lines.answers, axis=0) <= allowed).all())


def is_linear(lines: Lines, noise: Noise) -> bool:
    """Whether f(t) = f(0) + t c up to the noise on every line: no even part, an odd part linear in t."""
    straight = lines.odd[:, -1:] * (lines.steps / lines.steps[-1])[:, None]
    # Rounding grows with the answers, and those at the ends of the lines may be larger than most.
    size, typical = np.abs(lines.answers).max(axis=0), np.sqrt(np.mean(lines.answers**2, axis=0))
    growth = np.where(typical > 0, size / np.where(typical > 0, typical, 1.0), 1.0)
    level = _clear(noise) * (growth if noise.kind in ("float64", "float32") else 1.0)
    return bool((np.abs(lines.even) <= level).all() and (np.abs(lines.odd - straight) <= level).all())


def _clear(noise: Noise) -> Array:
    """Return the size (m,) beyond which a second difference cannot be the error of its four answers."""
    level: Array = clear_over_sigma(noise) * noise.sigma_per_output
    return level


def clear_over_sigma(noise: Noise) -> float:
    """Return the same in standard deviations of an answer: f(t) + f(-t) - 2 f(0) has variance 6 sigma^2."""
    return _ROUNDING_SIGMAS if noise.kind == "rounded" else _CLEAR_SIGMAS[noise.kind] * float(np.sqrt(6.0))


def bending(lines: Lines) -> float:
    """Return how far the answers leave straight lines, relative to their changes along them.

    The root mean square over lines and outputs (each in units of its largest change) of the even part and
    of the odd part's departure from linear, both at the longest step, over that of the odd part. 0 for
    an affine function, about 1 for a network whose pre-activations vary by 1 or more.
    """
    unit = np.abs(lines.answers - lines.answers.mean(axis=0)).max(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    even, odd = lines.even[:, -1] / unit, lines.odd / unit
    middle = len(SHORT_STEPS) - 1
    departure = odd[:, -1] - odd[:, middle] * (lines.steps[-1] / lines.steps[middle])
    change = float(np.sqrt(np.mean(odd[:, -1] ** 2)))
    return float(np.sqrt(np.mean(even**2 + departure**2))) / change if change > 0 else 0.0


def slope_share(lines: Lines) -> float:
    """Return the root mean square slope over the longest short step, in units of that over the longest step.

    About 1 to 5 where the target is alive, almost 0 where it is flat around the centers of the lines.
    """
    size = np.sqrt(np.mean(lines.odd**2, axis=0))  # (T, m)
    middle = len(SHORT_STEPS) - 1
    local, far = size[middle] / lines.steps[middle], size[-1] / lines.steps[-1]
    seen = far > 0
    return float(np.sqrt(np.mean((local[seen] / far[seen]) ** 2))) if seen.any() else 0.0


def roughness(lines: Lines, noise: Noise) -> float:
    """Return how much slopes over the longest and the shortest clear short steps differ, relatively.

    The median over lines of |s - s'| / (|s| + |s'|): small where pre-activations change by less than one
    over a short step, near 1 where units switch within it. 0 when no shorter step is clear of the noise.
    """
    middle = len(SHORT_STEPS) - 1
    steps = lines.steps[: middle + 1]
    slopes = lines.odd[:, : middle + 1] / steps[:, None]  # (L, short, m)
    size = np.sqrt(np.mean(slopes[:, middle] ** 2, axis=0))  # (m,)
    seen = size > 0
    # A step is clear when the slope that the longest short step shows would stand out of the noise there.
    clear = (size * steps[:, None] > _clear(noise))[:, seen].all(axis=1)
    if not seen.any() or not clear[:middle].any():
        return 0.0
    scaled = slopes[:, :, seen] / size[seen]
    over_long, over_short = scaled[:, middle], scaled[:, int(np.argmax(clear))]  # (L, seen)
    total = np.linalg.norm(over_long, axis=1) + np.linalg.norm(over_short, axis=1)
    difference = np.linalg.norm(over_long - over_short, axis=1)
    return float(np.median(difference[total > 0] / total[total > 0]))
