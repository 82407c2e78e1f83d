"""Networks as .safetensors: the state of `Network.to_torch`, with the activations beside it.

The tensors are named as in that module's ``state_dict``: ``0.weight`` of shape (n_out, n_in), ``0.bias``,
``2.weight``, ...; with a skip, ``layers.0.weight``, ..., ``skip.weight``. So torch reads the file without
unweave, and unweave reads the state of other modules that number their layers, once told the activations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as encode_tensors

from unweave.errors import InvalidInput
from unweave.files.contents import FORMAT, VERSION, build_network, check_header, not_a_network
from unweave.networks.network import Network

SKIP = "skip.weight"
"""The tensor of the matrix from the inputs to the last pre-activation."""

FLOATS = {"F64", "F32", "F16"}
"""Types of numbers that are read; the narrower ones are exact in float64 too."""

_NUMBERED = re.compile(r"^(?P<stem>.*?)(?P<number>\d+)\.(?P<part>weight|bias)$")


def encode_safetensors(network: Network, dtype: str) -> bytes:
    """Return the bytes of a .safetensors file; ``network`` is already rounded to ``dtype``."""
    stem = "" if network.skip is None else "layers."
    tensors: dict[str, Any] = {}
    for i, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        # The writer takes the bytes as they lie, so the transpose has to be laid out first.
        tensors[f"{stem}{2 * i}.weight"] = np.ascontiguousarray(weight.T, dtype=dtype)
        tensors[f"{stem}{2 * i}.bias"] = np.ascontiguousarray(bias, dtype=dtype)
    if network.skip is not None:
        tensors[SKIP] = np.ascontiguousarray(network.skip.T, dtype=dtype)
    header = {"format": FORMAT, "version": str(VERSION), "activations": json.dumps(network.activations)}
    content: bytes = encode_tensors(tensors, metadata=header)
    return content


def read_safetensors(path: Path, activations: Sequence[str] | None = None) -> Network:
    """Return the network in a .safetensors file.

    ``activations`` are for a file that does not say them, that is the plain state of a torch module.
    """
    tensors, header = _read_tensors(path)
    if header.get("format") == FORMAT:
        names = _declared_activations(path, header)
    elif activations is not None:
        names = list(activations)
    else:
        raise InvalidInput(
            f"path must be a .safetensors file that names its activations. Got {str(path)!r} instead, which "
            f"holds the tensors {_listed(tensors)} only. Give them: load(path, activations=[...]), one name "
            f'per layer, output layer included, for example ["tanh", "identity"].'
        )
    return build_network(path, {**_parameters(path, tensors), "activations": names})


def is_ours(path: Path) -> bool:
    """Whether the file at ``path`` has the header that names the activations."""
    return _read_tensors(path)[1].get("format") == FORMAT


def _read_tensors(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        with safe_open(path, framework="np") as file:
            kinds = {name: str(file.get_slice(name).get_dtype()) for name in file.keys()}  # noqa: SIM118
            if strange := {name: kind for name, kind in kinds.items() if kind not in FLOATS}:
                name, kind = next(iter(strange.items()))
                raise InvalidInput(
                    f"tensors of {str(path)!r} must be of type {', '.join(sorted(FLOATS))}. Got {kind} for "
                    f"{name!r} instead. Convert it to float64 first."
                )
            return {name: file.get_tensor(name) for name in kinds}, dict(file.metadata() or {})
    except InvalidInput:
        raise
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        not_a_network(path, f"not readable as .safetensors: {error}", error)


def _declared_activations(path: Path, header: dict[str, str]) -> list[str]:
    version = header.get("version", "")
    check_header(path, FORMAT, int(version) if version.isdecimal() else version)
    try:
        names = json.loads(header.get("activations", ""))
    except ValueError as error:
        not_a_network(path, "activations are missing", error)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        not_a_network(path, "activations are not names")
    return names


def _parameters(path: Path, tensors: dict[str, Any]) -> dict[str, Any]:
    """Return weights (n_in, n_out), biases and skip; layers by number, under names that differ in it only."""
    layers: dict[int, dict[str, Any]] = {}
    stems = set()
    for name, tensor in tensors.items():
        if name == SKIP:
            continue
        found = _NUMBERED.match(name)
        if found is None or tensor.ndim != (2 if found["part"] == "weight" else 1):
            _not_layers(path, tensors)
        stems.add(found["stem"])
        layers.setdefault(int(found["number"]), {})[found["part"]] = tensor
    ordered = [layers[number] for number in sorted(layers)]
    if len(stems) != 1 or not all("weight" in layer for layer in ordered):
        _not_layers(path, tensors)
    skip = tensors.get(SKIP)
    return {
        "weights": [layer["weight"].T for layer in ordered],
        "biases": [layer.get("bias", np.zeros(layer["weight"].shape[0])) for layer in ordered],
        "skip": None if skip is None else skip.T,
    }


def _not_layers(path: Path, tensors: dict[str, Any]) -> NoReturn:
    raise InvalidInput(
        f"tensors of {str(path)!r} must be the weights (n_out, n_in) and biases (n_out,) of numbered layers, "
        f"such as 0.weight, 0.bias, 2.weight, 2.bias or fc1.weight, fc2.weight. Got {_listed(tensors)} "
        f"instead. Rename them, or export the module to .onnx, which says how its layers are connected."
    )


def _listed(tensors: dict[str, Any]) -> str:
    most = 6
    shown = [f"{name} {tuple(tensor.shape)}" for name, tensor in list(tensors.items())[:most]]
    return ", ".join(shown) + (", ..." if len(tensors) > most else "") if shown else "no tensors"
