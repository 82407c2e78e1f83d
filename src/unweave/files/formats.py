"""Networks in files: the ending of the name says in which format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from unweave.errors import InvalidInput, UnweaveError
from unweave.files.atomic import write_file
from unweave.files.contents import Dtype, check_dtype, encode_json, encode_npz, read_json, read_npz, rounded
from unweave.networks.network import Network

PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".joblib")
"""Endings of files that run code when they are opened: never written, never read."""


@dataclass(frozen=True)
class FileFormat:
    """How networks are written in one format, and read."""

    encode: Callable[[Network, str], bytes]
    """The content of the file, from a network whose parameters are already rounded to the dtype named."""
    read: Callable[[Path, Sequence[str] | None], Network]
    """The network in a file; the activations are for a file that leaves them open."""
    package: str | None = None
    """The optional package that it needs."""
    extra: str = ""
    """What to install to have it."""


def _late(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module that needs an optional package, imported when it is first called."""
    return lambda *arguments: getattr(import_module(f"unweave.files.{module}"), name)(*arguments)


_encode_onnx, _read_onnx = _late("onnx_writer", "encode_onnx"), _late("onnx_reader", "read_onnx")
_encode_tensors = _late("safetensors_file", "encode_safetensors")
_read_tensors = _late("safetensors_file", "read_safetensors")

FORMATS: dict[str, FileFormat] = {
    ".npz": FileFormat(encode_npz, lambda path, activations: read_npz(path)),
    ".json": FileFormat(encode_json, lambda path, activations: read_json(path)),
    ".onnx": FileFormat(_encode_onnx, lambda path, activations: _read_onnx(path), "onnx", "unweave[onnx]"),
    ".safetensors": FileFormat(_encode_tensors, _read_tensors, "safetensors", "unweave[torch]"),
}
"""File ending -> how to write and how to read it."""


def save(network: Network, path: str | Path, dtype: Dtype = "float64") -> None:
    """Write ``network`` to ``path`` in the format its ending names, over what was there.

    float64 parameters read back bit for bit; with ``dtype="float32"`` they are rounded first. The file is
    replaced as a whole: if the disk is full or the process is killed, what was there before is still there.
    """
    path = Path(path)
    chosen = _format_of(path)
    network.require_floats("saving")
    network = rounded(network, dtype)
    with _needing(chosen, path):
        content = chosen.encode(network, dtype)
    write_file(path, content)


def check_can_save(path: str | Path, dtype: str = "float64") -> None:
    """Refuse, before there is a network, what `save` would refuse of any: ending, dtype, missing package."""
    path = Path(path)
    chosen = _format_of(path)
    check_dtype(dtype)
    if chosen.package is not None and find_spec(chosen.package) is None:
        _needs_package(chosen, path)


def load(path: str | Path, activations: Sequence[str] | None = None) -> Network:
    """Read a network from an .npz, .json, .onnx or .safetensors file.

    What `Network.save` has written comes back with the same parameters, bit for bit. An .onnx file may come
    from elsewhere if it is a chain of layers (MatMul, Gemm, Add, activations); a .safetensors file may be the
    state of a torch module, which does not say its ``activations``: give them, one name per layer, output
    layer included. For other files they are not needed, and refused if the file says otherwise.

    Nothing in the file is executed (no pickle). `InvalidInput` says so if the file is missing, has an unknown
    ending or does not hold a network.
    """
    path = Path(path)
    chosen = _format_of(path)
    if not path.is_file():
        raise InvalidInput(f"path must be an existing file. Got {str(path)!r} instead. Check the spelling.")
    with _needing(chosen, path):
        network = chosen.read(path, activations)
    if activations is not None and isinstance(network, Network):
        same = Network(network.weights, network.biases, activations, network.skip)
        if same.activations != network.activations:
            raise InvalidInput(
                f"activations must be {', '.join(network.activations)}, as {str(path)!r} says itself. "
                f"Got {', '.join(activations)} instead. Leave them out."
            )
    return network


def names_activations(path: str | Path) -> bool:
    """Whether the file at ``path`` says its activations itself; only a plain torch state does not."""
    path = Path(path)
    if path.suffix.lower() != ".safetensors" or not path.is_file():
        return True
    with _needing(FORMATS[".safetensors"], path):
        from unweave.files.safetensors_file import is_ours

        return is_ours(path)


@contextmanager
def _needing(chosen: FileFormat, path: Path) -> Iterator[None]:
    """Turn the absence of an optional package into words, while inside."""
    try:
        yield
    except ModuleNotFoundError as error:
        if chosen.package is None or error.name != chosen.package:
            raise
        _needs_package(chosen, path, error)


def _needs_package(chosen: FileFormat, path: Path, cause: Exception | None = None) -> NoReturn:
    raise UnweaveError(
        f"{chosen.package} must be installed for {path.suffix} files. Got no such package instead. "
        f"Install it: pip install '{chosen.extra}'."
    ) from cause


def _format_of(path: Path) -> FileFormat:
    ending = path.suffix.lower()
    known = FORMATS.get(ending)
    if known is not None:
        return known
    endings = f"{', '.join(list(FORMATS)[:-1])} or {list(FORMATS)[-1]}"
    if ending in PICKLES:
        raise InvalidInput(
            f"path must end in {endings}. Got {str(path)!r} instead: such files are pickles, which run code "
            f"when they are opened. Write .safetensors (net.to_torch().load_state_dict takes what it holds) "
            f"or .onnx, or torch.save(net.to_torch().state_dict(), ...) yourself. A module that you loaded "
            f"is read by Network.from_torch(module)."
        )
    raise InvalidInput(f"path must end in {endings}. Got {str(path)!r} instead. Choose one of these endings.")
