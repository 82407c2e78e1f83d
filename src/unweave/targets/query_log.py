"""Every answer that was paid for, on disk, found again by the 128-bit fingerprint of its row.

A piece of the log is what arrived together:

    keys         (n, 2)  the fingerprints of the rows (`unweave.targets.answer_cache.row_keys`)
    rows         (n, D)  the rows themselves
    answers      (n, m)
    occurrences  (n,)    0, or j for the j-th time within a run that this row was asked afresh

Rows that are asked afresh on purpose (is the target repeatable?) are not answered from a cache. Their number
within the run makes them findable all the same: a run that is resumed with the same seed asks the same rows
in the same order, and gets the answers of the first time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import unweave
from unweave.arrays import Array, IntArray
from unweave.errors import InvalidInput
from unweave.execution.store import FORMAT, VERSION, ArrayStore, Header
from unweave.targets.answer_cache import RowKeys, row_keys

_DTYPES = {"keys": np.uint64, "rows": np.float64, "answers": np.float64, "occurrences": np.int64}
_LOG_PIECE_BYTES = 64 * 2**20  # rows written at once, far below what a store can hold in one piece


@dataclass(frozen=True, eq=False)
class LogPiece:
    """Rows that arrived together."""

    keys: RowKeys
    rows: Array | None
    """(n, D); None where only the answers were read."""
    answers: Array
    """(n, m)"""
    occurrences: IntArray
    """(n,) 0, or j for the j-th time that the row was asked afresh."""


class QueryLog:
    """The log of one target in ``store``; several runs may add to it one after the other.

    ``target`` describes the target in the user's words. Only its fingerprint is stored; a log that carries
    another one is refused.
    """

    def __init__(self, store: ArrayStore, target: str | None = None) -> None:
        self._store = store
        self._target = None if target is None else hashlib.sha256(target.encode()).hexdigest()
        self._header: Header = {}

    @property
    def path(self) -> str:
        """Where the log is, for messages."""
        return str(self._store.path)

    @property
    def n_outputs(self) -> int | None:
        """Number of outputs m; None before the first answer."""
        known = self._header.get("outputs")
        return None if known is None else int(known)

    def open(self, n_inputs: int) -> None:
        """Read the header, or write that of a new log. A log of other inputs or another target is refused."""
        found = self._store.header()
        own: Header = {
            "format": FORMAT,
            "version": VERSION,
            "written by": f"unweave {unweave.__version__}",
            "inputs": n_inputs,
            "outputs": None,
            "target": self._target,
            "fingerprints": _kind_of_fingerprint(n_inputs),
        }
        if found and (found.get("format") != FORMAT or found.get("version") != VERSION):
            raise InvalidInput(
                f"checkpoint must be of format {FORMAT}, version {VERSION}. Got {found.get('format')}, "
                f"version {found.get('version')} in {self.path} instead. Choose another name."
            )
        if found and found.get("inputs") != n_inputs:
            raise InvalidInput(
                f"checkpoint must be of a target with {n_inputs} inputs. Got {self.path} instead, whose "
                f"target has {found.get('inputs')}. Choose another name for another target."
            )
        outputs = found.get("outputs")
        if outputs is not None and (not isinstance(outputs, int) or outputs < 1):
            raise self._damaged(f"its header counts {outputs!r} outputs")
        described = found.get("target")
        if None not in (described, self._target) and described != self._target:
            raise InvalidInput(
                f"checkpoint must be of the target that was described. Got {self.path} instead, which was "
                "begun with another description. Choose another name for another target."
            )
        self._header = found or own
        if not found or (described is None and self._target is not None):
            self._header["target"] = self._target
            self._store.write_header(self._header)

    def pieces(self, with_rows: bool = False) -> Iterator[LogPiece]:
        """Yield everything in the log, oldest first, one piece at a time; the rows only if asked for."""
        # A program whose fingerprints are other numbers makes them anew from the rows.
        foreign = self._header.get("fingerprints") != _kind_of_fingerprint(int(self._header["inputs"] or 0))
        names = ["keys", "answers", "occurrences", *(["rows"] if with_rows or foreign else [])]
        for piece in self._store.pieces(names):
            self._check(piece, names)
            rows = piece.get("rows")
            words = piece["keys"]
            keys = RowKeys(words[:, 0].copy(), words[:, 1].copy())
            if foreign and rows is not None:
                keys = row_keys(rows)
            yield LogPiece(keys, rows if with_rows else None, piece["answers"], piece["occurrences"])

    def _check(self, piece: dict[str, NDArray[Any]], names: Sequence[str]) -> None:
        """Refuse arrays that `append` cannot have written."""
        missing = [name for name in names if name not in piece]
        if missing:
            raise self._damaged(f"a piece lacks {', '.join(missing)}")
        answers = piece["answers"]
        if self.n_outputs is None and answers.ndim == 2 and answers.shape[1]:
            self._header["outputs"] = int(answers.shape[1])  # a killed run wrote the piece, not the header
        n = piece["occurrences"].size
        widths = {"keys": (2,), "rows": (self._header["inputs"],), "answers": (self.n_outputs,)}
        for name in names:
            found = piece[name]
            if found.shape != (n, *widths.get(name, ())) or found.dtype != _DTYPES[name]:
                raise self._damaged(f"{name} of a piece are {found.dtype} of shape {found.shape}")
        if not np.isfinite(answers).all():
            raise self._damaged("an answer is not finite")

    def _damaged(self, why: str) -> InvalidInput:
        return InvalidInput(
            f"checkpoint must be a log of answers as it was written. Got {self.path} instead, which is "
            f"damaged: {why}. Choose another name; its answers are asked again."
        )

    def append(self, piece: LogPiece) -> None:
        """Write a piece; when this returns, it survives the end of the process."""
        assert piece.rows is not None
        if self.n_outputs is None:
            self._header["outputs"] = int(piece.answers.shape[1])
            self._store.write_header(self._header)
        step = max(1, _LOG_PIECE_BYTES // (8 * piece.rows.shape[1]))
        for start in range(0, len(piece.keys), step):
            part = slice(start, start + step)
            self._store.append(
                {
                    "keys": np.stack([piece.keys.first[part], piece.keys.second[part]], axis=1),
                    "rows": piece.rows[part],
                    "answers": piece.answers[part],
                    "occurrences": piece.occurrences[part],
                }
            )


def _kind_of_fingerprint(n_inputs: int) -> str:
    """Fingerprint the row 1, 2, ..., D: another number if ever the function changes."""
    keys = row_keys(np.arange(1.0, n_inputs + 1)[None, :])
    return f"{int(keys.first[0]):016x}{int(keys.second[0]):016x}"
