"""What TARGET and --table may be, from the command line to the network that comes back."""

from __future__ import annotations

import json
import shlex
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app
from unweave.cli.targets import CommandOptions, find_target
from unweave.errors import InvalidInput
from unweave.files.tables import read_table

EXACT = 1e-9
TRUTH = unweave.random_network([5, 3, 1], "tanh", seed=1000, outer="normal")
TOLD = ("--hidden", "3", "--activation", "tanh")
"""Said where the search for it is not what is tested."""

MODEL = """
import json, sys
import numpy as np
with open({file!r}) as file:
    content = json.load(file)
(w, v), (b, c) = [[np.array(part) for part in content[name]] for name in ("weights", "biases")]
for line in sys.stdin:
    row = np.array(json.loads(line if {as_json} else "[" + line + "]"))
    print(json.dumps((np.tanh(row @ w + b) @ v + c).tolist()).strip("" if {as_json} else "[]"))
"""


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def recovered(*arguments, tmp_path):
    out = tmp_path / "copy.npz"
    done = invoke("recover", *arguments, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    assert unweave.compare(TRUTH, unweave.load(out)).parameter_error < EXACT
    return json.loads(done.stdout)


@pytest.fixture
def script(tmp_path):
    """The command of a process that answers for the network, reading csv or json."""
    TRUTH.save(tmp_path / "truth.json")

    def write(as_json=False):
        path = tmp_path / "model.py"
        path.write_text(MODEL.format(file=str(tmp_path / "truth.json"), as_json=as_json), encoding="utf-8")
        return f"cmd:{shlex.quote(sys.executable)} {shlex.quote(str(path))}"

    return write


@pytest.mark.parametrize("name", ["model.onnx", "model.safetensors"])
def test_a_model_file(tmp_path, name):
    TRUTH.save(tmp_path / name)
    told = recovered(tmp_path / name, *TOLD, tmp_path=tmp_path)
    assert told["target"] == str(tmp_path / name)


def test_an_endpoint(tmp_path):
    from unweave.serving import ReferenceServer, ServedModel

    with ReferenceServer(ServedModel(TRUTH, 5, 1)) as server:
        told = recovered(server.url, *TOLD, tmp_path=tmp_path)
        assert server.counts["rows_answered"] == told["queries"]


def test_a_command(tmp_path, script):
    recovered(script(), "--inputs", 5, *TOLD, tmp_path=tmp_path)


def test_a_command_that_speaks_json_with_the_width_of_the_examples(tmp_path, script):
    np.save(tmp_path / "typical.npy", np.random.default_rng(1001).standard_normal((20, 5)))
    recovered(
        script(as_json=True),
        "--examples",
        tmp_path / "typical.npy",
        "--command-format",
        "json",
        *TOLD,
        tmp_path=tmp_path,
    )


def test_a_command_is_ended_afterwards(script):
    with find_target(script(), 5, command=CommandOptions(command_timeout=30.0)) as target:
        target.function(np.zeros((1, 5)))
        process = target.function._process._process
        assert process.poll() is None
    assert process.poll() == 0


def test_an_estimator_of_a_module(tmp_path, monkeypatch):
    (tmp_path / "planted_estimator.py").write_text(
        "import numpy as np\nfrom sklearn.linear_model import LinearRegression, LogisticRegression\n"
        "x = np.random.default_rng(0).standard_normal((50, 3))\n"
        "model = LinearRegression().fit(x, x @ [1.0, 2.0, 3.0] + 4)\n"
        "labels = LogisticRegression().fit(x, x[:, 0] > 0)\n"
        "path = 'model.onnx'\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    done = invoke("recover", "planted_estimator:model", "--out", "copy.npz")
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(unweave.load("copy.npz").weights[0][:, 0], [1, 2, 3], rtol=1e-9)
    refused = invoke("recover", "planted_estimator:labels.predict")
    assert refused.exit_code == 2
    assert "labels carry the decision boundary only" in refused.stderr
    text = invoke("recover", "planted_estimator:path")
    assert text.exit_code == 2
    assert "must be callable" in text.stderr


def test_diagnose_asks_the_same_targets(tmp_path, script):
    TRUTH.save(tmp_path / "model.onnx")
    for arguments in ((tmp_path / "model.onnx",), (script(), "--inputs", 5)):
        done = invoke("diagnose", *arguments, "--json")
        assert done.exit_code == 0, done.output
        content = json.loads(done.stdout)
        assert (content["inputs"], content["outputs"]) == (5, 1)
        assert content["network"] is None  # only the file of a network is looked into


X = np.random.default_rng(1002).standard_normal((400, 5))
RELU = unweave.random_network([5, 3, 2], "relu", seed=1001, outer="signed", bias=1)
Y = RELU(X)


def write_tables(folder):
    np.savetxt(folder / "plain.csv", np.hstack([X, Y]), delimiter=",", fmt="%.17g")
    titles = ",".join([*(f"input {i}" for i in range(5)), "first", "second"])
    np.savetxt(
        folder / "titled.csv", np.hstack([X, Y]), delimiter=",", header=titles, comments="", fmt="%.17g"
    )
    np.save(folder / "whole.npy", np.hstack([X, Y]))
    np.savez(folder / "named.npz", x=X, y=Y)
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", Y)


def samples_of(text, outputs):
    return unweave.Samples(*read_table(text, outputs))


def test_tables_of_every_kind(tmp_path):
    write_tables(tmp_path)
    for name in ("plain.csv", "titled.csv", "whole.npy", "named.npz"):
        samples = samples_of(str(tmp_path / name), 2)
        np.testing.assert_array_equal(samples.x, X)
        np.testing.assert_array_equal(samples.y, Y)
    samples = samples_of(f"{tmp_path / 'x.npy'},{tmp_path / 'y.npy'}", None)
    np.testing.assert_array_equal(samples.y, Y)
    assert samples_of(str(tmp_path / "plain.csv"), None).n_outputs == 1


def test_rows_with_holes_are_left_out(tmp_path):
    (tmp_path / "holes.csv").write_text("1,2,3\n4,,6\n7,8,NA\n9,10,11\n", encoding="utf-8")
    samples = samples_of(str(tmp_path / "holes.csv"), 1)
    assert len(samples) == 2
    assert "2 rows" in samples.notes[0]


def test_a_network_from_a_table(tmp_path):
    write_tables(tmp_path)
    out = tmp_path / "copy.npz"
    done = invoke(
        "recover",
        "--table",
        tmp_path / "plain.csv",
        "--outputs",
        2,
        "--hidden",
        3,
        "--activation",
        "relu",
        "--out",
        out,
        "--json",
    )
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert (content["status"], content["queries"]) == ("RECOVERED", 0)
    assert content["target"] == str(tmp_path / "plain.csv")
    assert unweave.compare(RELU, unweave.load(out)).parameter_error < EXACT


@pytest.mark.parametrize(
    ("name", "content", "outputs", "message"),
    [
        ("a.txt", "1,2\n", None, "must be a file that ends in"),
        ("a.csv", "", None, "there are no rows"),
        ("a.csv", "height,weight\n", None, "there are no rows"),
        ("a.csv", "1,2\n3\n", None, "between 1 and 2 columns"),
        ("a.csv", "1,red\n2,blue\n", None, "red"),
        ("a.csv", "1,2\n3,4\n", 2, "Say with --outputs"),
        ("a.npy", "no array", None, "must hold one row of numbers per sample"),
        ("a.npz", "PK\x03\x04", None, "must hold one row of numbers per sample"),
        ("a.csv", None, None, "must be an existing file"),
    ],
)
def test_tables_that_are_none(tmp_path, name, content, outputs, message):
    if content is not None:
        (tmp_path / name).write_text(content, encoding="latin-1")
    with pytest.raises(InvalidInput, match=message):
        read_table(str(tmp_path / name), outputs)


def test_archives_need_both_arrays_and_outputs_must_agree(tmp_path):
    np.savez(tmp_path / "half.npz", x=X)
    with pytest.raises(InvalidInput, match="x and y are needed"):
        read_table(str(tmp_path / "half.npz"), None)
    np.savez(tmp_path / "whole.npz", x=X, y=Y)
    with pytest.raises(InvalidInput, match="--outputs must be 2"):
        read_table(str(tmp_path / "whole.npz"), 3)


ERRORS = {
    "nothing": ([], "Either TARGET or --table must be given. Got neither"),
    "both": (["a.npz", "--table", "a.csv"], "Got both"),
    "outputs of a target": (["a.npz", "--outputs", "2"], "--outputs is for --table only"),
    "asking a table": (["--table", "a.csv", "--inputs", "3", "--domain=-1,1"], "--inputs, --domain must be"),
    "a pickle": (["{tmp}/model.pkl"], "load it yourself and pass the object"),
    "another file": (["{tmp}/model.txt"], "must end in .npz"),
    "no file": (["missing.onnx"], "no file of that name"),
    "a file of no kind": (["missing.pickle"], "no file of that name"),
    "a folder": (["{tmp}"], "which is a folder"),
    "a command without inputs": (["cmd:cat"], "--inputs or --examples must be given for cmd:cat"),
    "an empty command": (["cmd:", "--inputs", "3"], "It is empty"),
    "a command that is none": (["cmd:no-such-program -x", "--inputs", "3"], "Got 'no-such-program' instead"),
    "a format that is none": (["cmd:cat", "--inputs", "3", "--command-format", "xml"], "format must be one"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_line_and_code_2(name, tmp_path):
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04.")
    (tmp_path / "model.txt").write_text("hello", encoding="utf-8")
    arguments, message = ERRORS[name]
    done = invoke("recover", *(argument.format(tmp=tmp_path) for argument in arguments))
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr


def test_a_command_that_fails_is_code_4(tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit('model file is missing')\n", encoding="utf-8")
    done = invoke("recover", f"cmd:{sys.executable} {script}", "--inputs", 3)
    assert done.exit_code == 4
    assert "Its last words on stderr: model file is missing" in done.stderr
