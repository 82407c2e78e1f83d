"""Find the units of the first hidden layer, up to signs, on lines.

The surface of a first-layer unit is a hyperplane; that of a deeper one bends wherever it meets the surface of
a unit before it. So a kink belongs to the first layer if there are kinks all over its hyperplane. All others
wait in the pool. From then on inputs are reduced to what the first layer reads.

Behind a narrow layer deeper surfaces are flat far and wide, and hide it. There gradients tell its units from
deeper ones, and their signs (`off_sides`); they are looked at where planes meet.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.methods.shared.kinked.lines import LINE_REACH, on_hyperplane, random_line, unexplained
from unweave.methods.shared.surfaces.off_sides import (
    OffSideOptions,
    Slopes,
    active_sides_of,
    choose_units,
    may_be_units,
)
from unweave.methods.shared.surfaces.probe import Kink, KinkPool, Probe
from unweave.search import GaveUp, Reason


@dataclass(frozen=True, kw_only=True)
class FirstLayerOptions:
    """Which lines are searched."""

    reach: float = LINE_REACH
    """Half length of the first lines, in normalised inputs."""
    long_lines: int = 2
    """Lines of this length."""
    near_reach: float = 400.0
    """Half length of further lines: kinks of deeper layers are nearer."""
    most_lines: int = 8
    """Lines at most."""
    blank_lines: int = 3
    """Lines after the first without any other kink after which nothing is behind a complete layer."""
    read: float = 1e-4
    """Singular values of the units' directions, each of length one, that belong to what they read."""
    off_sides: OffSideOptions = field(default_factory=OffSideOptions)
    narrow: int = 12
    """Directions that act, fewer than inputs, up to which gradients say which planes are units."""
    looks: int = 12
    """Places per plane where gradients are looked at then."""
    look_spreads: tuple[float, ...] = (0.3, 1.0, 3.0)
    """Standard deviations of these places around those where planes meet."""


class FirstLayerReason(Reason):
    """Why no first layer was found, or nothing behind it."""

    NOT_PIECEWISE_LINEAR = "the target is not piecewise linear: there is no end to the kinks on a line"
    NO_FIRST_LAYER = "no kink on a line belongs to a first hidden layer"
    NO_SECOND_LAYER = "all kinks on lines are hyperplanes: there is no second hidden layer"


