"""Second and third derivatives of all outputs on a simplex lattice.

    points     x + h (e_i + e_j + e_k), i <= j <= k, and the same with two, one or none of the three

are C(d+3, 3) rows, and differences of them hold *every* second and third derivative at x: with F_i, F_ij,
F_ijk the answers,

    T_ijk = [F_ijk - F_ij - F_ik - F_jk + F_i + F_j + F_k - F] / h^3                         + O(h)
    H_ij  = [F_ij - F_i - F_j + F] / h^2 - h/2 (T_iij + T_ijj)                               + O(h^2)

For a function that is a sum of units, H and each of the d slices T(., ., e_k) is one member of the span
of the w w^T: d + 1 members for about d^3/6 rows, where a Hessian of its own would cost d^2 rows. Rows are
shared because T is symmetric in three indices.

The mirrored lattice, x - h (...), doubles the rows; T from the odd part of the answers and H from the even
part are then both exact up to O(h^2), about a thousand times better in float64.

Rows are ordered by their largest index, so a lattice in d directions is the beginning of one in more:
`LatticeSampler.widen_to` only asks for what is new.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.derivatives.stencils import Function
from unweave.errors import InvalidInput
from unweave.subspace.symmetric import symmetric_packing

_LATTICE_ORDER = 3


def lattice_rows(d: int) -> int:
    """C(d+3, 3), the rows of one lattice in ``d`` directions."""
    return comb(d + _LATTICE_ORDER, _LATTICE_ORDER)


@dataclass(frozen=True, eq=False)
class LatticeJets:
    """Second and third derivatives of K outputs at n sites."""

    sites: Array
    """(n, d)"""
    hessians: Array
    """(n, K, p) packed"""
    thirds: Array
    """(n, K, d, p): T(., ., e_k), each packed"""
    step: float
    """Step h of the lattices."""
    mirrored: bool
    """Whether the mirrored lattices were asked too."""

    def __len__(self) -> int:
        return int(self.sites.shape[0])

    def members(self) -> Array:
        """(n K (d + 1), p) packed members of the span: Hessians and slices of third derivatives.

        A slice along one direction holds one d-th of the squared third derivative along the gradient; sqrt(d)
        makes both kinds weigh alike, so that the spectrum has no step between them.
        """
        slices = np.sqrt(self.thirds.shape[2]) * self.thirds
        both = np.concatenate([self.hessians[:, :, None], slices], axis=2)
        return both.reshape(-1, self.hessians.shape[2])

    def rescaled(self, unit: float) -> LatticeJets:
        """Return the same in coordinates x / ``unit``."""
        hessians, thirds = unit**2 * self.hessians, unit**3 * self.thirds
        return LatticeJets(self.sites / unit, hessians, thirds, self.step / unit, self.mirrored)


class LatticeSampler:
    """Lattices around sites in d directions; sites, directions and sides can be added, none is asked twice.

    ``function`` is asked at (n, d) points for whatever d; further coordinates count as zero. (The centre
    belongs to both sides; a ledger answers it the second time for nothing.)
    """

    def __init__(self, function: Function, step: float, mirrored: bool = False) -> None:
        self._function, self._step = function, step
        self._sites: list[Array] = []
        self._signs = (1, -1) if mirrored else (1,)
        self._answers: dict[int, list[Array]] = {sign: [] for sign in self._signs}
        self.dimension = 0

    def __len__(self) -> int:
        return len(self._sites)

    @property
    def mirrored(self) -> bool:
        """Whether both lattices are asked at every site."""
        return len(self._signs) == 2

    def add(self, site: Array) -> None:
        """One more site (d,), of as many coordinates as the sites before."""
        if self._sites and len(site) != self.dimension:
            raise InvalidInput(
                f"site must have {self.dimension} coordinates, as the sites before. Got {len(site)} instead. "
                "Call widen_to first."
            )
        answers = {sign: self._ask(site, sign) for sign in self._signs}
        self.dimension = len(site)
        self._sites.append(site)
        for sign, part in answers.items():
            self._answers[sign].append(part)

    def widen_to(self, dimension: int) -> None:
        """Take all sites' lattices in ``dimension`` directions, the sites' new coordinates being zero."""
        more = max(dimension - self.dimension, 0)
        sites = [np.concatenate([site, np.zeros(more)]) for site in self._sites]
        for sign, parts in self._answers.items():
            new = [self._ask(site, sign, known=self.dimension) for site in sites]
            self._answers[sign] = [np.concatenate(pair) for pair in zip(parts, new, strict=True)]
        self._sites, self.dimension = sites, self.dimension + more

    def mirror(self) -> None:
        """Take the mirrored lattices too, now and from now on."""
        if not self.mirrored:
            self._answers[-1] = [self._ask(site, -1) for site in self._sites]
            self._signs = (1, -1)

    def jets(self) -> LatticeJets:
        """The derivatives that all answers so far give."""
        parts = []
        for i, forward in enumerate(self._answers[1]):
            if self.mirrored:
                parts.append(central_differences(forward, self._answers[-1][i], self.dimension, self._step))
            else:
                parts.append(forward_differences(forward, self.dimension, self._step))
        hessians, thirds = (np.stack(each) for each in zip(*parts, strict=True))
        return LatticeJets(np.stack(self._sites), hessians, thirds, self._step, self.mirrored)

    def _ask(self, site: Array, sign: int, known: int = 0) -> Array:
        """Answers on the lattice around ``site``, without what it has in its first ``known`` directions."""
        offsets = _multisets(len(site))[lattice_rows(known) if known else 0 :]
        points = np.repeat(site[None], len(offsets), axis=0)
        for index in offsets.T:
            present = np.flatnonzero(index >= 0)
            points[present, index[present]] += sign * self._step
        return self._function(points)


def forward_differences(answers: Array, d: int, step: float) -> tuple[Array, Array]:
    """Packed Hessians (K, p) and third derivatives (K, d, p) from lattice answers (rows, K)."""
    every = _by_index(answers, d)
    cube = _third_difference(every, d) / step**3
    mixed = np.einsum("kiij->kij", cube)
    square = _second_difference(every, d) / step**2 - step / 2 * (mixed + mixed.transpose(0, 2, 1))
    packing = symmetric_packing(d)
    return np.asarray(packing.pack(square)), np.asarray(packing.pack(cube))


def central_differences(answers: Array, mirrored: Array, d: int, step: float) -> tuple[Array, Array]:
    """The same from the answers of a lattice and of its mirror image."""
    odd, even = _by_index((answers - mirrored) / 2, d), _by_index((answers + mirrored) / 2, d)
    square, cube = _second_difference(even, d) / step**2, _third_difference(odd, d) / step**3
    return _packed(square, cube, d)


def _by_index(answers: Array, d: int) -> Array:
    """(K, d+1, d+1, d+1) answers at every triple of directions, d standing for none."""
    return answers[_positions(d)].transpose(3, 0, 1, 2)


def _second_difference(every: Array, d: int) -> Array:
    first = every[:, :d, d, d] - every[:, d, d, d, None]
    return np.asarray(every[:, :d, :d, d] - every[:, :d, d, d, None] - first[:, None, :])


def _third_difference(every: Array, d: int) -> Array:
    first, second = every[:, :d, d, d], every[:, :d, :d, d]
    cube = every[:, :d, :d, :d] - second[:, :, :, None]
    cube -= second[:, :, None, :]
    cube -= second[:, None, :, :]
    pairs = first[:, :, None] + (first - every[:, d, d, d, None])[:, None, :]
    cube += pairs[:, :, :, None] + first[:, None, None, :]
    return np.asarray(cube)


def _packed(square: Array, cube: Array, d: int) -> tuple[Array, Array]:
    packing = symmetric_packing(d)
    return np.asarray(packing.pack(square)), np.asarray(packing.pack(cube))


@lru_cache(maxsize=8)
def _multisets(d: int) -> IntArray:
    """(C(d+3, 3), 3) multisets of up to three of 0..d-1, -1 for none, ordered by their largest index."""
    rows = [(-1, -1, -1)]
    for k in range(d):
        for j in range(-1, k + 1):
            rows.extend((i, j, k) for i in range(-1, j + 1))
    result = np.array(rows, dtype=np.int64)
    result.setflags(write=False)
    return result


@lru_cache(maxsize=8)
def _positions(d: int) -> IntArray:
    """(d+1, d+1, d+1) row of every triple, in any order, with d for none."""
    triples = np.where(_multisets(d) < 0, d, _multisets(d))
    table = np.empty((d + 1,) * 3, dtype=np.int64)
    rows = np.arange(len(triples))
    for i, j, k in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        table[triples[:, i], triples[:, j], triples[:, k]] = rows
    table.setflags(write=False)
    return table
