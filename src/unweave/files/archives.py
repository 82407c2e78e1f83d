"""Arrays in .npy and .npz files, read without pickle. Whatever else a file holds, one error says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from unweave.errors import InvalidInput


class UnreadableArray(InvalidInput):
    """A file does not hold the arrays that it should; the message says why, in a few words."""


def read_arrays(path: Path, names: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """Return the arrays called ``names`` of the .npz archive at ``path``, all of them for None."""
    try:
        with path.open("rb") as stream:
            content = np.load(stream, allow_pickle=False)
            if not isinstance(content, np.lib.npyio.NpzFile):
                raise UnreadableArray("it is a single array, not an archive")
            with content:
                if not set(names or ()) <= set(content.files):
                    known = ", ".join(content.files) or "none"
                    raise UnreadableArray(f"arrays {' and '.join(names or ())} are needed, it has {known}")
                return {name: _checked(content[name]) for name in names or content.files}
    except Exception as error:
        _refuse(error)


def read_array(path: Path) -> NDArray[Any]:
    """Return the array of the .npy file at ``path``."""
    try:
        with path.open("rb") as stream:
            return _checked(np.load(stream, allow_pickle=False))
    except Exception as error:
        _refuse(error)


def _checked(content: Any) -> NDArray[Any]:
    """Return an array; an archive may also hold files that are none."""
    if not isinstance(content, np.ndarray):
        raise UnreadableArray("it holds something else than arrays")
    return content


def _refuse(error: Exception) -> NoReturn:
    """Put a few words to what NumPy raises for a damaged file: errors of a dozen kinds."""
    if isinstance(error, UnreadableArray):
        raise error
    why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    raise UnreadableArray(why) from error
