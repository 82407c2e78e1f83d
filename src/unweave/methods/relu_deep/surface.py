"""What is known of one unit behind known layers, from points and normals of its surface.

The unit is alpha . phi(x) (`lifted`), with alpha unknown up to a factor. A point of its
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
from unweave.methods.relu_deep.lifted import LiftedLayers
from unweave.methods.relu_deep.probing import Kink

SEEN = 1e-6
"""Relative distance up to which what is predicted and what is measured agree."""
_RANK = 1e-7  # singular values of normalised equations below which there is nothing to see
_NEWS = 1e-4  # part of a point's equation that is new, below which it is an error of what is known
_ONE_NORMAL = 1e-5  # second over first singular value of the possible normals of a region
_COINCIDENCES = 2  # equations to spare that a kink of another unit would have to fulfil by chance
_ERRORS = 30.0  # estimated errors of a normal that it may be off
_FULL_WEIGHT = 1e-10  # error of a normal whose equations count as much as those of points
_LEAST_WEIGHT = 1e-3
_IN_SPACE = 1e-4  # sine of the angle to N of a vector that counts as a member


@dataclass(frozen=True, eq=False)
class Place:
    """A point of the surface and the pattern of the region it was seen in."""

    point: Array
    pattern: Array


@dataclass(frozen=True, eq=False)
class Surface:
    """All that is known of alpha."""

    known: LiftedLayers
    equations: Array
    """(n, F) that alpha fulfils"""
    rank: int
    """How many of them are independent."""
    null: Array
    """N (F, F - rank), orthonormal"""
    places: tuple[Place, ...]

    @classmethod
    def through(cls, known: LiftedLayers, kink: Kink) -> Surface | None:
        """The surface through a kink; None if no unit of the next layer can have that normal there."""
        dimension = known.dimension
        empty = cls(known, np.zeros((0, dimension)), 0, np.eye(dimension), ())
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

    def with_kink(self, kink: Kink, spare: int = _COINCIDENCES) -> Surface | None:
        """The surface with one more of its kinks; None if that is of another unit, or cannot be told."""
        pattern = self.known.pattern(kink.point)
        jacobian = self.known.jacobian(pattern)[0]
        phi = self.known.values(kink.point[None])[0]
        size = np.linalg.norm(jacobian, ord=2)
        if size == 0:
            return None
        readable = _rank(jacobian / size)
        image = np.vstack([jacobian.T / size, phi / np.linalg.norm(phi)]) @ self.null
        left, values, _ = np.linalg.svd(image, full_matrices=False)
        rank = int((values > _RANK).sum())
        if rank == 0 or readable + 1 - rank < spare:
            return None
        wanted = np.append(kink.normal, 0.0)
        off = wanted - left[:, :rank] @ (left[:, :rank].T @ wanted)
        if np.linalg.norm(off) > max(SEEN, _ERRORS * kink.error):
            return None
        tangents = (jacobian.T - np.outer(kink.normal, kink.normal @ jacobian.T)) / size
        weight = np.clip(_FULL_WEIGHT / max(kink.error, _FULL_WEIGHT), _LEAST_WEIGHT, 1.0)
        rows = np.vstack([weight * tangents, phi / np.linalg.norm(phi)])
        return self._with(rows, self.rank + rank - 1, Place(kink.point, pattern))

    def with_point(self, point: Array, pattern: Array) -> Surface:
        """The surface with one more point, known to be its own."""
        phi = self.known.values(point[None])[0]
        row = phi / np.linalg.norm(phi)
        news = np.linalg.norm(row @ self.null) > _NEWS and self.open > 0
        return self._with(row[None], self.rank + int(news), Place(point, pattern))

    def fitted(self, points: Array) -> Surface:
        """The same with equations of more of its points (n, d), which cannot change what is open."""
        phi = self.known.values(points)
        rows = phi / np.linalg.norm(phi, axis=1, keepdims=True)
        return self._with(rows, self.rank)

    def holds(self, point: Array) -> bool:
        """Whether a point is on the surface whatever alpha is."""
        phi = self.known.values(point[None])[0]
        return bool(np.linalg.norm(phi @ self.null) <= SEEN * np.linalg.norm(phi))

    def normal(self, pattern: Array) -> Array | None:
        """The normal (d,) of the surface in a region; None if it is open, or nothing is seen there."""
        normals = self.known.jacobian(pattern)[0].T @ self.null
        left, values, _ = np.linalg.svd(normals, full_matrices=False)
        if values[0] <= _RANK or (len(values) > 1 and values[1] > _ONE_NORMAL * values[0]):
            return None
        return np.asarray(left[:, 0])

    def is_free(self, direction: Array) -> bool:
        """Whether a vector (F,) lies in N."""
        rest = direction - self.null @ (self.null.T @ direction)
        return bool(np.linalg.norm(rest) <= _IN_SPACE * np.linalg.norm(direction))

    def _with(self, rows: Array, rank: int, place: Place | None = None) -> Surface:
        equations = np.vstack([self.equations, rows])
        null = np.linalg.svd(equations)[2][rank:].T
        places = self.places if place is None else (*self.places, place)
        return replace(self, equations=equations, rank=rank, null=null, places=places)


def _rank(matrix: Array) -> int:
    return int((np.linalg.svd(matrix, compute_uv=False) > _RANK).sum())
