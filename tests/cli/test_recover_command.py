"""``unweave recover`` on saved networks and on functions, for people and for programs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app

EXACT = 1e-9
"""Far above what float64 answers leave of a 33-parameter network, far below what a wrong one shows."""


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def truth():
    return unweave.random_network([6, 4, 1], activation="tanh", seed=1000, outer="normal")


@pytest.fixture
def teacher(truth, tmp_path):
    path = tmp_path / "teacher.npz"
    truth.save(path)
    return path


@pytest.fixture
def recovered(truth):
    return unweave.recover(truth)


def write_module(folder, name, text, monkeypatch):
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))


def test_process_recovers_a_file_and_prints_json_only(teacher, truth, tmp_path):
    out, run = tmp_path / "copy.json", tmp_path / "run.npz"
    command = [sys.executable, "-m", "unweave", "recover", teacher, "--json", "--out", out, "--save", run]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["status"] == "RECOVERED"
    assert content["hidden"] == [4]
    assert (content["out"], content["save"], content["interrupted"]) == (str(out), str(run), False)
    assert unweave.compare(truth, unweave.load(out)).parameter_error < EXACT
    kept = unweave.Recovery.load(run)
    assert kept.network == unweave.load(out)
    assert kept.queries == content["queries"]


def test_people_read_the_answer_first_and_the_summary_last(teacher, tmp_path):
    done = invoke("recover", teacher, "--out", tmp_path / "copy.npz", "--hidden", "4", "--activation", "tanh")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Recovered: ")
    assert lines[-1].startswith("RECOVERED 6-4-1 tanh, 33 parameters, error ")
    assert "per parameter)" in lines[-1]
    assert (
        done.stdout.index("Stages")
        < done.stdout.index("Certificate")
        < done.stdout.index("Wrote the network")
    )
    assert done.stderr == ""
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 100


def test_quiet_prints_one_line(teacher):
    done = invoke("recover", teacher, "--quiet")
    assert len(done.stdout.splitlines()) == 1
    assert done.stdout.startswith("RECOVERED ")


def test_verbose_logs_stages_to_stderr(teacher):
    done = invoke("recover", teacher, "-q", "-v")
    assert "unweave look: " in done.stderr
    assert "unweave verification: " in done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_function_of_a_module(tmp_path, monkeypatch):
    text = "import numpy as np\ndef f(x):\n    print('asked')\n    return x @ np.arange(1.0, 4.0) + 2\n"
    write_module(tmp_path, "planted_affine", text, monkeypatch)
    done = invoke("recover", "planted_affine:f", "--inputs", "3", "--hidden", "", "--json", "--out", "a.npz")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["hidden"] == []  # what the function prints is not among the JSON
    assert "asked" in done.stderr
    net = unweave.load("a.npz")
    np.testing.assert_allclose(net.weights[0][:, 0], [1, 2, 3], rtol=1e-10)
    assert net.biases[0][0] == pytest.approx(2, rel=1e-10)


def test_callable_object_behind_dots_with_examples_domain_and_no_inputs(tmp_path, monkeypatch, truth):
    text = (
        "import unweave\nclass Box: pass\nbox = Box()\n"
        "net = unweave.random_network([6, 4, 1], activation='tanh', seed=1000, outer='normal')\n"
        "class Ask:\n    def __call__(self, x):\n        assert abs(x).max() <= 3\n        return net(x)\n"
        "box.ask = Ask()\n"
    )
    write_module(tmp_path, "planted_object", text, monkeypatch)
    rows = np.random.default_rng(1001).uniform(-2, 2, (50, 6))
    np.savetxt("typical.csv", rows, delimiter=",", header="a,b,c,d,e,f", comments="")
    done = invoke(
        "recover", "planted_object:box.ask", "--examples", "typical.csv", "--domain", "-3,3", "--out", "n.npz"
    )
    assert done.exit_code == 0, done.output
    assert unweave.compare(truth, unweave.load("n.npz")).parameter_error < EXACT


def test_budget_that_ends_early_fails_with_code_3(teacher, tmp_path):
    out = tmp_path / "none.npz"
    done = invoke("recover", teacher, "--max-queries", "10", "--out", out)
    assert done.exit_code == 3
    assert done.stdout.splitlines()[-1].startswith("FAILED no network, ")
    assert not out.exists()
    assert f"There is no network to write to {out}." in done.stdout


def test_approximate_is_code_1(teacher):
    done = invoke("recover", teacher, "--tolerance", "1e-300", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["status"] == "APPROXIMATE"


@pytest.mark.parametrize("as_json", [False, True])
def test_interrupt_shows_and_writes_what_was_found(teacher, tmp_path, recovered, monkeypatch, as_json):
    partial = replace(
        recovered, status=unweave.Status.APPROXIMATE, error=np.nan, message="interrupted", stages=()
    )

    def interrupted(*_, **__):
        raise unweave.Interrupted(partial, None)

    monkeypatch.setattr("unweave.cli.recover.recover", interrupted)
    out = tmp_path / "part.npz"
    done = invoke("recover", teacher, "--out", out, *(["--json"] if as_json else []))
    assert done.exit_code == 130
    assert unweave.load(out) == recovered.network
    if as_json:
        content = json.loads(done.stdout)
        assert content["interrupted"] is True
        assert content["error"] is None
    else:
        assert done.stdout.startswith("Interrupted: this is what was found so far, not verified.")
        assert f"Wrote the network to {out} (not verified)." in done.stdout
        assert done.stdout.splitlines()[-1].startswith(
            "INTERRUPTED 6-4-1 tanh, 33 parameters, error not measured"
        )


def test_answer_is_shown_when_a_file_cannot_be_written(teacher, tmp_path, recovered, monkeypatch):
    def full(self, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("unweave.cli.recover.recover", lambda *_, **__: recovered)
    monkeypatch.setattr(unweave.Recovery, "save", full)
    done = invoke("recover", teacher, "--save", tmp_path / "run.npz")
    assert done.exit_code == 2
    assert done.stdout.splitlines()[-1].startswith("RECOVERED ")
    assert "--save could not be written" in done.stderr


ERRORS = {
    "no such file": (["{tmp}/missing.npz"], 2, "must be an existing file"),
    "not a network": (["{tmp}/text.json"], 2, "must be a network file"),
    "neither file nor module": (["teacher"], 2, "TARGET must be a network file"),
    "no such module": (["no_such_module_here:f"], 2, "not found"),
    "broken module": (["planted_errors_broken:f"], 2, "ZeroDivisionError"),
    "missing dependency": (["planted_errors_needs:f"], 2, "no_such_dependency"),
    "no such attribute": (["planted_errors:g"], 2, "must have the attribute 'g'"),
    "no such method": (["planted_errors:f.g"], 2, "planted_errors.f must have the attribute 'g'"),
    "not callable": (["planted_errors:number"], 2, "must be callable"),
    "class": (["planted_errors:Model"], 2, "Give an instance"),
    "model": (["planted_errors:model"], 2, "planted_errors:model.predict"),
    "inputs unknown": (["planted_errors:f"], 2, "--inputs or --examples must be given"),
    "inputs wrong": (["{tmp}/teacher.npz", "--inputs", "5"], 2, "must be 6"),
    "hidden": (["{tmp}/teacher.npz", "--hidden", "4,x"], 2, "--hidden must be"),
    "hidden zero": (["{tmp}/teacher.npz", "--hidden", "0"], 2, "--hidden must be"),
    "activation": (["{tmp}/teacher.npz", "--activation", "tahn"], 2, "tahn"),
    "method": (["{tmp}/teacher.npz", "--method", "magic"], 2, "method must be one of"),
    "tolerance": (["{tmp}/teacher.npz", "--tolerance", "0"], 2, "tolerance must be positive"),
    "domain": (["{tmp}/teacher.npz", "--domain", "1,-1"], 2, "--domain must be"),
    "examples": (["{tmp}/teacher.npz", "--examples", "{tmp}/none.csv"], 2, "--examples must be an existing"),
    "out ending": (["{tmp}/teacher.npz", "--out", "{tmp}/net.txt"], 2, "--out must end in"),
    "out folder": (["{tmp}/teacher.npz", "--out", "{tmp}/no/net.npz"], 2, "--out must be a file in a folder"),
    "out is target": (["{tmp}/teacher.npz", "--out", "{tmp}/teacher.npz"], 2, "must not be the target"),
    "save ending": (["{tmp}/teacher.npz", "--save", "{tmp}/run.json"], 2, "--save must end in"),
    "same file": (["{tmp}/teacher.npz", "--out", "{tmp}/a.npz", "--save", "{tmp}/a.npz"], 2, "two files"),
    "target raises": (["planted_errors:f", "--inputs", "2"], 4, "RuntimeError: no answer"),
    "target answers NaN": (["planted_errors:nan", "--inputs", "2"], 4, "must be finite"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_line_on_stderr_and_json_on_request(name, teacher, tmp_path, monkeypatch):
    (tmp_path / "text.json").write_text("{}", encoding="utf-8")
    (tmp_path / "planted_errors_broken.py").write_text("1 / 0\n", encoding="utf-8")
    (tmp_path / "planted_errors_needs.py").write_text("import no_such_dependency\n", encoding="utf-8")
    text = (
        "def f(x):\n    raise RuntimeError('no answer')\n"
        "def nan(x):\n    return x[:, 0] * float('nan')\n"
        "number = 3\nclass Model:\n    def predict(self, x):\n        return x\nmodel = Model()\n"
    )
    write_module(tmp_path, "planted_errors", text, monkeypatch)
    arguments, code, message = ERRORS[name]
    arguments = [argument.format(tmp=tmp_path) for argument in arguments]
    before = teacher.read_bytes()
    done = invoke("recover", *arguments)
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr
    told = invoke("recover", *arguments, "--json")
    assert told.exit_code == code
    assert message in json.loads(told.stdout)["error"]
    assert teacher.read_bytes() == before
