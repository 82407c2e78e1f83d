"""``unweave diagnose``: findings, methods, figures of a known network."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app


def invoke(*arguments):
    return CliRunner().invoke(app, ["diagnose", *(str(argument) for argument in arguments)])


def saved(tmp_path, layers, **options):
    path = tmp_path / "net.json"
    unweave.random_network(layers, seed=1000, **options).save(path)
    return path


def test_smooth_network_for_people(tmp_path):
    done = invoke(saved(tmp_path, [6, 4, 1], outer="normal"))
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0].endswith("curved and smooth.")
    for word in (
        "float64 arithmetic, sigma",
        "Methods",
        "coherence",
        "condition of G2",
        "power method (2.7)",
    ):
        assert word in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()[1:]) <= 100


def test_json_names_methods_with_reasons(tmp_path):
    done = invoke(saved(tmp_path, [6, 4, 1], outer="normal"), "--json")
    content = json.loads(done.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert content["noise"]["kind"] == "float64"
    assert (content["inputs"], content["outputs"], content["kinks"]) == (6, 1, False)
    tried = {method["name"]: method["tried"] for method in content["methods"]}
    assert tried["smooth"]
    assert not any(name.startswith("samples") for name in tried)  # a target that is asked is no table
    assert not tried["affine"]
    assert all(method["reason"] for method in content["methods"])
    assert 0 < content["network"]["incoherence"]["coherence"] < 1


def test_kinks_and_depth_are_told(tmp_path):
    kinked = json.loads(invoke(saved(tmp_path, [6, 8, 1], activation="relu"), "--json").stdout)
    assert kinked["kinks"] is True
    assert kinked["network"]["learnability"] is None
    deep = json.loads(invoke(saved(tmp_path, [6, 5, 4, 1]), "--hidden", "5,4", "--json").stdout)
    assert deep["network"] is None
    reasons = {method["name"]: method["reason"] for method in deep["methods"] if not method["tried"]}
    assert "one hidden layer" in reasons["smooth"]


@pytest.mark.parametrize(
    ("expression", "headline", "detail"),
    [
        ("x[:, 0] * 0 + 3", "constant", "nothing to judge by"),
        ("x @ [1.0, 2.0]", "affine", "float64 arithmetic"),
        ("(x @ [1.0, 2.0]).round(2)", "affine", "rounded to 2 decimals"),
    ],
)
def test_plain_functions(tmp_path, monkeypatch, expression, headline, detail):
    name = f"planted_plain_{abs(hash(expression))}"
    (tmp_path / f"{name}.py").write_text(f"def f(x):\n    return {expression}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    done = invoke(f"{name}:f", "--inputs", "2", "--domain", "-1,1")
    assert done.exit_code == 0, done.output
    assert headline in done.stdout.splitlines()[0]
    assert detail in done.stdout
    assert "within [-1, 1]" in done.stdout
    assert "The network in the file" not in done.stdout


def test_budget_and_bad_activation(tmp_path):
    path = saved(tmp_path, [6, 4, 1])
    assert invoke(path, "--max-queries", "10").exit_code == 3
    wrong = invoke(path, "--activation", "tahn")
    assert wrong.exit_code == 2
    assert "tahn" in wrong.stderr
