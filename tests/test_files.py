from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unweave.errors import InvalidInput
from unweave.files import load, save
from unweave.network import Network
from unweave.random_networks import random_network

ENDINGS = [".npz", ".json"]


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


@given(weight=arrays(np.float64, (2, 3), elements=st.floats(allow_nan=False, allow_infinity=False)))
@settings(deadline=None, max_examples=30)
def test_every_float_survives(tmp_path_factory: pytest.TempPathFactory, weight: np.ndarray) -> None:
    net = Network([weight], [[-0.0, 5e-324, 1.7976931348623157e308]], ["identity"])
    folder = tmp_path_factory.mktemp("floats")
    for ending in ENDINGS:
        save(net, folder / f"net{ending}")
        assert load(folder / f"net{ending}") == net  # bit for bit, signed zeros and subnormals included


@pytest.mark.parametrize("ending", ENDINGS)
def test_saving_again_replaces(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"net{ending.upper()}"
    random_network([3, 9, 1], seed=1003).save(path)
    small = random_network([3, 2, 1], seed=1004)
    small.save(path)
    assert load(path) == small


def test_unknown_endings_and_missing_files(tmp_path: Path) -> None:
    net = random_network([3, 2, 1])
    for name in ("net.pkl", "net"):
        with pytest.raises(InvalidInput, match=r"must end in \.npz or \.json"):
            net.save(tmp_path / name)
        with pytest.raises(InvalidInput, match=r"must end in \.npz or \.json"):
            load(tmp_path / name)
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
