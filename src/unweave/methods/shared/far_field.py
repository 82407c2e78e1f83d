"""First-layer directions from the far field.

On a circle of radius R >> 1 every first-layer unit is saturated except near the one place (in half a turn)
where its pre-activation crosses zero. Between crossings the network is constant, at a crossing it depends on
w_k . x alone: its gradient is parallel to w_k, exactly, whatever the depth and the number of outputs.

A crossing is found by bisection of the steps of f along the circle. Its gradient costs 4 d rows, and a few
rows moved at right angles to it must not change f: otherwise two units cross there at once. On later
circles a crossing of a known unit lies where w_k . x has its known value, and costs nothing; the other
crossings are new.

Cost: about 40 rows per unit and circle, 4 d + 4 per unit for its direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.derivatives.site_differences import gradients_around
from unweave.search import GaveUp, Reason

Ask = Callable[[Array], Array]
"""Answers (n, K) to rows (n, d)."""

_MOST_BISECTIONS = 12  # of a steep step: a thousand times steeper than its cell is wide


class FarFieldReason(Reason):
    """Why the far field shows no units."""

    NOT_FLAT = (
        "far away the answers do not level off between isolated steps, so the hidden units do not saturate; "
        "networks with several hidden layers need tanh, logistic or erf units"
    )


@dataclass(frozen=True, kw_only=True)
class CircleOptions:
    """First-layer directions from far-field circles."""

    radius: float = 1e4
    """Per coordinate: crossings are far apart, and rounding still leaves z to 1e-11."""
    grid_per_coordinate: int = 8
    """Intervals on half a turn, per coordinate of the circle's space: units are about as many."""
    fewest_grid: int = 200
    """Least number of intervals on half a turn."""
    visible: float = 1e-7
    """Change of the answers, relative to their size, that counts as a step."""
    most_steps: float = 0.6
    """Share of the intervals that may show a step; units that do not saturate show more."""
    most_grid: int = 0
    """Intervals up to which the grid is halved again where too many show a step."""
    cell: float = 0.25
    """Arc length to which steps are bisected: an eighth of the width of a unit of norm one."""
    tail: float = 0.0
    """Share of a step's height below which its outer parts are not bisected any further."""
    tail_arc: float = 40.0
    """Arc length from which on parts of one step are told from other steps."""
    resolved: float = 1.0
    """Share of a step's height that one cell may show; steeper steps are bisected on."""
    apart: float = 5.0
    """Arc length of flat ground between two crossings."""
    gradient_step: float = 0.01
    """Of the differences at a crossing, for units of a norm up to ``steep``."""
    steep: float = 4.0
    """Slope over height of a step above which its gradient is taken again with a smaller step."""
    beyond: float = 50.0
    """Distance from a crossing at which its unit is saturated on either side."""
    sideways: tuple[float, ...] = (0.7, -1.3, 2.1)
    """Distances at right angles to the gradient at which f must not change."""
    clean: float = 1e-6
    """Largest change sideways over the height of the step: more shows that two units cross at once."""
    feeble: float = 1e-3
    """Height of a step, relative to the answers, below which a direction is worth measuring again."""
    stronger: float = 10.0
    """How many times higher the new step must be for that."""
    centred: float = 5e-3
    """Slope over height below which a crossing is only the tail of a step."""
    same_direction: float = 1e-5
    """1 - |cos| below which two directions are one."""
    same_place: float = 3.0
    """Distance from a unit's hyperplane, in widths of its step, within which a crossing is its own."""
    fewest: int = 3
    """Circles drawn in any case."""
    enough: int = 8
    """Circles after which low steps are no reason for more."""
    most: int = 25
    """Circles drawn at most."""
    quiet: int = 7
    """Circles without a new unit after which there are no more."""
    low_step: float = 1e-5
    """Height of a step, relative to the answers, that leaves a direction to 1e-6 only."""
    more: int = 4
    """Further circles for units whose profiles do not fit."""


@dataclass(frozen=True, eq=False)
class Crossing:
    """A place (d,) of the far field near a unit's hyperplane, and how much f changes across it."""

    point: Array
    height: float


@dataclass
class Unit:
    """A first-layer unit seen in the far field."""

    direction: Array
    """(d,) unit vector, sign arbitrary."""
    width: float
    """Height of its step over its slope, about 2 / |w|."""
    crossings: list[Crossing]
    """The first is where the direction was measured."""

    @property
    def height(self) -> float:
        """Change of f where the direction was measured: what its accuracy depends on."""
        return self.crossings[0].height

    def owns(self, point: Array, widths: float) -> bool:
        """Return whether ``point`` (d,) lies within ``widths`` widths of this unit's hyperplane."""
        return abs(float(self.direction @ (point - self.crossings[0].point))) < widths * self.width

    def strongest(self, count: int) -> list[Array]:
        """Return the points (d,) of the ``count`` highest steps."""
        ordered = sorted(self.crossings, key=lambda crossing: -crossing.height)
        return [crossing.point for crossing in ordered[:count]]


