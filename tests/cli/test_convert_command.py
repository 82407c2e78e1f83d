"""Files on the command line: compare any two kinds, convert, and write a recovery as ONNX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from safetensors.torch import save_file
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app

ENDINGS = (".npz", ".json", ".onnx", ".safetensors")
NET = unweave.random_network([3, 4, 2], seed=1120, outer="normal")


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("networks")
    for ending in ENDINGS:
        NET.save(place / f"net{ending}")
    save_file(NET.to_torch().state_dict(), place / "state.safetensors")
    flipped = unweave.Network(
        [-NET.weights[0], -NET.weights[1]], [-NET.biases[0], NET.biases[1]], NET.activations
    )
    save_file(flipped.to_torch().state_dict(), place / "flipped.safetensors")
    return place


@pytest.mark.parametrize("first", ENDINGS)
@pytest.mark.parametrize("second", ENDINGS)
def test_any_two_files_can_be_compared(folder: Path, first: str, second: str) -> None:
    done = invoke("compare", folder / f"net{first}", folder / f"net{second}", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["parameter_error"] == 0


def test_torch_states_can_be_compared(folder: Path) -> None:
    plain = invoke("compare", folder / "net.onnx", folder / "state.safetensors")
    assert plain.exit_code == 2
    assert "names its activations" in plain.stderr
    told = ("--activations", "tanh, identity")
    for name in ("state", "flipped"):
        done = invoke("compare", folder / "net.onnx", folder / f"{name}.safetensors", *told)
        assert done.exit_code == 0, done.output
    # A file that says its activations keeps them, whatever is told for the other one.
    other = invoke(
        "compare", folder / "net.npz", folder / "state.safetensors", "--activations", "relu,identity"
    )
    assert other.exit_code == 1
    assert "activations differ" in other.stdout


@pytest.mark.parametrize("first", ENDINGS)
@pytest.mark.parametrize("second", ENDINGS)
def test_convert_is_exact(folder: Path, tmp_path: Path, first: str, second: str) -> None:
    done = invoke("convert", folder / f"net{first}", tmp_path / f"copy{second}")
    assert done.exit_code == 0, done.output
    assert done.stdout == f"WROTE {tmp_path / f'copy{second}'} 3-4-2 tanh, 26 parameters, bit for bit\n"
    assert unweave.load(tmp_path / f"copy{second}") == NET


def test_convert_rounds_when_asked(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.onnx"
    done = invoke("convert", folder / "net.npz", target, "--dtype", "float32", "--json")
    content = json.loads(done.stdout)
    assert content["exact"] is False
    assert content["dtype"] == "float32"
    written = unweave.load(target)
    np.testing.assert_array_equal(written.weights[0], NET.weights[0].astype(np.float32))
    again = invoke("convert", target, tmp_path / "again.npz", "--dtype", "float32")
    assert "bit for bit" in again.stdout


def test_convert_a_torch_state(folder: Path, tmp_path: Path) -> None:
    told = ("--activations", "tanh,identity")
    done = invoke("convert", folder / "state.safetensors", tmp_path / "copy.onnx", *told)
    assert done.exit_code == 0, done.output
    assert unweave.load(tmp_path / "copy.onnx") == NET


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{f}/net.npz", "{t}/net.txt"], "must end in"),
        (["{f}/net.npz", "{t}/net.pt"], "pickles"),
        (["{f}/none.npz", "{t}/net.npz"], "existing file"),
        (["{f}/net.npz", "{f}/net.npz"], "another file"),
        (["{f}/net.npz", "{t}/net.npz", "--dtype", "float16"], "dtype must be"),
        (["{f}/net.npz", "{t}/no/net.npz"], "can be written"),
        (["{f}/state.safetensors", "{t}/net.npz"], "names its activations"),
    ],
)
def test_convert_refuses(folder: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = invoke("convert", *(text.format(f=folder, t=tmp_path) for text in arguments))
    assert done.exit_code == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert unweave.load(folder / "net.npz") == NET


def test_help_has_an_example() -> None:
    shown = invoke("convert", "--help").stdout
    assert "unweave convert" in shown.partition("Example")[2]
    assert "--json" in shown


@pytest.mark.parametrize(("ending", "dtype"), [(".onnx", "float32"), (".safetensors", "float64")])
def test_a_recovery_is_written_in_every_format(tmp_path: Path, ending: str, dtype: Any) -> None:
    out = tmp_path / f"copy{ending}"
    truth = unweave.random_network([6, 4, 1], seed=1121, outer="normal")
    truth.save(tmp_path / "truth.npz")
    done = invoke("recover", tmp_path / "truth.npz", "--out", out, "--dtype", dtype, "--quiet")
    assert done.exit_code == 0, done.output
    tolerance = 1e-6 if dtype == "float32" else 1e-9
    assert unweave.compare(truth, unweave.load(out), tolerance=tolerance).is_same


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--out", "net.pt"], "--out must end in"), (["--out", "net.npz", "--dtype", "f"], "dtype")],
)
def test_what_cannot_be_written_is_refused_first(folder: Path, options: list[str], message: str) -> None:
    done = invoke("recover", folder / "net.npz", *options)
    assert done.exit_code == 2
    assert message in done.stderr
