"""ONNX models that unweave wrote, run by onnxruntime: every activation, large arguments, skip, float32."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.testing import assert_array_equal

from unweave.errors import InvalidInput
from unweave.files import load
from unweave.files.onnx_writer import encode_onnx
from unweave.networks.activations import Activation, Reflection, register_activation
from unweave.networks.activations.catalogue import CATALOGUE
from unweave.networks.network import Network
from unweave.networks.random import random_network

RNG = np.random.default_rng(1080)
NAMES = [activation.name for activation in CATALOGUE]
ULPS = 8
"""Units in the last place of max(1, |g|) that a formula of a few operations may be off."""

LARGE = np.array([50.0, 100.0, 745.0, 1e3, 1e5, 1e10, 1e18])
ARGUMENTS = np.concatenate([-LARGE, np.linspace(-40, 40, 4001), [1e-30, -1e-30, 1e-9], LARGE])


def run(path: Path, x: np.ndarray) -> Any:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (declared,), (output,) = session.get_inputs(), session.get_outputs()
    assert declared.shape[1:] == [x.shape[1]]
    assert output.name == "output"
    return session.run(None, {declared.name: x})[0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_every_activation_far_out(tmp_path: Path, name: str, dtype: Any) -> None:
    net = Network([[[1.0]]], [[0.0]], [name])
    net.save(tmp_path / "net.onnx", dtype)
    x = ARGUMENTS.astype(dtype)[:, None]
    if dtype == "float32":
        x = x[np.abs(x[:, 0]) <= 1e10]  # cubes of more than 1e12 are infinite in float32
    got = run(tmp_path / "net.onnx", x)
    assert got.dtype == np.dtype(dtype)
    expected = net(x.astype(np.float64))
    error = np.abs(got - expected) / np.maximum(1, np.abs(expected))
    assert error.max() <= ULPS * np.finfo(dtype).eps, x[error.argmax()]


@pytest.mark.parametrize("name", ["softplus", "gelu", "swish", "erf"])
def test_composed_activations_keep_the_digits_of_small_values(tmp_path: Path, name: str) -> None:
    """Relative accuracy: in the left tail where g falls to 0, and around 0 for erf."""
    Network([[[1.0]]], [[0.0]], [name]).save(tmp_path / "net.onnx")
    x = np.geomspace(1e-300, 0.9, 300) if name == "erf" else np.linspace(-30, -0.1, 300)
    exact = Network([[[1.0]]], [[0.0]], [name])(x[:, None])
    if name == "gelu":
        x, exact = x[x > -8], exact[x > -8]
    # exp(-a^2) magnifies a rounding of a^2 by a^2, at most 32 for gelu.
    bound = 40 * ULPS if name == "gelu" else ULPS
    assert np.abs(run(tmp_path / "net.onnx", x[:, None]) / exact - 1).max() <= bound * np.finfo(float).eps


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("with_skip", [False, True])
@pytest.mark.parametrize("output", ["identity", "softmax", "gelu"])
def test_whole_networks(tmp_path: Path, output: str, with_skip: bool, dtype: Any) -> None:
    path = tmp_path / "net.onnx"
    for name in NAMES:
        base = random_network([4, 6, 5, 3], name, seed=1081, outer="unit", output_activation=output)
        skip = RNG.standard_normal((4, 3)) if with_skip else None
        net = Network(base.weights, base.biases, base.activations, skip)
        net.save(path, dtype)
        x = RNG.standard_normal((20, 4)).astype(dtype)
        written = load(path)
        assert (written == net) is (dtype == "float64")
        got, expected = run(path, x), written(x.astype(np.float64))
        # Three layers of at most 6 terms; slopes of activations (up to 12 for cubes) magnify what comes in.
        assert np.abs(got - expected).max() <= 200 * np.finfo(dtype).eps * max(1, np.abs(expected).max())


def test_the_smallest_and_the_affine_network(tmp_path: Path) -> None:
    for net in (
        random_network([1, 1], seed=1082),
        random_network([3, 2], seed=1083, output_activation="softmax"),
        Network([np.ones((2, 3))], [np.zeros(3)], ["identity"], np.full((2, 3), 2.0)),
    ):
        net.save(tmp_path / "net.onnx")
        assert load(tmp_path / "net.onnx") == net
        x = RNG.standard_normal((5, net.n_inputs))
        assert np.abs(run(tmp_path / "net.onnx", x) - net(x)).max() < 1e-14
        assert run(tmp_path / "net.onnx", x[:0]).shape == (0, net.n_outputs)


def test_the_model_is_valid_and_says_what_it_is(tmp_path: Path) -> None:
    net = random_network([3, 4, 2], "softplus", seed=1084)
    net.save(tmp_path / "net.onnx")
    model = onnx.load(tmp_path / "net.onnx")
    onnx.checker.check_model(model, full_check=True)
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(notes["activations"]) == ["softplus", "identity"]
    assert notes["format"] == "unweave-network"
    first = (tmp_path / "net.onnx").read_bytes()
    net.save(tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx").read_bytes() == first


def test_registered_activations_are_refused(tmp_path: Path) -> None:
    def jet(z: Any, order: int) -> Any:
        return (-np.sin(z), -np.cos(z), np.sin(z), np.cos(z))[: order + 1]

    register_activation(Activation("own_sine", jet, Reflection(-1)))
    net = random_network([2, 3, 1], "own_sine", seed=1085)
    with pytest.raises(
        InvalidInput, match=r"built-in ones in an \.onnx file: tanh, .*Got 'own_sine' instead"
    ):
        net.save(tmp_path / "net.onnx")
    assert list(tmp_path.iterdir()) == []
    for ending in (".npz", ".json", ".safetensors"):
        net.save(tmp_path / f"net{ending}")
        assert load(tmp_path / f"net{ending}") == net


def test_parameters_that_no_model_can_hold() -> None:
    with pytest.raises(InvalidInput, match=r"at most 100 bytes .* Got 168 instead.*\.safetensors"):
        encode_onnx(random_network([3, 4, 1], seed=1086), "float64", most_bytes=100)


def test_rounding_is_to_nearest(tmp_path: Path) -> None:
    net = random_network([3, 4, 1], seed=1087, outer="normal")
    net.save(tmp_path / "net.onnx", "float32")
    written = load(tmp_path / "net.onnx")
    assert_array_equal(written.weights[0], net.weights[0].astype(np.float32))
