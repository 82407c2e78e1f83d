"""``unweave recover --derivatives autodiff`` on modules that are imported, and on what has no derivatives."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app

MODULE = """
import unweave
network = unweave.random_network([7, 5, 1], activation="tanh", seed=1000, outer="normal")
module = network.to_torch()
predict = lambda x: network(x)
"""


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    (tmp_path / "autodiff_models.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("name", ["module", "module.forward", "network"])
def test_a_module_is_recovered_by_its_derivatives(name, tmp_path):
    target = f"autodiff_models:{name}"
    done = invoke("recover", target, "--derivatives", "autodiff", "--json", "--out", "copy.npz")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["status"] == "RECOVERED"
    assert told["settings"]["arguments"]["derivatives"] == "autodiff"
    assert "--derivatives autodiff" in told["settings"]["command"]
    assert any("derivatives by autodiff" in note for note in told["notes"])
    truth = unweave.random_network([7, 5, 1], activation="tanh", seed=1000, outer="normal")
    assert unweave.compare(truth, unweave.load(tmp_path / "copy.npz")).parameter_error < 1e-9


def test_a_function_is_refused_with_what_to_do():
    done = invoke("recover", "autodiff_models:predict", "--inputs", 7, "--derivatives", "autodiff")
    assert done.exit_code == 2
    assert "torch module" in done.stderr
    assert "queries" in done.stderr


def test_an_unknown_word_is_refused():
    done = invoke("recover", "autodiff_models:module", "--derivatives", "exact")
    assert done.exit_code == 2
    assert "'exact'" in done.stderr


def test_a_table_has_no_derivatives():
    done = invoke("recover", "--table", "samples.csv", "--derivatives", "autodiff")
    assert done.exit_code == 2
    assert "--derivatives" in done.stderr
