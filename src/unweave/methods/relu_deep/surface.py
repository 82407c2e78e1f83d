"""All that is known of one unit behind known layers, from points and normals of its surface.

The unit is alpha . phi(x) (`networks.lifted_layers`), with alpha unknown up to a factor. A point of its
surface and a normal n there say

    phi(p) . alpha = 0,        G^T alpha  parallel to  n,

and alpha lies in the null space N of all these equations. A second kink is of the same unit only if some
alpha in N fits it as well: rank(G) + 1 equations for as many unknowns as the image of N there has
dimensions, so that each equation to spare is a coincidence if it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_deep.probe import Kink
from unweave.networks.lifted_layers import LiftedLayers


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

    @classmethod
    def through(
        cls, known: LiftedLayers, kink: Kink, options: SurfaceOptions = DEFAULT_SURFACE_OPTIONS
    ) -> Surface | None:
        """Return the surface through a kink; None if no unit of the next layer can have that normal there."""
        dimension = known.dimension
        empty = cls(known, np.zeros((0, dimension)), 0, np.eye(dimension), (), options)
        return empty.with_kink(kink, spare=0)

    @property
    def open(self) -> int:
        """Dimensions of N beyond the one that is the unit itself."""
        return int(self.null.shape[1]) - 1

    @property
    def representative(self) -> Array:
        """The member of N (F,) that acts most where the surface was seen: alpha if nothing is open."""
        if self.open == 0:
            return self.null[:, 0]
        gradients = [self.known.jacobian(place.pattern)[0].T @ self.null for place in self.places]
        return np.asarray(self.null @ np.linalg.svd(np.vstack(gradients))[2][0])

    def with_kink(self, kink: Kink, spare: int | None = None) -> Surface | None:
        """Add one more of the surface's kinks; return None if it is of another unit, or cannot be told.

        ``spare`` is the number of equations that it must fulfil by chance if it is of another unit.
        """
        options = self.options
        spare = options.coincidences if spare is None else spare
        pattern = self.known.pattern(kink.point)
        jacobian = self.known.jacobian(pattern)[0]
        phi = self.known.values(kink.point[None])[0]
        size = np.linalg.norm(jacobian, ord=2)
        if size == 0:
            return None
        readable = int((np.linalg.svd(jacobian / size, compute_uv=False) > options.rank).sum())
        image = np.vstack([jacobian.T / size, phi / np.linalg.norm(phi)]) @ self.null
        left, values, _ = np.linalg.svd(image, full_matrices=False)
        rank = int((values > options.rank).sum())
        if rank == 0 or readable + 1 - rank < spare:
            return None
        wanted = np.append(kink.normal, 0.0)
        off = wanted - left[:, :rank] @ (left[:, :rank].T @ wanted)
        if np.linalg.norm(off) > max(options.seen, options.normal_errors * kink.error):
            return None
        tangents = (jacobian.T - np.outer(kink.normal, kink.normal @ jacobian.T)) / size
        full = options.full_weight
        weight = np.clip(full / max(kink.error, full), options.least_weight, 1.0)
        rows = np.vstack([weight * tangents, phi / np.linalg.norm(phi)])
        return self._with(rows, self.rank + rank - 1, Place(kink.point, pattern))

    def with_point(self, point: Array, pattern: Array) -> Surface:
        """Add one more point, known to be the surface's own."""
        phi = self.known.values(point[None])[0]
        row = phi / np.linalg.norm(phi)
        news = np.linalg.norm(row @ self.null) > self.options.news and self.open > 0
        return self._with(row[None], self.rank + int(news), Place(point, pattern))

    def fitted(self, points: Array) -> Surface:
        """Add equations of more of its points (n, d), which cannot change what is open."""
        phi = self.known.values(points)
        rows = phi / np.linalg.norm(phi, axis=1, keepdims=True)
        return self._with(rows, self.rank)

    def holds(self, point: Array) -> bool:
        """Return whether a point is on the surface whatever alpha is."""
        phi = self.known.values(point[None])[0]
        return bool(np.linalg.norm(phi @ self.null) <= self.options.seen * np.linalg.norm(phi))

    def normal(self, pattern: Array) -> Array | None:
        """Return the normal (d,) of the surface in a region; None if it is open, or nothing is seen there."""
        normals = self.known.jacobian(pattern)[0].T @ self.null
        left, values, _ = np.linalg.svd(normals, full_matrices=False)
        one = len(values) < 2 or values[1] <= self.options.one_normal * values[0]
        if values[0] <= self.options.rank or not one:
            return None
        return np.asarray(left[:, 0])

    def is_free(self, direction: Array) -> bool:
        """Return whether a vector (F,) lies in N."""
        rest = direction - self.null @ (self.null.T @ direction)
        return bool(np.linalg.norm(rest) <= self.options.in_space * np.linalg.norm(direction))

    def _with(self, rows: Array, rank: int, place: Place | None = None) -> Surface:
        equations = np.vstack([self.equations, rows])
        null = np.linalg.svd(equations)[2][rank:].T
        places = self.places if place is None else (*self.places, place)
        return replace(self, equations=equations, rank=rank, null=null, places=places)
