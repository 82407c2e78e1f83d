"""Passive data: rows of inputs and the answers that some network gave, checked once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array, IntArray, unmasked
from unweave.errors import InvalidInput
from unweave.numerics.memory import default_limit
from unweave.targets.answer_cache import RowKeys, Words, distinct, row_keys

_MOST_TRIED_DECIMALS = 12  # as many as an audit rounds to
_STORED_DECIMAL_ERROR = 4 * float(np.finfo(np.float64).eps)  # relative: decimals are stored to within eps/2
_FLOAT32 = float(np.finfo(np.float32).eps) / np.sqrt(12)
_SHARE_OF_MEMORY = 0.125  # of what a recovery may take: fits hold several copies of the rows
_MOST_BYTES = 1e11  # where the system does not say how much memory is free
_FEWEST_REPLICATES = 10  # pairs of rows with one input that the noise of the answers is estimated from


class Samples:
    """Inputs x (n, d) and answers y (n,) or (n, K), as float64.

    Rows with a missing (NaN or masked) or infinite entry are left out, repeated rows are kept once; ``notes``
    says so, and names inputs that never change. Nothing else is ever known about the network behind them.

    Example
    -------
    >>> samples = Samples([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], [1.0, 2.0, 3.0])
    >>> samples.x.shape, samples.y.shape
    ((3, 2), (3, 1))
    """

    __slots__ = ("_group", "_names", "_notes", "_x", "_y")

    def __init__(self, x: Any, y: Any) -> None:
        self._names = tuple(str(name) for name in getattr(x, "columns", ()))
        inputs, answers = _numbers(x, "x"), _numbers(y, "y")
        if inputs.ndim != 2 or 0 in inputs.shape:
            raise InvalidInput(
                f"x must be a matrix (n, d) with at least one row and one column. Got shape {inputs.shape} "
                f"instead. Give one row per sample; a single input is a matrix with one column."
            )
        if answers.ndim == 1:
            answers = answers[:, None]
        if answers.ndim != 2 or answers.shape[1] == 0:
            raise InvalidInput(
                f"y must be of shape (n,) or (n, K). Got shape {answers.shape} instead. "
                f"Give one row per sample and one column per output."
            )
        if len(answers) != len(inputs):
            raise InvalidInput(
                f"y must have as many rows as x, which has {len(inputs)}. Got {len(answers)} instead. "
                f"Give one answer per row of x."
            )
        inputs, answers, notes = _finite_rows(inputs, answers)
        inputs, answers, group, repeated = _distinct_rows(inputs, answers)
        constant = np.flatnonzero(np.ptp(inputs, axis=0) == 0)
        if repeated:
            notes.append(f"{repeated} repeated rows were kept once")
        if len(constant):
            named = ", ".join(map(str, constant[:10])) + (", ..." if len(constant) > 10 else "")
            notes.append(f"inputs that never change get no weight: column {named}")
        inputs.setflags(write=False)
        answers.setflags(write=False)
        self._x, self._y, self._group, self._notes = inputs, answers, group, tuple(notes)

    @classmethod
    def from_chunks(
        cls, chunks: Iterable[tuple[Any, Any]], *, most_rows: int | None = None, seed: int = 0
    ) -> Samples:
        """Read pairs (x, y) of arrays one after the other and keep at most ``most_rows`` of their rows.

        What is kept is drawn at random from all rows, in one pass, so that no more than twice as many are
        ever in memory. None: as many as fit into an eighth of the memory that a recovery may take. An exact
        recovery needs 10 to 20 rows per parameter, however many there are. `chunks_of` cuts arrays on disk
        and Dask arrays into chunks.

        Example
        -------
        >>> Samples.from_chunks(((np.full((10, 2), i), np.full(10, i)) for i in range(5)), most_rows=20)
        Samples(5 rows, 2 inputs, 1 outputs)
        """
        if most_rows is not None and most_rows < 1:
            raise InvalidInput(f"most_rows must be a whole number >= 1. Got {most_rows!r} instead.")
        rng = np.random.default_rng(seed)
        kept: Array | None = None  # a random key in the first column: the rows of the least keys stay
        read, inputs, most = 0, 0, 0
        for x, y in chunks:
            part, answers = _numbers(x, "x"), _numbers(y, "y")
            answers = answers[:, None] if answers.ndim == 1 else answers
            if part.ndim != 2 or answers.ndim != 2 or len(part) != len(answers):
                raise InvalidInput(
                    "chunks must be pairs of x (n, d) and y (n,) or (n, K) with as many rows. Got shapes "
                    f"{np.shape(x)} and {np.shape(y)} instead."
                )
            rows = np.hstack([rng.random((len(part), 1)), part, answers])
            if kept is not None and (part.shape[1] != inputs or rows.shape[1] != kept.shape[1]):
                raise InvalidInput(
                    f"chunks must all have the columns of the first one, {inputs} of x and "
                    f"{kept.shape[1] - 1 - inputs} of y. Got {part.shape[1]} and {answers.shape[1]} instead."
                )
            read, inputs = read + len(part), part.shape[1]
            if kept is None:
                kept, most = rows, most_rows or _rows_that_fit(rows.shape[1])
            else:
                kept = np.concatenate([kept, rows])
            if len(kept) > 2 * most:
                kept = kept[np.argpartition(kept[:, 0], most)[:most]]
        if kept is None:
            raise InvalidInput("chunks must hold at least one pair (x, y). They are empty.")
        kept = kept[np.argsort(kept[:, 0])[:most]]
        result = cls(kept[:, 1 : 1 + inputs], kept[:, 1 + inputs :])
        if len(kept) < read:
            result._notes += (f"{len(kept):,} of {read:,} rows were kept, drawn at random",)
        return result

    @property
    def x(self) -> Array:
        """Inputs (n, d), read-only."""
        return self._x

    @property
    def y(self) -> Array:
        """Answers (n, K), read-only."""
        return self._y

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noticed about the data."""
        return self._notes

    @property
    def n_inputs(self) -> int:
        """d"""
        return int(self._x.shape[1])

    @property
    def n_outputs(self) -> int:
        """K"""
        return int(self._y.shape[1])

    def __len__(self) -> int:
        return len(self._x)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs, where x was a table with named columns; else none."""
        return self._names

    def __repr__(self) -> str:
        return f"Samples({len(self)} rows, {self.n_inputs} inputs, {self.n_outputs} outputs)"

    def precision(self) -> Precision:
        """Estimate the error of the answers from the answers alone."""
        return _precision(self._y, self._group)

    def split(self, held_out: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return row numbers for fitting and for verification; rows with equal inputs stay together."""
        groups = rng.permutation(int(self._group.max()) + 1)
        rank = np.empty(len(groups), dtype=np.int64)
        rank[groups] = np.arange(len(groups))
        order = np.argsort(rank[self._group], kind="stable")
        cut = len(order) - max(0, min(held_out, len(order) - 1))
        while 0 < cut < len(order) and self._group[order[cut]] == self._group[order[cut - 1]]:
            cut += 1
        return np.sort(order[:cut]), np.sort(order[cut:])


