"""What a network file holds: a header, the activations, and one weight and one bias per layer.

Written as JSON text, for reading by eye and by other languages, or as a NumPy archive; both exact, no pickle.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.files.archives import UnreadableArray, read_arrays
from unweave.files.trees import trees_from
from unweave.networks import ridge_sum
from unweave.networks.mixed import mixed_from
from unweave.networks.network import Network

FORMAT = "unweave-network"
VERSION = 1
"""Raised when a file of the new kind could not be read by older code."""

Dtype = Literal["float64", "float32"]
DTYPES: tuple[Dtype, ...] = ("float64", "float32")
"""Precisions in which parameters can be written; float64 is exact."""


def check_dtype(dtype: str) -> None:
    """Refuse a precision that parameters cannot be written in."""
    if dtype not in DTYPES:
        raise InvalidInput(
            f"dtype must be {' or '.join(DTYPES)}. Got {dtype!r} instead. Leave it out to be exact."
        )


def rounded(network: Network, dtype: str) -> Network:
    """Return ``network`` with its parameters rounded to ``dtype``, as the float64 that they are then.

    A parameter that float32 cannot hold is refused: it would become infinite.
    """
    check_dtype(dtype)
    if dtype == "float64":
        return network
    weights, biases = [[_to_single(p) for p in part] for part in (network.weights, network.biases)]
    skip = None if network.skip is None else _to_single(network.skip)
    return Network(weights, biases, network.activations, skip)


def _to_single(parameters: Array) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        single = parameters.astype(np.float32)
    if not np.isfinite(single).all():
        raise InvalidInput(
            f"parameters must be at most {np.finfo(np.float32).max:.3g} in size for dtype float32. "
            f"Got {np.abs(parameters).max():.3g} instead. Write float64."
        )
    return single.astype(np.float64)


def network_arrays(network: Network, dtype: str = "float64") -> dict[str, Any]:
    """Return the network as named arrays, header included: what an .npz archive holds."""
    arrays: dict[str, Any] = {
        "format": np.array(FORMAT),
        "version": np.array(VERSION),
        "activations": np.array(network.activations),
    }
    for i, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        arrays[f"weight_{i}"], arrays[f"bias_{i}"] = weight.astype(dtype), bias.astype(dtype)
    if network.skip is not None:
        arrays["skip"] = network.skip.astype(dtype)
    return arrays


def network_from_arrays(path: Path, content: dict[str, Any]) -> Network:
    """Return the network that `network_arrays` described; ``path`` is only named in messages."""
    check_header(path, _scalar(content.get("format")), _scalar(content.get("version")))
    layers = range(sum(key.startswith("weight_") for key in content))
    return build_network(
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


def check_header(path: Path, found: Any, version: Any) -> None:
    """Refuse a file that is not ours, or of another version."""
    if found != FORMAT:
        not_a_network(path, f"no {FORMAT!r} header")
    if version != VERSION:
        raise InvalidInput(
            f"version of {str(path)!r} must be {VERSION}. Got {version!r} instead. "
            f"Read it with the version of unweave that wrote it, or a later one."
        )


def build_network(path: Path, content: dict[str, Any]) -> Network:
    """Return the network of weights, biases, activations and skip; ``path`` is only named in messages."""
    parts = [content.get(key) for key in ("weights", "biases", "activations")]
    if not all(isinstance(part, list) for part in parts):
        not_a_network(path, "weights, biases or activations are missing")
    weights, biases, activations = parts
    if not all(isinstance(name, str) for name in activations or []):
        not_a_network(path, "activations are not names")
    try:
        return Network(weights or [], biases or [], activations or [], content.get("skip"))
    except InvalidInput as error:
        raise InvalidInput(f"{str(path)!r} does not hold a usable network: {error}") from error


def not_a_network(path: Path, found: str, cause: Exception | None = None) -> NoReturn:
    """Raise `InvalidInput`: the file at ``path`` is ``found``, not a network of ours."""
    raise InvalidInput(
        f"path must be a network file written by unweave. Got {str(path)!r} instead, which is {found}. "
        f"Write networks with Network.save."
    ) from cause


def encode_json(network: Network, dtype: str) -> bytes:
    """Return the text of a .json file; ``network`` is already rounded to ``dtype``, which is not recorded."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "activations": list(network.activations),
        "weights": [w.tolist() for w in network.weights],
        "biases": [b.tolist() for b in network.biases],
        "skip": None if network.skip is None else network.skip.tolist(),
    }
    # json writes the shortest decimal that reads back as the same float64.
    return (json.dumps(content, allow_nan=False) + "\n").encode("utf-8")


def read_json(path: Path) -> Any:
    """Return the network in a .json file, or the model of another kind."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        not_a_network(path, f"not readable as JSON: {error}", error)
    if not isinstance(content, dict):
        not_a_network(path, f"a JSON {type(content).__name__}, not an object")
    model = _of_another_kind(path, content)
    if model is not None:
        return model
    check_header(path, content.get("format"), content.get("version"))
    return build_network(path, content)


def encode_npz(network: Network, dtype: str) -> bytes:
    """Return the bytes of an .npz archive with the arrays of `network_arrays`."""
    buffer = io.BytesIO()
    np.savez(buffer, **network_arrays(network, dtype))
    return buffer.getvalue()


def read_archive(path: Path) -> dict[str, Any]:
    """Return all arrays of an .npz archive, without pickle; `InvalidInput` if it is none."""
    try:
        return read_arrays(path)
    except UnreadableArray as error:
        not_a_network(path, f"not readable as an .npz archive: {error}", error)


def read_npz(path: Path) -> Any:
    """Return the network in an .npz archive, or the model of another kind."""
    return model_from_arrays(path, read_archive(path))


def model_from_arrays(path: Path, content: dict[str, Any]) -> Any:
    """Return the model of any kind that named arrays describe; ``path`` is only named in messages."""
    model = _of_another_kind(path, content)
    return network_from_arrays(path, content) if model is None else model


def _of_another_kind(path: Path, content: dict[str, Any]) -> Any:
    """Return the model that is no network, or None."""
    if str(content.get("format")) == ridge_sum.FORMAT:
        try:
            return ridge_sum.RidgeSum.from_arrays(content)
        except (InvalidInput, TypeError, ValueError) as error:
            message = f"{str(path)!r} does not hold a usable sum of ridge functions: {error}"
            raise InvalidInput(message) from error
    return trees_from(path, content) or mixed_from(path, content)
