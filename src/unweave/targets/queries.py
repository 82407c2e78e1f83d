"""The ledger: every question that reaches the target goes through here, is counted, and is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.errors import CheckpointError, InterruptedAnswers, InvalidInput, PartialAnswers, TargetError
from unweave.execution.executor import Executor, SerialExecutor
from unweave.targets.answer_cache import AnswerCache, RowKeys, distinct, row_keys
from unweave.targets.answer_table import checked_rows, refuse_non_finite, whole_number
from unweave.targets.budget import Budget
from unweave.targets.differentiation import Derivatives, Differentiate, not_differentiable, passes
from unweave.targets.query_log import QueryLog
from unweave.targets.replay import Replay, numbered, same_answer
from unweave.targets.sender import Sender
from unweave.targets.witnesses import Witnesses

CALL_BYTES = 32 * 2**20
"""Rows of one call of the target take about this many bytes, so that a deadline is seen in time."""


class Queries:
    """Counted, cached and budgeted access to a target f: R^D -> R^m.

    Calling it with rows x (n, D) returns float64 answers (n, m). Every row that is sent counts; a row that
    was answered before (bit for bit, -0.0 being 0.0), or that occurs twice in one call, is free.

    Parameters
    ----------
    function : maps (n, D) float64 to n answers: (n,) or (n, m), any real number type, lists included.
    n_inputs : D.
    max_queries : rows that may be sent from now on; None for no limit.
    deadline : seconds from now after which nothing is sent any more; None for no limit.
    batch_rows : most rows per call of ``function``; by default ``call_bytes`` of them.
    call_bytes : bytes of rows, or of derivatives, per call.
    clock : returns seconds; replaced in tests.
    log : every answer is written there before it is used; rows that it knows are free. See `attach_log`.
    check_log : ask one known row again, to check that the log is of this target.
    executor : asks the target from its workers if it ``runs_target``, piece by piece; methods use it too.
    differentiate : takes derivatives of the target; None where that is not wanted or not possible.

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
        call_bytes: int = CALL_BYTES,
        clock: Callable[[], float] = time.monotonic,
        log: QueryLog | None = None,
        check_log: bool = False,
        executor: Executor | None = None,
        differentiate: Differentiate | None = None,
    ) -> None:
        if not callable(function):
            raise InvalidInput(f"function must be callable. Got {type(function).__name__} instead.")
        self._differentiate = differentiate
        self._n_inputs = whole_number(n_inputs, "n_inputs", least=1)
        self._call_bytes = whole_number(call_bytes, "call_bytes", least=1)
        fitting = max(1, self._call_bytes // (8 * self._n_inputs))
        self._batch_rows = whole_number(fitting if batch_rows is None else batch_rows, "batch_rows", least=1)
        self._budget = Budget(clock)
        self._sender = Sender(function, self._n_inputs, self._budget, clock)
        self._cache = AnswerCache()
        self.witnesses = Witnesses()
        self._cache_hits = 0
        self._replay: Replay | None = None
        self._unwritten: Replay | None = None
        self.executor: Executor = executor or SerialExecutor()
        """Executor used for this run."""
        self.reset_budget(max_queries=max_queries, deadline=deadline)
        if log is not None:
            self.attach_log(log, check=check_log)

    @property
    def n_inputs(self) -> int:
        """Number of inputs D."""
        return self._n_inputs

    @property
    def n_outputs(self) -> int | None:
        """Number of outputs m; None until the first answer."""
        return self._sender.n_outputs

    @property
    def sent(self) -> int:
        """Rows sent to the target so far; of a call that failed half way, those that were answered."""
        return self._budget.sent

    @property
    def derivative_queries(self) -> int:
        """Those of ``sent`` that were forward and backward passes of `differentiate`."""
        return self._sender.derivative_queries

    @property
    def differentiable(self) -> bool:
        """Whether derivatives may be asked for."""
        return self._differentiate is not None

    @property
    def calls(self) -> int:
        """Times the target was called."""
        return self._sender.calls

    @property
    def cache_hits(self) -> int:
        """Rows answered without asking the target."""
        return self._cache_hits

    @property
    def rows_from_log(self) -> int:
        """Rows that the log answered instead of the target, each counted once."""
        return 0 if self._replay is None else self._replay.rows_used

    @property
    def seconds_in_target(self) -> float:
        """Seconds spent inside the target."""
        return self._sender.seconds

    @property
    def remaining(self) -> int | None:
        """Rows that may still be sent; None when there is no limit."""
        return self._budget.remaining

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline (0 when it has passed); None when there is none."""
        return self._budget.seconds_left

    def reset_budget(self, *, max_queries: int | None = None, deadline: float | None = None) -> None:
        """Set a new budget, counted from now: further rows and further seconds. None lifts a limit.

        The answers and the counts are kept; this is how a ledger taken from an error goes on.
        """
        self._budget.reset(max_queries, deadline)

    def attach_log(self, log: QueryLog, *, check: bool = False) -> None:
        """Take every answer in ``log`` for granted, and write every further one there before it is used.

        Rows asked ``fresh`` are replayed in the order of the run that wrote the log, then asked. With
        ``check`` one row of the log is asked again, and counted; an answer of another target raises
        `InvalidInput`.
        """
        self.detach_log()
        replay = Replay(log, self._n_inputs)
        if None not in (self.n_outputs, log.n_outputs) and self.n_outputs != log.n_outputs:
            raise InvalidInput(
                f"log must be of a target with {self.n_outputs} outputs. Got {log.path} instead, whose "
                f"target has {log.n_outputs}. Choose another name for another target."
            )
        known = replay.known_row() if check else None
        if known is not None and not same_answer(self._send(known[0][None, :].copy())[0], known[1]):
            raise InvalidInput(
                f"log must be of this target. Got {log.path} instead, in which a row has another answer "
                "than the target gives now. Choose another name for another target."
            )
        self._sender.n_outputs = log.n_outputs or self.n_outputs
        replay.fill(self._cache)
        if self._unwritten is not None:
            replay.take_pending(self._unwritten)
            self._unwritten = None
        self._replay = replay
        self._record()

    def detach_log(self) -> None:
        """Write to the log no longer; what it could not write is kept for the next one."""
        replay, self._replay = self._replay, None
        if replay is None:
            return
        try:
            replay.flush()
        except CheckpointError:
            self._unwritten = replay  # told when it happened

    def __call__(self, x: Any, *, fresh: bool = False) -> Array:
        """Answer the rows of ``x`` (n, D): returns (n, m) float64.

        ``fresh=True`` asks every row anew, whatever the cache holds, and does not store the answers: for
        tests of repeatability. A call that does not fit in the budget raises `BudgetExhausted` before
        anything is sent; when the target fails, `TargetError` carries this ledger with all it has learnt.
        """
        rows = checked_rows(x, self._n_inputs)
        if rows.shape[0] == 0:
            return np.empty((0, self.n_outputs or 0))
        return self._ask_anew(rows) if fresh else self._ask_unknown(rows)

    def differentiate(self, x: Any, directions: Array | None = None) -> Derivatives:
        """Return values, gradients and, along ``directions`` (D, d), Hessian products at rows ``x`` (n, D).

        Every row counts once for the forward pass and once for each backward pass, 1 + K (1 + d) queries
        (`unweave.targets.differentiation`), within the same budget as answers. Nothing is cached or logged.
        """
        if self._differentiate is None:
            raise not_differentiable("a target that may only be asked for answers")
        rows = checked_rows(x, self._n_inputs)
        if self.n_outputs is None:
            self(rows[:1])  # the count depends on the number of outputs
        outputs, count = self.n_outputs or 1, 0 if directions is None else directions.shape[1]
        per_row = passes(outputs, count)
        self._budget.check_rows(rows.shape[0] * per_row)
        at_once = max(1, self._call_bytes // (8 * outputs * (1 + count) * self._n_inputs))
        pieces = [rows[start : start + at_once] for start in range(0, rows.shape[0], at_once)]
        ask, function = self._sender.differentiate, self._differentiate
        return Derivatives.concatenate([ask(function, piece, directions, per_row, self) for piece in pieces])

    def __repr__(self) -> str:
        budget = "" if self.remaining is None else f", {self.remaining} left"
        cached = f"{self._cache_hits} from the cache"
        return f"Queries({self._n_inputs} inputs, {self.sent} sent{budget}, {cached})"

    def _ask_anew(self, rows: Array) -> Array:
        """Send every row, keep nothing; with a log, all that an earlier run was answered is replayed."""
        if self._replay is not None:
            return self._ask_anew_with_log(rows, self._replay)
        self._budget.check_rows(rows.shape[0])
        answers = []
        for start in range(0, rows.shape[0], self._batch_rows):
            piece = rows[start : start + self._batch_rows]
            answers.append(self._send(piece.copy()))
            refuse_non_finite(piece, answers[-1], self)
        return np.concatenate(answers)

    def _ask_anew_with_log(self, rows: Array, replay: Replay) -> Array:
        plain = row_keys(rows)
        occurrences = replay.number(plain)
        keys = numbered(plain, occurrences)
        position = replay.find_repeats(keys)
        missing = np.flatnonzero(position < 0)
        self._budget.check_rows(missing.size)
        for start in range(0, missing.size, self._batch_rows):
            piece = missing[start : start + self._batch_rows]
            answers = self._send(rows[piece])
            refuse_non_finite(rows[piece], answers, self)
            position[piece] = replay.repeats.insert(keys.take(piece), answers) + np.arange(piece.size)
            self._record(plain.take(piece), rows[piece], answers, occurrences[piece])
        return replay.repeats.answers(position)

    def _ask_unknown(self, rows: Array) -> Array:
        """Send the distinct rows that the cache does not hold, then answer everything from the cache."""
        keys = row_keys(rows)
        position = self._cache.find(keys)
        if self._replay is not None:
            self._replay.note_hits(position)
        new = missing = np.flatnonzero(position < 0)
        if missing.size:
            index, inverse = distinct(keys.take(missing))
            new = missing[index]
            self._budget.check_rows(new.size)
            position[missing] = self._learn(rows, keys.take(new), new)[inverse]
        self._cache_hits += rows.shape[0] - int(new.size)
        answers = self._cache.answers(position)
        self.witnesses.add(rows, answers, keys.first)
        return answers

    def _learn(self, rows: Array, keys: RowKeys, new: IntArray) -> IntArray:
        """Send ``rows[new]`` piece by piece into the cache and return their positions there."""
        position = np.empty(new.size, dtype=np.int64)
        for piece, answers in self._answered(rows, keys, new):
            finite = np.isfinite(answers).all(axis=1)
            kept = piece[finite]  # answers that were paid for stay, whatever the others are
            first = self._cache.insert(keys.take(kept), answers[finite])
            position[kept] = first + np.arange(kept.size)
            self._record(keys.take(kept), rows[new[kept]], answers[finite])
            if kept.size < piece.size:
                refuse_non_finite(rows[new[piece]], answers, self)
        return position

    def _answered(self, rows: Array, keys: RowKeys, new: IntArray) -> Iterator[tuple[IntArray, Array]]:
        """Send ``rows[new]`` and give (which of ``new``, their answers) piece by piece as they arrive."""
        size = min(self._batch_rows, self.executor.target_rows or self._batch_rows)
        pieces = [np.arange(start, min(start + size, new.size)) for start in range(0, new.size, size)]
        if self.executor.runs_target:
            asked = [new[piece] for piece in pieces]
            for index, answers in self._sender.send_to_workers(rows, asked, self.executor, self):
                yield pieces[index], answers
            return
        for piece in pieces:
            # A copy goes out: the target may scribble on what it is given.
            yield piece, self._send(rows[new[piece]], keys.take(piece))

    def _record(self, *arrived: Any) -> None:
        """Write down what arrived (see `Replay.record`), if there is a log.

        Whether or not that succeeds, it is in memory.
        """
        if self._replay is None:
            return
        try:
            if arrived:
                self._replay.record(*arrived)
            else:
                self._replay.flush()
        except CheckpointError as error:
            error.ledger = self
            raise

    def _send(self, piece: Array, keys: RowKeys | None = None) -> Array:
        """Send one piece (n, D) and return its answers (n, m) as float64, not yet checked for NaN.

        When the target fails half way, the answers that arrived are kept under ``keys``, if given.
        """
        try:
            return self._sender.send(piece, self)
        except PartialAnswers as partial:
            self._keep_partial(partial, piece, keys)

    def _keep_partial(self, partial: PartialAnswers, piece: Array, keys: RowKeys | None) -> NoReturn:
        """Store what arrived, count only that, and go on with the failure (or Ctrl-C)."""
        arrived, n_rows = int(partial.indices.size), piece.shape[0]
        self._budget.sent -= n_rows - arrived
        if arrived:
            answers = self._sender.table(partial.answers, arrived, self)
            finite = np.isfinite(answers).all(axis=1)
            if keys is not None:
                kept = partial.indices[finite]
                self._cache.insert(keys.take(kept), answers[finite])
                self._record(keys.take(kept), piece[kept], answers[finite])
        if isinstance(partial, InterruptedAnswers):
            raise KeyboardInterrupt from partial
        self._budget.check_time()  # the deadline ended the call, not the target
        told = f" The answers to {arrived} of {n_rows} rows arrived and are kept." if arrived else ""
        raise TargetError(f"{partial}{told}", ledger=self) from partial
