"""Networks in files: .npz and .json, without pickle, exact to the last bit."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from unweave.errors import InvalidInput
from unweave.network import Network

FORMAT = "unweave-network"
VERSION = 1
"""Raised when a file of the new kind could not be read by older code."""


def save(network: Network, path: str | Path) -> None:
    """Write ``network`` to ``path`` in the format its ending names (.npz or .json), over what was there."""
    path = Path(path)
    write = _format_of(path)[0]
    try:
        write(network, path)
    except OSError as error:
        raise InvalidInput(
            f"path must be a file that can be written. Got {str(path)!r} instead ({error.strerror}). "
            f"Check that the folder exists and may be written to."
        ) from error


def load(path: str | Path) -> Network:
    """Read a network that `Network.save` has written: same parameters, bit for bit.

    Nothing in the file is executed (no pickle). `InvalidInput` says so if the file is missing, has an unknown
    ending or does not hold a network.
    """
    path = Path(path)
    read = _format_of(path)[1]
    if not path.is_file():
        raise InvalidInput(f"path must be an existing file. Got {str(path)!r} instead. Check the spelling.")
    return read(path)


def _save_json(network: Network, path: Path) -> None:
    content = {
        "format": FORMAT,
        "version": VERSION,
        "activations": list(network.activations),
        "weights": [w.tolist() for w in network.weights],
        "biases": [b.tolist() for b in network.biases],
        "skip": None if network.skip is None else network.skip.tolist(),
    }
    # json writes the shortest decimal that reads back as the same float64.
    path.write_text(json.dumps(content, allow_nan=False) + "\n", encoding="utf-8")


def _load_json(path: Path) -> Network:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        _not_a_network(path, f"not readable as JSON: {error}", error)
    if not isinstance(content, dict):
        _not_a_network(path, f"a JSON {type(content).__name__}, not an object")
    _check_header(path, content.get("format"), content.get("version"))
    return _build(path, content)


def network_arrays(network: Network) -> dict[str, Any]:
    """The network as named arrays, header included: what an .npz archive holds."""
    arrays: dict[str, Any] = {
        "format": np.array(FORMAT),
        "version": np.array(VERSION),
        "activations": np.array(network.activations),
    }
    for i, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        arrays[f"weight_{i}"], arrays[f"bias_{i}"] = weight, bias
    if network.skip is not None:
        arrays["skip"] = network.skip
    return arrays


def _save_npz(network: Network, path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, **network_arrays(network))


def read_archive(path: Path) -> dict[str, Any]:
    """All arrays of an .npz archive, without pickle; `InvalidInput` if it is none."""
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                _not_a_network(path, "a single array, not an archive")
            return {key: archive[key] for key in archive.files}
    except InvalidInput:
        raise
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        _not_a_network(path, f"not readable as an .npz archive: {error}", error)


def _load_npz(path: Path) -> Network:
    return network_from_arrays(path, read_archive(path))


def network_from_arrays(path: Path, content: dict[str, Any]) -> Network:
    """The network that `network_arrays` described; ``path`` is only named in messages."""
    _check_header(path, _scalar(content.get("format")), _scalar(content.get("version")))
    layers = range(sum(key.startswith("weight_") for key in content))
    return _build(
        path,
        {
            "activations": [str(name) for name in np.atleast_1d(content.get("activations", []))],
            "weights": [content.get(f"weight_{i}") for i in layers],
            "biases": [content.get(f"bias_{i}") for i in layers],
            "skip": content.get("skip"),
        },
    )


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else None


def _check_header(path: Path, found: Any, version: Any) -> None:
    if found != FORMAT:
        _not_a_network(path, f"no {FORMAT!r} header")
    if version != VERSION:
        raise InvalidInput(
            f"version of {str(path)!r} must be {VERSION}. Got {version!r} instead. "
            f"Read it with the version of unweave that wrote it, or a later one."
        )


def _build(path: Path, content: dict[str, Any]) -> Network:
    parts = [content.get(key) for key in ("weights", "biases", "activations")]
    if not all(isinstance(part, list) for part in parts):
        _not_a_network(path, "weights, biases or activations are missing")
    weights, biases, activations = parts
    if not all(isinstance(name, str) for name in activations or []):
        _not_a_network(path, "activations are not names")
    try:
        return Network(weights or [], biases or [], activations or [], content.get("skip"))
    except InvalidInput as error:
        raise InvalidInput(f"{str(path)!r} does not hold a usable network: {error}") from error


def _not_a_network(path: Path, found: str, cause: Exception | None = None) -> NoReturn:
    raise InvalidInput(
        f"path must be a network file written by unweave. Got {str(path)!r} instead, which is {found}. "
        f"Write networks with Network.save."
    ) from cause


Writer = Callable[[Network, Path], None]
Reader = Callable[[Path], Network]

FORMATS: dict[str, tuple[Writer, Reader]] = {
    ".npz": (_save_npz, _load_npz),
    ".json": (_save_json, _load_json),
}
"""File ending -> how to write and how to read it."""


def _format_of(path: Path) -> tuple[Writer, Reader]:
    known = FORMATS.get(path.suffix.lower())
    if known is None:
        raise InvalidInput(
            f"path must end in {' or '.join(FORMATS)}. Got {str(path)!r} instead. Choose one of these "
            f"endings."
        )
    return known
