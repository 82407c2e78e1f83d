"""Passive data: rows of inputs and the answers that some network gave, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array, IntArray, unmasked
from unweave.errors import InvalidInput
from unweave.targets.answer_cache import RowKeys, Words, distinct, row_keys

_MOST_TRIED_DECIMALS = 12  # as many as an audit rounds to
_STORED_DECIMAL_ERROR = 4 * float(np.finfo(np.float64).eps)  # relative: decimals are stored to within eps/2
_FLOAT32 = float(np.finfo(np.float32).eps) / np.sqrt(12)
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

    __slots__ = ("_group", "_notes", "_x", "_y")

    def __init__(self, x: Any, y: Any) -> None:
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
            "x and y must have rows without missing or infinite entries. Got none instead. "
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
