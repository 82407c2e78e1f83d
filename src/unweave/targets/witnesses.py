"""A sample of the rows that were asked, with their answers: they speak when a network is judged.

The rows with the smallest fingerprints are kept, so that the sample depends on what was asked and not on
when: a run that resumes from its log keeps the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unweave.arrays import Array
from unweave.targets.answer_cache import Words, row_keys

MOST_WITNESSES = 20_000
"""Rows kept: a wrong share of 3 / 20,000 of what was asked is missed in one run of twenty."""
ROWS_ASKED_AGAIN = 8
"""Early rows that are asked again at the end, to see whether the target still answers as it did."""
MOST_WITHOUT_NUMBER = 1000
"""Rows kept whose answers are no numbers: one of them is enough."""
_EARLY_STEP = 8  # rows between them: the first rows that are asked are neighbours along lines
_MOST_BYTES = 32e6  # of rows and answers together, for targets with thousands of inputs


class Witnesses:
    """Keeps distinct rows (n, D), their answers (n, m) and their fingerprints (n,)."""

    def __init__(self) -> None:
        self._parts: list[tuple[Array, Array, Words]] = []
        self._early: list[tuple[Array, Array]] = []
        self._count, self._bound = 0, np.uint64(np.iinfo(np.uint64).max)
        self._without_number: list[Array] = []

    def add_without_number(self, rows: Array) -> None:
        """Keep rows (n, D) whose answers were NaN or infinite; the first ones will do."""
        missing = MOST_WITHOUT_NUMBER - sum(len(part) for part in self._without_number)
        if missing > 0:
            self._without_number.append(rows[:missing].copy())

    def without_number(self, n_inputs: int) -> Array:
        """Return rows (n, D) that were asked and had no finite answer."""
        return np.concatenate([np.empty((0, n_inputs)), *self._without_number])

    def add(self, rows: Array, answers: Array, words: Words) -> None:
        """Keep those of the rows whose fingerprints are small, and the first ones."""
        missing = ROWS_ASKED_AGAIN * _EARLY_STEP - sum(len(x) for x, _ in self._early)
        if missing > 0:
            self._early.append((rows[:missing].copy(), answers[:missing]))
        small = words <= self._bound
        if not small.any():
            return
        self._parts.append((rows[small], answers[small], words[small]))
        self._count += int(small.sum())
        most = min(MOST_WITNESSES, int(_MOST_BYTES / (8 * (rows.shape[1] + answers.shape[1]))) + 1)
        if self._count > 2 * most:
            x, y, kept = self._distinct(most=most)
            self._parts = [(x, y, kept)]
            self._count, self._bound = len(kept), kept[-1]

    def rows(self, further: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        """Return rows (n, D) and answers (n, m), the ``further`` ones too; their order says nothing."""
        x, y, _ = self._distinct([] if further is None else [(*further, row_keys(further[0]).first)])
        return x, y

    def earliest(self) -> tuple[Array, Array]:
        """Return a few of the first rows (n, D) that were asked, and their answers (n, m)."""
        rows, answers = zip(*self._early, strict=True)
        return np.concatenate(rows)[::_EARLY_STEP], np.concatenate(answers)[::_EARLY_STEP]

    def _distinct(
        self, further: Sequence[tuple[Array, Array, Words]] = (), most: int | None = None
    ) -> tuple[Array, Array, Words]:
        """Return rows, answers and fingerprints by rising fingerprint, each once, the first ``most``."""
        parts = [*self._parts, *further]
        words, index = np.unique(np.concatenate([marks for *_, marks in parts]), return_index=True)
        words, index = words[:most], index[:most]
        first = parts[0]
        x, y = (np.empty((len(index), column.shape[1]), column.dtype) for column in first[:2])
        start = 0
        for rows, answers, marks in parts:  # row by row to its place: a copy of all would take longer
            here = np.flatnonzero((index >= start) & (index < start + len(marks)))
            x[here], y[here] = rows[index[here] - start], answers[index[here] - start]
            start += len(marks)
        return x, y, words
