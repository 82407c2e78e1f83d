"""Damage on purpose, from a seed: to bytes, to JSON, to archives of arrays, to databases."""

from __future__ import annotations

import copy
import io
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.random import Generator

Mutation = Callable[[bytes, Generator], bytes]

WRONG: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf")),
    *("", "x", "tanh", "../escape", "\x00", "\ud800", "a" * 5000, [], [[]], [1], [[1.0, "x"]], {}, {"a": 1}),
)
"""Values that a field of JSON may have instead of its own."""
_WORDS = (b"\x00", b"\xff" * 8, b"\x7f\xff\xff\xff", b"\x00" * 8, b"{", b"]", b'"', b",", b"\n", b"1e999")


def some(values: Sequence[Any], rng: Generator) -> Any:
    """Return one of ``values``."""
    place = int(rng.integers(len(values)))
    return values[place]


def bytes_mutated(content: bytes, rng: Generator) -> bytes:
    """Flip, cut, insert, delete, repeat or swap; once or a few times."""
    for _ in range(int(rng.integers(1, 5))):
        content = some(_BYTES, rng)(content, rng)
    return content


def _place(content: bytes, rng: Generator) -> int:
    return int(rng.integers(0, max(1, len(content))))


def _flip(content: bytes, rng: Generator) -> bytes:
    damaged = bytearray(content)
    for _ in range(int(rng.integers(1, 9))):
        if damaged:
            damaged[_place(content, rng)] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def _cut(content: bytes, rng: Generator) -> bytes:
    return content[: _place(content, rng)]


def _insert(content: bytes, rng: Generator) -> bytes:
    at = _place(content, rng)
    given = rng.bytes(int(rng.integers(1, 20))) if rng.random() < 0.5 else some(_WORDS, rng)
    return content[:at] + given + content[at:]


def _delete(content: bytes, rng: Generator) -> bytes:
    at = _place(content, rng)
    return content[:at] + content[at + int(rng.integers(1, 40)) :]


def _overwrite(content: bytes, rng: Generator) -> bytes:
    at, word = _place(content, rng), some(_WORDS, rng)
    return content[:at] + word + content[at + len(word) :]


def _swap(content: bytes, rng: Generator) -> bytes:
    a, b, c = sorted(_place(content, rng) for _ in range(3))
    return content[:a] + content[b:c] + content[a:b] + content[c:]


def _repeat(content: bytes, rng: Generator) -> bytes:
    a, b = sorted(_place(content, rng) for _ in range(2))
    return content[:b] + content[a:b] + content[b:]


_BYTES: tuple[Mutation, ...] = (_flip, _cut, _insert, _delete, _overwrite, _swap, _repeat)


def json_mutated(content: bytes, rng: Generator) -> bytes:
    """Give some value another type, or drop, rename or double it; or damage the text."""
    if rng.random() < 0.3:
        return bytes_mutated(content, rng)
    return json.dumps(value_mutated(json.loads(content), rng)).encode("utf-8", "surrogatepass")


def value_mutated(value: Any, rng: Generator) -> Any:
    """Return a copy of a value of JSON with one or a few places changed."""
    value = copy.deepcopy(value)
    for _ in range(int(rng.integers(1, 4))):
        places: list[tuple[Any, Any]] = []
        _collect(value, places)
        if not places:
            return some(WRONG, rng)
        holder, key = some(places, rng)
        kind = rng.random()
        if kind < 0.7:
            holder[key] = copy.deepcopy(some(WRONG, rng))
        elif isinstance(holder, dict):
            moved = holder.pop(key)
            if kind < 0.85:
                holder[f"{key}x"] = moved
        elif kind < 0.85:
            del holder[key]
        else:
            holder.append(holder[key])
    return value


def _collect(value: Any, places: list[tuple[Any, Any]]) -> None:
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        places.append((value, key))
        _collect(value[key], places)


def archive_mutated(content: bytes, rng: Generator) -> bytes:
    """Damage an .npz file: its bytes, or arrays that are missing, renamed, of another kind, or none."""
    kind = rng.random()
    if kind < 0.35:
        return bytes_mutated(content, rng)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = list(members)
    chosen = some(names, rng)
    if kind < 0.45:
        del members[chosen]
    elif kind < 0.55:
        members[some(names, rng)] = members[chosen]
    elif kind < 0.65:
        renamed = some(("x" + chosen, "../" + chosen, chosen + "x", "weight_9.npy"), rng)
        members[renamed] = members.pop(chosen)
    elif kind < 0.75:
        members[chosen] = bytes_mutated(members[chosen], rng)
    else:
        members[chosen] = hostile_array(members[chosen], rng)
    return zipped(members, int(rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])))


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive of ``members``."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return buffer.getvalue()


