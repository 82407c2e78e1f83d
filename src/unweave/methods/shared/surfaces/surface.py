"""All that is known of one unit behind known layers, from points and normals of its surface.

The unit is alpha . phi(x) (`lifted`), with alpha unknown up to a factor. A point of its
surface and a normal n there say

    phi(p) . alpha = 0,        G^T alpha  parallel to  n,

and alpha lies in the null space N of all these equations. A second kink is of the same unit only if some
alpha in N fits it as well: rank(G) + 1 equations for as many unknowns as the image of N there has
dimensions, so that each equation to spare is a coincidence if it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.probe import Kink


@dataclass(frozen=True, kw_only=True)
class SurfaceOptions:
    """What counts as agreement between equations and measurements of a surface."""

    seen: float = 1e-6
    """Relative distance up to which prediction and measurement agree."""
    rank: float = 1e-7
    """Singular values of normalised equations below which there is nothing to see."""
    news: float = 1e-4
    """Part of a point's equation that must be new; below, it is an error of what is known."""
    one_normal: float = 1e-5
    """Second over first singular value of the possible normals of a region up to which they are one."""
    coincidences: int = 2
    """Equations to spare that a kink of another unit would have to fulfil by chance."""
    normal_errors: float = 30.0
    """Estimated errors of a normal by which it may be off."""
    full_weight: float = 1e-10
    """Error of a normal whose equations count as much as those of points."""
    least_weight: float = 1e-3
    """Least weight of these equations, however large the error."""
    in_space: float = 1e-4
    """Sine of the angle between N and a vector that counts as a member."""


DEFAULT_SURFACE_OPTIONS = SurfaceOptions()


@dataclass(frozen=True, eq=False)
class Place:
    """A point of the surface and the pattern of the region it was seen in."""

    point: Array
    pattern: Array


@dataclass(frozen=True, eq=False)
class KinkEquations:
    """What a kink says about alpha."""

    matrix: Array
    """(d + 1, F): G^T and phi, both of size one"""
    readable: int
    """Rank of G"""
    pattern: Array
    wanted: Array
    """(d + 1,): what the matrix makes of alpha, up to a factor"""
    allowed: float
    """Distance from it that errors explain."""
    rows: Array
    """(d + 1, F) equations that alpha fulfils"""

    @classmethod
    def of(cls, known: LiftedLayers, kink: Kink, options: SurfaceOptions) -> KinkEquations | None:
        """Return the equations of a kink; None where nothing that is known moves."""
        pattern = known.pattern(kink.point)
        jacobian = known.jacobian(pattern)[0].T
        phi = known.values(kink.point[None])[0]
        values = np.linalg.svd(jacobian, compute_uv=False)
        if values[0] == 0:
            return None
        jacobian, phi = jacobian / values[0], phi / np.linalg.norm(phi)
        tangents = jacobian - np.outer(kink.normal, kink.normal @ jacobian)
        full = options.full_weight
        weight = np.clip(full / max(kink.error, full), options.least_weight, 1.0)
        return cls(
            np.vstack([jacobian, phi]),
            int((values > options.rank * values[0]).sum()),
            pattern,
            np.append(kink.normal, 0.0),
            max(options.seen, options.normal_errors * kink.error),
            np.vstack([weight * tangents, phi]),
        )


