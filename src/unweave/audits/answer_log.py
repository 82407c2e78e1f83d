"""Everything the target was asked in an audit, and whether the network found answers all of it alike.

The rows come from the ledger's own log: on disk if a checkpoint was asked for, else in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.arrays import Array
from unweave.audits.level import OwnPrecision
from unweave.execution.store import Arrays, ArrayStore, Header, open_store
from unweave.networks.network import Network
from unweave.targets.query_log import QueryLog

MOST_BYTES = 2**30
"""Rows that are kept in memory, at most; beyond, a checkpoint keeps them on disk."""
_LEAST_SHARE_OFF = 1e-9  # relative error of parameters, allowed whatever the recovery's own error
_OVER_FRESH_ERROR = 100.0  # times the error on fresh rows: the log has many more rows, some in extreme places
_ROUNDING_UNITS = 0.5 + 1e-3  # of the last digit: what rounding leaves, and a tie that falls the other way
_NOISE_SIGMAS = 8.0  # the largest of a million Gaussian errors is 5 sigma, and sigma is an estimate


class MemoryStore:
    """An `ArrayStore` that lives as long as the program; pieces beyond ``most_bytes`` are not kept."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.path = Path("memory")
        self._header: Header = {}
        self._pieces: list[dict[str, NDArray[Any]]] = []
        self._results: dict[str, tuple[NDArray[Any], ...]] = {}
        self._room = most_bytes
        self.times: list[float] = []
        """When each piece was added, in seconds since 1970"""

    def header(self) -> Header:
        """Return what `write_header` was given last."""
        return dict(self._header)

    def write_header(self, header: Header) -> None:
        """Replace the header."""
        self._header = dict(header)

    def append(self, arrays: Arrays) -> None:
        """Add one piece, if there is room."""
        size = sum(array.nbytes for array in arrays.values())
        if size <= self._room:
            self._room -= size
            self._pieces.append(dict(arrays))
            self.times.append(time.time())

    def pieces(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        """Return the arrays called ``names`` of every piece."""
        return ({name: piece[name] for name in names} for piece in self._pieces)

    def put(self, key: str, arrays: Sequence[NDArray[Any]]) -> None:
        """Keep a result."""
        self._results.setdefault(key, tuple(arrays))

    def get(self, key: str) -> tuple[NDArray[Any], ...] | None:
        """Return the result kept under ``key``, or None."""
        return self._results.get(key)

    def close(self) -> None:
        """Do nothing: memory needs no release."""


def logged_answers(store: ArrayStore, n_inputs: int) -> Iterator[tuple[Array, Array]]:
    """Yield rows (n, D) and answers (n, K) of a log, piece by piece."""
    log = QueryLog(store)
    log.open(n_inputs)
    for piece in log.pieces(with_rows=True):
        if piece.rows is not None and len(piece.rows):
            yield piece.rows, piece.answers


def answers_on_disk(path: str | Path, n_inputs: int) -> Iterator[tuple[Array, Array]]:
    """Yield rows and answers of the checkpoint at ``path``, opened meanwhile."""
    store = open_store(path)
    try:
        yield from logged_answers(store, n_inputs)
    finally:
        store.close()


@dataclass(frozen=True)
class LogCheck:
    """The network found against every answer that the target gave."""

    rows: int
    """Answers looked at, each a row."""
    largest_error: float
    """max |network(x) - answer|"""
    worst_share: float
    """The largest error in units of what is allowed at that row; up to one, the network stands in."""
    alike: dict[int, float]
    """Decimals -> share of rows that network and target answer alike to that many"""

    @property
    def agrees(self) -> bool:
        """Whether the network answered everything that was asked like the target."""
        return self.rows > 0 and self.worst_share <= 1


def check_log(
    network: Network,
    answers: Callable[[], Iterator[tuple[Array, Array]]],
    own: OwnPrecision,
    error: float,
    decimals: Sequence[int] = (),
) -> LogCheck:
    """Compare ``network`` with all ``answers()``, whose precision is ``own``.

    A relative error t of the parameters, t = max(1e-9, 100 ``error``) with the error on fresh rows, moves an
    answer by about t |y| s, with s the size of the row relative to the median of all; to this the target's
    own rounding or noise is added. Cost: one evaluation of every row, in two passes over the log, one piece
    of rows in memory at a time.
    """
    sizes_of_rows, given_answers = [], []
    for rows, given in answers():
        sizes_of_rows.append(np.linalg.norm(rows, axis=1))
        given_answers.append(np.abs(given))
    if not sizes_of_rows:
        return LogCheck(0, np.nan, np.nan, {})
    sizes = np.concatenate(sizes_of_rows)
    typical_row = max(float(np.median(sizes)), np.finfo(np.float64).tiny)
    typical = np.median(np.concatenate(given_answers), axis=0)
    share = max(_LEAST_SHARE_OFF, _OVER_FRESH_ERROR * error) if np.isfinite(error) else _LEAST_SHARE_OFF
    allowance = _NOISE_SIGMAS * own.sigma if own.kind == "noisy" else 0.0
    if own.decimals is not None:
        allowance = _ROUNDING_UNITS * 10.0**-own.decimals
    largest = worst = 0.0
    alike = dict.fromkeys(decimals, 0)
    for rows, given in answers():
        found = network(rows)
        errors = np.abs(found - given)
        reach = np.maximum(1.0, np.linalg.norm(rows, axis=1) / typical_row)[:, None]
        allowed = allowance + share * reach * (np.abs(given) + typical + np.finfo(np.float64).tiny)
        largest = max(largest, float(errors.max()))
        worst = max(worst, float((errors / allowed).max()))
        for digits in decimals:
            alike[digits] += int((np.round(found, digits) == np.round(given, digits)).all(axis=1).sum())
    count = len(sizes)
    return LogCheck(count, largest, worst, {digits: hits / count for digits, hits in alike.items()})
