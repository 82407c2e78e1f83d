"""``unweave audit``: table, page, JSON, exit codes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app


def invoke(*arguments):
    return CliRunner().invoke(app, ["audit", *(str(argument) for argument in arguments)])


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "net.json"
    unweave.random_network([4, 3, 1], activation="tanh", seed=1001, outer="normal").save(path)
    return path


def test_for_people(saved, tmp_path):
    done = invoke(saved, "--decimals", "3", "--budget", "300,10000", "--out", tmp_path / "a.html")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Yes: all parameters of this 4-3-1 network")
    assert lines[-1].startswith("LEAKS at 3 decimals: weights to ")
    assert "within 10,000 queries" in lines[-1]
    assert any(line.split()[:3] == ["3", "decimals", "no"] for line in lines)
    assert "What a defender can do" in done.stdout
    assert max(len(line) for line in lines[1:-1]) <= 100
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")


def test_as_json(saved):
    done = invoke(saved, "--decimals", "", "--noise", "1e-2", "--budget", "1000", "--json", "--seed", "1000")
    content = json.loads(done.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert done.exit_code == 0
    assert content["target_queries"] == content["recovery_queries"] > 0
    assert [level["label"] for level in content["levels"]] == ["as it is", "noise 0.01"]
    assert content["budgets"] == [1000]
    assert content["out"] is None


def test_quiet_is_one_line(saved):
    done = invoke(saved, "--decimals", "", "--budget", "1000", "--quiet")
    assert done.stdout.startswith("LEAKS as it is: weights to ")
    assert len(done.stdout.splitlines()) == 1


def test_not_recovered(saved, tmp_path):
    done = invoke(saved, "--max-queries", "50", "--out", tmp_path / "a.html")
    assert done.exit_code == 3
    assert done.stdout.startswith("Not shown:")
    assert done.stdout.splitlines()[-1].startswith("NOT RECOVERED")
    assert (tmp_path / "a.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--decimals", "few"], "--decimals must be numbers"),
        (["--decimals", "40"], "decimals must be whole numbers"),
        (["--noise", "-1"], "noise must be positive"),
        (["--budget", "1.5"], "--budget must be numbers"),
        (["--budget", "0"], "budgets must be whole numbers"),
        (["--alarm", "2"], "alarm must be between"),
        (["--out", "a.txt"], "--out must end in .html"),
        (["--out", "nowhere/a.html"], "--out must be a file in a folder that exists"),
    ],
)
def test_bad_options(saved, arguments, message):
    done = invoke(saved, *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
