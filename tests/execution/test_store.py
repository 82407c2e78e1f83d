"""Both stores give back what they were given, survive half-written files, and refuse what is not theirs."""

from __future__ import annotations

import errno
import os
import sqlite3

import numpy as np
import pytest

from unweave.errors import CheckpointError, InvalidInput
from unweave.execution import npz_store
from unweave.execution.npz_store import NpzStore
from unweave.execution.sqlite_store import SqliteStore
from unweave.execution.store import open_store

KINDS = ("run.sqlite", "run.ckpt")


def piece(i: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1000 + i)
    return {"rows": rng.standard_normal((i % 3 + 1, 2)), "numbers": np.full(i % 3 + 1, i)}


@pytest.mark.parametrize("name", KINDS)
def test_pieces_come_back_in_order_and_bit_for_bit(name, tmp_path):
    store = open_store(tmp_path / name)
    given = [piece(i) for i in range(10)]
    for arrays in given:
        store.append(arrays)
    store.close()
    again = open_store(tmp_path / name)
    found = list(again.pieces(["rows", "numbers"]))
    for key in ("rows", "numbers"):
        expected = np.concatenate([arrays[key] for arrays in given])
        np.testing.assert_array_equal(np.concatenate([arrays[key] for arrays in found]), expected)
    assert [set(arrays) for arrays in again.pieces(["numbers"])] == [{"numbers"}] * 10
    again.close()


@pytest.mark.parametrize("name", KINDS)
def test_results_keep_type_shape_and_the_first_value(name, tmp_path):
    store = open_store(tmp_path / name)
    arrays = (np.float32([[1.5, -0.0]]), np.zeros((0, 3)), np.array(7, dtype=np.int64))
    store.put("key", arrays)
    store.put("key", (np.ones(1),))
    store.close()
    again = open_store(tmp_path / name)
    found = again.get("key")
    assert again.get("other") is None
    assert [array.dtype for array in found] == [array.dtype for array in arrays]
    assert [array.shape for array in found] == [(1, 2), (0, 3), ()]
    assert all(a.tobytes() == b.tobytes() for a, b in zip(found, arrays, strict=True))
    again.close()


@pytest.mark.parametrize("name", KINDS)
def test_the_header_is_replaced_as_a_whole(name, tmp_path):
    store = open_store(tmp_path / name)
    assert store.header() == {}
    store.write_header({"inputs": 3, "target": None, "format": "x"})
    store.write_header({"inputs": 4, "target": "abc"})
    assert store.header() == {"inputs": 4, "target": "abc"}
    store.close()


def test_many_small_pieces_are_merged_in_order(tmp_path):
    store = NpzStore(tmp_path / "run", most_small_pieces=5)
    for i in range(23):
        store.append(piece(i))
    assert len(list((tmp_path / "run" / "pieces").iterdir())) < 8
    for reader in (store, NpzStore(tmp_path / "run")):
        numbers = np.concatenate([arrays["numbers"] for arrays in reader.pieces(["numbers"])])
        np.testing.assert_array_equal(numbers, np.concatenate([piece(i)["numbers"] for i in range(23)]))


def test_a_half_written_file_is_forgotten_unless_somebody_may_be_writing_it(tmp_path):
    NpzStore(tmp_path / "run").append(piece(1))
    pieces = tmp_path / "run" / "pieces"
    abandoned, fresh = (
        pieces / "00000002-00000000.npz.17.partial",
        pieces / "00000003-00000000.npz.18.partial",
    )
    abandoned.write_bytes(b"half")
    os.utime(abandoned, (0, 0))
    fresh.write_bytes(b"half")
    assert len(list(NpzStore(tmp_path / "run").pieces(["rows"]))) == 1
    assert list(pieces.glob("*.partial")) == [fresh]


def test_stray_files_are_left_alone(tmp_path):
    NpzStore(tmp_path / "run").append(piece(1))
    pieces = tmp_path / "run" / "pieces"
    for name in ("notes.npz", "copy of 00000001-00000000.npz", "x-00000000.npz", "readme.txt"):
        (pieces / name).write_bytes(b"hello")
    (pieces / "00000005-00000000.npz").symlink_to("nowhere")
    store = NpzStore(tmp_path / "run")
    store.append(piece(2))
    assert len(list(store.pieces(["rows"]))) == 2