def hostile_array(content: bytes, rng: Generator) -> bytes:
    """Return another .npy file: objects, other shapes, other types, sizes that are lies."""
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError):
        array = np.zeros(3)
    choices: list[Callable[[], Any]] = [
        lambda: array[None],
        lambda: array.ravel()[:-1],
        lambda: array.astype("S8"),
        lambda: np.array("text"),
        lambda: np.array(json.dumps(some(WRONG[:14], rng), default=str)),
        lambda: np.full(array.shape, np.nan),
        lambda: np.zeros(array.shape, complex),
        lambda: np.zeros((0, 3)),
        lambda: np.zeros(array.shape, [("a", "f8")]),
        lambda: np.array(0, "M8[s]"),
        lambda: np.full(array.shape, 1e300),
        lambda: array.astype("f4") if array.dtype.kind == "f" else array,
    ]
    buffer = io.BytesIO()
    if rng.random() < 0.3:
        shape = some(((10**12,), (2**62, 4), (-1,), (2, 2, 2, 2, 10**6), (0, 10**15)), rng)
        kind = some(("<f8", "|O", "<U10", "|V4", "<c16"), rng)
        header = {"descr": kind, "fortran_order": bool(rng.integers(2)), "shape": shape}
        np.lib.format.write_array_header_1_0(buffer, header)  # type: ignore[arg-type]
        buffer.write(b"\x80\x04]." + bytes(64))
    else:
        np.save(buffer, some(choices, rng)(), allow_pickle=True)
    return buffer.getvalue()


def npy_mutated(content: bytes, rng: Generator) -> bytes:
    """Damage an .npy file."""
    return (bytes_mutated if rng.random() < 0.5 else hostile_array)(content, rng)


def tensors_mutated(content: bytes, rng: Generator) -> bytes:
    """Damage a .safetensors file: its bytes, or the JSON of its head."""
    if rng.random() < 0.5:
        return bytes_mutated(content, rng)
    length = int.from_bytes(content[:8], "little")
    head = json_mutated(content[8 : 8 + length], rng)
    said = len(head) if rng.random() < 0.8 else int(rng.integers(2**40))
    return said.to_bytes(8, "little") + head + content[8 + length :]


def graph_mutated(content: bytes, rng: Generator) -> bytes:
    """Damage an .onnx file: its bytes, or what a tensor or an operator says."""
    if rng.random() < 0.5:
        return bytes_mutated(content, rng)
    model = onnx.load_model_from_string(content)
    graph = model.graph
    node, tensor = (some(part, rng) for part in (graph.node, graph.initializer))
    words = ("Gemm", "MatMul", "Add", "Tanh", "Softmax", "Reshape", "Cast", "Loop", "Constant", "Clip", "x")
    changes: list[Callable[[], Any]] = [
        lambda: setattr(node, "op_type", some(words, rng)),
        lambda: setattr(node, "domain", "elsewhere"),
        lambda: node.input.append(node.output[0]),
        lambda: node.input.reverse() if hasattr(node.input, "reverse") else None,
        lambda: node.ClearField("input"),
        lambda: node.attribute.add(name="axis", type=2, i=int(rng.integers(-9, 9))),
        lambda: node.attribute.add(name="to", type=2, i=int(rng.integers(99))),
        lambda: node.attribute.add(name="value", type=7),
        lambda: tensor.dims.append(int(rng.choice([0, 1, -1, 2**40]))),
        lambda: setattr(tensor, "data_type", int(rng.integers(0, 30))),
        lambda: setattr(tensor, "raw_data", tensor.raw_data[: int(rng.integers(40))]),
        lambda: setattr(tensor, "data_location", 1),
        lambda: graph.ClearField("output"),
        lambda: graph.input.append(graph.input[0]),
        lambda: graph.node.append(node),
        lambda: graph.initializer.append(tensor),
        lambda: model.ClearField("opset_import"),
    ]
    for _ in range(int(rng.integers(1, 4))):
        some(changes, rng)()
    damaged: bytes = model.SerializeToString()
    return damaged


def database_mutated(content: bytes, rng: Generator) -> bytes:
    """Damage an SQLite file: its bytes, or what a cell holds, or its tables."""
    if rng.random() < 0.5:
        return bytes_mutated(content, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.sqlite"
        path.write_bytes(content)
        connection = sqlite3.connect(path, isolation_level=None)
        columns = [
            (table, column[1])
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for column in connection.execute(f"PRAGMA table_info({table})")
        ]
        table, column = some(columns, rng)
        value = some((None, 0, -1, 2**62, 0.5, "", "x", "<f8", "|O", "1,2", "9" * 9, b"", bytes(9)), rng)
        commands: list[tuple[str, tuple[Any, ...]]] = [
            (f"UPDATE OR IGNORE {table} SET {column} = ?", (value,)),
            (f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = 1", (value,)),
            ("DELETE FROM header WHERE name = (SELECT name FROM header ORDER BY random() LIMIT 1)", ()),
            (f"DELETE FROM {table}", ()),
            (f"DROP TABLE {table}", ()),
            (f"ALTER TABLE {table} RENAME COLUMN {column} TO other", ()),
            (f"ALTER TABLE {table} ADD COLUMN more", ()),
        ]
        with suppress(sqlite3.Error):  # not every table has every column
            connection.execute(*some(commands, rng))
        connection.close()
        return path.read_bytes()