def units_on_circle(
    ask: Ask,
    dimension: int,
    units: list[Unit],
    rng: np.random.Generator,
    options: CircleOptions | None = None,
    through: tuple[Array, Array] | None = None,
) -> float:
    """Add what a circle in R^d shows to ``units``; return the size of the answers on it.

    The circle is a random one, or that ``through`` two directions (d,).
    """
    options = options or CircleOptions()
    first, second = through or rng.standard_normal((2, dimension))
    circle = _Circle.spanned(first, second, options.radius)
    found, size = _crossings(ask, circle, options)
    new = []
    for crossing in found:
        owner = next((unit for unit in units if unit.owns(crossing.point, options.same_place)), None)
        if owner is None:
            new.append(crossing)
            continue
        owner.crossings.append(crossing)
        if owner.height < options.feeble * size and crossing.height > options.stronger * owner.height:
            new.append(crossing)  # its direction is worth measuring again
    for unit in _directions(ask, new, rng, options) if new else []:
        _merge(units, unit, options.same_direction)
    return size


def crossings_on_circle(
    ask: Ask, dimension: int, rng: np.random.Generator, options: CircleOptions
) -> list[Crossing]:
    """Return where answers step on a random circle in R^d, whatever crosses there."""
    first, second = rng.standard_normal((2, dimension))
    return _crossings(ask, _Circle.spanned(first, second, options.radius), options)[0]


@dataclass(frozen=True, eq=False)
class _Circle:
    first: Array
    second: Array
    radius: float

    @staticmethod
    def spanned(first: Array, second: Array, radius: float) -> _Circle:
        """Through both directions, ``radius`` times as large as the first."""
        if len(first) > 1:
            second = second - first * (first @ second) / (first @ first)
            second *= np.linalg.norm(first) / np.linalg.norm(second)
        else:
            second = np.zeros(1)  # a line through the origin, there and back
        return _Circle(first, second, radius)

    def at(self, angles: Array) -> Array:
        return np.asarray(
            self.radius * (np.cos(angles)[:, None] * self.first + np.sin(angles)[:, None] * self.second)
        )


def _crossings(ask: Ask, circle: _Circle, options: CircleOptions) -> tuple[list[Crossing], float]:
    """Return the steps of f on half a turn, and the size of f."""
    count = max(options.fewest_grid, options.grid_per_coordinate * len(circle.first))
    angles = np.linspace(0, np.pi, count + 1)
    values = ask(circle.at(angles))
    size = float(np.maximum(np.abs(values).max(), np.finfo(np.float64).tiny))
    visible = options.visible * size
    while np.mean(np.abs(np.diff(values, axis=0)).max(axis=1) > visible) > options.most_steps:
        if 2 * count > options.most_grid:
            raise GaveUp(FarFieldReason.NOT_FLAT)
        count, between = 2 * count, (angles[1:] + angles[:-1]) / 2
        order = np.argsort(np.concatenate([angles, between]), kind="stable")
        values = np.concatenate([values, ask(circle.at(between))])[order]
        angles = np.concatenate([angles, between])[order]
    parts = _Parts(angles[:-1], angles[1:], values[:-1], values[1:], np.zeros(count))
    while True:
        near = len(parts.left) and parts.right[0] - parts.left[0] <= options.tail_arc / circle.radius
        if near:
            parts.heights = np.maximum(parts.heights, parts.change)
        parts = parts.keep(parts.change > np.maximum(visible, options.tail * parts.heights))
        if len(parts.left) == 0 or parts.right[0] - parts.left[0] <= options.cell / circle.radius:
            break
        parts = parts.halved(ask(circle.at(parts.middle)))
    if not len(parts.left):
        return [], size
    breaks = np.flatnonzero(parts.left[1:] - parts.right[:-1] > options.apart / circle.radius) + 1
    runs = np.split(np.arange(len(parts.left)), breaks)
    heights = np.array([parts.change[run].sum() for run in runs])
    steepest = parts.keep(np.array([run[np.argmax(parts.change[run])] for run in runs]))
    steepest = _resolved(ask, circle, steepest, options.resolved * heights)
    points = circle.at(steepest.middle)
    return [Crossing(point, float(height)) for point, height in zip(points, heights, strict=True)], size


