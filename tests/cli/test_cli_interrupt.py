"""Ctrl-C on a real process whose target is slow."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

SLOW = """\
import time
from pathlib import Path

def f(x):
    Path("asked").touch()
    time.sleep(0.2)
    return (x ** 2).sum(axis=1)
"""
PATIENCE = 30.0  # seconds, on a busy machine


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_tells_what_was_found(tmp_path, as_json):
    (tmp_path / "planted_slow.py").write_text(SLOW, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "unweave",
        "recover",
        "planted_slow:f",
        "--inputs",
        "5",
        "--out",
        "n.npz",
    ]
    process = subprocess.Popen(
        [*command, "--json"] if as_json else command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background shells ignore it
    )
    began = time.monotonic()
    while not (tmp_path / "asked").exists() and time.monotonic() - began < PATIENCE:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert not (tmp_path / "n.npz").exists()
    if as_json:
        content = json.loads(stdout)
        assert content["interrupted"] is True
        assert content["queries"] > 0
        assert content["stages"][0]["name"] == "look"
    else:
        lines = stdout.splitlines()
        assert lines[0].startswith("Interrupted: ")
        assert lines[-1].startswith("INTERRUPTED no network, ")
