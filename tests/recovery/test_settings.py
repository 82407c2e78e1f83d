"""What a result says about how it was asked for."""

from __future__ import annotations

import inspect
import json
import math

import numpy as np
import pytest

import unweave
from unweave.methods.relu.search import ReluOptions
from unweave.recovery.settings import describe_target, without_secrets

NET = unweave.random_network([4, 3, 1], seed=1000, outer="normal")


def endpoint(x):
    return NET(x)


def test_arguments_that_were_given_are_kept_and_survive_a_file(tmp_path):
    result = unweave.recover(endpoint, [3], "tanh", input_dim=np.int64(4), max_queries=10_000)
    assert result.settings["target"] == {"kind": "import", "name": f"{__name__}:endpoint"}
    assert result.settings["arguments"] == {
        "hidden": [3],
        "activation": "tanh",
        "input_dim": 4,
        "max_queries": 10_000,
        "seed": 0,
    }
    assert set(result.settings["versions"]) == {"python", "unweave", "numpy", "scipy"}
    assert result.settings["versions"]["numpy"] == np.__version__
    json.dumps(result.settings, allow_nan=False)
    result.save(tmp_path / "run.npz")
    assert unweave.Recovery.load(tmp_path / "run.npz").settings == result.settings
    assert result.to_dict()["settings"] == result.settings


def test_arrays_are_kept_by_their_shape():
    x = np.random.default_rng(1001).standard_normal((50, 4))
    low = [-9.0] * 4
    result = unweave.recover(endpoint, [3], "tanh", input_dim=4, examples=x, domain=(low, 9.0))
    assert result.settings["arguments"]["examples"] == {"shape": [50, 4]}
    assert result.settings["arguments"]["domain"] == [low, 9.0]


def test_an_interrupt_carries_them_too():
    def stopped(x):
        raise KeyboardInterrupt

    with pytest.raises(unweave.Interrupted) as caught:
        unweave.recover(stopped, input_dim=4, seed=5)
    assert caught.value.recovery.settings["arguments"] == {"input_dim": 4, "seed": 5}


def test_recover_looks_as_before():
    assert next(iter(inspect.signature(unweave.recover).parameters)) == "target"
    assert unweave.recover.__doc__.startswith("Recover the network")
    with pytest.raises(TypeError, match="no_such_argument"):
        unweave.recover(NET, no_such_argument=1)


@pytest.mark.parametrize(
    ("target", "kind", "name"),
    [
        ("model.onnx", "file", "model.onnx"),
        ("https://me:key@host:1/p?token=1", "url", "https://host:1/p"),
        (math.sqrt, "object", "math:sqrt"),
        (lambda x: x, "object", None),
        (NET, "object", "unweave.networks.network:Network"),
        (unweave.Samples(np.arange(10.0).reshape(5, 2), np.arange(5.0)), "samples", "5 samples of 2 inputs"),
    ],
)
def test_targets_by_kind_and_name(target, kind, name):
    found = describe_target(target)
    assert found["kind"] == kind
    assert name is None or found["name"] == name


def test_addresses_without_secrets():
    assert without_secrets("http://127.0.0.1:8000/predict") == "http://127.0.0.1:8000/predict"


def test_options_are_kept_by_what_differs_from_their_defaults() -> None:
    options = ReluOptions(reach=1e4)
    result = unweave.recover(unweave.random_network([4, 3, 1], "relu", seed=1000), options=options)
    assert result.settings["arguments"]["options"] == {"kind": "ReluOptions", "reach": 1e4}
