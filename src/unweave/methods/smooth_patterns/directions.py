"""Hyperplanes of the first layer from far-field circles, until no unit can be missing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.shared.far_field import Ask, CircleOptions, Unit, units_on_circle
from unweave.methods.smooth_patterns.far_normals import NormalOptions, far_normals
from unweave.numerics.clock import check

# Positions to a fraction of a step are enough: gradients give the direction, profiles the place.
CIRCLES = CircleOptions(
    fewest_grid=32,
    grid_per_coordinate=0,
    most_grid=8192,
    cell=1.0,
    tail=0.05,
    resolved=0.6,
    steep=2.0,
    quiet=3,
)


@dataclass(frozen=True, eq=False)
class Hyperplanes:
    """Where the units of the first layer switch: u_k . x = p_k."""

    directions: Array
    """(m, D) unit vectors: a unit is 1 far ahead of its hyperplane and -1 far behind."""
    positions: Array
    """p (m,), to a fraction of the widths."""
    widths: Array
    """(m,) height over slope of a step, about 2 / |w|."""

    @classmethod
    def of(cls, units: list[Unit]) -> Hyperplanes:
        """Take what circles have shown."""
        directions = np.array([unit.direction for unit in units])
        points = np.array([unit.crossings[0].point for unit in units])
        positions = np.einsum("md,md->m", directions, points)
        return cls(directions, positions, np.array([unit.width for unit in units]))

    @property
    def count(self) -> int:
        """m"""
        return len(self.widths)

    def moved(self, units: IntArray, positions: Array, widths: Array) -> Hyperplanes:
        """Return the same with other positions and widths of some units."""
        p, w = self.positions.copy(), self.widths.copy()
        p[units], w[units] = positions, widths
        return replace(self, positions=p, widths=w)

    def signs(self, points: Array, clear: float, but: int | None = None) -> tuple[Array, BoolArray]:
        """Return the units' signs (n, m) at points (n, D), and which points are ``clear`` widths off all.

        The unit ``but`` need not be clear.
        """
        distances = points @ self.directions.T - self.positions
        # A step that goes up and down again looks too narrow: no unit counts as narrower than most.
        off = np.abs(distances) > clear * np.maximum(self.widths, np.median(self.widths))
        if but is not None:
            off[:, but] = True
        return np.where(distances > 0, 1.0, -1.0), np.asarray(off.all(axis=1))


class DirectionSearch:
    """Circles, one after the other."""

    def __init__(self, ask: Ask, inputs: int, rng: np.random.Generator, options: CircleOptions) -> None:
        self._ask, self._inputs, self._rng, self._options = ask, inputs, rng, options
        self.units: list[Unit] = []
        self.circles = 0

    def run(self, told: int | None) -> None:
        """Circle until a further unit is unlikely, or as many are seen as were told."""
        quiet = 0
        while self.circles < self._options.most and quiet < self._options.quiet:
            check()
            before = len(self.units)
            units_on_circle(self._ask, self._inputs, self.units, self._rng, self._options)
            self.circles += 1
            quiet = quiet + 1 if len(self.units) == before else 0
            if self.circles > 1 and quiet and (len(self.units) == told or self._is_complete()):
                break

    def again(self, through: tuple[Array, Array]) -> bool:
        """Draw the circle through two points, and return whether it shows a unit that the others did not."""
        before = len(self.units)
        # In units of the radius, so that the circle is as large as the others.
        scale = np.sqrt(self._inputs) / np.linalg.norm(through[0])
        through = (scale * through[0], scale * through[1])
        units_on_circle(self._ask, self._inputs, self.units, self._rng, self._options, through)
        self.circles += 1
        return len(self.units) > before

    def correct(self, options: NormalOptions) -> None:
        """Replace rough directions by exact ones, with more circles until none is missing."""
        for _ in range(options.rounds):
            if not self.units:
                break
            self.units, complete = far_normals(self._ask, self.units, self._rng, options)
            if complete:
                break
            for _ in range(self._options.quiet):
                units_on_circle(self._ask, self._inputs, self.units, self._rng, self._options)
                self.circles += 1

    def _is_complete(self) -> bool:
        """Whether units are seen so often that hardly one in a hundred runs misses one on every circle."""
        seen = sum(min(len(unit.crossings), self.circles) for unit in self.units)
        chances = self.circles * len(self.units)
        missed = max(chances - seen, 0.5) / max(chances, 1)  # half a miss where there was none
        return bool(len(self.units) * missed**self.circles < 0.01)