def chunks_of(x: Any, y: Any, rows: int = 65_536) -> Iterator[tuple[Any, Any]]:
    """Yield ``rows`` rows of x (n, d) and y (n,) or (n, K) at a time: arrays on disk, Dask arrays, tables.

    ``np.load(file, mmap_mode="r")`` opens an array on disk without reading it.
    """
    count = x.shape[0]
    if count != y.shape[0] or count != count:
        raise InvalidInput(
            f"x and y must have the same known number of rows. Got {count} and {y.shape[0]} instead. "
            "Call compute_chunk_sizes() on Dask arrays of unknown length."
        )
    for start in range(0, int(count), rows):
        yield np.asarray(x[start : start + rows]), np.asarray(y[start : start + rows])


def _rows_that_fit(columns: int) -> int:
    """Return how many rows of float64 may be kept by default."""
    return max(1, int(min(default_limit(), _MOST_BYTES) * _SHARE_OF_MEMORY / (8 * columns)))


@dataclass(frozen=True, eq=False)
class Precision:
    """Standard error of the answers, per output, and how it is known."""

    sigma: Array
    """(K,)"""
    kind: str
    """"float64", "float32", "decimals" (rounded answers) or "replicates" (repeated inputs differ)."""


def _numbers(value: Any, name: str) -> Array:
    array = np.asarray(unmasked(value))
    if array.dtype.kind not in "biuf":
        try:
            if array.dtype.kind in "USO" and any(isinstance(entry, str) for entry in array.reshape(-1)[:100]):
                raise ValueError("it holds text")
            if array.dtype.kind == "c":
                raise ValueError("complex numbers are none")
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"{name} must hold real numbers. Got {array.dtype} instead ({error}). "
                f"Encode categories as numbers, one column per category, first."
            ) from error
    return np.array(array, dtype=np.float64, order="C")


