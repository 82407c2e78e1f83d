"""``unweave reproduce``: list, tables, JSON, exit codes, Ctrl-C."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from functools import partial

import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app
from unweave.cli.command import as_app
from unweave.cli.reproduce import run_reproduce
from unweave.experiments import EXPERIMENTS, Experiment
from unweave.experiments.experiment import at_most, equal, shown
from unweave.experiments.numbers import number
from unweave.numerics.threads import single_threaded_blas

RIGHT, WRONG = equal("pieces", 8, 8, note="corrected: printed as 4"), at_most("error", 1e-4, 0.5)


def invoke(*arguments, experiments=EXPERIMENTS):
    wide = {"COLUMNS": "120"}  # no line is wrapped, whatever terminal the tests run in
    command = as_app(partial(run_reproduce, experiments=experiments))
    return CliRunner(env=wide).invoke(command, [str(argument) for argument in arguments])


def planted(**experiments):
    """Experiments of given figures; an exception among them is raised."""

    def run_of(steps):
        def run(seed, progress):
            for step in steps:
                progress("measuring")
                if isinstance(step, BaseException):
                    raise step
                yield step

        return run

    return {
        name: Experiment(name, "Source, Table 1", "It holds.", "small", 1.0, run_of(steps))
        for name, steps in experiments.items()
    }


@pytest.mark.parametrize("arguments", [(), ("--list",), ("dichotomies", "--list")])
def test_the_list(arguments):
    done = invoke(*arguments)
    assert done.exit_code == 0
    for experiment in EXPERIMENTS.values():
        assert experiment.name in done.stdout
        assert experiment.claim in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Run one with unweave reproduce NAME")


def test_the_list_in_a_narrow_terminal():
    done = CliRunner(env={"COLUMNS": "72"}).invoke(app, ["reproduce", "--list"])
    lines = done.stdout.splitlines()[:-1]
    assert max(map(len, lines)) <= 72
    first = next(line for line in lines if line.split()[:1] == ["wide-layers"])
    assert first.endswith("12 s")
    words = " ".join(done.stdout.split())
    assert "Tanh layers of up to 2/5 D^2 units" in words


def test_the_list_as_json():
    listed = json.loads(invoke("--json").stdout)["experiments"]
    assert [entry["name"] for entry in listed] == list(EXPERIMENTS)
    assert set(listed[0]) == {"name", "source", "claim", "setting", "about_seconds"}


def test_the_list_loads_nothing_that_measures():
    code = (
        "import sys; from typer.testing import CliRunner; from unweave.cli.app import app;"
        "CliRunner().invoke(app, ['reproduce', '--list']);"
        "print([name for name in ('torch', 'sklearn', 'matplotlib', 'unweave.recovery.recover',"
        "'unweave.exact')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_a_table():
    done = invoke("dichotomies")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert any(line.split() == ["quantity", "published", "measured", "agrees"] for line in lines)
    assert any(line.split()[-3:] == ["9,902", "9,902", "yes"] for line in lines)
    assert lines[-1] == "AGREES all 8 figures"


def test_json_holds_the_figures():
    made = json.loads(invoke("quadratic-threshold", "--seed", 1000, "--json").stdout)
    assert (made["seed"], made["agrees"], made["interrupted"]) == (1000, True, False)
    (entry,) = made["experiments"]
    assert entry["name"] == "quadratic-threshold"
    assert entry["agrees"] is True
    with single_threaded_blas():  # as the command does, so that rounding is the same
        run = list(EXPERIMENTS["quadratic-threshold"].run(1000, lambda text: None))
    assert [figure["measured"] for figure in entry["figures"]] == [figure.measured for figure in run]
    assert set(entry["figures"][0]) == {field.name for field in dataclasses.fields(run[0])}


@pytest.mark.parametrize("as_json", [False, True])
def test_a_wrong_figure_is_code_1(as_json):
    made = planted(one=[RIGHT], two=[RIGHT, WRONG, shown("seconds", 7.63, 1.0)])
    done = invoke("all", *(["--json"] if as_json else []), experiments=made)
    assert done.exit_code == 1
    if as_json:
        made = json.loads(done.stdout)
        assert made["agrees"] is False
        assert [entry["agrees"] for entry in made["experiments"]] == [True, False]
        assert [figure["agrees"] for figure in made["experiments"][1]["figures"]] == [True, False, None]
    else:
        assert done.stdout.splitlines()[-1] == "DIFFERENT 1 of 3 figures do not agree in 2 experiments"
        assert "error does not agree; the rule: not above the bound" in done.stdout
        assert "[1] corrected: printed as 4" in done.stdout


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), unweave.Interrupted("half a network", None)])
def test_ctrl_c_keeps_what_was_measured(interrupt):
    experiments = planted(one=[RIGHT], two=[RIGHT, interrupt, WRONG], three=[WRONG])
    done = invoke("all", experiments=experiments)
    assert done.exit_code == 130
    assert done.stdout.count("pieces [1]") == 2
    last = done.stdout.splitlines()[-1]
    assert last == "INTERRUPTED 1 of 3 experiments done; 2 of 2 figures measured so far agree"
    made = invoke("two", "--json", experiments=experiments)
    assert made.exit_code == 130
    content = json.loads(made.stdout)
    assert content["interrupted"] is True
    assert [figure["quantity"] for figure in content["experiments"][0]["figures"]] == ["pieces"]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_cell_that_cannot_be_measured_leaves_the_others(as_json, tmp_path, monkeypatch):
    from unweave.experiments import stored

    whole = stored.measure_cell

    def breaks_at_seed_1(experiment, cell):
        if cell["seed"] == 1:
            raise unweave.UnweaveError("no rows left")
        return whole(experiment, cell)

    monkeypatch.setattr(stored, "measure_cell", breaks_at_seed_1)
    store = tmp_path / "results.jsonl"
    done = invoke("dichotomies", "--seeds", "0:3", "--store", store, *(["--json"] if as_json else []))
    assert done.exit_code == 1
    assert len(store.read_text().splitlines()) == 2
    told = "dichotomies, seed 1: no rows left"
    assert json.loads(done.stdout)["failed"] == [told] if as_json else f"not measured: {told}" in done.stdout


def test_quiet_is_one_line():
    assert invoke("one", "--quiet", experiments=planted(one=[RIGHT])).stdout == "AGREES all 1 figures\n"


@pytest.mark.parametrize(("name", "meant"), [("descent-rat", "descent-rate"), ("gate", "relu-gate")])
def test_an_unknown_name_is_code_2(name, meant):
    done = invoke(name)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert f"Got '{name}' instead. Did you mean {meant}" in done.stderr


def test_a_name_like_no_other_points_to_the_list():
    done = invoke("xyzzy", "--json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["error"].endswith("See unweave reproduce --list.")


def test_a_defect_is_no_disagreement():
    assert invoke("one", experiments=planted(one=[ZeroDivisionError("oops")])).exit_code == 70


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "yes"),
        ("1e-4 to 1e-1", "1e-4 to 1e-1"),
        (9902, "9,902"),
        (15176.29, "15,176"),
        (0.0908451, "0.09085"),
        (1.85e-4, "1.85e-4"),
        (8.4e-14, "8.4e-14"),
        (6.6e9, "6.60e+9"),
        (0.0, "0"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_for_people(value, text):
    assert number(value) == text


def test_a_store_is_filled_once_and_only_with_what_is_missing(tmp_path, monkeypatch):
    made, measured = planted(one=[RIGHT], two=[RIGHT, WRONG]), []
    for experiment in made.values():
        run = experiment.run

        def counted(seed, progress, run=run, name=experiment.name):
            measured.append((name, seed))
            return run(seed, progress)

        object.__setattr__(experiment, "run", counted)
    monkeypatch.setattr("unweave.cli.reproduce.EXPERIMENTS", made)
    store = tmp_path / "results.jsonl"
    done = invoke("all", "--seeds", "0:2", "--store", store, experiments=made)
    assert done.exit_code == 1
    assert sorted(measured) == [("one", 0), ("one", 1), ("two", 0), ("two", 1)]
    words = " ".join(done.stdout.split())
    assert "one 2 of 2 0.0 2 of 2" in words
    assert "two 2 of 2 0.0 2 of 4 error" in words
    with store.open("a") as file:
        file.write('{"name": "one", "se')  # a crash in the middle of a line
    again = invoke("one", "--seeds", "0:3", "--store", store, "--json", experiments=made)
    assert again.exit_code == 0
    assert measured[4:] == [("one", 2)]
    told = json.loads(again.stdout)["experiments"]["one"]
    assert (told["cells"], told["measured"], told["agrees"]) == (3, 3, True)
    lines = store.read_text().splitlines()
    assert len(lines) == 6
    record = json.loads(lines[-1])
    assert set(record) == {"name", "cell", "seconds", "versions", "values"}
    assert record["cell"] == {"seed": 2}
    assert record["versions"]["unweave"] == unweave.__version__


def test_results_of_another_version_are_measured_again(tmp_path, monkeypatch):
    made = planted(one=[RIGHT])
    monkeypatch.setattr("unweave.cli.reproduce.EXPERIMENTS", made)
    store = tmp_path / "results.jsonl"
    invoke("one", "--store", store, experiments=made)
    store.write_text(store.read_text().replace(f'"{unweave.__version__}"', '"0.0.0"'))
    invoke("one", "--store", store, experiments=made)
    assert len(store.read_text().splitlines()) == 2


def test_an_interrupt_keeps_what_is_stored(tmp_path, monkeypatch):
    made = planted(one=[RIGHT], two=[KeyboardInterrupt()])
    monkeypatch.setattr("unweave.cli.reproduce.EXPERIMENTS", made)
    done = invoke("all", "--store", tmp_path / "results.jsonl", experiments=made)
    assert done.exit_code == 130
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--seeds", "0:2"),
        ("--workers", "2"),
        ("--seeds", "2", "--store", "r"),
        ("--size", "published"),
        ("--page", "pages"),
    ],
)
def test_options_of_a_store_are_checked(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke("dichotomies", *arguments)
    assert done.exit_code == 2


def test_two_workers_give_the_same_figures(tmp_path):
    names = {"dichotomies", "sign-ambiguity"}
    stores = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for store, more in zip(stores, ((), ("--workers", 2)), strict=True):
        for name in sorted(names):
            assert invoke(name, "--seeds", "0:2", "--store", store, *more).exit_code == 0
    records = [
        {(r["name"], r["cell"]["seed"]): r["values"] for r in map(json.loads, store.read_text().splitlines())}
        for store in stores
    ]
    assert records[0] == records[1]
    assert len(records[0]) == 4
