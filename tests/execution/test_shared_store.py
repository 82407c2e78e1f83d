"""Two processes on one store: neither disturbs the other, and nothing that was written is lost."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from unweave.execution.store import open_store

PIECES = 150  # more than are merged into one
WRITER = f"""
import sys
import numpy as np
from unweave.execution.store import open_store
path, own = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
store = open_store(path)
for i in range({PIECES}):
    store.append({{"numbers": np.array([own + i])}})
    if i % 25 == 0:
        open_store(path).close()
        for piece in store.pieces(["numbers"]):
            assert piece["numbers"].size
        store.put(f"{{i:032x}}", [np.array([i])])
        assert store.get(f"{{i:032x}}")[0] == i
store.close()
"""
OPENER = """
import sys
from pathlib import Path
from unweave.execution.store import open_store
print("ready", flush=True)
for i in range(40):
    sys.stdin.readline()
    open_store(Path(sys.argv[1]) / f"{i}.sqlite").close()
    print("opened", flush=True)
"""
RECOVERY = """
import sys
import numpy as np
import unweave
weights = np.array([1.0, -2.0, 0.5])
print("ready", flush=True)
sys.stdin.readline()
result = unweave.recover(lambda x: np.maximum(x @ weights - 0.3, 0.0), input_dim=3, checkpoint=sys.argv[1])
print(result.status.name, result.network.weights[0].ravel()[0].hex())
"""


def start(code, *words):
    """Start a process and wait until it says that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def run_two(code, *arguments):
    """Let two processes go at the same moment, and return what they print."""
    processes = [start(code, *words) for words in arguments]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    ended = [(*process.communicate(timeout=300), process.returncode) for process in processes]
    assert [code for _, _, code in ended] == [0, 0], [told for _, told, _ in ended]
    return [said for said, _, _ in ended]


@pytest.mark.parametrize("name", ["run.sqlite", "run.ckpt"])
def test_two_processes_write_to_one_store(name, tmp_path):
    run_two(WRITER, (tmp_path / name, 0), (tmp_path / name, 1000))
    store = open_store(tmp_path / name)
    found = {int(n) for piece in store.pieces(["numbers"]) for n in piece["numbers"]}
    store.close()
    assert found == {own + i for own in (0, 1000) for i in range(PIECES)}


def test_two_recoveries_share_a_checkpoint(tmp_path):
    one, other = run_two(RECOVERY, (tmp_path / "run",), (tmp_path / "run",))
    assert one == other
    assert one.startswith("RECOVERED")
    assert np.isfinite(float.fromhex(one.split()[1]))


def test_two_processes_make_a_new_file_at_once(tmp_path):
    processes = [start(OPENER, tmp_path) for _ in range(2)]
    for _ in range(40):
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        assert [process.stdout.readline() for process in processes] == ["opened\n"] * 2
    for process in processes:
        assert process.communicate(timeout=60)[1] == ""
