"""``unweave compare``: same, different, and what cannot be compared."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app


def invoke(*arguments):
    return CliRunner().invoke(app, ["compare", *(str(argument) for argument in arguments)])


@pytest.fixture
def files(tmp_path):
    net = unweave.random_network([6, 4, 1], seed=1000, outer="normal")
    shuffled = unweave.Network(
        [-net.weights[0][:, ::-1], -net.weights[1][::-1]],
        [-net.biases[0][::-1], net.biases[1]],
        net.activations,
    )
    other = unweave.random_network([6, 5, 1], seed=1001, outer="normal")
    moved = unweave.Network(
        net.weights, [net.biases[0], net.biases[1] + 1e-3 * abs(net.biases[1]) + 1e-3], net.activations
    )
    wide = unweave.random_network([7, 4, 1], seed=1000)
    paths = {}
    for name, network in {
        "net": net,
        "shuffled": shuffled,
        "other": other,
        "moved": moved,
        "wide": wide,
    }.items():
        paths[name] = tmp_path / f"{name}.npz"
        network.save(paths[name])
    return paths


def test_same_up_to_symmetry(files):
    done = invoke(files["net"], files["shuffled"])
    assert done.exit_code == 0
    assert done.stdout.startswith("Same network up to symmetry.")
    assert done.stdout.splitlines()[-1].startswith("SAME parameter error ")


@pytest.mark.parametrize(
    ("name", "reason"), [("other", "hidden widths differ"), ("moved", "parameter error")]
)
def test_different(files, name, reason):
    done = invoke(files["net"], files[name])
    assert done.exit_code == 1
    assert done.stdout.startswith("Different.")
    assert done.stdout.splitlines()[-1].startswith(f"DIFFERENT {reason}")


def test_tolerance_decides(files):
    assert invoke(files["net"], files["moved"], "--tolerance", "0.1").exit_code == 0
    assert invoke(files["net"], files["moved"], "--tolerance", "1e-9").exit_code == 1


def test_json_has_no_infinity_and_no_nan(files):
    done = invoke(files["net"], files["wide"], "--json")
    assert done.exit_code == 1
    content = json.loads(done.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert content["is_same"] is False
    assert content["parameter_error"] is None  # infinite
    assert content["function_error"] is None  # not measured
    assert "inputs differ" in content["reason"]
    same = json.loads(invoke(files["net"], files["shuffled"], "--json").stdout)
    assert same["is_same"] is True
    assert 0 <= same["parameter_error"] < 1e-12


def test_unusable_input_is_code_2(files, tmp_path):
    missing = invoke(files["net"], tmp_path / "missing.npz")
    assert missing.exit_code == 2
    assert "must be an existing file" in missing.stderr
    negative = invoke(files["net"], files["other"], "--tolerance", "-1", "--json")
    assert negative.exit_code == 2
    assert "tolerance must be non-negative" in json.loads(negative.stdout)["error"]
