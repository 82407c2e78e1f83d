"""The cones of an arrangement of hyperplanes through the origin, with a rational point inside each.

m hyperplanes <r, b_i> = 0 in R^n in general position (every n of the b_i are independent) divide R^n into
2 sum_{i<n} C(m-1, i) cones. For m >= n each of them has an edge, on which exactly n - 1 of the forms vanish:
the edges are the kernels of all (n-1)-subsets, and around an edge all 2^{n-1} signs of the vanishing forms
occur. For m < n all 2^m signs occur. Rational arithmetic throughout, so that a cone is never missed or
invented by rounding. Cost: C(m, n-1) eliminations of n x n matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from unweave.arrays import AnyArray
from unweave.construct.pieces import AffineMap, distinct_maps, pieces_on_line
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.rationals import rational_array


@dataclass(frozen=True)
class Cone:
    """One cone: the sign of every form, and a point where the forms have these signs."""

    signs: tuple[int, ...]
    inside: tuple[Fraction, ...]


def arrangement_cones(normals: Any) -> tuple[Cone, ...]:
    """Enumerate the cones of the hyperplanes with ``normals`` (m, n), in general position.

    Example:
        >>> [cone.signs for cone in arrangement_cones([[1, 0], [0, 1]])]
        [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    """
    rows = rational_array(normals, "normals")
    if rows.ndim != 2 or not rows.size:
        raise InvalidInput(f"normals must be of shape (m, n). Got {rows.shape} instead. One row each.")
    m, n = rows.shape
    if m < n:
        return tuple(Cone(signs, _solve(rows, signs)) for signs in product((1, -1), repeat=m))
    found: dict[tuple[int, ...], Cone] = {}
    for chosen in combinations(range(m), n - 1):
        edge = _kernel(rows[list(chosen)], n)
        values = [_dot(row, edge) for row in rows]
        others = [i for i in range(m) if i not in chosen]
        if any(values[i] == 0 for i in others):
            _not_general()
        for signs_here in product((1, -1), repeat=n - 1):
            # Leave the edge in a direction with the chosen signs, as far as half the way to the next plane.
            away = _solve(rows[list(chosen)], signs_here) if chosen else (Fraction(0),) * n
            slopes = [_dot(row, away) for row in rows]
            reach = [-values[i] / slopes[i] for i in others if values[i] * slopes[i] < 0]
            step = min(reach, default=Fraction(2)) / 2
            point = tuple(e + step * a for e, a in zip(edge, away, strict=True))
            for side in (1, -1):  # the opposite point lies in the opposite cone
                inside = tuple(side * p for p in point)
                signs = tuple(1 if _dot(row, inside) > 0 else -1 for row in rows)
                found.setdefault(signs, Cone(signs, inside))
    return tuple(sorted(found.values(), key=lambda cone: cone.signs, reverse=True))


def zonotope_maps(network: Network, generators: Any, height: Any = 1) -> set[AffineMap]:
    """The affine maps of a `hard.zonotope` network where its support function is below ``height``, exactly.

    Inside a cone the support function is linear, and the network a function of it alone: one ray per cone
    meets every piece. The number of maps is the number of pieces, because neighboring ones differ.
    """
    rows = rational_array(generators, "generators")
    top = rational_array([height], "height")[0]
    maps: set[AffineMap] = set()
    for cone in arrangement_cones(rows):
        gamma = sum(abs(_dot(row, cone.inside)) for row in rows)
        end = [top / gamma * p for p in cone.inside]
        pieces = pieces_on_line(network, [0] * rows.shape[1], end, 0, 1)
        maps |= distinct_maps(network, [[piece.middle * e for e in end] for piece in pieces])
    return maps


def _dot(row: Any, point: Any) -> Fraction:
    return sum((a * b for a, b in zip(row, point, strict=True)), Fraction(0))


def _eliminated(rows: AnyArray, right: Any = None) -> tuple[list[list[Fraction]], list[int]]:
    """Reduced row echelon form of [rows | right], and its pivot columns among those of rows."""
    n = rows.shape[1]
    matrix = [[*row, *([] if right is None else [Fraction(right[i])])] for i, row in enumerate(rows)]
    pivots: list[int] = []
    for column in range(n):
        level = len(pivots)
        pivot = next((i for i in range(level, len(matrix)) if matrix[i][column]), None)
        if pivot is None:
            continue
        matrix[level], matrix[pivot] = matrix[pivot], matrix[level]
        head = matrix[level][column]
        matrix[level] = [value / head for value in matrix[level]]
        for i, row in enumerate(matrix):
            if i != level and row[column]:
                factor = row[column]
                matrix[i] = [a - factor * b for a, b in zip(row, matrix[level], strict=True)]
        pivots.append(column)
    return matrix, pivots


def _kernel(rows: AnyArray, n: int) -> tuple[Fraction, ...]:
    """The direction on which n - 1 independent rows vanish."""
    matrix, pivots = _eliminated(rows)
    if len(pivots) != n - 1:
        _not_general()
    free = next(column for column in range(n) if column not in pivots)
    kernel = [Fraction(0)] * n
    kernel[free] = Fraction(1)
    for level, column in enumerate(pivots):
        kernel[column] = -matrix[level][free]
    return tuple(kernel)


def _solve(rows: AnyArray, right: Any) -> tuple[Fraction, ...]:
    """One solution of independent equations rows x = right, at most as many as unknowns."""
    matrix, pivots = _eliminated(rows, right)
    if len(pivots) != len(matrix):
        _not_general()
    solution = [Fraction(0)] * rows.shape[1]
    for level, column in enumerate(pivots):
        solution[column] = matrix[level][-1]
    return tuple(solution)


def _not_general() -> None:
    raise InvalidInput(
        "normals must be in general position: every n of them independent. Got dependent ones instead. "
        "Change one a little; almost all choices will do."
    )
