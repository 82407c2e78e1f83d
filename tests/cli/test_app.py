"""Help, exit codes, defects, and that importing the library stays light."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app
from unweave.cli.exits import DEFECT, EXIT_CODES, EXIT_OF_STATUS, exit_code_of
from unweave.cli.output.document import jsonable
from unweave.recovery.describe import describe


def test_help_tells_every_exit_code():
    shown = CliRunner().invoke(app, ["--help"]).stdout
    for code, meaning in EXIT_CODES.items():
        assert f"{code}  {meaning}" in shown


@pytest.mark.parametrize("command", ["recover", "compare", "diagnose", "reproduce", "demo"])
def test_every_command_shows_an_example_and_has_json(command):
    shown = CliRunner().invoke(app, [command, "--help"]).stdout
    assert f"unweave {command}" in shown.partition("Example")[2]
    assert "--json" in shown


def test_version():
    assert CliRunner().invoke(app, ["--version"]).stdout == f"unweave {unweave.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["recover"], ["unknown"], ["demo", "--seed", "-1"], ["demo", "--seed", "x"]]
)
def test_usage_errors_are_code_2(arguments):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert done.stdout == ""


def test_every_status_has_an_exit_code():
    assert set(EXIT_OF_STATUS) == set(unweave.Status)
    assert set(EXIT_OF_STATUS.values()) <= set(EXIT_CODES)


def test_a_defect_shows_its_traceback(capsys):
    def defective():
        raise ZeroDivisionError("oops")

    assert exit_code_of(defective, as_json=True) == DEFECT
    captured = capsys.readouterr()
    assert "Traceback" in captured.err
    assert json.loads(captured.out) == {"error": "ZeroDivisionError: oops", "exit_code": DEFECT}


def test_an_interrupt_outside_a_recovery(capsys):
    def stopped():
        raise KeyboardInterrupt

    assert exit_code_of(stopped, as_json=False) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_jsonable():
    value = {"a": np.array([1.0, np.nan]), "b": (np.float64(2), np.inf), "c": unweave.Status.FAILED}
    assert jsonable(value) == {"a": [1.0, None], "b": [2.0, None], "c": "FAILED"}
    assert jsonable(unweave.Check("gap", np.nan, None, None, "")) == {
        "name": "gap",
        "value": None,
        "threshold": None,
        "holds": None,
        "implies": "",
        "decides": False,
    }


@pytest.mark.parametrize(
    ("layers", "activation", "output", "expected"),
    [
        ([6, 4, 1], "tanh", "identity", "6-4-1 tanh"),
        ([6, 4, 3, 2], "relu", "sigmoid", "6-4-3-2 relu, sigmoid output"),
        ([6, 2], "tanh", "identity", "6-2 affine"),
    ],
)
def test_networks_in_words(layers, activation, output, expected):
    network = unweave.random_network(layers, activation=activation, output_activation=output, seed=1000)
    assert describe(network) == expected


def test_the_library_alone_does_not_load_the_command_line():
    code = "import sys, unweave; print([m for m in ('typer', 'rich', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
