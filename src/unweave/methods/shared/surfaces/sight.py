"""All kinks and lines of a run, as they look from behind known layers; nothing here asks the target.

A kink is measured once and serves every layer: behind layers 1 to l, kinks of one unit of layer l + 1 fit
together (`Sight.absorb`), those of deeper ones do not, and wait until their turn comes. Where the equations
of a half-known unit leave it no choice on a stretch of a line, its zero there is predicted, and must be a
kink of that line: zeros confirmed and denied judge it before a row is spent (`Sight.foretold`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.shared.kinked.lines import unexplained
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.probe import KinkPool, ScannedLine
from unweave.methods.shared.surfaces.surface import KinkEquations, Surface, SurfaceOptions
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class SightOptions:
    """When a unit explains a kink."""

    surface: SurfaceOptions = field(default_factory=SurfaceOptions)
    explained: float = 1e-5
    """Distance to a unit's surface, relative to 1 + |x|, up to which it explains a kink."""
    same_place: float = 3e-6
    """Distance between a predicted and a measured kink, relative to (1 + |t|) sqrt(d)."""
    clearly_open: float = 1e-4
    """Least singular value of mixtures of N behind a kink, of size one, up from which any kink fits."""
    one_zero: float = 1e-6
    """Second over first singular value of what a half-known unit may be at both ends of a stretch."""


@dataclass(frozen=True)
class Counts:
    """Zeros of a unit on lines."""

    confirmed: int = 0
    denied: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.confirmed + other.confirmed, self.denied + other.denied)

    @property
    def share(self) -> float:
        """Share that is confirmed; zero if there is none."""
        return self.confirmed / max(self.confirmed + self.denied, 1)

    @property
    def surplus(self) -> int:
        """By which candidates are ordered."""
        return self.confirmed - 2 * self.denied


@dataclass(frozen=True, eq=False)
class _LineTable:
    """A line cut where the known map bends."""

    scanned: ScannedLine
    places: Array
    values: Array
    """phi (n, F) there"""


