from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unweave.errors import InvalidInput
from unweave.files import check_can_save, load, save
from unweave.networks.activations.catalogue import CATALOGUE
from unweave.networks.network import Network
from unweave.networks.random import random_network

ENDINGS = [".npz", ".json", ".onnx", ".safetensors"]
BUILT_IN = [activation.name for activation in CATALOGUE]
ANY_FLOAT = st.floats(allow_nan=False, allow_infinity=False)
SINGLE_FLOAT = st.floats(allow_nan=False, allow_infinity=False, width=32)


@st.composite
def networks(draw: st.DrawFn, elements: st.SearchStrategy[float] = ANY_FLOAT) -> Network:
    """Any architecture, activations and parameters, signed zeros and subnormals included."""
    widths = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    weights = [draw(arrays(np.float64, shape, elements=elements)) for shape in pairwise(widths)]
    biases = [draw(arrays(np.float64, (width,), elements=elements)) for width in widths[1:]]
    hidden = draw(st.lists(st.sampled_from(BUILT_IN), min_size=len(widths) - 2, max_size=len(widths) - 2))
    output = draw(st.sampled_from([*BUILT_IN, "softmax"]))
    shape = (widths[0], widths[-1])
    skip = draw(st.none() | arrays(np.float64, shape, elements=elements))
    return Network(weights, biases, [*hidden, output], skip)


def with_skip() -> Network:
    base = random_network([3, 5, 4, 2], seed=1001, outer="normal", output_activation="softmax")
    return Network(base.weights, base.biases, base.activations, np.random.default_rng(1002).random((3, 2)))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("net", [random_network([3, 4, 1], "logistic", seed=1000), with_skip()])
def test_round_trip_is_exact(tmp_path: Path, ending: str, net: Network) -> None:
    path = tmp_path / f"net{ending}"
    net.save(path)
    assert load(path) == net
    assert load(str(path)) == net
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", ENDINGS)
@given(weight=arrays(np.float64, (2, 3), elements=ANY_FLOAT))
@settings(deadline=None, max_examples=30)
def test_every_float_survives(ending: str, weight: np.ndarray) -> None:
    net = Network([weight], [[-0.0, 5e-324, 1.7976931348623157e308]], ["identity"])
    assert through_file(net, ending) == net  # bit for bit, signed zeros and subnormals included


@pytest.mark.parametrize("ending", ENDINGS)
@given(net=networks())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_every_network_survives(ending: str, net: Network) -> None:
    assert through_file(net, ending) == net


@pytest.mark.parametrize("ending", ENDINGS)
@given(net=networks(SINGLE_FLOAT))
@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_single_precision_files_hold_the_rounded_parameters(ending: str, net: Network) -> None:
    assert through_file(net, ending, "float32") == net  # what float32 holds already is not changed
    third = Network([w / 3 for w in net.weights], net.biases, net.activations, net.skip)
    rounded_third = [(w / 3).astype(np.float32).astype(np.float64) for w in net.weights]
    expected = Network(rounded_third, net.biases, net.activations, net.skip)
    assert through_file(third, ending, "float32") == expected


@pytest.mark.parametrize("ending", ENDINGS)
def test_bad_precisions(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"net{ending}"
    with pytest.raises(InvalidInput, match="dtype must be float64 or float32"):
        random_network([2, 1]).save(path, dtype="float16")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"at most 3\.4e\+38 .* 1e\+39"):
        Network([[[1e39]]], [[0.0]], ["identity"]).save(path, dtype="float32")
    assert list(tmp_path.iterdir()) == []


def test_single_precision_files_are_smaller(tmp_path: Path) -> None:
    net = random_network([30, 40, 1], seed=1006)
    for ending in (".npz", ".onnx", ".safetensors"):
        net.save(tmp_path / f"double{ending}")
        net.save(tmp_path / f"single{ending}", "float32")
        sizes = [(tmp_path / f"{name}{ending}").stat().st_size for name in ("double", "single")]
        assert sizes[0] - sizes[1] > 3.5 * net.n_parameters


