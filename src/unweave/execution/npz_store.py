"""An `ArrayStore` in a directory of .npz files that are never changed once they are there.

    header.json
    pieces/00000017-3f2a91bc.npz      one piece, or several that were merged
    results/<key>.npz                 one result

A file is written under a name of its own and then renamed, so that a reader sees it whole or not at all.
Small pieces are merged from time to time: the merged file comes first, then the old ones go. A kill in
between leaves arrays twice, which is harmless where entries are found by their content.
"""

from __future__ import annotations

import json
import os
import secrets
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.errors import CheckpointError, InvalidInput
from unweave.execution.store import Arrays, Header

_PARTIAL = ".partial"  # ending of a file that is being written
_SMALL_BYTES = 8 * 2**20  # pieces below this size are merged: reading many small files is slow


class NpzStore:
    """Arrays in the directory ``path``; see `unweave.execution.store.ArrayStore`.

    ``most_small_pieces`` small pieces are merged into one file.
    """

    def __init__(self, path: Path, most_small_pieces: int = 64) -> None:
        self.path, self._most_small = path, most_small_pieces
        self._pieces, self._results = path / "pieces", path / "results"
        self._header = path / "header.json"
        if path.exists() and not path.is_dir():
            raise InvalidInput(
                f"checkpoint must be a folder, or a file that ends in .sqlite. Got the file {path} instead."
            )
        if path.is_dir() and any(path.iterdir()) and not self._pieces.is_dir():
            raise InvalidInput(
                f"checkpoint must be a folder of its own. Got {path} instead, which holds other files. "
                "Choose another name."
            )
        try:
            for folder in (path, self._pieces, self._results):
                folder.mkdir(exist_ok=True)
            for left_over in (*self._pieces.glob(f"*{_PARTIAL}"), *self._results.glob(f"*{_PARTIAL}")):
                left_over.unlink()
        except OSError as error:
            raise InvalidInput(
                f"checkpoint must be a folder that can be written. Got {path} instead ({error.strerror})."
            ) from error
        self._names = sorted(file.name for file in self._pieces.glob("*.npz"))
        self._small = [name for name in self._names if self._is_small(name)]
        self._next = 1 + int(self._names[-1].split("-")[0]) if self._names else 1

    def header(self) -> Header:
        """Return what `write_header` was given last; empty for a new store."""
        if not self._header.is_file():
            return {}
        try:
            header: Header = json.loads(self._header.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InvalidInput(
                f"{self._header} must be JSON ({error}). Choose another checkpoint."
            ) from error
        return header

    def write_header(self, header: Header) -> None:
        """Replace the header."""
        self._write(self._header, lambda partial: partial.write_text(json.dumps(header), encoding="utf-8"))

    def append(self, arrays: Arrays) -> None:
        """Add one piece: named arrays that belong together."""
        # A random part: two runs at once must not overwrite each other.
        name = f"{self._next:08d}-{secrets.token_hex(4)}.npz"
        self._save(self._pieces / name, arrays)
        self._next += 1
        self._names.append(name)
        if self._is_small(name):
            self._small.append(name)
        if len(self._small) >= self._most_small:
            self._merge()

    def pieces(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the arrays called ``names`` of every piece, oldest first, one piece in memory at a time."""
        for name in list(self._names):
            yield _load(self._pieces / name, names)

    def put(self, key: str, arrays: Sequence[NDArray[Any]]) -> None:
        """Keep a result under ``key``; a key that is there already stays as it is."""
        file = self._results / f"{key}.npz"
        if not file.exists():
            self._save(file, {str(position): array for position, array in enumerate(arrays)})

    def get(self, key: str) -> tuple[NDArray[Any], ...] | None:
        """Return the result kept under ``key``, or None."""
        file = self._results / f"{key}.npz"
        if not file.exists():
            return None
        arrays = _load(file, None)
        return tuple(arrays[str(position)] for position in range(len(arrays)))

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _is_small(self, name: str) -> bool:
        return (self._pieces / name).stat().st_size < _SMALL_BYTES

    def _merge(self) -> None:
        """Replace the small pieces by one with the number of the last of them."""
        parts = [_load(self._pieces / name, None) for name in self._small]
        if any(part.keys() != parts[0].keys() for part in parts):
            self._small = []  # pieces of several kinds: left as they are
            return
        together = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        merged = f"{self._small[-1].split('-')[0]}-{secrets.token_hex(4)}.npz"
        self._save(self._pieces / merged, together)
        for name in self._small:
            (self._pieces / name).unlink()
        gone = set(self._small)
        self._names = sorted([name for name in self._names if name not in gone] + [merged])
        self._small = [merged] if self._is_small(merged) else []

    def _save(self, file: Path, arrays: Arrays) -> None:
        def save(partial: Path) -> None:
            with partial.open("wb") as stream:
                np.savez(stream, allow_pickle=False, **arrays)

        self._write(file, save)

    def _write(self, file: Path, write: Any) -> None:
        """Let ``write`` fill a file beside ``file``, then put it in its place."""
        partial = file.with_name(f"{file.name}.{os.getpid()}{_PARTIAL}")
        try:
            write(partial)
            partial.replace(file)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise CheckpointError(
                f"{self.path} must be writable while the run lasts. Got {error.strerror or error} instead. "
                "Make room, then go on; everything answered so far is in this error's ledger."
            ) from error


def _load(file: Path, names: Sequence[str] | None) -> dict[str, NDArray[Any]]:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
            return {name: content[name] for name in (content.files if names is None else names)}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInput(
            f"{file} must be a piece of a checkpoint. Got a file that cannot be read instead ({error}). "
            "Delete it: what it held is asked or computed again."
        ) from error
