"""What a person sees at 80 and 120 columns: no word is broken, and options stand under headings."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import COMMANDS, app


def said(columns: int, *arguments: object) -> str:
    environment = {"COLUMNS": str(columns), "TERMINAL_WIDTH": str(columns)}
    return CliRunner().invoke(app, [str(each) for each in arguments], env=environment).stdout


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "small.npz"
    unweave.random_network([6, 4, 1], activation="tanh", seed=1000, outer="normal").save(path)
    return path


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits(command, columns):
    lines = said(columns, command, "--help").splitlines()
    body = [line for line in lines if not line.lstrip().startswith("unweave ")]  # examples are to be copied
    assert max(map(len, body)) <= columns
    assert lines[0].startswith(f"Usage: unweave {command} [OPTIONS]")
    assert "{" not in lines[0]
    assert "x>=" not in " ".join(lines)


@pytest.mark.parametrize("command", [("plan",), ("diagnose",), ("recover",)])
def test_no_word_is_broken_at_80_columns(command, small):
    wide, narrow = (said(columns, *command, small) for columns in (100, 80))
    known = {word for word in wide.split() if word[:1].isalpha()}
    broken = {word for word in narrow.split() if word[:1].isalpha()} - known
    assert not broken


def test_options_of_recover_stand_under_headings():
    text = said(80, "recover", "--help")
    headings = [line for line in text.splitlines() if line and line[0] != " " and line.endswith(":")]
    assert len(headings) >= 8
    for name in ("--averaging", "relu_deep", "softmax"):
        assert name in text


def test_the_reason_of_a_failure_is_told_quietly_too(tmp_path, monkeypatch):
    (tmp_path / "planted_labels.py").write_text(
        "import numpy as np\ndef f(x):\n    return np.sign(x.sum(axis=1))\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    text = said(80, "recover", "planted_labels:f", "--inputs", 3, "-q")
    assert len(text.splitlines()) == 1
    assert text.startswith("FAILED no network, ")
    assert "the target answers 2 labels" in text


def test_averaging_is_an_option(tmp_path, monkeypatch):
    (tmp_path / "planted_rounded.py").write_text(
        "import unweave\nnet = unweave.random_network([2, 2, 1], seed=1000, outer='normal')\n"
        "def f(x):\n    return net(x).round(4)\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    told = ("--inputs", 2, "--hidden", 2, "--activation", "tanh", "-q")
    few, many = (said(80, "recover", "planted_rounded:f", *told, "--averaging", n) for n in (20, 200))
    count = [int(text.split(" queries")[0].split()[-1].replace(",", "")) for text in (few, many)]
    assert count[1] > count[0] + 9 * 100


def test_one_query_is_no_plural():
    from unweave.recovery.wording import counted, queries

    assert [queries(n) for n in (0, 1, 2000)] == ["0 queries", "1 query", "2,000 queries"]
    assert counted(1, "parameter") == "1 parameter"


def test_a_table_whose_last_column_has_no_room_puts_it_below(capsys, monkeypatch):
    from unweave.cli.output.console import print_table, stdout_console

    monkeypatch.setenv("COLUMNS", "40")
    words = "one rather long explanation of all that"
    rows = [("a" * 12, "b" * 12, words), ("c", "d", "short")]
    print_table(stdout_console(), "Title", ("first", "second", "how"), rows, right=("second",))
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines if "one rather" in line]
    assert not [line for line in lines if "one rather" in line and "aaa" in line]
    assert all(np.isin(part, words.split()) for line in lines[4:5] for part in line.split())
