"""``--report``, and the table with which a recovery ends on the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app
from unweave.cli.output.recovery import result_rows


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def teacher(tmp_path):
    path = tmp_path / "teacher.npz"
    unweave.random_network([6, 4, 1], activation="tanh", seed=1000, outer="normal").save(path)
    return path


def test_recover_writes_a_report_and_says_so(teacher, tmp_path):
    place = tmp_path / "report.html"
    done = invoke("recover", teacher, "--activation", "tanh", "--report", place)
    assert done.exit_code == 0
    assert f"Wrote the report to {place}." in done.stdout
    html = place.read_text(encoding="utf-8")
    assert html.startswith("<!DOCTYPE html>")
    assert f"unweave recover {teacher} --activation tanh --report {place} --seed 0" in html


def test_a_run_that_failed_has_a_report_and_its_own_exit_code(teacher, tmp_path):
    place = tmp_path / "report.html"
    done = invoke("recover", teacher, "--max-queries", 30, "--json", "--report", place)
    assert done.exit_code == 3
    content = json.loads(done.stdout)
    assert content["report"] == str(place)
    assert content["settings"]["command"].endswith(f"--max-queries 30 --report {place} --seed 0")
    assert "Raise max_queries" in place.read_text(encoding="utf-8")


def test_demo_writes_a_report(tmp_path, monkeypatch):
    def write(recovery, path):  # drawing it takes longer than all the rest
        path.write_text(recovery.settings["command"], encoding="utf-8")

    monkeypatch.setattr("unweave.Recovery.save_report", write)
    place = tmp_path / "demo.html"
    done = invoke("demo", "--layers", "6,4,1", "--seed", 1002, "--report", place)
    assert done.exit_code == 0
    assert f"Wrote the report to {place}." in done.stdout
    assert done.stdout.splitlines()[-1].startswith("RECOVERED ")
    assert place.read_text(encoding="utf-8") == f"unweave demo --layers 6,4,1 --report {place} --seed 1002"


@pytest.mark.parametrize("place", ["report.pdf", "missing/report.html"])
@pytest.mark.parametrize("command", ["recover", "demo"])
def test_a_report_that_could_not_be_written_is_refused_before_anything_is_asked(
    command, place, tmp_path, teacher, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = invoke(command, *([teacher] if command == "recover" else []), "--report", place)
    assert done.exit_code == 2
    assert "--report must" in done.stderr
    assert done.stdout == ""


def test_the_closing_table_reads_well_in_a_log_of_eighty_columns(teacher):
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "unweave", "recover", teacher, "--activation", "tanh"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    lines = done.stdout.splitlines()
    assert all(line.isprintable() for line in lines)  # no control characters, thus no colours
    assert max(len(line) for line in lines[:-1]) <= 80
    assert lines[-1].startswith("RECOVERED 6-4-1 tanh, 33 parameters")  # for programs: never broken
    table = [line.split(maxsplit=1)[0] for line in lines[lines.index("Result") + 1 : -2]]
    assert table == ["status", "network", "error", "error", "queries", "per", "seconds"]


def test_the_closing_table_tells_error_bars_of_noisy_answers():
    net, rng = unweave.random_network([4, 3, 1], seed=1005, outer="normal"), np.random.default_rng(1006)
    result = unweave.recover(
        lambda x: net(x) + 1e-3 * rng.standard_normal((len(x), 1)), input_dim=4, activation="tanh"
    )
    rows = dict(result_rows(result))
    errors = result.standard_errors
    worst = max(float(part.max()) for part in (*errors.weights, *errors.biases))
    assert rows["error bars"] == f"{worst:.2g} at most (standard error of a parameter)"
    assert rows["queries"].startswith(f"{result.queries:,} (look {result.probing_queries:,}, recover ")


def test_the_closing_table_of_a_failure_has_no_error():
    failed = unweave.recover(unweave.random_network([6, 4, 1], seed=1000), max_queries=30)
    rows = dict(result_rows(failed))
    assert list(rows) == ["status", "network", "queries", "seconds"]
    assert (str(rows["status"]), rows["network"]) == ("FAILED", "none")