@dataclass
class _Parts:
    """Intervals of a circle, and the answers (n, K) at their ends."""

    left: Array
    right: Array
    at_left: Array
    at_right: Array
    heights: Array
    """The largest change over an interval of which each is a part, as far as that shows one step."""

    @property
    def change(self) -> Array:
        return np.asarray(np.abs(self.at_right - self.at_left).max(axis=1))

    @property
    def middle(self) -> Array:
        return np.asarray((self.left + self.right) / 2)

    def keep(self, which: BoolArray | IntArray) -> _Parts:
        """Return some of the intervals, by mask or number."""
        numbers = self.left[which], self.right[which], self.at_left[which], self.at_right[which]
        return _Parts(*numbers, self.heights[which])

    def halved(self, answers: Array) -> _Parts:
        """Return both halves of every interval, in order, given the answers at the middles."""
        left, middle = self.left, self.middle
        return _Parts(
            np.stack([left, middle], 1).ravel(),
            np.stack([middle, self.right], 1).ravel(),
            np.stack([self.at_left, answers], 1).reshape(2 * len(left), -1),
            np.stack([answers, self.at_right], 1).reshape(2 * len(left), -1),
            np.repeat(self.heights, 2),
        )


def _resolved(ask: Ask, circle: _Circle, parts: _Parts, most: Array) -> _Parts:
    """Bisect the intervals that show ``most`` (n,) of a step or more, towards the steeper half."""
    for _ in range(_MOST_BISECTIONS):
        steep = np.flatnonzero(parts.change > most)
        if not len(steep):
            break
        chosen = parts.keep(steep)
        halves = chosen.halved(ask(circle.at(chosen.middle)))
        change = halves.change.reshape(-1, 2)
        better = halves.keep(2 * np.arange(len(steep), dtype=np.int64) + change.argmax(axis=1))
        parts.left[steep], parts.right[steep] = better.left, better.right
        parts.at_left[steep], parts.at_right[steep] = better.at_left, better.at_right
    return parts


def _directions(
    ask: Ask, crossings: list[Crossing], rng: np.random.Generator, options: CircleOptions
) -> list[Unit]:
    """Return the units that cross at the given places, where only one does."""
    points = np.array([crossing.point for crossing in crossings])
    n, d = points.shape
    gradients = _gradients(ask, points, np.full(n, options.gradient_step))
    along, strength = _leading(gradients)
    beyond = ask(np.concatenate([points + reach * along for reach in (-options.beyond, options.beyond)]))
    height = np.abs(beyond[n:] - beyond[:n]).max(axis=1)
    height = np.maximum(height, np.finfo(np.float64).tiny)
    steep = strength / height > options.steep
    if steep.any():
        finer = options.gradient_step * options.steep * height[steep] / strength[steep]
        gradients[steep] = _gradients(ask, points[steep], finer)
        along, strength = _leading(gradients)
    sideways = rng.standard_normal((len(options.sideways), n, d))
    sideways -= np.einsum("snd,nd->sn", sideways, along)[:, :, None] * along
    sideways /= np.linalg.norm(sideways, axis=2, keepdims=True) if d > 1 else 1.0
    moved = points + np.array(options.sideways)[:, None, None] * sideways
    answers = ask(np.concatenate([points, moved.reshape(-1, d)])).reshape(len(options.sideways) + 1, n, -1)
    change = np.abs(answers[1:] - answers[0]).max(axis=(0, 2))
    clean = (change < options.clean * np.maximum(height, strength)) & (strength > options.centred * height)
    return [Unit(along[i], float(height[i] / strength[i]), [crossings[i]]) for i in np.flatnonzero(clean)]


def _gradients(ask: Ask, points: Array, steps: Array) -> Array:
    return gradients_around(lambda sites, moves: ask(points[sites] + moves), steps, points.shape[1])


def _leading(gradients: Array) -> tuple[Array, Array]:
    """Return the leading left singular vectors (n, d) and values (n,) of gradients (n, d, K)."""
    left, values, _ = np.linalg.svd(gradients, full_matrices=False)
    return left[:, :, 0], values[:, 0]


def _merge(units: list[Unit], unit: Unit, same_direction: float) -> None:
    """Add a unit, or keep the better measured of two that are the same up to ``same_direction``."""
    for number, known in enumerate(units):
        if 1 - abs(float(known.direction @ unit.direction)) < same_direction:
            better, other = (unit, known) if unit.height > known.height else (known, unit)
            others = [c for c in other.crossings if all(c is not mine for mine in better.crossings)]
            units[number] = Unit(better.direction, better.width, [*better.crossings, *others])
            return
    units.append(unit)
