"""``unweave audit``: table, page, JSON, exit codes."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app


def invoke(*arguments):
    return CliRunner().invoke(app, ["audit", *(str(argument) for argument in arguments)])


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.json"
    unweave.random_network([4, 3, 1], activation="tanh", seed=1001, outer="normal").save(path)
    return path


def test_for_people(saved, tmp_path):
    out = tmp_path / "a.html"
    done = invoke(saved, "--decimals", "3", "--budget", "300,10000", "--activation", "tanh", "--out", out)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert re.match(r"Yes: [\d,]+ queries gave away all weights of this 4-3-1 network", lines[0])
    assert re.match(r"LEAKS at 3 decimals: weights to \S+ after [\d,]+ queries; ", lines[-1])
    assert any(line.split()[:4] == ["3", "decimals", "held", "weights"] for line in lines)
    assert "OWASP AISVS 11.3.2" in done.stdout
    assert "What a defender can do" in done.stdout
    assert max(len(line) for line in lines[1:-1]) <= 100
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert f"<code>unweave audit {saved} " in page
    assert "--decimals 3 --budget 300,10000" in page


def test_as_json(saved, tmp_path):
    done = invoke(saved, "--decimals", "", "--noise", "1e-2", "--budget", "1000", "--json", "--seed", "1000")
    content = json.loads(done.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert done.exit_code == 0
    assert content["target_queries"] == content["recovery_queries"] > 0
    assert [level["label"] for level in content["levels"]] == ["as it is", "noise 0.01"]
    assert content["budgets"] == [1000]
    assert content["out"] is None
    assert not list(tmp_path.glob("*.html"))
    assert content["settings"]["target"] == {"kind": "file", "name": str(saved)}


def test_quiet_is_one_line(saved, tmp_path):
    done = invoke(saved, "--decimals", "", "--budget", "1000", "--quiet")
    assert done.stdout.startswith("LEAKS as it is: weights to ")
    assert len(done.stdout.splitlines()) == 1
    assert (tmp_path / "audit.html").exists()


def test_default_file_replaces_nothing(saved, tmp_path):
    (tmp_path / "audit.html").write_text("mine")
    done = invoke(saved, "--max-queries", "50", "--trace", "rows.csv")
    assert "Wrote the audit to audit-2.html." in done.stdout
    assert "Wrote the trace to rows.csv." in done.stdout
    assert (tmp_path / "audit.html").read_text() == "mine"
    assert (tmp_path / "audit-2.html").exists()
    assert len((tmp_path / "rows.csv").read_text().splitlines()) > 10


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
        (["--trace", "a.txt"], "--trace must end in .jsonl or .csv"),
        (["--out", "nowhere/a.html"], "--out must be a file in a folder that exists"),
    ],
)
def test_bad_options(saved, arguments, message):
    done = invoke(saved, *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