def test_a_piece_that_another_process_merges_meanwhile_is_found_where_it_went(tmp_path):
    writer = NpzStore(tmp_path / "run", most_small_pieces=4)
    for i in range(3):
        writer.append(piece(i))
    reading = NpzStore(tmp_path / "run").pieces(["numbers"])
    found = [next(reading)]
    writer.append(piece(3))  # merges the four
    found += list(reading)
    assert {int(number) for arrays in found for number in arrays["numbers"]} == {0, 1, 2, 3}


def test_an_array_that_changed_on_disk_is_refused(tmp_path):
    store = SqliteStore(tmp_path / "run.sqlite")
    store.append({"rows": np.full((3, 2), 1.5)})
    store.put("key", [np.full(4, 2.5)])
    store.close()
    file = tmp_path / "run.sqlite"
    for number in (1.5, 2.5):
        file.write_bytes(
            file.read_bytes().replace(np.float64(number).tobytes(), np.float64(9.5).tobytes(), 1)
        )
    damaged = SqliteStore(file)
    with pytest.raises(InvalidInput, match=r"run\.sqlite.*differs from what was written"):
        list(damaged.pieces(["rows"]))
    with pytest.raises(InvalidInput, match=r"run\.sqlite.*differs from what was written"):
        damaged.get("key")
    damaged.close()


def test_a_damaged_piece_is_named(tmp_path):
    NpzStore(tmp_path / "run").append(piece(1))
    (file,) = (tmp_path / "run" / "pieces").iterdir()
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(InvalidInput, match=file.name):
        list(NpzStore(tmp_path / "run").pieces(["rows"]))


def test_others_may_read_while_a_run_writes(tmp_path):
    writer, reader = SqliteStore(tmp_path / "run.db"), SqliteStore(tmp_path / "run.db")
    writer.append(piece(0))
    reading = reader.pieces(["rows"])
    next(reading)
    writer.append(piece(1))
    assert len(list(reader.pieces(["rows"]))) == 2
    reading.close()
    writer.close()
    reader.close()


def test_what_belongs_to_somebody_else_is_refused_and_untouched(tmp_path):
    (tmp_path / "text.sqlite").write_text("not a database, though it is called one " * 50)
    with pytest.raises(InvalidInput, match=r"text\.sqlite"):
        open_store(tmp_path / "text.sqlite")
    other = sqlite3.connect(tmp_path / "other.sqlite")
    other.execute("CREATE TABLE customers(name)")
    other.close()
    before = (tmp_path / "other.sqlite").read_bytes()
    with pytest.raises(InvalidInput, match="another program"):
        open_store(tmp_path / "other.sqlite")
    assert (tmp_path / "other.sqlite").read_bytes() == before
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "letter.txt").write_text("dear")
    with pytest.raises(InvalidInput, match="other files"):
        open_store(tmp_path / "folder")
    with pytest.raises(InvalidInput, match="folder"):
        open_store(tmp_path / "nowhere" / "run.sqlite")
    with pytest.raises(InvalidInput, match="folder"):
        open_store(tmp_path / "text.sqlite" / "run")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="folder"):
        open_store(tmp_path / "file")
    (tmp_path / "d.sqlite").mkdir()
    with pytest.raises(InvalidInput, match="file"):
        open_store(tmp_path / "d.sqlite")


def test_a_full_disk_names_the_store_and_leaves_it_whole(tmp_path, monkeypatch):
    store = SqliteStore(tmp_path / "run.sqlite")
    store.append(piece(0))
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count={pages + 2}")  # SQLite's own way to be full
    with pytest.raises(CheckpointError, match=r"run\.sqlite.*full"):
        store.append({"rows": np.zeros((10_000, 2)), "numbers": np.zeros(10_000)})
    assert len(list(store.pieces(["rows"]))) == 1
    store.close()

    folder = NpzStore(tmp_path / "run")
    folder.append(piece(0))

    def full(stream, **_):
        stream.write(b"half a file")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(npz_store.np, "savez", full)
    with pytest.raises(CheckpointError, match=r"run.*No space left"):
        folder.append(piece(1))
    monkeypatch.undo()
    assert len(list(NpzStore(tmp_path / "run").pieces(["rows"]))) == 1
    assert len(list((tmp_path / "run" / "pieces").iterdir())) == 1
