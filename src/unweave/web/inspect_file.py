"""What an uploaded file would become in memory, from its directory and headers, before any of it is unpacked.

A few kilobytes of .npz may unpack to gigabytes, declare arrays that are not there, or hold pickled objects;
an .onnx file may name other files of this machine as its weights. All of them are refused here.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from unweave.errors import InvalidInput

MOST_MEMBERS = 4096
"""Arrays in an archive: two per layer are usual."""
_MOST_HEADER_BYTES = 10_000  # of the text that describes an array; numpy's own limit
_HEADER_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def inspect_file(path: Path, most_unpacked: int) -> None:
    """Refuse the file at ``path`` if opening it could do harm; `InvalidInput` says why.

    ``most_unpacked`` is the number of bytes that its arrays may take.
    """
    if path.stat().st_size == 0:
        raise InvalidInput("The file must not be empty. Export it again.")
    if path.suffix == ".npz":
        _check_archive(path, most_unpacked)
    elif path.suffix == ".onnx":
        _check_onnx(path)
    elif path.suffix == ".safetensors":
        _check_safetensors(path)


def _check_archive(path: Path, most_unpacked: int) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MOST_MEMBERS:
                _refuse(f"hold at most {MOST_MEMBERS} arrays", f"{len(members)}")
            unpacked = sum(member.file_size for member in members)
            if unpacked > most_unpacked:
                _refuse(f"unpack to at most {most_unpacked / 2**20:.0f} MB", f"{unpacked / 2**20:.0f} MB")
            for member in members:
                with archive.open(member) as file:
                    _check_array(file, member.filename, member.file_size)
    except InvalidInput:
        raise
    except (OSError, ValueError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        if "max_header_size" in reason:  # whose advice is to trust the file
            reason = "the description of an array is too long"
        raise InvalidInput(
            f"The file must be an .npz archive of arrays. It is none, or not complete ({reason})."
        ) from error


def _check_array(file: IO[bytes], name: str, size: int) -> None:
    """Refuse an array of objects, and one that is not as long as it says."""
    version = np.lib.format.read_magic(file)
    reader = _HEADER_READERS.get(version)
    if reader is None:
        _refuse("hold arrays in a format of version 1 or 2", f"version {version} in {name!r}")
    shape, _, dtype = reader(file, max_header_size=_MOST_HEADER_BYTES)
    if dtype.hasobject:
        _refuse(
            "hold numbers and texts only",
            f"an array of Python objects in {name!r}, which would run code when it is opened,",
        )
    needed = dtype.itemsize
    for length in shape:
        needed *= int(length)  # whole numbers of Python: a product that is too large must not wrap around
    if needed > size:
        _refuse("be complete", f"an array {name!r} that says it has {needed} bytes in {size}")


def _check_safetensors(path: Path) -> None:
    """Refuse a header, whose length is the first eight bytes, that ends beyond the file."""
    with path.open("rb") as file:
        start = file.read(8)
    if len(start) < 8 or struct.unpack("<Q", start)[0] > path.stat().st_size - 8:
        _refuse("be a .safetensors file", "a header that is longer than the file")


def _check_onnx(path: Path) -> None:
    from unweave.targets.adapters.answer_source import optional_package

    onnx = optional_package("onnx", "onnx", "look into an ONNX file")
    try:
        model = onnx.load_model_from_string(path.read_bytes())
    except Exception as error:  # whatever the parser of the day raises
        raise InvalidInput("The file must be an ONNX model. It cannot be read as one.") from error
    if not model.graph.node:
        _refuse("be an ONNX model", "a graph without operators")
    for tensor in _tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
            _refuse("hold all of its weights", "weights that lie in another file", "Save it as one file.")


def _tensors(message: Any) -> Iterator[Any]:
    """Yield every tensor inside, wherever it is: initial values, attributes, subgraphs, functions."""
    for descriptor, value in message.ListFields():
        if descriptor.type != descriptor.TYPE_MESSAGE:
            continue
        entries = value if hasattr(value, "__len__") and not hasattr(value, "ListFields") else [value]
        for entry in entries:
            if entry.DESCRIPTOR.name == "TensorProto":
                yield entry
            else:
                yield from _tensors(entry)


def _refuse(required: str, got: str, advice: str = "") -> NoReturn:
    raise InvalidInput(f"The file must {required}. Got {got} instead. {advice}".rstrip())
