"""The ledger: every question that reaches the target goes through here, is counted, and is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from unweave.access.answer_cache import AnswerCache, RowKeys, distinct, row_keys
from unweave.arrays import Array, IntArray
from unweave.errors import BudgetExhausted, InvalidInput, TargetError

_CHUNK_BYTES = 32 * 2**20  # rows are sent in pieces of about this size, so that a deadline is seen in time
_NUMERIC_KINDS = "biuf"
_FIRST_NUMBERS = 6  # how many entries of an offending input row a message shows


class Queries:
    """Counted, cached and budgeted access to a target f: R^D -> R^m.

    Calling it with rows x (n, D) returns float64 answers (n, m). Every row that is sent counts; a row that
    was answered before (bit for bit, -0.0 being 0.0), or that occurs twice in one call, is free.

    Parameters
    ----------
    function
        Maps (n, D) float64 to n answers: (n,) or (n, m), any real number type, lists included.
    n_inputs
        D.
    max_queries
        Rows that may be sent from now on; None for no limit.
    deadline
        Seconds from now after which nothing is sent any more; None for no limit.
    batch_rows
        Most rows per call of ``function``; by default about 32 MB of them.
    clock
        Returns seconds; replaced in tests.

    Example
    -------
    >>> queries = Queries(lambda x: x.sum(axis=1), n_inputs=3, max_queries=10)
    >>> queries([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    array([[6.],
           [6.]])
    >>> queries.sent, queries.cache_hits, queries.remaining
    (1, 1, 9)
    """

    def __init__(
        self,
        function: Callable[[Array], Any],
        n_inputs: int,
        *,
        max_queries: int | None = None,
        deadline: float | None = None,
        batch_rows: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not callable(function):
            raise InvalidInput(f"function must be callable. Got {type(function).__name__} instead.")
        self._function = function
        self._n_inputs = _whole_number(n_inputs, "n_inputs", least=1)
        default_rows = max(1, _CHUNK_BYTES // (8 * self._n_inputs))
        self._batch_rows = (
            default_rows if batch_rows is None else _whole_number(batch_rows, "batch_rows", least=1)
        )
        self._clock = clock
        self._cache = AnswerCache()
        self._n_outputs: int | None = None
        self._sent = 0
        self._calls = 0
        self._cache_hits = 0
        self._seconds = 0.0
        self._limit: int | None = None
        self._deadline: float | None = None
        self.reset_budget(max_queries=max_queries, deadline=deadline)

    @property
    def n_inputs(self) -> int:
        """Number of inputs D."""
        return self._n_inputs

    @property
    def n_outputs(self) -> int | None:
        """Number of outputs m; None until the first answer."""
        return self._n_outputs

    @property
    def sent(self) -> int:
        """Rows sent to the target so far."""
        return self._sent

    @property
    def calls(self) -> int:
        """Times the target was called."""
        return self._calls

    @property
    def cache_hits(self) -> int:
        """Rows answered without asking the target."""
        return self._cache_hits

    @property
    def seconds_in_target(self) -> float:
        """Seconds spent inside the target."""
        return self._seconds

    @property
    def remaining(self) -> int | None:
        """Rows that may still be sent; None when there is no limit."""
        return None if self._limit is None else max(0, self._limit - self._sent)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline (0 when it has passed); None when there is none."""
        return None if self._deadline is None else max(0.0, self._deadline - self._clock())

    def reset_budget(self, *, max_queries: int | None = None, deadline: float | None = None) -> None:
        """Set a new budget, counted from now: further rows and further seconds. None lifts a limit.

        The answers and the counts are kept; this is how a ledger taken from an error goes on.
        """
        if max_queries is not None:
            max_queries = _whole_number(max_queries, "max_queries", least=0)
        if deadline is not None and not deadline >= 0:
            raise InvalidInput(f"deadline must be a number of seconds >= 0. Got {deadline!r} instead.")
        self._limit = None if max_queries is None else self._sent + max_queries
        self._deadline = None if deadline is None else self._clock() + float(deadline)

    def __call__(self, x: Any, *, fresh: bool = False) -> Array:
        """Answer the rows of ``x`` (n, D): returns (n, m) float64.

        ``fresh=True`` asks every row anew, whatever the cache holds, and does not store the answers: for
        tests of repeatability. A call that does not fit in the budget raises `BudgetExhausted` before
        anything is sent; when the target fails, `TargetError` carries this ledger with all it has learnt.
        """
        rows = _checked_rows(x, self._n_inputs)
        if rows.shape[0] == 0:
            return np.empty((0, self._n_outputs or 0))
        return self._ask_anew(rows) if fresh else self._ask_unknown(rows)

    def __repr__(self) -> str:
        budget = "" if self._limit is None else f", {self.remaining} left"
        return (
            f"Queries({self._n_inputs} inputs, {self._sent} sent{budget}, {self._cache_hits} from the cache)"
        )

    def _ask_anew(self, rows: Array) -> Array:
        """Send every row, keep nothing."""
        self._check_budget(rows.shape[0])
        answers = []
        for start in range(0, rows.shape[0], self._batch_rows):
            piece = rows[start : start + self._batch_rows]
            answers.append(self._send(piece.copy()))
            self._refuse_non_finite(piece, answers[-1])
        return np.concatenate(answers)

    def _ask_unknown(self, rows: Array) -> Array:
        """Send the distinct rows that the cache does not hold, then answer everything from the cache."""
        keys = row_keys(rows)
        position = self._cache.find(keys)
        missing = np.flatnonzero(position < 0)
        if missing.size:
            index, inverse = distinct(keys.take(missing))
            new = missing[index]
            self._check_budget(new.size)
            position[missing] = self._learn(rows, keys.take(new), new)[inverse]
        else:
            new = missing
        self._cache_hits += rows.shape[0] - int(new.size)
        return self._cache.answers(position)

    def _learn(self, rows: Array, keys: RowKeys, new: IntArray) -> IntArray:
        """Send ``rows[new]`` piece by piece into the cache and return their positions there."""
        position = np.empty(new.size, dtype=np.int64)
        for start in range(0, new.size, self._batch_rows):
            stop = min(start + self._batch_rows, new.size)
            answers = self._send(rows[new[start:stop]])  # a copy: the target may scribble on what it is given
            finite = np.isfinite(answers).all(axis=1)
            kept = np.arange(start, stop)[finite]  # answers that were paid for stay, whatever the others are
            first = self._cache.insert(keys.take(kept), answers[finite])
            position[kept] = first + np.arange(kept.size)
            if kept.size < stop - start:
                self._refuse_non_finite(rows[new[start:stop]], answers)
        return position

    def _check_budget(self, needed: int) -> None:
        """Raise unless ``needed`` more rows may be sent."""
        if self._limit is not None and self._sent + needed > self._limit:
            raise BudgetExhausted(
                f"The rows to send must be within the budget of {self._limit} queries. Got {needed} new rows "
                f"with {self._sent} already sent instead. Raise max_queries; the answers so far are kept.",
                reason="queries",
            )

    def _check_deadline(self) -> None:
        """Raise when the time is over."""
        if self._deadline is not None and self._clock() >= self._deadline:
            raise BudgetExhausted(
                f"The target must be asked before the deadline. Got {self._sent} rows answered when the time "
                "was over instead. Raise deadline; what was answered so far is kept.",
                reason="deadline",
            )

    def _send(self, piece: Array) -> Array:
        """Send one piece (n, D) and return its answers (n, m) as float64, not yet checked for NaN."""
        self._check_deadline()
        self._sent += piece.shape[0]
        self._calls += 1
        began = self._clock()
        try:
            # Probing goes far out on purpose; what overflows there is reported as a non-finite answer.
            with np.errstate(all="ignore"):
                answer = self._function(piece)
        except Exception as error:
            raise TargetError(
                f"The target must answer {piece.shape[0]} rows of {self._n_inputs} inputs. "
                f"Got {type(error).__name__}: {error} instead. See the chained exception.",
                ledger=self,
            ) from error
        finally:
            self._seconds += self._clock() - began
        return self._as_answers(answer, piece.shape[0])

    def _as_answers(self, answer: Any, n_rows: int) -> Array:
        """Turn what the target returned into (n_rows, m) float64, or say what is wrong with it."""
        numbers = self._as_numbers(answer)
        if numbers.ndim not in (1, 2):
            self._refuse("an array of shape (n,) or (n, m)", f"shape {numbers.shape}")
        if numbers.shape[0] != n_rows:
            self._refuse(f"one answer per row, {n_rows} in all", f"shape {numbers.shape}")
        table = numbers.reshape(n_rows, -1) if numbers.ndim == 1 else numbers
        if table.shape[1] == 0:
            self._refuse("at least one output", f"shape {numbers.shape}")
        if self._n_outputs is None:
            self._n_outputs = int(table.shape[1])
        elif table.shape[1] != self._n_outputs:
            self._refuse(f"{self._n_outputs} outputs as before", f"{table.shape[1]} outputs")
        return table

    def _as_numbers(self, answer: Any) -> Array:
        """Read the answer as an array of real numbers."""
        try:
            raw = np.asarray(answer)
            if raw.dtype.kind == "O":  # Decimal, Fraction, a list of scalars of some framework
                raw = np.array([float(value) for value in raw.ravel()]).reshape(raw.shape)
        except Exception as error:
            raise TargetError(
                f"The target's answer must be an array of numbers. Got {type(answer).__name__} that cannot "
                f"be read as one ({type(error).__name__}: {error}) instead. Return a NumPy array.",
                ledger=self,
            ) from error
        if raw.dtype.kind not in _NUMERIC_KINDS:
            self._refuse("real numbers", f"values of type {raw.dtype}")
        with np.errstate(
            over="ignore"
        ):  # a long double beyond float64 becomes infinite and is refused as such
            return raw.astype(np.float64)

    def _refuse(self, required: str, got: str) -> None:
        """Raise the `TargetError` of a badly shaped answer."""
        raise TargetError(
            f"The target's answer must be {required}. Got {got} instead. Wrap the target in a function "
            "that maps (n, inputs) to (n,) or (n, outputs).",
            ledger=self,
        )

    def _refuse_non_finite(self, asked: Array, answers: Array) -> None:
        """Raise if any answer is NaN or infinite, naming the first input where it happened."""
        bad = ~np.isfinite(answers).all(axis=1)
        if not bad.any():
            return
        row = asked[int(np.argmax(bad))]
        shown = ", ".join(f"{value:.6g}" for value in row[:_FIRST_NUMBERS])
        more = ", ..." if row.size > _FIRST_NUMBERS else ""
        raise TargetError(
            f"The target's answers must be finite. Got NaN or infinite values in {int(bad.sum())} of "
            f"{bad.size} rows instead, first at x = [{shown}{more}]. If the target is only defined on "
            "part of the inputs, give domain=(low, high).",
            ledger=self,
        )


def _whole_number(value: Any, name: str, least: int) -> int:
    """Return ``value`` as int, or say that ``name`` must be a whole number >= ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidInput(f"{name} must be a whole number >= {least}. Got {value!r} instead.")
    return int(value)


def _checked_rows(x: Any, n_inputs: int) -> Array:
    """Return ``x`` as (n, n_inputs) finite float64."""
    try:
        rows = np.asarray(x)
    except ValueError as error:
        raise InvalidInput(
            f"x must be an array of shape (n, {n_inputs}). Got a ragged one instead."
        ) from error
    if rows.dtype.kind not in _NUMERIC_KINDS:
        raise InvalidInput(f"x must be an array of real numbers. Got values of type {rows.dtype} instead.")
    rows = rows.astype(np.float64, copy=False)
    if rows.ndim != 2 or rows.shape[1] != n_inputs:
        raise InvalidInput(f"x must be an array of shape (n, {n_inputs}). Got shape {rows.shape} instead.")
    if not np.isfinite(rows).all():
        bad = int((~np.isfinite(rows).all(axis=1)).sum())
        raise InvalidInput(f"x must be finite. Got NaN or infinite entries in {bad} rows instead.")
    return rows
