"""The command blocks of README and pages are run, in a folder that holds what the reader has by then.

Lines that set up an environment are left to `test_packaging`, the model of README to `test_readme`. Ports are
replaced by free ones.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app
from unweave.serving import ReferenceServer, ServedModel

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("tutorials/*")),
]
SETS_UP = re.compile(r"(pip|python3 -m venv|\. \.venv|export|make|\.venv/bin/python -m build)\b")
SHELL = {"http.md": "a session with a job in the background"}
"""Pages whose block needs a shell."""
PATIENCE = 300.0  # seconds, on a busy machine

MODULE = """
import unweave

def predict(x):
    return unweave.random_network([x.shape[1], 2, 1], seed=0, outer="normal")(x)

class Model:
    predict = __call__ = staticmethod(predict)

model = Model()
"""


def command_blocks(page: Path) -> list[str]:
    """Return the ``sh`` blocks of a page, continued lines joined."""
    text = page.read_text(encoding="utf-8")
    return [block.replace("\\\n", " ") for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)]


def lines_to_run() -> list[tuple[str, str]]:
    """Return (page, command), every command once."""
    seen: dict[str, str] = {}
    for page in PAGES:
        if page.name in SHELL:
            continue
        for line in "\n".join(command_blocks(page)).splitlines():
            words = shlex.join(shlex.split(line, comments=True))
            if words and not SETS_UP.match(words) and not words.startswith("unweave recover examples."):
                seen.setdefault(words, page.name)
    return [(page, words) for words, page in seen.items()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the pages take for granted: models, their copies, a table."""
    place = tmp_path
    network = unweave.random_network([6, 4, 1], seed=0, outer="normal")
    for name in ("model.onnx", "copy.npz", "copy.onnx", "state.safetensors"):
        network.save(place / name)
    for name in ("models.py", "mymodule.py"):
        (place / name).write_text(MODULE, encoding="utf-8")
    for name, page in {"my_model.py": "start.md", "model.py": "choose.md"}.items():
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        code = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)[0]
        (place / name).write_text(code, encoding="utf-8")
    x = np.random.default_rng(0).standard_normal((400, 6))
    np.savetxt(place / "samples.csv", np.column_stack([x, network(x)]), delimiter=",")
    return place


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    network = unweave.random_network([6, 4, 1], seed=0, outer="normal")
    with ReferenceServer(ServedModel(network, n_inputs=6, n_outputs=1)) as server:
        yield server.url


@pytest.fixture
def at_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stand in the reader's folder; its modules are forgotten afterwards."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    before = set(sys.modules)
    yield
    for name in {"models", "mymodule", "my_model"} - before:
        sys.modules.pop(name, None)


def as_here(line: str, url: str) -> list[str]:
    """Return the words of a command with the endpoint of this test in the place of the page's."""
    return [re.sub(r"^http://127\.0\.0\.1:\d+/predict$", url, word) for word in shlex.split(line)]


@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize(("page", "line"), lines_to_run(), ids=lambda text: text.replace("unweave ", "")[:60])
def test_the_command_does_what_the_page_says(page: str, line: str, endpoint: str) -> None:
    program, *words = as_here(line, endpoint)
    assert program == "unweave", f"{page} has a line that nobody runs: {line}"
    if words[0] == "serve":
        assert stopped_server() == 0
        return
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    if words[0] in ("recover", "demo"):
        assert "RECOVERED" in told.output
    for option, name in pairwise(words):
        assert option not in ("--out", "--report", "--trace", "--checkpoint") or Path(name).is_file()


def stopped_server() -> int:
    """Start the page, read its address, stop it."""
    command = [sys.executable, "-m", "unweave", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "http://127.0.0.1:" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        return process.wait(PATIENCE)


@pytest.mark.usefixtures("at_home")
def test_the_rehearsal_of_an_endpoint() -> None:
    (block,) = command_blocks(ROOT / "docs" / "http.md")
    port = free_port()
    told = subprocess.run(
        ["bash", "-m", "-c", block.replace("8080", str(port))],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert "same bits" in told.stdout, told.stderr
    assert '"rows_answered"' in told.stdout


def free_port() -> int:
    import socket

    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])
