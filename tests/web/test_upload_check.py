"""Uploads that cannot be used: each ends in a clear message, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pickle
import signal
import struct
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from safetensors.numpy import save as encode_tensors
from served_page import TEACHER, Page, saved

from unweave.errors import InvalidInput
from unweave.web.upload_stream import MOST_FIELD_BYTES, TooLarge, read_form


def archive(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=True, **arrays)
    return file.getvalue()


def archive_of(member: bytes) -> bytes:
    """An .npz whose only member has this content."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("weight_0.npy", member)
    return file.getvalue()


def array_header(text: str) -> bytes:
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text.encode()


def network_json(**changes: object) -> bytes:
    content = {
        "format": "unweave-network",
        "version": 1,
        "activations": ["tanh", "identity"],
        "weights": [[[1.0, 2.0]], [[1.0], [2.0]]],
        "biases": [[0.0, 0.5], [0.0]],
        "skip": None,
    }
    return json.dumps({**content, **changes}).encode()


def onnx_model(operator: str, domain: str = "", external: bool = False) -> bytes:
    weight = helper.make_tensor("w", TensorProto.FLOAT, [2, 1], [1.0, 2.0])
    if external:
        weight.ClearField("float_data")
        weight.data_location = TensorProto.EXTERNAL
        entry = weight.external_data.add()
        entry.key, entry.value = "location", "../../../etc/passwd"
    node = helper.make_node(operator, ["x", "w"], ["y"], domain=domain)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])],
        [weight],
    )
    imports = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = 9
    return model.SerializeToString()


def whole() -> bytes:
    file = io.BytesIO()
    np.savez(file, **{"format": np.array("x"), "weight_0": np.zeros((40, 40))})
    return file.getvalue()


BAD: dict[str, tuple[str, Callable[[], bytes], dict[str, str], str]] = {
    "empty": ("a.npz", lambda: b"", {}, "must not be empty"),
    "text": ("a.npz", lambda: b"hello", {}, "must be an .npz archive"),
    "pickle as npz": ("a.npz", lambda: pickle.dumps([1]), {}, "must be an .npz archive"),
    "pickle": ("a.pkl", lambda: pickle.dumps([1]), {}, "run code"),
    "pt": ("model.pt", lambda: archive_of(b"x"), {}, "run code"),
    "bomb": ("a.npz", lambda: archive(weight_0=np.zeros(3_000_000)), {}, "unpack to at most 8 MB"),
    "truncated npz": ("a.npz", lambda: whole()[:-200], {}, "must be an .npz archive"),
    "objects": ("a.npz", lambda: archive(weight_0=np.array([{}])), {}, "Python objects"),
    "other arrays": ("a.npz", lambda: archive(a=np.ones(3)), {}, "must be a network file"),
    "array that is not there": (
        "a.npz",
        lambda: archive_of(
            array_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}\n") + b"\0" * 64
        ),
        {},
        "must be complete",
    ),
    "huge header": (
        "a.npz",
        lambda: archive_of(array_header("{" + " " * 200_000)),
        {},
        "description of an array is too long",
    ),
    "member that is no array": ("a.npz", lambda: archive_of(b"hello"), {}, "must be an .npz archive"),
    "json of other shape": ("a.json", lambda: b'{"a": 1}', {}, "unweave-network"),
    "json list": ("a.json", lambda: b"[1, 2]", {}, "not an object"),
    "json with NaN": (
        "a.json",
        lambda: network_json(biases=[[float("nan"), 0.0], [0.0]]),
        {},
        "finite",
    ),
    "json with other widths": ("a.json", lambda: network_json(biases=[[0.0], [0.0]]), {}, "usable network"),
    "json without end": ("a.json", lambda: b"[" * 200_000, {}, "JSON"),
    "onnx garbage": ("a.onnx", lambda: bytes(range(256)), {}, "must be an ONNX model"),
    "onnx operator": ("a.onnx", lambda: onnx_model("Oracle", "example.org"), {}, "onnxruntime"),
    "onnx weights elsewhere": ("a.onnx", lambda: onnx_model("MatMul", external=True), {}, "another file"),
    "safetensors garbage": ("a.safetensors", lambda: b"\xff" * 64, {}, "must be a .safetensors file"),
    "safetensors without names": (
        "a.safetensors",
        lambda: encode_tensors({"0.weight": np.ones((1, 2)), "0.bias": np.ones(1)}),
        {},
        "names its activations",
    ),
    "csv with text": (
        "a.csv",
        lambda: b"1,2,red\n3,4,blue\n",
        {"kind": "table"},
        "rows of numbers|row of numbers",
    ),
    "csv with one column": (
        "a.csv",
        lambda: b"1\n2\n3\n",
        {"kind": "table"},
        "inputs and then the 1 answers",
    ),
    "csv of unequal rows": ("a.csv", lambda: b"1,2\n3,4,5\n", {"kind": "table"}, "between 2 and 3 columns"),
    "csv without numbers": ("a.csv", lambda: b"1,nan\nnan,2\n", {"kind": "table"}, "missing or infinite"),
    "more answers than columns": (
        "a.csv",
        lambda: b"1,2,3\n4,5,6\n",
        {"kind": "table", "outputs": "3"},
        "Answers per row",
    ),
    "table without y": ("a.npz", lambda: archive(x=np.ones((3, 2))), {"kind": "table"}, "x and y are needed"),
    "another number of inputs": ("a.json", network_json, {"inputs": "7"}, "must be 1, as the file says"),
    "path as name": ("../../../etc/passwd", lambda: b"x", {}, "Got 'passwd' instead"),
    "markup as name": ("<script>alert(1)</script>.npz", lambda: b"x", {}, "npz archive"),
    "wrong ending": ("a.exe", lambda: b"x", {}, "must end in .npz"),
    "model as table": ("a.onnx", lambda: b"x", {"kind": "table"}, "must end in .csv or .npz"),
    "too large": ("a.npz", lambda: b"x" * (2**20 + 1), {}, "at most 1 MB"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_upload_ends_in_a_clear_message(page: Page, case: str) -> None:
    name, content, fields, words = BAD[case]
    before = page.runs()
    response = page.send(name, content(), **fields)
    told = response.json()
    assert response.status_code == (413 if case == "too large" else 422), told
    assert any(word in told["error"] for word in words.split("|")), told
    assert told["field"] in ("file", "inputs")
    assert str(page.folder) not in told["error"]  # where the server keeps things is nobody's business
    assert page.runs() == before
    assert not list(page.folder.glob(".new-*"))


def test_a_form_without_file_is_told_so(page: Page) -> None:
    assert "must be chosen" in page.send(kind="file").json()["error"]
    response = page.post("/api/runs", json={"kind": "file"})
    assert (response.status_code, "multipart" in response.json()["error"]) == (422, True)


def test_the_server_goes_on_after_a_file_that_breaks_its_reader(page: Page, tmp_path: Path) -> None:
    # The process that looks at uploads is killed; the next upload gets a new one.
    for entry in Path("/proc").glob("[0-9]*"):
        if not (entry / "status").exists():
            continue
        parent = f"PPid:\t{page.process.pid}\n"
        if parent in (entry / "status").read_text() and b"checking" in (entry / "cmdline").read_bytes():
            os.kill(int(entry.name), signal.SIGKILL)
    response = page.send("a.npz", b"hello")
    assert response.status_code == 422
    assert page.send("a.json", b"[1]").json()["error"].count("not an object") == 1


async def pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


def form_body(*parts: tuple[str, bytes]) -> bytes:
    lines = [
        f"--b\r\nContent-Disposition: form-data; {words}\r\n\r\n".encode() + data for words, data in parts
    ]
    return b"\r\n".join([*lines, b"--b--\r\n"])


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_forms_are_read_whatever_the_pieces(size: int, tmp_path: Path) -> None:
    content = b"\r\n--bb\r\n" * 20
    body = form_body(('name="kind"', "täble".encode()), ('name="file"; filename="ä b.csv"', content))
    form = asyncio.run(read_form(pieces(body, size), "multipart/form-data; boundary=b", tmp_path / "f", 1000))
    assert form.fields == {"kind": "täble"}
    assert (form.file_name, form.file_bytes) == ("ä b.csv", len(content))
    assert (tmp_path / "f").read_bytes() == content


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (form_body(('name="file"; filename="a"', b"x" * 1001)), TooLarge),
        (form_body(('name="kind"', b"x" * (MOST_FIELD_BYTES + 1))), InvalidInput),
        (form_body(*[(f'name="f{i}"', b"x") for i in range(50)]), InvalidInput),
        (form_body(*[('name="file"; filename="a"', b"x")] * 2), InvalidInput),
        (form_body(('name="file"; filename="a"', b"x"))[:-12], InvalidInput),
        (b"hello", InvalidInput),
        (b"", InvalidInput),
    ],
)
def test_forms_that_are_none_are_refused(body: bytes, error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error, match=r"must|cannot"):
        asyncio.run(read_form(pieces(body, 100), "multipart/form-data; boundary=b", tmp_path / "f", 1000))
    assert (tmp_path / "f").stat().st_size <= 1000


