"""Where a run keeps arrays so that it outlives its process: pieces in order, results by name.

Two stores speak this protocol: one SQLite file (`unweave.execution.sqlite_store`) and a directory of .npz
files (`unweave.execution.npz_store`). Both hold plain arrays, never pickles, and both survive a kill at any
moment: what `append` or `put` has returned from is there afterwards, what it has not is absent as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from unweave.errors import InvalidInput

Header = dict[str, str | int | None]
Arrays = Mapping[str, NDArray[Any]]

SQLITE_ENDINGS = (".sqlite", ".sqlite3", ".db")
"""Endings of a path that make it a file; any other path is a directory."""

FORMAT = "unweave-checkpoint"
VERSION = 1


@dataclass(frozen=True)
class Checkpoint:
    """Where a recovery keeps the answers it was given and the results that were expensive.

    Example: ``unweave.recover(target, checkpoint=Checkpoint("run.sqlite", target="credit model, May"))``
    """

    path: str | Path
    """A file that ends in .sqlite, .sqlite3 or .db; any other path is a directory."""
    target: str | None = None
    """A description of the target. Its fingerprint is kept, and a checkpoint of another one is refused."""
    check: bool = False
    """Whether one row of the log is asked again at the start, to see whether it is the same target."""


class ArrayStore(Protocol):
    """Arrays on disk. Whatever cannot be written raises `CheckpointError` that names the path."""

    path: Path

    def header(self) -> Header:
        """Return what `write_header` was given last; empty for a new store."""

    def write_header(self, header: Header) -> None:
        """Replace the header."""

    def append(self, arrays: Arrays) -> None:
        """Add one piece: named arrays that belong together."""

    def pieces(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        """Return the arrays called ``names`` of every piece, oldest first, one piece in memory at a time."""

    def put(self, key: str, arrays: Sequence[NDArray[Any]]) -> None:
        """Keep a result under ``key``; a key that is there already stays as it is."""

    def get(self, key: str) -> tuple[NDArray[Any], ...] | None:
        """Return the result kept under ``key``, or None."""

    def close(self) -> None:
        """Release the files; nothing is lost without it."""


def open_store(path: str | Path) -> ArrayStore:
    """Open or create the store at ``path``: SQLite for ``SQLITE_ENDINGS``, else a directory.

    Example
    -------
    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = open_store(folder + "/run.sqlite")
    ...     store.put("squares", [np.arange(3) ** 2])
    ...     store.close()
    ...     again = open_store(folder + "/run.sqlite")
    ...     print(again.get("squares"))
    ...     again.close()
    (array([0, 1, 4]),)
    """
    place = Path(path)
    if not place.parent.is_dir():
        raise InvalidInput(
            f"checkpoint must lie in a folder that exists. Got {str(place)!r} instead. Create {place.parent}."
        )
    if place.suffix.lower() in SQLITE_ENDINGS:
        from unweave.execution.sqlite_store import SqliteStore

        return SqliteStore(place)
    from unweave.execution.npz_store import NpzStore

    return NpzStore(place)
