"""An `ArrayStore` in a directory of .npz files that are never changed once they are there.

    header.json
    pieces/00000017-3f2a91bc.npz      one piece, or several that were merged
    results/<key>.npz                 one result

A file is written under a name of its own and then renamed, so that a reader sees it whole or not at all.
Small pieces are merged from time to time: the merged file comes first, then the old ones go. A kill in
between leaves arrays twice, which is harmless where entries are found by their content.

Several processes may use one directory: each merges only what it wrote itself, and a reader that misses a
piece looks for the one that replaced it. Files with other names than these are left alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.errors import CheckpointError, InvalidInput
from unweave.execution.store import Arrays, Header
from unweave.files.archives import UnreadableArray, read_arrays

_PARTIAL = ".partial"  # ending of a file that is being written
_PIECE = re.compile(r"[0-9]{8,}-[0-9a-f]{8}\.npz")
_ABANDONED_SECONDS = 3600.0  # since a partial file was touched: nobody takes that long to write a piece
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
                _remove_abandoned(folder)
        except OSError as error:
            raise InvalidInput(
                f"checkpoint must be a folder that can be written. Got {path} instead ({error.strerror})."
            ) from error
        self._small: list[str] = []
        """Small pieces that this store wrote: those of another process are not ours to merge."""
        self._next = 1 + max((_number(name) for name in self._names()), default=0)

    def header(self) -> Header:
        """Return what `write_header` was given last; empty for a new store."""
        if not self._header.is_file():
            return {}
        try:
            header = json.loads(self._header.read_text(encoding="utf-8"))
            if not isinstance(header, dict):
                raise ValueError("it is no object")
        except (OSError, ValueError, RecursionError) as error:
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
        if self._is_small(name):
            self._small.append(name)
        if len(self._small) >= self._most_small:
            self._merge()

    def pieces(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the arrays called ``names`` of every piece, oldest first, one piece in memory at a time."""
        seen: set[str] = set()
        while unseen := [name for name in self._names() if name not in seen]:
            for name in unseen:
                seen.add(name)
                try:
                    piece = _load(self._pieces / name, names)
                except FileNotFoundError:
                    continue  # another process has just merged it into one that the next look finds
                yield piece

    def put(self, key: str, arrays: Sequence[NDArray[Any]]) -> None:
        """Keep a result under ``key``; a key that is there already stays as it is."""
        file = self._results / f"{key}.npz"
        if not file.exists():
            self._save(file, {str(position): array for position, array in enumerate(arrays)})

    def get(self, key: str) -> tuple[NDArray[Any], ...] | None:
        """Return the result kept under ``key``, or None."""
        file = self._results / f"{key}.npz"
        try:
            arrays = _load(file, None)
        except FileNotFoundError:
            return None
        if set(arrays) != {str(position) for position in range(len(arrays))}:
            raise _damaged(file, "its arrays are not numbered")
        return tuple(arrays[str(position)] for position in range(len(arrays)))

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _names(self) -> list[str]:
        """Return the names of the pieces that are there now, oldest first."""
        found = (file.name for file in self._pieces.iterdir() if _PIECE.fullmatch(file.name))
        return sorted(found, key=lambda name: (_number(name), name))

    def _is_small(self, name: str) -> bool:
        return (self._pieces / name).stat().st_size < _SMALL_BYTES

    def _merge(self) -> None:
        """Replace the small pieces by one with the number of the last of them."""
        try:
            parts = [_load(self._pieces / name, None) for name in self._small]
        except FileNotFoundError:
            parts = [{}]  # somebody deleted one
        if len(parts) < 2 or any(part.keys() != parts[0].keys() for part in parts):
            self._small = []  # or pieces of several kinds: left as they are
            return
        together = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        merged = f"{_number(self._small[-1]):08d}-{secrets.token_hex(4)}.npz"
        self._save(self._pieces / merged, together)
        for name in self._small:
            (self._pieces / name).unlink(missing_ok=True)
        self._small = [merged] if self._is_small(merged) else []

    def _save(self, file: Path, arrays: Arrays) -> None:
        def save(partial: Path) -> None:
            with partial.open("wb") as stream:
                np.savez(stream, allow_pickle=False, **arrays)

        self._write(file, save)

    def _write(self, file: Path, write: Any) -> None:
        """Let ``write`` fill a file beside ``file``, then put it in its place."""
        partial = file.with_name(f"{file.name}.{os.getpid()}-{secrets.token_hex(4)}{_PARTIAL}")
        try:
            write(partial)
            partial.replace(file)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise CheckpointError(
                f"{self.path} must be writable while the run lasts. Got {error.strerror or error} instead. "
                "Make room, then go on; everything answered so far is in this error's ledger."
            ) from error


def _number(name: str) -> int:
    return int(name.split("-")[0])


def _remove_abandoned(folder: Path) -> None:
    """Remove what a killed process left half written, and nothing that somebody is writing now."""
    for partial in folder.glob(f"*{_PARTIAL}"):
        with contextlib.suppress(FileNotFoundError):  # renamed meanwhile: it was no remains
            if time.time() - partial.stat().st_mtime > _ABANDONED_SECONDS:
                partial.unlink()


def _load(file: Path, names: Sequence[str] | None) -> dict[str, NDArray[Any]]:
    try:
        return read_arrays(file, names)
    except UnreadableArray as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise error.__cause__ from None
        raise _damaged(file, str(error)) from error


def _damaged(file: Path, why: str) -> InvalidInput:
    return InvalidInput(
        f"{file} must be a piece of a checkpoint. Got a file that cannot be read instead ({why}). "
        "Delete it: what it held is asked or computed again."
    )
