"""``unweave plan``: cost before anything is asked."""

from __future__ import annotations

import json

from typer.testing import CliRunner

import unweave
from unweave.cli.app import app


def invoke(*arguments):
    return CliRunner().invoke(app, ["plan", *(str(argument) for argument in arguments)])


def saved(tmp_path, layers=(20, 40, 1)):
    path = tmp_path / "net.json"
    unweave.random_network(list(layers), seed=1000, outer="signed").save(path)
    return path


def test_for_people(tmp_path):
    done = invoke(saved(tmp_path), "--hidden", 40, "--activation", "tanh")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].endswith("20 inputs, 1 output, float64; nothing was asked.")
    assert any(line.split()[:3] == ["smooth", "40", "881"] for line in lines)
    assert "Would not be tried" in done.stdout
    assert any(line.startswith("  -  answers in float64 are assumed") for line in lines)


def test_json(tmp_path):
    done = invoke(saved(tmp_path), "--hidden", 40, "--json")
    assert done.exit_code == 0
    made = json.loads(done.stdout)
    assert (made["inputs"], made["outputs"], made["sent"], made["seconds_per_row"]) == (20, 1, 0, None)
    first = made["methods"][0]
    assert (first["method"], first["hidden"], first["parameters"], first["tried"]) == (
        "smooth",
        [40],
        881,
        True,
    )
    assert first["rows"] > first["look_rows"] + first["verification_rows"]
    assert first["seconds"] is None
    assert made["assumptions"]


def test_a_look_is_counted_and_timed(tmp_path):
    made = json.loads(invoke(saved(tmp_path, (6, 4, 1)), "--look", "--json").stdout)
    assert made["sent"] > 100
    assert made["seconds_per_row"] > 0
    assert made["methods"][0]["seconds"] > 0


def test_functions_are_not_asked(tmp_path, monkeypatch):
    (tmp_path / "quiet_model.py").write_text("def predict(x):\n    raise RuntimeError('asked')\n")
    monkeypatch.chdir(tmp_path)
    done = invoke("quiet_model:predict", "--inputs", 30, "--outputs", 3, "--json")
    assert done.exit_code == 0
    made = json.loads(done.stdout)
    assert (made["inputs"], made["outputs"]) == (30, 3)
    tried = {entry["method"] for entry in made["methods"] if entry["tried"]}
    smooth = {"smooth", "smooth_wide", "smooth_patterns", "smooth_deep", "rectified_deep"}
    assert tried == {*smooth, "relu", "relu_deep", "relu_layers"}


def test_wrong_precision_is_a_usage_error(tmp_path):
    done = invoke(saved(tmp_path), "--precision", "float16")
    assert done.exit_code == 2
    assert "precision must be one of" in done.stderr
