"""Remember answers by a 128-bit fingerprint of their input row.

Rows are not kept, only two 64-bit words per row and the answer itself, so a cache of three million
rows costs tens of megabytes. Everything is vectorised: a batch is fingerprinted block by block, and the
fingerprints live in a few sorted runs that are merged when they grow to similar sizes, as in a
log-structured store. Inserting n rows one batch after the other costs O(n log n) in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unweave.arrays import Array, IntArray

Words = NDArray[np.uint64]

_BLOCK_WORDS = 1 << 16  # entries fingerprinted at once: half a megabyte, so temporaries stay in cache
_MERGE_RATIO = 4  # a run is merged into its older neighbour unless that one is this much longer
_CONSTANTS_SEED = 0x5EED_0F_A11  # the fingerprint is a fixed function: the same in every process
_MIX_A = np.uint64(0xFF51AFD7ED558CCD)  # odd, well spread bits: a bijection of the 64-bit words
_MIX_B = np.uint64(0xC4CEB9FE1A85EC53)


@dataclass(frozen=True)
class RowKeys:
    """Fingerprints of n rows: ``first`` and ``second`` are (n,) words; equal rows have equal words."""

    first: Words
    second: Words

    def __len__(self) -> int:
        return int(self.first.size)

    def take(self, index: IntArray) -> RowKeys:
        """Return the fingerprints of the rows ``index``."""
        return RowKeys(self.first[index], self.second[index])


@dataclass(frozen=True)
class _Run:
    """A sorted run of fingerprints with the position of each answer."""

    first: Words
    second: Words
    position: NDArray[np.uint32]


@lru_cache(maxsize=64)
def _column_constants(n_columns: int) -> tuple[Words, Words]:
    """Return one odd multiplier per column for each of the two words."""
    rng = np.random.default_rng(_CONSTANTS_SEED)
    constants = rng.integers(0, 2**64, size=(n_columns, 2), dtype=np.uint64) | np.uint64(1)
    return constants[:, 0].copy(), constants[:, 1].copy()


def row_keys(x: Array) -> RowKeys:
    """Fingerprint the rows of ``x`` (n, D): 128 bits each, with -0.0 the same as 0.0.

    With u_j the 64 bits of column j, a_j and b_j odd constants and M1, M2 multiply-xorshift bijections,

        z_j = M1(a_j (u_j xor u_j >> 32)),   first = sum_j z_j,   second = sum_j b_j M2(z_j)   (mod 2**64).

    Every column passes through bijections of its own before the sum, so that a change of one bit, or
    the same values in other columns, moves both words. Cost: about ten integer operations per entry.
    """
    n_rows, n_columns = x.shape
    first = np.empty(n_rows, dtype=np.uint64)
    second = np.empty(n_rows, dtype=np.uint64)
    multiply_first, multiply_second = _column_constants(n_columns)
    step = max(1, _BLOCK_WORDS // max(1, n_columns))
    for start in range(0, n_rows, step):
        # Adding zero turns -0.0 into 0.0 and leaves every other number as it is.
        z = (x[start : start + step] + 0.0).view(np.uint64)
        # Round numbers carry information in their high bits only, and multiplying never moves it down.
        z ^= z >> np.uint64(32)
        z *= multiply_first
        z ^= z >> np.uint64(29)
        z *= _MIX_A
        z ^= z >> np.uint64(32)
        np.sum(z, axis=1, dtype=np.uint64, out=first[start : start + step])
        z *= _MIX_B
        z ^= z >> np.uint64(32)
        z *= multiply_second
        np.sum(z, axis=1, dtype=np.uint64, out=second[start : start + step])
    return RowKeys(first, second)


def distinct(keys: RowKeys) -> tuple[IntArray, IntArray]:
    """Return ``(index, inverse)``: the first occurrence of each distinct key, in order, and each row's key.

    ``keys.take(index).take(inverse)`` equals ``keys``.
    """
    n = len(keys)
    order = np.argsort(keys.first, kind="stable")
    first, second = keys.first[order], keys.second[order]
    repeats = (first[1:] == first[:-1]) & (second[1:] == second[:-1])
    if not repeats.any():
        everything = np.arange(n, dtype=np.int64)
        return everything, everything
    group = np.concatenate([[0], np.cumsum(~repeats)])
    leader = order[np.concatenate([[True], ~repeats])]  # a stable sort puts the first occurrence in front
    by_appearance = np.argsort(leader)
    rank = np.empty_like(by_appearance)
    rank[by_appearance] = np.arange(by_appearance.size)
    inverse = np.empty(n, dtype=np.int64)
    inverse[order] = rank[group]
    return leader[by_appearance].astype(np.int64), inverse


def _merge(older: _Run, newer: _Run) -> _Run:
    """Merge two sorted runs. The stable sort finds the two runs and merges them in linear time."""
    first = np.concatenate([older.first, newer.first])
    order = np.argsort(first, kind="stable")
    return _Run(
        first[order],
        np.concatenate([older.second, newer.second])[order],
        np.concatenate([older.position, newer.position])[order],
    )


class AnswerCache:
    """Answers (m numbers each) found again by the fingerprint of their input row.

    Positions count answers in the order in which they came: ``insert`` returns the position of its first
    row, ``find`` the position of each row or -1, ``answers`` the answers at given positions.

    Should two different rows share the first word (about one chance in 10**6 among three million rows),
    the second word tells them apart: the later one may be asked again, never answered wrongly.
    """

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._answers: Array | None = None
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        held = 0 if self._answers is None else self._answers.nbytes
        return held + sum(run.first.nbytes + run.second.nbytes + run.position.nbytes for run in self._runs)

    def find(self, keys: RowKeys) -> IntArray:
        """Return the position of each key's answer, -1 where it is not known. Shape (n,)."""
        order = np.argsort(keys.first)  # in growing order, a run is walked through, not jumped about
        first, second = keys.first[order], keys.second[order]
        found = np.full(len(keys), -1, dtype=np.int64)
        for run in self._runs:
            slot = np.searchsorted(run.first, first)
            np.minimum(slot, run.first.size - 1, out=slot)
            hit = (run.first[slot] == first) & (run.second[slot] == second)
            found[hit] = run.position[slot[hit]]
        position = np.empty_like(found)
        position[order] = found
        return position

    def insert(self, keys: RowKeys, answers: Array) -> int:
        """Store ``answers`` (n, m) under ``keys`` (all new) and return the position of the first."""
        start, n = self._size, len(keys)
        if n == 0:
            return start
        self._reserve(start + n, answers.shape[1])[start : start + n] = answers
        self._size += n
        order = np.argsort(keys.first)
        positions = np.arange(start, start + n, dtype=np.uint32)[order]
        self._runs.append(_Run(keys.first[order], keys.second[order], positions))
        while len(self._runs) > 1 and self._runs[-2].first.size < _MERGE_RATIO * self._runs[-1].first.size:
            newer, older = self._runs.pop(), self._runs.pop()
            self._runs.append(_merge(older, newer))
        return start

    def answers(self, positions: IntArray) -> Array:
        """Return a copy of the answers at ``positions`` (n,). Shape (n, m)."""
        if self._answers is None:
            return np.empty((0, 0))
        return self._answers[positions]

    def _reserve(self, size: int, n_outputs: int) -> Array:
        """Return storage of at least ``size`` rows, grown by half so that copies stay rare."""
        held = self._answers
        if held is None or held.shape[0] < size:
            capacity = size if held is None else max(size, held.shape[0] + held.shape[0] // 2)
            grown = np.empty((capacity, n_outputs))
            if held is not None:
                grown[: self._size] = held[: self._size]
            self._answers = held = grown
        return held
