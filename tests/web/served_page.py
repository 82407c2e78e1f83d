"""The page as a real process, and how the tests talk to it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

import unweave
from unweave.web.run_folder import ENDED

PATIENCE = 60.0
"""Seconds, on a busy machine."""
ENDED_NAMES = {status.name for status in ENDED}
KEY = "correct-horse-battery-staple"
"""Of the page that has one."""
TEACHER = unweave.random_network([6, 4, 1], seed=1000, outer="normal")


class Page:
    """``unweave serve`` on a free port; ``get`` and ``post`` speak as the page itself does."""

    def __init__(self, folder: Path, *arguments: object, **environment: str) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "unweave", "serve", "--port", "0", "--folder", str(folder)]
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate()[1])
        self.entrance = line.split()[-1]  # with the key, if the page made one
        self.url = self.entrance.split("?")[0].rstrip("/")
        self.client = httpx.Client(
            base_url=self.url, trust_env=False, timeout=PATIENCE, headers={"Origin": self.url}
        )
        self.client.get(self.entrance)  # the key becomes a cookie

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.client.post(path, **options)

    def send(self, name: str | None = None, content: bytes = b"", **fields: str) -> httpx.Response:
        """Send the form, with a file if it has a name."""
        parts: list[tuple[str, Any]] = [(key, (None, value)) for key, value in fields.items()]
        if name is not None:
            parts.append(("file", (name, content)))
        return self.post("/api/runs", files=parts)

    def begin(self, name: str | None = None, content: bytes = b"", **fields: str) -> str:
        """Begin a run and return its name."""
        response = self.send(name, content, **fields)
        assert response.status_code == 201, response.text
        return response.json()["id"]

    def run(self, run_id: str) -> dict[str, Any]:
        return self.get(f"/api/runs/{run_id}").json()

    def runs(self) -> dict[str, str]:
        """Name -> status of every run that is listed."""
        return {run["id"]: run["status"] for run in self.get("/api/runs").json()["runs"]}

    def wait(
        self, run_id: str, until: Callable[[dict[str, Any]], bool], seconds: float = PATIENCE
    ) -> dict[str, Any]:
        """Look until the run is as wanted."""
        found: list[dict[str, Any]] = []

        def look() -> bool:
            found[:] = [self.run(run_id)]
            return until(found[0])

        poll(look, seconds, lambda: f"it is {found}")
        return found[0]

    def wait_end(self, run_id: str) -> dict[str, Any]:
        return self.wait(run_id, lambda run: run["status"] in ENDED_NAMES)

    def kill(self) -> None:
        """SIGKILL: the server cannot do anything about it."""
        self.process.kill()
        self.close()

    def close(self) -> int:
        self.client.close()
        try:
            self.process.communicate(timeout=PATIENCE)
        finally:
            self.process.kill()
        return self.process.returncode

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.close()


def poll(done: Callable[[], bool], seconds: float = PATIENCE, told: Callable[[], str] = str) -> None:
    """Look until it is done."""
    last = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < last, told()
        time.sleep(0.05)


def saved(network: unweave.Network, folder: Path, ending: str = ".npz") -> bytes:
    """The network as a file's content."""
    path = folder / f"saved{ending}"
    network.save(path)
    return path.read_bytes()


def asked(run: dict[str, Any]) -> int:
    """Rows that a run is known to have asked."""
    return run["progress"]["queries"] if run["progress"] else 0