def _finite_rows(x: Array, y: Array) -> tuple[Array, Array, list[str]]:
    finite = np.asarray(np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1))
    if not finite.any():
        raise InvalidInput(
            "x and y must have rows without missing or infinite entries. Every row has one. "
            "Drop columns that are mostly missing, or fill them in."
        )
    if finite.all():
        return x, y, []
    left_out = int(len(finite) - finite.sum())
    return x[finite], y[finite], [f"{left_out} rows with missing or infinite entries were left out"]


def _distinct_rows(x: Array, y: Array) -> tuple[Array, Array, IntArray, int]:
    """Return the rows that differ in x or y, in order; the number of each row's input; the count dropped."""
    keys, answer_keys = row_keys(x), row_keys(y)
    leaders, group = distinct(keys)
    if len(leaders) < len(x):
        # Fingerprints of x and y together; two words each, so that no pair is taken for another.
        together = RowKeys(_mixed(keys.first, answer_keys.first), _mixed(keys.second, answer_keys.second))
        keep = distinct(together)[0]
        if len(keep) < len(x):
            x, y = x[keep], y[keep]
            dropped = len(group) - len(keep)
            leaders, group = distinct(keys.take(keep))
            return x, y, _in_order(x, leaders)[group], dropped
    return x, y, _in_order(x, leaders)[group], 0


def _mixed(inputs: Words, answers: Words) -> Words:
    return np.asarray(inputs * np.uint64(3) + answers, dtype=np.uint64)


def _in_order(x: Array, leaders: IntArray) -> IntArray:
    """Number the inputs x[leaders] lexicographically: independent of the order of the rows."""
    first = x[leaders, 0]
    order = np.argsort(first, kind="stable")
    if (np.diff(first[order]) == 0).any():
        order = np.lexsort(x[leaders].T[::-1])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank


def _precision(y: Array, group: IntArray) -> Precision:
    size = np.abs(y).max(axis=0)
    counts = np.bincount(group)
    freedom = int((counts - 1).sum())
    if freedom >= _FEWEST_REPLICATES:
        means = np.stack([np.bincount(group, column) for column in y.T], axis=1) / counts[:, None]
        return Precision(np.sqrt(((y - means[group]) ** 2).sum(axis=0) / freedom), "replicates")
    for decimals in range(_MOST_TRIED_DECIMALS + 1):
        scaled = y * 10.0**decimals
        if (np.abs(scaled - np.round(scaled)) <= _STORED_DECIMAL_ERROR * np.abs(scaled)).all():
            return Precision(np.full(y.shape[1], 10.0**-decimals / np.sqrt(12)), "decimals")
    with np.errstate(over="ignore"):
        single = (y == y.astype(np.float32)).all()
    if single:
        return Precision(_FLOAT32 * size, "float32")
    return Precision(float(np.finfo(np.float64).eps) * size, "float64")
