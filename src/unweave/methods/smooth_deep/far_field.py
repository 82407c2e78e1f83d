"""First-layer directions from the far field.

On a circle of radius R >> 1 every first-layer unit is saturated except near the one place (in half a turn)
where its pre-activation crosses zero. Between crossings the network is constant, at a crossing it depends on
w_k . x alone: its gradient is parallel to w_k, exactly, whatever the depth and the number of outputs.

A crossing is found by bisection of the steps of f along the circle. Its gradient costs 4 d rows, and a few
rows moved at right angles to it must not change f: otherwise two units cross there at once. On later
circles a crossing of a direction that is known already lies where w_k . x has its known value, and costs
nothing; what is left over is new.

Cost: about 40 rows per unit and circle, 4 d + 4 per unit for its direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.smooth_deep.differences import gradients_around
from unweave.methods.smooth_deep.known_layers import Ask
from unweave.methods.smooth_deep.reasons import DeepReason
from unweave.search import GaveUp

RADIUS = 1e4
"""Per coordinate: far enough that crossings are apart, near enough that rounding leaves z to 1e-11."""

_GRID_PER_UNIT = 8
_FEWEST_GRID = 200
_VISIBLE = 1e-7  # change of the answers relative to their size that is a step
_MOST_STEPS = 0.6  # part of the grid's intervals that may show a step
_CELL = 0.25  # arc length to which steps are bisected
_APART = 5.0  # arc length of flat ground between two crossings
_GRADIENT_STEP = 0.01
_STEEP = 4.0  # estimated norm of a unit above which its gradient is taken again, with a smaller step
_SIDEWAYS = (0.7, -1.3, 2.1)  # distances at right angles to the gradient at which nothing may change
_CLEAN = 1e-6  # change sideways relative to the step's height
_FEEBLE = 1e-3  # height of a step relative to the answers, below which a direction is not exact
_STRONGER = 10.0  # times higher steps are worth another gradient
_CENTRED = 5e-3  # slope over height of a step, below which the crossing is only its tail
_SAME_DIRECTION = 1e-5  # 1 - |cos| of directions that are one
_SAME_PLACE = 3.0  # distance from its known crossing, in widths of its step, at which a crossing is its own


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

    def owns(self, point: Array) -> bool:
        """Whether a crossing at ``point`` lies on this unit's hyperplane."""
        return abs(float(self.direction @ (point - self.crossings[0].point))) < _SAME_PLACE * self.width

    def strongest(self, count: int) -> list[Array]:
        """The points of the ``count`` highest steps."""
        ordered = sorted(self.crossings, key=lambda crossing: -crossing.height)
        return [crossing.point for crossing in ordered[:count]]


def units_on_circle(ask: Ask, dimension: int, units: list[Unit], rng: np.random.Generator) -> float:
    """Add what a random circle in R^d shows to ``units``; returns the size of the answers on it."""
    circle = _Circle.random(dimension, rng)
    found, size = _crossings(ask, circle)
    new = []
    for crossing in found:
        owner = next((unit for unit in units if unit.owns(crossing.point)), None)
        if owner is None:
            new.append(crossing)
            continue
        owner.crossings.append(crossing)
        if owner.height < _FEEBLE * size and crossing.height > _STRONGER * owner.height:
            new.append(crossing)  # its direction is worth measuring again
    for unit in _directions(ask, new, rng) if new else []:
        _merge(units, unit)
    return size


@dataclass(frozen=True, eq=False)
class _Circle:
    first: Array
    second: Array

    @staticmethod
    def random(dimension: int, rng: np.random.Generator) -> _Circle:
        first, second = rng.standard_normal((2, dimension))
        if dimension > 1:
            second = second - first * (first @ second) / (first @ first)
            second *= np.linalg.norm(first) / np.linalg.norm(second)
        else:
            second = np.zeros(1)  # a line through the origin, there and back
        return _Circle(first, second)

    def at(self, angles: Array) -> Array:
        return np.asarray(
            RADIUS * (np.cos(angles)[:, None] * self.first + np.sin(angles)[:, None] * self.second)
        )


