"""What the ledger does with a log: fills its cache from it, replays repeats, writes down what arrives."""

from __future__ import annotations

from collections import Counter

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.targets.answer_cache import AnswerCache, RowKeys, distinct
from unweave.targets.query_log import LogPiece, QueryLog

_STEP_FIRST = np.uint64(0x9E3779B97F4A7C15)  # odd: multiples of them are distinct for 2**64 repeats
_STEP_SECOND = np.uint64(0xD6E8FEB86659FD93)

_SAME_ANSWER = 1e-6
"""Difference, relative to the answer, up to which a row asked again is answered the same: answers to one row
and to many may differ by rounding, float32 included."""
_SAME_ANSWER_SPREADS = 10.0  # the same, in multiples of the spread that the log shows of a noisy target


class Replay:
    """A log that is attached to a ledger."""

    def __init__(self, log: QueryLog, n_inputs: int) -> None:
        log.open(n_inputs)
        self.log = log
        self._pending: list[LogPiece] = []
        self.repeats = AnswerCache()
        """Answers to rows asked afresh, by row and occurrence."""
        self._asked_afresh: Counter[tuple[int, int]] = Counter()
        self._first = self.loaded = self._repeats_loaded = self._repeats_used = 0
        self._used = np.zeros(0, dtype=np.bool_)

    def fill(self, cache: AnswerCache) -> None:
        """Put every answer of the log into ``cache``, and those to repeats where they are found again."""
        self._first = len(cache)
        for piece in self.log.pieces():
            afresh = piece.occurrences > 0
            _insert_unknown(cache, piece.keys.take(np.flatnonzero(~afresh)), piece.answers[~afresh])
            keys = numbered(piece.keys.take(np.flatnonzero(afresh)), piece.occurrences[afresh])
            _insert_unknown(self.repeats, keys, piece.answers[afresh])
        self.loaded = len(cache) - self._first
        self._used = np.zeros(self.loaded, dtype=np.bool_)
        self._repeats_loaded = len(self.repeats)

    @property
    def rows_used(self) -> int:
        """Rows of this run that the log answered instead of the target, each counted once."""
        return int(self._used.sum()) + self._repeats_used

    def note_hits(self, position: IntArray) -> None:
        """Take note of the positions in the cache from which rows were answered."""
        from_log = position - self._first
        self._used[from_log[(from_log >= 0) & (from_log < self.loaded)]] = True

    def number(self, keys: RowKeys) -> IntArray:
        """Count how often each row has been asked afresh in this run, this time included: 1, 2, ... (n,)."""
        occurrences = np.empty(len(keys), dtype=np.int64)
        for i, key in enumerate(zip(keys.first.tolist(), keys.second.tolist(), strict=True)):
            self._asked_afresh[key] += 1
            occurrences[i] = self._asked_afresh[key]
        return occurrences

    def find_repeats(self, keys: RowKeys) -> IntArray:
        """Return the positions in ``repeats`` of numbered keys, -1 where the log does not know them."""
        position = self.repeats.find(keys)
        self._repeats_used += int(np.count_nonzero((position >= 0) & (position < self._repeats_loaded)))
        return position

    def record(self, keys: RowKeys, rows: Array, answers: Array, occurrences: IntArray | None = None) -> None:
        """Write down what arrived. Should that fail, it is kept and written with what comes next."""
        if occurrences is None:
            occurrences = np.zeros(len(keys), dtype=np.int64)
        if len(keys):
            self._pending.append(LogPiece(keys, rows, answers, occurrences))
        self.flush()

    def flush(self) -> None:
        """Write what is not written yet."""
        while self._pending:
            self.log.append(self._pending[0])
            del self._pending[0]

    def take_pending(self, other: Replay) -> None:
        """Take over what an earlier log could not write."""
        self._pending = other._pending + self._pending

    def known_row(self) -> tuple[Array, Array] | None:
        """Return a row (D,) of the log and its answers (k, m), if possible one that was asked often."""
        chosen: tuple[np.uint64, np.uint64] | None = None
        for piece in self.log.pieces():
            index = int(np.argmax(piece.occurrences > 0))
            if chosen is None or piece.occurrences[index] > 0:
                chosen = piece.keys.first[index], piece.keys.second[index]
            if piece.occurrences[index] > 0:
                break
        if chosen is None:
            return None
        rows, answers = [], []
        for piece in self.log.pieces(with_rows=True):
            same = (piece.keys.first == chosen[0]) & (piece.keys.second == chosen[1])
            if same.any() and piece.rows is not None:
                rows.append(piece.rows[same])
                answers.append(piece.answers[same])
        return np.concatenate(rows)[0], np.concatenate(answers)


def numbered(keys: RowKeys, occurrences: IntArray) -> RowKeys:
    """Fingerprint (row, occurrence): both words moved on by a multiple of an odd number."""
    times = occurrences.astype(np.uint64)
    return RowKeys(keys.first + times * _STEP_FIRST, keys.second ^ (times * _STEP_SECOND))


def same_answer(answer: Array, before: Array) -> bool:
    """Whether ``answer`` (m,) comes from the target that gave the answers ``before`` (k, m) to this row."""
    if answer.shape != before.shape[1:]:
        return False
    middle = before.mean(axis=0)
    allowed = np.maximum(_SAME_ANSWER * np.abs(middle).max(), _SAME_ANSWER_SPREADS * np.ptp(before, axis=0))
    return bool((np.abs(answer - middle) <= allowed).all())


def _insert_unknown(cache: AnswerCache, keys: RowKeys, answers: Array) -> None:
    """Insert what the cache does not hold; two runs at once may have written a row twice."""
    index, _ = distinct(keys)
    index = index[cache.find(keys.take(index)) < 0]
    cache.insert(keys.take(index), answers[index])
