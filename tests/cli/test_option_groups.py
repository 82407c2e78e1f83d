"""--checkpoint, --check-log, --workers and --scheduler."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli import option_groups
from unweave.cli.app import app
from unweave.cli.exits import DONE, USAGE
from unweave.execution import SerialExecutor


@pytest.fixture
def teacher(tmp_path):
    path = tmp_path / "teacher.npz"
    unweave.random_network([6, 4, 1], seed=1000, outer="normal").save(path)
    return str(path)


def recover(*arguments: str):
    return CliRunner().invoke(app, ["recover", *arguments, "--json"])


def test_a_second_run_is_free(teacher, tmp_path):
    options = [teacher, "--checkpoint", str(tmp_path / "run.sqlite")]
    first, second = recover(*options), recover(*options, "--check-log")
    assert (first.exit_code, second.exit_code) == (DONE, DONE)
    asked = json.loads(first.stdout)["queries"]
    assert asked > 100
    assert json.loads(second.stdout)["queries"] == 1  # the row that was checked
    assert any(f"resumed: {asked} rows" in note for note in json.loads(second.stdout)["notes"])


def test_another_target_is_refused(teacher, tmp_path):
    other = str(tmp_path / "other.npz")
    unweave.random_network([6, 4, 1], seed=1001, outer="normal").save(other)
    recover(teacher, "--checkpoint", str(tmp_path / "run"))
    done = recover(other, "--checkpoint", str(tmp_path / "run"), "--check-log")
    assert done.exit_code == USAGE
    assert "another answer" in done.stderr


def test_workers_are_started_and_closed(teacher, monkeypatch):
    events = []

    @contextmanager
    def workers(count, scheduler):
        events.append((count, scheduler))
        yield SerialExecutor()
        events.append("closed")

    monkeypatch.setattr(option_groups, "DaskExecutor", workers)
    assert recover(teacher, "--workers", "3").exit_code == DONE
    assert recover(teacher, "--scheduler", "tcp://10.0.0.5:8786").exit_code == DONE
    assert recover(teacher, "--workers", "0").exit_code == DONE
    assert events == [(3, None), "closed", (None, "tcp://10.0.0.5:8786"), "closed"]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--workers", "2", "--scheduler", "tcp://x:1"], "not both"),
        (["--check-log"], "--checkpoint"),
        (["--checkpoint", "nowhere/run.sqlite"], "folder"),
    ],
)
def test_options_that_make_no_sense(teacher, options, word):
    done = recover(teacher, *options)
    assert done.exit_code == USAGE
    assert word in done.stderr


def test_a_table_has_nothing_to_resume(tmp_path):
    (tmp_path / "samples.csv").write_text("1,2\n3,4\n")
    done = recover("--table", str(tmp_path / "samples.csv"), "--checkpoint", str(tmp_path / "run"))
    assert done.exit_code == USAGE
    assert "--checkpoint" in done.stderr