def _crossings(ask: Ask, circle: _Circle) -> tuple[list[Crossing], float]:
    """The steps of f on half a turn, and the size of f."""
    count = max(_FEWEST_GRID, _GRID_PER_UNIT * len(circle.first))
    angles = np.linspace(0, np.pi, count + 1)
    values = ask(circle.at(angles))
    size = float(np.maximum(np.abs(values).max(), np.finfo(np.float64).tiny))
    visible = _VISIBLE * size
    if np.mean(np.abs(np.diff(values, axis=0)).max(axis=1) > visible) > _MOST_STEPS:
        raise GaveUp(DeepReason.NOT_FLAT)
    left, right = angles[:-1], angles[1:]
    at_left, at_right = values[:-1], values[1:]
    while True:
        change = np.abs(at_right - at_left).max(axis=1)
        active = change > visible
        left, right, at_left, at_right = left[active], right[active], at_left[active], at_right[active]
        change = change[active]
        if len(left) == 0 or right[0] - left[0] <= _CELL / RADIUS:
            break
        middle = (left + right) / 2
        at_middle = ask(circle.at(middle))
        left, right = np.stack([left, middle], 1).ravel(), np.stack([middle, right], 1).ravel()
        at_left = np.stack([at_left, at_middle], 1).reshape(len(left), -1)
        at_right = np.stack([at_middle, at_right], 1).reshape(len(left), -1)
    result = []
    if len(left):
        breaks = np.flatnonzero(left[1:] - right[:-1] > _APART / RADIUS) + 1
        for run in np.split(np.arange(len(left)), breaks):
            steepest = run[np.argmax(change[run])]
            point = circle.at(np.array([(left[steepest] + right[steepest]) / 2]))[0]
            result.append(Crossing(point, float(change[run].sum())))
    return result, size


def _directions(ask: Ask, crossings: list[Crossing], rng: np.random.Generator) -> list[Unit]:
    """The units that cross at the given places, where only one does."""
    points = np.array([crossing.point for crossing in crossings])
    n, d = points.shape
    gradients = _gradients(ask, points, np.full(n, _GRADIENT_STEP))
    along, strength = _leading(gradients)
    beyond = ask(np.concatenate([points + reach * along for reach in (-50.0, 50.0)]))
    height = np.abs(beyond[n:] - beyond[:n]).max(axis=1)
    height = np.maximum(height, np.finfo(np.float64).tiny)
    steep = strength / height > _STEEP
    if steep.any():
        finer = _GRADIENT_STEP * _STEEP * height[steep] / strength[steep]
        gradients[steep] = _gradients(ask, points[steep], finer)
        along, strength = _leading(gradients)
    sideways = rng.standard_normal((len(_SIDEWAYS), n, d))
    sideways -= np.einsum("snd,nd->sn", sideways, along)[:, :, None] * along
    sideways /= np.linalg.norm(sideways, axis=2, keepdims=True) if d > 1 else 1.0
    moved = points + np.array(_SIDEWAYS)[:, None, None] * sideways
    answers = ask(np.concatenate([points, moved.reshape(-1, d)])).reshape(len(_SIDEWAYS) + 1, n, -1)
    change = np.abs(answers[1:] - answers[0]).max(axis=(0, 2))
    clean = (change < _CLEAN * np.maximum(height, strength)) & (strength > _CENTRED * height)
    return [Unit(along[i], float(height[i] / strength[i]), [crossings[i]]) for i in np.flatnonzero(clean)]


def _gradients(ask: Ask, points: Array, steps: Array) -> Array:
    return gradients_around(lambda sites, moves: ask(points[sites] + moves), steps, points.shape[1])


def _leading(gradients: Array) -> tuple[Array, Array]:
    """Leading left singular vectors (n, d) and values (n,) of gradients (n, d, K)."""
    left, values, _ = np.linalg.svd(gradients, full_matrices=False)
    return left[:, :, 0], values[:, 0]


def _merge(units: list[Unit], unit: Unit) -> None:
    """Add a unit, or keep the better measured of two that are the same."""
    for number, known in enumerate(units):
        if 1 - abs(float(known.direction @ unit.direction)) < _SAME_DIRECTION:
            better, other = (unit, known) if unit.height > known.height else (known, unit)
            others = [c for c in other.crossings if all(c is not mine for mine in better.crossings)]
            units[number] = Unit(better.direction, better.width, [*better.crossings, *others])
            return
    units.append(unit)