class Sight:
    """The pool behind ``known``."""

    def __init__(self, known: LiftedLayers, pool: KinkPool, options: SightOptions) -> None:
        self.known, self.pool, self.options = known, pool, options
        self._equations: list[KinkEquations | None] = []
        self._unexplained: list[bool] = []
        self._tables: list[_LineTable] = []
        shape = len(pool.kinks), known.n_inputs + 1, known.dimension
        self._matrices = np.zeros((0, *shape[1:]))
        self._readable = np.zeros(0, dtype=int)
        self._wanted = np.zeros((0, shape[1]))
        self._allowed = np.zeros(0)
        self._values = np.zeros((0, shape[2]))
        self._points = np.zeros((0, known.n_inputs))
        self._mixtures: Array | None = None

    # -- kinks --------------------------------------------------------------------------------------------

    def update(self) -> None:
        """Take up the kinks that were added to the pool."""
        new = self.pool.kinks[len(self._equations) :]
        if not new:
            return
        known, options = self.known, self.options
        points = np.stack([kink.point for kink in new])
        phi, heights = known.forward(points)
        matrices, readable, allowed = [], [], []
        for kink, z in zip(new, heights, strict=True):
            check()
            equations = KinkEquations.of(known, kink, options.surface)
            self._equations.append(equations)
            lengths = np.linalg.norm(known.jacobian(np.where(z >= 0, 1.0, -1.0))[1], axis=1)
            near = options.explained * (1 + np.abs(kink.point).max())
            self._unexplained.append(not bool((np.abs(z) <= near * lengths).any()))
            blank = np.zeros(self._matrices.shape[1:])
            matrices.append(blank if equations is None else equations.matrix)
            readable.append(0 if equations is None else equations.readable)
            allowed.append(0.0 if equations is None else equations.allowed)
        self._matrices = np.concatenate([self._matrices, np.stack(matrices)])
        self._readable = np.concatenate([self._readable, readable])
        self._allowed = np.concatenate([self._allowed, allowed])
        wanted = [np.append(kink.normal, 0.0) for kink in new]
        self._wanted = np.concatenate([self._wanted, np.stack(wanted)])
        self._values = np.concatenate([self._values, phi])
        self._points = np.concatenate([self._points, points])

    def equations(self, kink: int) -> KinkEquations | None:
        """Return what a kink says about a unit; None where nothing that is known moves."""
        self.update()
        return self._equations[kink]

    def surface(self, kink: int) -> Surface | None:
        """Return the surface through a kink; None if no unit of the next layer can have that normal there."""
        return Surface.through(self.known, self.pool.kinks[kink], self.options.surface)

    def open_kinks(self, alphas: Array | None = None) -> list[int]:
        """Return the kinks on no surface of the known units nor of alphas (F, k), the most precise first."""
        self.update()
        left = np.array(self._unexplained, dtype=bool)
        if alphas is not None and alphas.size and len(left):
            left &= ~self._on(alphas)
        return sorted(np.flatnonzero(left).tolist(), key=lambda kink: self.pool.kinks[kink].error)

    def _on(self, alphas: Array) -> BoolArray:
        """Return (n,) which kinks lie on the surface of one of alphas (F, k)."""
        heights = np.abs(self._values @ alphas)
        gradients = np.stack(
            [
                np.linalg.norm(self.known.jacobian(pattern)[0].T @ alphas, axis=0)
                for pattern in self._patterns()
            ]
        )
        near = self.options.explained * (1 + np.abs(self._points).max(axis=1, keepdims=True))
        return np.asarray((heights <= near * gradients).any(axis=1))

    def _patterns(self) -> list[Array]:
        blank = np.ones(self.known.n_units)
        return [blank if each is None else each.pattern for each in self._equations]

    def absorb(self, surface: Surface, kinks: Iterable[int]) -> tuple[Surface, set[int]]:
        """Add all of the kinks that are the surface's own; return their numbers, too."""
        surface, members, _ = self.absorb_possible(surface, kinks)
        return surface, members

    def absorb_possible(self, surface: Surface, kinks: Iterable[int]) -> tuple[Surface, set[int], list[int]]:
        """Add kinks as `absorb`; return, too, those of which it is not clear yet.

        All others are of other units, however much more becomes known of the surface.
        """
        self.update()
        options, members = self.options.surface, set[int]()
        left_over = np.array([k for k in kinks if self._equations[k] is not None], dtype=int)
        while len(left_over):
            check()
            possible, spare = self._fits(surface, left_over)
            fits = spare >= options.coincidences
            if not fits.any():
                left_over = left_over[possible]
                break
            best = int(left_over[fits][np.argmax(spare[fits])])
            left_over = left_over[possible & (left_over != best)]  # what does not fit now never will
            equations = self._equations[best]
            assert equations is not None
            larger = surface.with_equations(equations, self.pool.kinks[best].point)
            if larger is not None:
                surface = larger
                members.add(best)
        return surface, members, left_over.tolist()

    def _fits(self, surface: Surface, kinks: IntArray) -> tuple[BoolArray, IntArray]:
        """Return whether kinks (n,) may be the surface's own, and equations to spare of those that fit."""
        options, null = self.options.surface, surface.null
        possible, spare = np.ones(len(kinks), dtype=bool), np.full(len(kinks), -1)
        matrices = self._matrices[kinks]
        rows = np.arange(len(kinks))
        if null.shape[1] > 2 * matrices.shape[1]:
            # Where so much is open that any kink fits, a few mixtures of N show it.
            mixed = matrices @ (null @ self._mixture(null.shape[1], matrices.shape[1]))
            least = np.linalg.svd(mixed, compute_uv=False)[:, -1]
            rows = np.flatnonzero(least <= self.options.clearly_open)
        if not len(rows):
            return possible, spare
        left, values, _ = np.linalg.svd(matrices[rows] @ null, full_matrices=False)
        clear = values > options.rank
        rank = clear.sum(axis=1)
        wanted = self._wanted[kinks[rows]]
        inside = np.einsum("nij,ni->nj", left, wanted) * clear
        off = np.linalg.norm(wanted - np.einsum("nij,nj->ni", left, inside), axis=1)
        possible[rows] = (off <= self._allowed[kinks[rows]]) | (rank == 0)
        fits = possible[rows] & (rank > 0)
        spare[rows] = np.where(fits, self._readable[kinks[rows]] + 1 - rank, -1)
        return possible, spare

    def _mixture(self, count: int, few: int) -> Array:
        """Return a matrix (count, few), the same at every call."""
        if self._mixtures is None or self._mixtures.shape[0] < count:
            self._mixtures = np.random.default_rng(0).standard_normal((count, few)) / np.sqrt(count)
        return self._mixtures[:count]

    # -- lines --------------------------------------------------------------------------------------------

    def tables(self) -> list[_LineTable]:
        """Return all lines, cut where the known map bends."""
        for scanned in self.pool.lines[len(self._tables) :]:
            check()
            places = self.known.places_on(scanned.line)
            values = self.known.values(scanned.line.points(places))
            self._tables.append(_LineTable(scanned, places, values))
        return self._tables

    def unexplained_on(self, line: int, alphas: Array | None = None) -> IntArray:
        """Return the kinks of a line, by number, that neither the known layers nor alphas (F, k) explain."""
        table = self.tables()[line]
        predicted = [table.places[1:-1]]
        if alphas is not None and alphas.size:
            predicted.append(_zeros(table.places, table.values @ alphas)[0])
        return unexplained(table.scanned.positions, np.concatenate(predicted), self.options.explained)

    def foretold(self, surface: Surface, since: int = 0) -> Counts:
        """Count zeros on lines, from number ``since`` on, where the surface has no choice."""
        total = Counts()
        for table in self.tables()[since:]:
            heights = table.values @ surface.null
            first, second = heights[:-1], heights[1:]
            sizes = np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1)
            swap = sizes[1] > sizes[0]
            longer, shorter = np.where(swap[:, None], second, first), np.where(swap[:, None], first, second)
            square = np.maximum((longer**2).sum(axis=1), 1e-300)
            along = (longer * shorter).sum(axis=1) / square
            rest = np.linalg.norm(shorter - along[:, None] * longer, axis=1)
            one = (rest <= self.options.one_zero * np.sqrt(square)) & (square > 1e-18) & (along < 0)
            rows = np.flatnonzero(one)
            if not len(rows):
                continue
            share = np.where(swap[rows], -along[rows], 1.0) / (1.0 - along[rows])
            zeros = table.places[rows] + share * (table.places[rows + 1] - table.places[rows])
            total = total + self._judged(table.scanned, zeros)[0]
        return total

    def verified(self, alpha: Array) -> tuple[Counts, Array]:
        """Count the zeros of alpha . phi on all lines; return the points (n, d) of those that are kinks."""
        total, seen = Counts(), [np.zeros((0, self.known.n_inputs))]
        for table in self.tables():
            zeros, _ = _zeros(table.places, table.values @ alpha[:, None])
            counts, places = self._judged(table.scanned, zeros)
            total = total + counts
            seen.append(table.scanned.line.points(places))
        return total, np.concatenate(seen)

    def _judged(self, scanned: ScannedLine, zeros: Array) -> tuple[Counts, Array]:
        """Count predicted zeros (n,) of a line; return the positions of the kinks that confirm them."""
        if not len(zeros) or not len(scanned.positions):
            return Counts(0, len(zeros) if scanned.complete else 0), zeros[:0]
        nearest = scanned.positions[np.abs(zeros[:, None] - scanned.positions).argmin(axis=1)]
        allowed = self.options.same_place * (1 + np.abs(zeros)) * np.sqrt(self.known.n_inputs)
        agree = np.abs(zeros - nearest) <= allowed
        denied = int((~agree).sum()) if scanned.complete else 0
        return Counts(int(agree.sum()), denied), nearest[agree]


def _zeros(places: Array, heights: Array) -> tuple[Array, IntArray]:
    """Return where functions (n, k), linear between ascending places (n,), change signs, and which do."""
    before, after = heights[:-1], heights[1:]
    interval, unit = np.nonzero(before * after < 0)
    first, second = before[interval, unit], after[interval, unit]
    share = first / (first - second)
    return places[interval] + share * (places[interval + 1] - places[interval]), unit
