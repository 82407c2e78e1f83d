"""Safetensors files: torch reads ours, we read the state of torch modules, and say what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from safetensors import safe_open
from safetensors.numpy import save_file
from safetensors.torch import load_file
from safetensors.torch import save_file as save_torch

from unweave.errors import InvalidInput
from unweave.files import load
from unweave.networks.network import Network
from unweave.networks.random import random_network

RNG = np.random.default_rng(1040)


@pytest.mark.parametrize("with_skip", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_torch_reads_the_file(tmp_path: Path, with_skip: bool, dtype: Any) -> None:
    base = random_network([3, 5, 4, 2], "gelu", seed=1041, outer="normal", output_activation="sigmoid")
    net = Network(base.weights, base.biases, base.activations, RNG.random((3, 2)) if with_skip else None)
    net.save(tmp_path / "net.safetensors", dtype)
    state = load_file(tmp_path / "net.safetensors")
    assert {tensor.dtype for tensor in state.values()} == {getattr(torch, dtype)}
    module = random_network([3, 5, 4, 2], "gelu", seed=1042, output_activation="sigmoid")
    module = (
        Network(module.weights, module.biases, module.activations, net.skip)
        .to_torch()
        .to(state["0.bias" if not with_skip else "layers.0.bias"].dtype)
    )
    module.load_state_dict(state)
    assert Network.from_torch(module) == load(tmp_path / "net.safetensors")
    with safe_open(tmp_path / "net.safetensors", framework="np") as file:
        header = file.metadata()
    assert header["format"] == "unweave-network"
    assert header["version"] == "1"
    assert json.loads(header["activations"]) == ["gelu", "gelu", "sigmoid"]


def test_the_state_of_a_module_needs_activations(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2, bias=False))
    save_torch(module.state_dict(), path)
    with pytest.raises(InvalidInput, match=r"names its activations.*0\.bias \(4,\).*load\(path, activations"):
        load(path)
    net = load(path, activations=["tanh", "linear"])
    assert net == Network.from_torch(module)
    assert_array_equal(net.biases[1], [0.0, 0.0])
    with pytest.raises(InvalidInput, match="one name per layer"):
        load(path, activations=["tanh"])
    with pytest.raises(InvalidInput, match="one of tanh"):
        load(path, activations=["tahn", "identity"])


def test_layers_are_ordered_by_number(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    weights = [RNG.standard_normal((2, 2)) for _ in range(12)]
    save_file({f"net.fc{i}.weight": weight for i, weight in enumerate(weights)}, path)
    net = load(path, activations=["identity"] * 12)
    for found, weight in zip(net.weights, weights, strict=True):
        assert_array_equal(found, weight.T)


@pytest.mark.parametrize(
    "tensors",
    [
        {},
        {"weight": np.ones((2, 2))},
        {"fc1.weight": np.ones((2, 2)), "out.weight": np.ones((2, 2))},
        {"a0.weight": np.ones((2, 2)), "b1.weight": np.ones((2, 2))},
        {"0.weight": np.ones((2, 2, 3))},
        {"0.weight": np.ones((2, 2)), "0.bias": np.ones((2, 1))},
        {"0.weight": np.ones((2, 2)), "1.bias": np.ones(2)},
        {"0.weight": np.ones((2, 2)), "1.running_mean": np.ones(2)},
    ],
)
def test_other_tensors_are_refused(tmp_path: Path, tensors: dict[str, np.ndarray]) -> None:
    path = tmp_path / "state.safetensors"
    save_file(tensors, path)
    with pytest.raises(InvalidInput, match="numbered layers"):
        load(path, activations=["identity"] * max(1, len(tensors)))


def test_layers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    save_file({"0.weight": np.ones((4, 3)), "2.weight": np.ones((2, 5))}, path)
    with pytest.raises(InvalidInput, match=r"does not hold a usable network.*weights\[1\] must have 4 rows"):
        load(path, activations=["tanh", "identity"])


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.int64])
def test_other_numbers_are_refused(tmp_path: Path, kind: torch.dtype) -> None:
    path = tmp_path / "state.safetensors"
    save_torch({"0.weight": torch.ones((2, 2), dtype=kind)}, path)
    with pytest.raises(InvalidInput, match=r"must be of type F16, F32, F64. Got (BF16|I64) for '0.weight'"):
        load(path, activations=["identity"])


def test_half_precision_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    weight = RNG.standard_normal((2, 3)).astype(np.float16)
    save_file({"0.weight": weight}, path)
    assert_array_equal(load(path, activations=["tanh"]).weights[0], weight.T.astype(np.float64))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"version": "2"}, "version"),
        ({"version": "one"}, "version"),
        ({"activations": "tanh"}, "activations are missing"),
        ({"activations": "[1]"}, "not names"),
        ({"activations": '{"a": 1}'}, "not names"),
        ({"activations": '["tahn"]'}, "one of tanh"),
        ({"activations": "[]"}, "one name per layer"),
    ],
)
def test_damaged_headers_are_named(tmp_path: Path, header: dict[str, str], message: str) -> None:
    path = tmp_path / "net.safetensors"
    good = {"format": "unweave-network", "version": "1", "activations": '["tanh"]'}
    save_file({"0.weight": np.ones((2, 2))}, path, metadata={**good, **header})
    with pytest.raises(InvalidInput, match=message):
        load(path)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    random_network([2, 3, 1], seed=1043).save(path)
    content = path.read_bytes()
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(InvalidInput, match="network file"):
            load(path)
