"""An `ArrayStore` in one SQLite file.

Every piece and every result is one transaction. The file is in write-ahead mode, so that others may read
while a run writes; after a kill SQLite finds the last transaction that was complete. Commits do not wait
for the disk itself: a power cut may cost the last batches, never the file. Every array carries a checksum:
an answer that the disk has changed is refused, not believed.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.errors import CheckpointError, InvalidInput
from unweave.execution.store import Arrays, Header

_APPLICATION = 0x756E7776  # "unwv" in the file's own header: which program a database belongs to
_WAIT_SECONDS = 60.0  # for another process that is writing
_TURN_SECONDS = 0.01  # between two tries to prepare a new file, which takes milliseconds
_TABLES = """
CREATE TABLE IF NOT EXISTS header(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pieces(
    piece INTEGER, name TEXT, dtype TEXT, shape TEXT, data BLOB, checksum INTEGER,
    PRIMARY KEY(piece, name));
CREATE TABLE IF NOT EXISTS results(
    key TEXT, position INTEGER, dtype TEXT, shape TEXT, data BLOB, checksum INTEGER,
    PRIMARY KEY(key, position));
"""


class SqliteStore:
    """Arrays in the SQLite file ``path``; see `unweave.execution.store.ArrayStore`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir():
            raise InvalidInput(f"checkpoint must be a file for its ending. Got the folder {path} instead.")
        try:
            # Autocommit: transactions are opened and ended below, by name. The store is used by one thread at
            # a time, though not always by the one that opened it.
            self._connection = sqlite3.connect(
                path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise InvalidInput(
                f"checkpoint must be a file that can be written. Got {path} ({error})."
            ) from error
        try:
            self._prepare_in_turn()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # SQLite quotes what it cannot read
            self._connection.close()
            raise InvalidInput(
                f"checkpoint must be an SQLite file of unweave or a new one. Got {str(path)!r} instead "
                f"({error}). Choose another name."
            ) from error
        except InvalidInput:
            self._connection.close()
            raise

    def _prepare_in_turn(self) -> None:
        """Prepare the file. SQLite itself does not wait when two processes change the mode of a new file."""
        last = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                return self._prepare()
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() > last:
                    raise
            time.sleep(_TURN_SECONDS)

    def _prepare(self) -> None:
        # In this order: a process that makes the file at this moment says whose it is before it adds tables.
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        if application != _APPLICATION and tables:
            raise InvalidInput(
                f"checkpoint must be a database of unweave. Got {str(self.path)!r} instead, which belongs to "
                "another program. Choose another name."
            )
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.execute(f"PRAGMA application_id={_APPLICATION}")
        self._connection.executescript(_TABLES)

    def header(self) -> Header:
        """Return what `write_header` was given last; empty for a new store."""
        with self._reading():
            return dict(self._connection.execute("SELECT name, value FROM header"))

    def write_header(self, header: Header) -> None:
        """Replace the header."""
        with self._transaction():
            self._connection.execute("DELETE FROM header")
            self._connection.executemany("INSERT INTO header VALUES (?, ?)", header.items())

    def append(self, arrays: Arrays) -> None:
        """Add one piece: named arrays that belong together."""
        with self._transaction():
            # Cast: in a damaged file the number may be anything.
            query = "SELECT coalesce(max(CAST(piece AS INTEGER)), 0) FROM pieces"
            (last,) = self._connection.execute(query).fetchone()
            self._insert("pieces", last + 1, arrays.items())

    def pieces(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the arrays called ``names`` of every piece, oldest first, one piece in memory at a time."""
        marks = ",".join("?" * len(names))
        columns = "piece, name, dtype, shape, data, checksum"
        query = f"SELECT {columns} FROM pieces WHERE name IN ({marks}) ORDER BY piece"
        number, piece = None, dict[str, NDArray[Any]]()
        with self._reading():
            for of_piece, name, *rest in self._connection.execute(query, tuple(names)):
                if of_piece != number and piece:
                    yield piece
                    piece = {}
                number = of_piece
                piece[name] = _read(*rest)
        if piece:
            yield piece

    def put(self, key: str, arrays: Sequence[NDArray[Any]]) -> None:
        """Keep a result under ``key``; a key that is there already stays as it is."""
        with self._transaction():
            self._insert("results", key, enumerate(arrays))

    def get(self, key: str) -> tuple[NDArray[Any], ...] | None:
        """Return the result kept under ``key``, or None."""
        query = "SELECT dtype, shape, data, checksum FROM results WHERE key = ? ORDER BY position"
        with self._reading():
            return tuple(_read(*found) for found in self._connection.execute(query, (key,))) or None

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def _insert(self, table: str, owner: int | str, arrays: Iterable[tuple[Any, NDArray[Any]]]) -> None:
        rows = []
        for name, array in arrays:
            content = array.dtype.str, ",".join(map(str, array.shape)), array.tobytes()
            rows.append((owner, name, *content, _checksum(*content)))
        self._connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?, ?, ?, ?, ?, ?)", rows)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Say that the file is damaged where SQLite or an array does, while inside."""
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
            raise InvalidInput(
                f"checkpoint must be a file that can be read. Got {str(self.path)!r} instead, which is "
                f"damaged ({error}). Choose another name; what it held is asked or computed again."
            ) from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commit everything that is done inside, or nothing."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            raise CheckpointError(
                f"{self.path} must be writable while the run lasts. Got {error} instead. Make room or lift "
                "the lock, then go on; everything answered so far is in this error's ledger."
            ) from error


def _read(dtype: str, shape: str, data: bytes, checksum: int) -> NDArray[Any]:
    if checksum != _checksum(dtype, shape, data):
        raise ValueError("an array differs from what was written")
    sizes = tuple(int(size) for size in shape.split(",") if size)
    return np.frombuffer(data, dtype=np.dtype(dtype)).reshape(sizes).copy()


def _checksum(dtype: str, shape: str, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(f"{dtype} {shape}".encode()))
