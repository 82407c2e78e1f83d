"""Model files by their ending and content; a pickle is never opened, whatever it is called."""

from __future__ import annotations

import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import unweave
from planted_targets import NET
from unweave import InvalidInput
from unweave.targets import as_queries
from unweave.targets.target import release


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self):
        return Path.touch, (Path(self.mark),)


@pytest.mark.parametrize("name", ["a.pkl", "a.pickle", "a.joblib", "a.pt", "a.npz", "a.onnx", "a.json", "a"])
@pytest.mark.parametrize("protocol", [2, 5])
def test_a_pickle_is_refused_unopened_under_any_name(tmp_path, name, protocol):
    mark, path = tmp_path / "opened", tmp_path / name
    path.write_bytes(pickle.dumps(Trap(mark), protocol))
    with pytest.raises(InvalidInput, match=r"load it yourself and pass the object .*export it to ONNX"):
        as_queries(path)
    assert not mark.exists()


@pytest.mark.parametrize("name", ["model.pt", "model.pth", "model.npz", "model.onnx"])
def test_what_torch_saves_is_a_pickle_too(tmp_path, name):
    path = tmp_path / name
    torch.save({"weight": torch.zeros(2)}, path)
    with pytest.raises(InvalidInput, match="runs no code when it is opened"):
        as_queries(str(path))


def test_arrays_of_objects_are_not_opened(tmp_path):
    mark = tmp_path / "opened"
    np.savez(tmp_path / "net.npz", weight_0=np.array([Trap(mark)], dtype=object))
    with pytest.raises(InvalidInput, match="must be a network file"):
        as_queries(tmp_path / "net.npz")
    assert not mark.exists()


@pytest.mark.parametrize("name", ["net.npz", "net.json", "net.onnx", "net.safetensors"])
def test_nothing_in_it(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(InvalidInput, match="which is empty"):
        as_queries(tmp_path / name)


@pytest.mark.parametrize("name", ["net.npz", "net.json", "net.onnx", "net.safetensors"])
def test_something_else_in_it(tmp_path, name):
    (tmp_path / name).write_text("[1, 2, 3]", encoding="utf-8")
    with pytest.raises(InvalidInput, match="must be"):
        as_queries(tmp_path / name)


def test_an_archive_of_something_else(tmp_path):
    with zipfile.ZipFile(tmp_path / "net.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(InvalidInput, match="must be a network file"):
        as_queries(tmp_path / "net.npz")


def test_missing_folder_and_unknown_ending(tmp_path):
    with pytest.raises(InvalidInput, match="no file of that name"):
        as_queries(tmp_path / "net.npz")
    with pytest.raises(InvalidInput, match="which is a folder"):
        as_queries(tmp_path)
    (tmp_path / "model.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"must end in \.npz.*\.onnx.*Export the model to ONNX"):
        as_queries(tmp_path / "model.txt")
    (tmp_path / "model.keras").write_bytes(b"PK")
    with pytest.raises(InvalidInput, match=r"keras.saving.load_model and pass the model"):
        as_queries(tmp_path / "model.keras")


def test_endings_in_capitals(tmp_path):
    NET.save(tmp_path / "net.npz")
    (tmp_path / "net.npz").rename(tmp_path / "NET.NPZ")
    assert as_queries(tmp_path / "NET.NPZ").n_inputs == 6


def test_without_httpx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(InvalidInput, match=r"httpx must be installed.*pip install 'unweave\[http\]'"):
        as_queries("http://127.0.0.1:9/predict")


def test_release_closes_what_was_opened_for_the_ledger_only(monkeypatch):
    closed = []

    class Endpoint:
        n_inputs = 6
        rows_per_call = 4

        def __call__(self, x):
            return NET(x)

        def close(self):
            closed.append(self)

    mine = Endpoint()
    ledger = as_queries(mine)
    release(ledger)
    assert closed == []
    ledger(np.eye(6))
    assert ledger.calls == 2  # four rows per call, as it wishes
    monkeypatch.setattr("unweave.targets.adapters.http_target.open_http_target", lambda *_: mine)
    assert unweave.recover("http://127.0.0.1:9/predict", hidden=[4], activation="tanh").network is not None
    assert closed == [mine]
