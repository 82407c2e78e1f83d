"""A model in a file: networks that unweave wrote, ONNX graphs; never anything that runs code when opened."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

from unweave.errors import InvalidInput
from unweave.files import FORMATS, load
from unweave.targets.adapters.answer_source import AnswerSource
from unweave.targets.adapters.onnx_target import OnnxTarget

_ONNX = ".onnx"
_PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".ckpt")
_KERAS = (".keras", ".h5", ".hdf5")
_PICKLE_OPCODE = 0x80  # every pickle since protocol 2 starts with it and the protocol's number
_PICKLE_PROTOCOLS = range(2, 6)


def is_path(target: Any) -> bool:
    """Whether ``target`` names a file: a string or a path."""
    return isinstance(target, str | os.PathLike)


def target_endings() -> tuple[str, ...]:
    """Return the endings of the files that may be asked."""
    return tuple(dict.fromkeys([*FORMATS, _ONNX]))


def open_file_target(path: str | os.PathLike[str]) -> AnswerSource:
    """Return what answers for the model in ``path``, by the file's ending.

    ``.onnx`` is run by onnxruntime; the other endings are those of `unweave.load`. Files that may hold a
    pickle are refused whatever their ending, because opening a pickle runs whatever is in it.
    """
    path = Path(path)
    _check_readable(path)
    ending = path.suffix.lower()
    if ending in _PICKLES or _looks_pickled(path):
        raise InvalidInput(
            f"path must be a file that runs no code when it is opened. Got {str(path)!r} instead, which is a "
            "pickle or named like one. If you trust it, load it yourself and pass the object (the module, "
            "estimator or function), or export it to ONNX."
        )
    if ending in _KERAS:
        raise InvalidInput(
            f"path must end in {' or '.join(target_endings())}. Got {str(path)!r} instead. Load it with "
            "keras.saving.load_model and pass the model."
        )
    if ending == _ONNX:
        return OnnxTarget(path)
    if ending not in FORMATS:
        raise InvalidInput(
            f"path must end in {' or '.join(target_endings())}. Got {str(path)!r} instead. Export the model "
            "to ONNX, or load it yourself and pass the object."
        )
    return load(path)


def _check_readable(path: Path) -> None:
    """Refuse what is not a file, cannot be read, or is empty."""
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no file of that name"
        raise InvalidInput(
            f"path must be an existing file. Got {str(path)!r} instead, which is {what}. Check the spelling."
        )
    if not os.access(path, os.R_OK):
        raise InvalidInput(
            f"path must be a file that may be read. Got {str(path)!r} instead. Check its permissions."
        )
    if path.stat().st_size == 0:
        raise InvalidInput(
            f"path must be a file with a model in it. Got {str(path)!r} instead, which is empty. "
            "Export the model again."
        )


def _looks_pickled(path: Path) -> bool:
    """Whether the file starts like a pickle, or is an archive with a pickle in it (as torch.save writes)."""
    with path.open("rb") as file:
        start = file.read(2)
    if len(start) == 2 and start[0] == _PICKLE_OPCODE and start[1] in _PICKLE_PROTOCOLS:
        return True
    if not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith(".pkl") for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False  # whoever reads it will say what is wrong with it