@dataclass(frozen=True, eq=False)
class Surface:
    """Equations of alpha, and what they leave open."""

    known: LiftedLayers
    equations: Array
    """(n, F) that alpha fulfils"""
    rank: int
    """How many of them are independent."""
    null: Array
    """N (F, F - rank), orthonormal"""
    places: tuple[Place, ...]
    options: SurfaceOptions
    _normals: dict[bytes, Array | None] = field(default_factory=dict)

    @classmethod
    def through(
        cls, known: LiftedLayers, kink: Kink, options: SurfaceOptions = DEFAULT_SURFACE_OPTIONS
    ) -> Surface | None:
        """Return the surface through a kink; None if no unit of the next layer can have that normal there."""
        equations = KinkEquations.of(known, kink, options)
        if equations is None:
            return None
        dimension = known.dimension
        empty = cls(known, np.zeros((0, dimension)), 0, np.eye(dimension), (), options)
        return empty.with_equations(equations, kink.point, spare=0)

    @classmethod
    def spanned(
        cls, known: LiftedLayers, null: Array, points: list[Array], options: SurfaceOptions
    ) -> Surface:
        """Return the surface of which alpha lies in the span of ``null`` (F, k), and some of its points."""
        basis, count = np.linalg.qr(null)[0], null.shape[1]
        equations = np.linalg.svd(basis.T)[2][count:]
        places = tuple(Place(point, known.pattern(point)) for point in points)
        return cls(known, equations, known.dimension - count, basis, places, options)

    @property
    def open(self) -> int:
        """Dimensions of N beyond the one that is the unit itself."""
        return int(self.null.shape[1]) - 1

    @property
    def representative(self) -> Array:
        """The member of N (F,) that acts most where the surface was seen: alpha if nothing is open."""
        if self.open == 0:
            return self.null[:, 0]
        gram = np.zeros((self.null.shape[1], self.null.shape[1]))
        for place in self.places:
            acts = self.known.jacobian(place.pattern)[0].T @ self.null
            gram += acts.T @ acts
        return np.asarray(self.null @ np.linalg.eigh(gram)[1][:, -1])

    @property
    def open_directions(self) -> Array:
        """(F, open): what may be added to the representative."""
        chosen = self.representative
        rest = self.null - np.outer(chosen, chosen @ self.null) / (chosen @ chosen)
        left, values, _ = np.linalg.svd(rest, full_matrices=False)
        return np.asarray(left[:, values > 0.5])  # they are zero or one

    @property
    def open_units(self) -> IntArray:
        """Known units of the last layer, among all of them, of what is read of which something is open."""
        width = self.known.stages[-1].width if self.known.stages else 0
        sizes = np.linalg.norm(self.open_directions[:width], axis=1)
        return np.asarray(self.known.top.start + np.flatnonzero(sizes > self.options.one_normal))

    def with_equations(self, kink: KinkEquations, point: Array, spare: int | None = None) -> Surface | None:
        """Add one more of the surface's kinks; return None if it is of another unit, or cannot be told.

        ``spare`` is the number of equations that it must fulfil by chance if it is of another unit.
        """
        spare = self.options.coincidences if spare is None else spare
        left, values, _ = np.linalg.svd(kink.matrix @ self.null, full_matrices=False)
        rank = int((values > self.options.rank).sum())
        if rank == 0 or kink.readable + 1 - rank < spare:
            return None
        off = kink.wanted - left[:, :rank] @ (left[:, :rank].T @ kink.wanted)
        if np.linalg.norm(off) > kink.allowed:
            return None
        return self._with(kink.rows, self.rank + rank - 1, Place(point, kink.pattern))

    def with_kink(self, kink: Kink, spare: int | None = None) -> Surface | None:
        """Add a kink, as `with_equations`."""
        equations = KinkEquations.of(self.known, kink, self.options)
        return None if equations is None else self.with_equations(equations, kink.point, spare)

    def with_point(self, point: Array, pattern: Array) -> Surface:
        """Add one more point, known to be the surface's own."""
        phi = self.known.values(point[None])[0]
        row = phi / np.linalg.norm(phi)
        news = np.linalg.norm(row @ self.null) > self.options.news and self.open > 0
        return self._with(row[None], self.rank + int(news), Place(point, pattern))

    def fitted(self, points: Array) -> Surface:
        """Add equations of more of its points (n, d), which cannot change what is open."""
        phi = self.known.values(points)
        return self._with(phi / np.linalg.norm(phi, axis=1, keepdims=True), self.rank)

    def hold(self, points: Array) -> BoolArray:
        """Return (n,) which points (n, d) are on the surface whatever alpha is."""
        phi = self.known.values(points)
        sizes = np.linalg.norm(phi, axis=1)
        return np.asarray(np.linalg.norm(phi @ self.null, axis=1) <= self.options.seen * sizes)

    def holds(self, point: Array) -> bool:
        """Return whether a point is on the surface whatever alpha is."""
        return bool(self.hold(point[None])[0])

    def normal(self, pattern: Array) -> Array | None:
        """Return the normal (d,) of the surface in a region; None if it is open, or nothing is seen there."""
        key = (pattern > 0).tobytes()
        if key not in self._normals:
            normals = self.known.jacobian(pattern)[0].T @ self.null
            left, values, _ = np.linalg.svd(normals, full_matrices=False)
            one = len(values) < 2 or values[1] <= self.options.one_normal * values[0]
            self._normals[key] = left[:, 0] if values[0] > self.options.rank and one else None
        return self._normals[key]

    def is_free(self, direction: Array) -> bool:
        """Return whether a vector (F,) lies in N."""
        rest = direction - self.null @ (self.null.T @ direction)
        return bool(np.linalg.norm(rest) <= self.options.in_space * np.linalg.norm(direction))

    def _with(self, rows: Array, rank: int, place: Place | None = None) -> Surface:
        equations = np.vstack([self.equations, rows])
        if len(equations) > 2 * equations.shape[1]:
            equations = np.asarray(np.linalg.qr(equations, mode="r"))
        null = np.linalg.svd(equations)[2][rank:].T
        places = self.places if place is None else (*self.places, place)
        return replace(self, equations=equations, rank=rank, null=null, places=places, _normals={})
