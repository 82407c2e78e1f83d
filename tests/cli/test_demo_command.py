"""``unweave demo`` as a person runs it, and what it says when the truth disagrees."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app

SMALL = ["demo", "--layers", "6,4,1"]


def test_process_recovers_the_planted_network():
    done = subprocess.run(
        [sys.executable, "-m", "unweave", "demo"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("RECOVERED 20-100-1 tanh, 2,201 parameters, error ")
    assert "Against the truth" in done.stdout
    assert all(re.match(r"\d+ s: ", line) for line in done.stderr.splitlines())  # on a busy machine


def test_json():
    done = CliRunner().invoke(app, [*SMALL, "--seed", "1002", "--json"])
    content = json.loads(done.stdout)
    assert done.exit_code == 0
    assert content["status"] == "RECOVERED"
    assert content["comparison"]["is_same"] is True


def test_a_wrong_network_is_never_called_recovered(monkeypatch):
    wrong = unweave.recover(unweave.random_network([6, 4, 1], seed=1003, outer="normal"))
    monkeypatch.setattr("unweave.cli.demo.recover", lambda *_, **__: wrong)
    done = CliRunner().invoke(app, SMALL)
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1].startswith("DIFFERENT ")


@pytest.mark.parametrize("as_json", [False, True])
def test_interrupt(monkeypatch, as_json):
    found = unweave.recover(unweave.random_network([6, 4, 1], seed=1003, outer="normal"))

    def interrupted(*_, **__):
        raise unweave.Interrupted(found, None)

    monkeypatch.setattr("unweave.cli.demo.recover", interrupted)
    done = CliRunner().invoke(app, [*SMALL, *(["--json"] if as_json else [])])
    assert done.exit_code == 130
    if as_json:
        assert json.loads(done.stdout)["interrupted"] is True


def test_layers_are_checked():
    done = CliRunner().invoke(app, ["demo", "--layers", "6,x"])
    assert done.exit_code == 2
    assert "--layers must be" in done.stderr