class FirstLayer:
    """Units z = x W + b with weights of length one, up to signs; kinks of deeper ones are in the pool."""

    def __init__(
        self,
        probe: Probe,
        pool: KinkPool,
        rng: np.random.Generator,
        options: FirstLayerOptions,
        may_be_off: bool = True,
    ) -> None:
        self._probe, self._pool, self._rng, self._options = probe, pool, rng, options
        self.weights, self.biases = np.zeros((probe.n_inputs, 0)), np.zeros(0)
        self._may_be_off = may_be_off  # leaky units are off nowhere
        self.signs: Array | None = None
        """(m,) +-1 of ReLU units, once gradients tell them."""
        self.is_complete = False
        """Whether units and signs are those of all directions that act, so that no other plane is one."""
        self.kinks: list[Kink] = []
        """One of every unit."""

    @property
    def width(self) -> int:
        """Units found so far."""
        return len(self.biases)

    @property
    def matrix(self) -> Array:
        """(m, d + 1): weights and bias of every unit"""
        return np.hstack([self.weights.T, self.biases[:, None]])

    def find(self, line_rng: np.random.Generator) -> None:
        """Search lines until one brings nothing new."""
        probe, options = self._probe, self._options
        for number in range(options.most_lines):
            before = self.width
            reach = options.reach if number < options.long_lines else options.near_reach
            scanned = probe.scan(random_line(probe.region, reach, line_rng))
            if probe.not_piecewise_linear:
                raise GaveUp(FirstLayerReason.NOT_PIECEWISE_LINEAR)
            self._pool.lines.append(scanned)
            line = scanned.line
            places = -(line.start @ self.weights + self.biases) / (line.direction @ self.weights)
            wanted = unexplained(scanned.positions, places, probe.options.lines.same_place)
            self.sort(probe.kinks_with_normals(scanned, wanted))
            dry = self.width == before or not self._pool.kinks
            seen = self._pool.kinks or number >= options.blank_lines
            if number and dry and self._is_settled() and (seen or not self.is_complete):
                break
        if not self.width:
            raise GaveUp(FirstLayerReason.NO_FIRST_LAYER)
        if not self._pool.kinks:
            raise GaveUp(FirstLayerReason.NO_SECOND_LAYER)

    def sort(self, kinks: list[Kink]) -> bool:
        """Give kinks to the layer or to the pool; return whether the layer has grown."""
        before, flat = self.width, np.zeros(len(kinks), dtype=bool)
        if not self.is_complete:
            flat = self._probe.are_hyperplanes(kinks, self._rng)
        self.take([kinks[row] for row in np.flatnonzero(flat)])
        self._pool.kinks += [kinks[row] for row in np.flatnonzero(~flat)]
        if self.width > before:
            # A unit that most of its readers hide may have been refused before it was seen for what it is.
            self._pool.kinks[:] = [kink for kink in self._pool.kinks if not self.holds(kink)]
        return self.width > before

    def take(self, kinks: list[Kink]) -> None:
        """Add the hyperplanes of kinks, the most precise first, each once."""
        for kink in sorted(kinks, key=lambda kink: kink.error):
            if not self.holds(kink):
                self.weights = np.column_stack([self.weights, kink.normal])
                self.biases = np.append(self.biases, -float(kink.normal @ kink.point))
                self.kinks.append(kink)
                self.signs = None

    def drop(self, rows: BoolArray) -> None:
        """Give planes (m,) that are none of its units to the pool."""
        self._pool.kinks += [kink for kink, dropped in zip(self.kinks, rows, strict=True) if dropped]
        self.weights, self.biases = self.weights[:, ~rows], self.biases[~rows]
        self.kinks = [kink for kink, dropped in zip(self.kinks, rows, strict=True) if not dropped]

    def holds(self, kink: Kink) -> bool:
        """Return whether a kink is that of one of the units."""
        bias = -float(kink.normal @ kink.point)
        lines = self._probe.options.lines
        return bool(on_hyperplane(self.weights, self.biases, kink.normal, bias, lines).any())

    def _is_settled(self) -> bool:
        """Let gradients say which planes are units, and their signs; return whether lines are enough."""
        probe, options = self._probe, self._options
        if not self._may_be_off:
            return True
        rank = probe.visible.shape[1]
        slopes = Slopes.of(probe.slopes, options.off_sides)
        active = active_sides_of(self.matrix, slopes, options.off_sides) if self.width == rank else None
        if active is not None and active.all():
            self.signs, self.is_complete = active, rank < probe.n_inputs
            return True
        if not len(slopes) or rank == probe.n_inputs or rank > options.narrow:
            return True
        seen = [*self.kinks, *self._pool.kinks]
        planes = FirstLayer(probe, KinkPool(), self._rng, options)
        planes.take(seen)
        matrix = planes.matrix
        for _ in range(options.looks):
            if may_be_units(matrix, slopes, rank, options.off_sides).sum() < rank:
                return self.width == rank and bool(self._pool.kinks)  # leaky units are off nowhere
            probe.look_at_slopes(self._between(matrix), self._rng)
            slopes, rank = Slopes.of(probe.slopes, options.off_sides), probe.visible.shape[1]
        chosen, signs = next(choose_units(matrix, slopes, rank, options.off_sides), (None, None))
        if chosen is None:
            return self.width == rank and bool(self._pool.kinks)
        self.weights, self.biases, self.signs = planes.weights[:, chosen], planes.biases[chosen], signs
        self.is_complete = True
        self.kinks = [planes.kinks[row] for row in chosen]
        self._pool.kinks[:] = [kink for kink in seen if not self.holds(kink)]
        return True

    def _between(self, matrix: Array) -> Array:
        """Return points (m, d) around places where each of the planes (m, d + 1) meets another one."""
        partners = matrix[self._rng.integers(len(matrix), size=len(matrix))]
        pairs = np.stack([matrix, partners], axis=1)
        points = np.stack([-np.linalg.lstsq(p[:, :-1], p[:, -1], rcond=1e-8)[0] for p in pairs])
        spreads = self._rng.choice(self._options.look_spreads, len(points))
        return np.asarray(points + spreads[:, None] * self._rng.standard_normal(points.shape))

    def reduce_inputs(self) -> None:
        """Give all points in the inputs that were seen to act, if these are fewer."""
        probe, pool = self._probe, self._pool
        beside = probe.visible - self.weights @ np.linalg.lstsq(self.weights, probe.visible, rcond=1e-10)[0]
        left, values, _ = np.linalg.svd(np.hstack([self.weights, beside]), full_matrices=False)
        frame = left[:, values > self._options.read]
        if frame.shape[1] == probe.n_inputs:
            return
        probe.reduce(frame)
        self.weights = frame.T @ self.weights
        for kinks in (pool.kinks, self.kinks):
            normals = [kink.normal @ frame for kink in kinks]
            kinks[:] = [
                Kink(kink.point @ frame, normal / np.linalg.norm(normal), kink.error)
                for kink, normal in zip(kinks, normals, strict=True)
            ]
        for number, scanned in enumerate(pool.lines):
            line = scanned.line
            line = replace(line, start=line.start @ frame, direction=line.direction @ frame)
            pool.lines[number] = replace(scanned, line=line)
