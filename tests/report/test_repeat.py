"""What a report says about repeating its run does repeat it."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from reading_reports import parsed
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app
from unweave.cli.option_groups import HttpArguments, RunningOptions
from unweave.cli.recover import RecoverOptions
from unweave.cli.targets import CommandOptions
from unweave.cli.typed_command import named_target, typed_command
from unweave.report.repeat import python_call, shell_command


@pytest.fixture
def teacher(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net = unweave.random_network([6, 4, 1], activation="tanh", seed=1000, outer="normal")
    net.save("teacher.npz")
    return net


@pytest.mark.usefixtures("teacher")
def test_both_commands_of_a_report_give_the_same_network_bit_for_bit():
    words = "recover teacher.npz --domain=-2,2 --seed 3 --hidden 4 --out first.npz --report first.html"
    assert CliRunner().invoke(app, shlex.split(words)).exit_code == 0
    first = unweave.load("first.npz")
    with open("first.html", encoding="utf-8") as file:
        python, shell = (node.text() for node in parsed(file.read()).all("pre"))
    assert shell.strip() == (
        "unweave recover teacher.npz --hidden 4 --domain=-2,2 --out first.npz --report first.html --seed 3"
    )
    names: dict[str, object] = {}
    exec(python, names)
    assert names["result"].network == first
    again = shell.replace("first.npz --report first.html", "second.npz")  # drawing takes longer than asking
    assert CliRunner().invoke(app, shlex.split(again)[1:]).exit_code == 0
    assert unweave.load("second.npz") == first


@pytest.mark.usefixtures("teacher")
def test_a_run_of_python_names_the_command_that_repeats_it():
    result = unweave.recover("teacher.npz", [4], seed=2, max_queries=5000)
    assert python_call(result.settings) == (
        "import unweave\n\nresult = unweave.recover('teacher.npz', hidden=[4], seed=2, max_queries=5000)"
    )
    command = shell_command(result.settings)
    assert command == "unweave recover teacher.npz --hidden=4 --seed=2 --max-queries=5000"
    done = CliRunner().invoke(app, [*shlex.split(command)[1:], "--out", "again.npz"])
    assert done.exit_code == 0
    assert unweave.load("again.npz") == result.network


def test_what_has_no_name_stands_as_a_comment(teacher):
    x = np.random.default_rng(1001).standard_normal((30, 6))
    settings = unweave.recover(lambda x: teacher(x), input_dim=6, examples=x, domain=(-9, 9)).settings
    text = python_call(settings)
    compile(text, "report", "exec")
    assert "# examples: an array of shape (30, 6)" in text
    assert "input_dim=6, domain=(-9, 9), examples=examples, seed=0)" in text
    assert shell_command(settings).splitlines() == [
        "# put the target into models.py, under the name target",
        "unweave recover models:target --inputs=6 --domain=-9,9 --seed=0 --examples examples.npy",
    ]


def test_secrets_are_left_out():
    options = RecoverOptions(
        target="https://me:secret@example.org/predict?key=secret",
        max_queries=9,
        http=HttpArguments(http_header=["X-Key: secret"], http_token_env="KEY", http_insecure=True),
        command=CommandOptions("json"),
        running=RunningOptions(2, None, None, False),
    )
    command = typed_command("recover", options)
    assert "secret" not in command
    assert command == (
        "unweave recover https://example.org/predict --max-queries 9 --seed 0 --command-format json "
        "--http-header X-Key:... --http-token-env KEY --http-insecure --workers 2"
    )
    assert named_target(options) == {"kind": "url", "name": "https://example.org/predict"}


@pytest.mark.parametrize(
    ("target", "table", "kind"),
    [
        ("cmd:python model.py", None, "command"),
        ("models:predict", None, "import"),
        (None, "samples.csv", "table"),
    ],
)
def test_every_kind_of_target_becomes_python(target, table, kind):
    named = named_target(RecoverOptions(target=target, table=table))
    assert named["kind"] == kind
    compile(python_call({"target": named, "arguments": {"seed": 0}}), "report", "exec")