def test_two_files_share_one_limit(tmp_path: Path) -> None:
    def read(first: bytes, second: bytes) -> Any:
        body = form_body(('name="file"; filename="a"', first), ('name="other"; filename="b"', second))
        stream, kind = pieces(body, 100), "multipart/form-data; boundary=b"
        places = {"other": tmp_path / "g"}
        return asyncio.run(read_form(stream, kind, tmp_path / "f", 1000, others=places))

    form = read(b"x" * 400, b"y" * 500)
    assert (form.file_name, form.other_names) == ("a", {"other": "b"})
    assert ((tmp_path / "f").read_bytes(), (tmp_path / "g").read_bytes()) == (b"x" * 400, b"y" * 500)
    with pytest.raises(TooLarge) as told:
        read(b"x" * 600, b"y" * 500)
    assert told.value.field == "other"
    assert (tmp_path / "f").stat().st_size + (tmp_path / "g").stat().st_size <= 1000


def test_the_second_file_passes_the_same_check(page: Page, tmp_path: Path) -> None:
    good = ("file", ("a.npz", saved(TEACHER, tmp_path)))
    for other, message in ((b"hello", "must be an .npz archive"), (b"", "must not be empty")):
        parts = [("task", (None, "compare")), good, ("other", ("b.npz", other))]
        refused = page.post("/api/runs", files=parts)
        assert (refused.status_code, refused.json()["field"]) == (422, "other")
        assert message in refused.json()["error"]
        assert str(page.folder) not in refused.json()["error"]
    large = [("task", (None, "compare")), good, ("other", ("b.npz", b"x" * 2**20))]
    assert page.post("/api/runs", files=large).status_code == 413


def test_all_kinds_of_files_are_taken(page: Page, tmp_path: Path) -> None:
    for ending in (".json", ".onnx", ".safetensors"):
        run_id = page.begin(f"../{ending}{ending}", saved(TEACHER, tmp_path, ending), max_queries="10")
        assert page.run(run_id)["found"]["inputs"] == 6
        assert {path.name for path in (page.folder / run_id).iterdir()} <= {
            f"target{ending}",
            "state.json",
            "attempt-1",
            "checkpoint.sqlite",
            "checkpoint.sqlite-wal",
            "checkpoint.sqlite-shm",
        }
        page.post(f"/api/runs/{run_id}/cancel")
