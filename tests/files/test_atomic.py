"""A file is written whole or not at all: full disks, errors, kills, links and permissions."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from unweave.errors import InvalidInput
from unweave.files import atomic, load, save, write_atomically
from unweave.networks.random import random_network

ENDINGS = [".npz", ".json", ".onnx", ".safetensors"]
POSIX = pytest.mark.skipif(os.name != "posix", reason="links, permissions and signals of POSIX")


def failing_writer(number: int) -> Any:
    """A disk that takes a few bytes and then gives this error."""

    def write(path: Path, fill: Any) -> None:
        def half(file: BinaryIO) -> None:
            file.write(b"half a file")
            raise OSError(number, os.strerror(number))

        write_atomically(path, half)

    return write


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("number", "message"),
    [(errno.ENOSPC, r"room for [\d,]+ bytes.*unchanged"), (errno.EIO, "can be written")],
)
def test_a_full_disk_leaves_the_good_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, number: int, message: str
) -> None:
    path = tmp_path / f"net{ending}"
    good = random_network([3, 4, 1], seed=1020)
    good.save(path)
    monkeypatch.setattr(atomic, "write_atomically", failing_writer(number))
    with pytest.raises(InvalidInput, match=message) as told:
        save(random_network([3, 50, 1], seed=1021), path)
    assert isinstance(told.value.__cause__, OSError)
    assert load(path) == good
    with pytest.raises(InvalidInput, match=message):
        save(good, tmp_path / f"new{ending}")
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@POSIX
def test_a_size_limit_of_the_system_leaves_the_good_file(tmp_path: Path) -> None:
    good = random_network([2, 1], seed=1022)
    names = [f"net{ending}" for ending in ENDINGS]
    for name in names:
        good.save(tmp_path / name)
    code = (
        "import resource, signal, unweave\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "net = unweave.random_network([50, 100, 1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        f"for name in {names!r}:\n"
        "    try:\n"
        "        net.save(name)\n"
        "    except unweave.InvalidInput as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("can be written") == len(ENDINGS)
    assert done.stderr == ""
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(names)
    assert all(load(tmp_path / name) == good for name in names)


@POSIX
def test_a_kill_leaves_the_good_file(tmp_path: Path) -> None:
    path = tmp_path / "net.npz"
    good = random_network([3, 4, 1], seed=1023)
    good.save(path)
    code = (
        "import os, pathlib, signal\n"
        "from unweave.files import write_atomically\n"
        "def half(file):\n"
        "    file.write(b'half a file')\n"
        "    file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomically(pathlib.Path('net.npz'), half)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGKILL
    assert load(path) == good
    (left,) = (entry.name for entry in tmp_path.iterdir() if entry != path)
    assert left.startswith(".net.npz.")
    assert left.endswith(".tmp")


def test_any_error_of_the_writer_removes_the_unfinished_file(tmp_path: Path) -> None:
    def stopped(file: BinaryIO) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", stopped)
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_links_are_followed_and_permissions_kept(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    random_network([2, 1], seed=1024).save(real)
    umask = os.umask(0)
    os.umask(umask)
    assert real.stat().st_mode & 0o777 == 0o666 & ~umask
    real.chmod(0o640)
    link.symlink_to(real)
    net = random_network([2, 1], seed=1025)
    net.save(link)
    assert link.is_symlink()
    assert load(real) == net
    assert real.stat().st_mode & 0o777 == 0o640


@POSIX
def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "net.npz"
    os.mkfifo(pipe)
    with pytest.raises(InvalidInput, match="not a regular file"):
        random_network([2, 1]).save(pipe)
    folder = tmp_path / "net.json"
    folder.mkdir()
    with pytest.raises(InvalidInput, match="not a regular file"):
        random_network([2, 1]).save(folder)
    assert pipe.is_fifo()
    assert folder.is_dir()


@POSIX
def test_whoever_reads_the_old_file_reads_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "net.npz"
    random_network([3, 4, 1], seed=1026).save(path)
    content = path.read_bytes()
    with path.open("rb") as reader:
        begun = reader.read(10)
        random_network([3, 9, 1], seed=1027).save(path)
        assert begun + reader.read() == content
    assert path.read_bytes() != content