def through_file(net: Network, ending: str, dtype: Any = "float64") -> Network:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"net{ending}"
        save(net, path, dtype)
        return load(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_saving_again_replaces(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"net{ending.upper()}"
    random_network([3, 9, 1], seed=1003).save(path)
    small = random_network([3, 2, 1], seed=1004)
    small.save(path)
    assert load(path) == small


def test_unknown_endings_and_missing_files(tmp_path: Path) -> None:
    net = random_network([3, 2, 1])
    for name in ("net.txt", "net", "net.pt", "net.PTH", "net.pkl", "net.joblib"):
        for attempt in (net.save, load, check_can_save):
            with pytest.raises(
                InvalidInput, match=r"must end in \.npz, \.json, \.onnx or \.safetensors"
            ) as told:
                attempt(tmp_path / name)
            is_pickle = name not in ("net.txt", "net")
            assert ("from_torch" in str(told.value)) is is_pickle
    assert list(tmp_path.iterdir()) == []
    for ending in ENDINGS:
        with pytest.raises(InvalidInput, match="existing file"):
            load(tmp_path / f"missing{ending}")
        with pytest.raises(InvalidInput, match="can be written"):
            net.save(tmp_path / "no_such_folder" / f"net{ending}")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "content", [b"", b"no network", b"[1, 2]", b"{}", b"PK\x03\x04 torn", b"\xff\xfe\x00"]
)
def test_other_files_are_refused(tmp_path: Path, ending: str, content: bytes) -> None:
    path = tmp_path / f"net{ending}"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="network file"):
        load(path)


def test_other_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.npz"
    np.savez(path, a=np.ones(3))
    with pytest.raises(InvalidInput, match="no 'unweave-network' header"):
        load(path)
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(InvalidInput, match="single array"):
        load(path)
    np.savez(path, format=np.array("unweave-network"), version=np.array({"a": 1}, dtype=object))
    with pytest.raises(InvalidInput, match="network file"):
        load(path)  # objects would need pickle


def test_a_torn_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.npz"
    random_network([3, 200, 1]).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InvalidInput, match="network file"):
        load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version"),
        ({"version": None}, "version"),
        ({"format": "other"}, "header"),
        ({"weights": None}, "missing"),
        ({"activations": [1, 2]}, "not names"),
        ({"activations": ["tanh", "tahn"]}, "one of tanh"),
        ({"biases": [[0.0, 0.0], [0.0, 0.0]]}, "biases"),
        ({"weights": [[["a", "b"]], [[1.0], [1.0]]]}, "real numbers"),
    ],
)
def test_damaged_content_is_named(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = tmp_path / "net.json"
    random_network([1, 2, 1], seed=1005).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InvalidInput, match=message):
        load(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_known_activations_may_be_given_and_others_not(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"net{ending}"
    net = random_network([2, 3, 1], "sigmoid", seed=1007)
    net.save(path)
    assert load(path, activations=["logistic", "linear"]) == net
    with pytest.raises(InvalidInput, match=r"activations must be sigmoid, identity, as .* says itself"):
        load(path, activations=["tanh", "identity"])


def test_missing_packages_are_named(tmp_path: Path) -> None:
    for ending in (".onnx", ".safetensors"):
        random_network([2, 1]).save(tmp_path / f"net{ending}")
    code = (
        "import sys, unweave\n"
        "sys.modules['onnx'] = sys.modules['safetensors'] = None\n"
        "net = unweave.random_network([2, 1])\n"
        "for path in ('net.onnx', 'net.safetensors'):\n"
        "    for attempt in (net.save, unweave.load):\n"
        "        try:\n"
        "            attempt(path)\n"
        "        except unweave.UnweaveError as error:\n"
        "            print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout.count("onnx must be installed for .onnx files") == 2
    assert done.stdout.count("safetensors must be installed for .safetensors files") == 2
    assert done.stdout.count("pip install 'unweave[") == 4
