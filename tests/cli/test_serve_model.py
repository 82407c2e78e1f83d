"""``unweave serve-model`` as a real process, and recovery through it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app
from unweave.targets.adapters.http_options import HttpOptions
from unweave.targets.adapters.http_target import open_http_target

PATIENCE = 60.0  # seconds, on a busy machine


class Served:
    """A server process; ``url`` is read from its first line."""

    def __init__(self, *arguments: object, **environment: str) -> None:
        command = [sys.executable, "-m", "unweave", "serve-model", *map(str, arguments)]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.line = self.process.stdout.readline()
        self.url = self.line.split()[-1] if self.line else ""

    def counts(self) -> dict[str, int]:
        with httpx.Client(trust_env=False) as client:
            return client.get(self.url.replace("predict", "count")).json()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        stdout, stderr = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, stdout, stderr

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def same_bits(a: unweave.Network, b: unweave.Network) -> bool:
    pairs = zip((*a.weights, *a.biases), (*b.weights, *b.biases), strict=True)
    return all(np.array_equal(p, q) for p, q in pairs)


@pytest.mark.parametrize("ending", [".npz", ".onnx"])
def test_recovery_through_faults_is_the_same_bit_for_bit(tmp_path, ending):
    """5 % of the answers dropped, 5 % late: the same network as in process, every answer paid for once."""
    path = tmp_path / f"net{ending}"
    unweave.random_network([10, 8, 1], activation="tanh", seed=1000, outer="normal").save(path)
    inside = unweave.recover(str(path), seed=5)
    faults = ["--drop", 0.05, "--delay", 0.05, "--delay-seconds", 0.05, "--seed", 1]
    with Served(path, *faults) as served:
        with open_http_target(served.url, HttpOptions(batch_rows=64, backoff_seconds=0.02)) as target:
            outside = unweave.recover(target, seed=5)
            counts = served.counts()
            assert counts["rows_answered"] == outside.queries == inside.queries
            assert counts["rows_dropped"] == target.retried_rows > 0
            assert target.retries == counts["requests"] - (target.requests - target.retries) > 0
        assert outside.status is unweave.Status.RECOVERED
        assert same_bits(outside.network, inside.network)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_line_and_a_clean_stop(tmp_path, number):
    path = tmp_path / "net.npz"
    unweave.random_network([3, 2, 1], seed=1000).save(path)
    with Served(path, "--token-env", "UNWEAVE_SERVE_KEY", UNWEAVE_SERVE_KEY="opensesame") as served:
        assert served.line.startswith(f"Serving {path} (3 inputs, 1 outputs) at http://127.0.0.1:")
        with httpx.Client(trust_env=False, headers={"authorization": "Bearer opensesame"}) as client:
            body = {"instances": [[0.0, 0.0, 0.0]]}
            assert client.post(served.url, json=body).status_code == 200  # and the connection stays open
            code, stdout, stderr = served.stop(number)
    assert (code, stdout, stderr) == (0, "", "")


def test_command_line_through_a_key(tmp_path, monkeypatch):
    net = unweave.random_network([4, 3, 1], activation="tanh", seed=1000, outer="normal")
    path, out = tmp_path / "net.npz", tmp_path / "copy.npz"
    net.save(path)
    with Served(path, "--token-env", "K", "--json", K="opensesame") as served:
        url = json.loads(served.line)["url"]
        monkeypatch.setenv("UNWEAVE_TEST_KEY", "wrongsesame")
        options = ["--http-token-env", "UNWEAVE_TEST_KEY", "--http-batch", "64", "--http-concurrency", "2"]
        refused = CliRunner().invoke(app, ["recover", url, *options])
        assert refused.exit_code == 4, refused.output
        assert "environment variable UNWEAVE_TEST_KEY" in refused.stderr
        assert "sesame" not in refused.output
        monkeypatch.setenv("UNWEAVE_TEST_KEY", "opensesame")
        done = CliRunner().invoke(app, ["recover", url, *options, "--out", str(out), "--json"])
        assert done.exit_code == 0, done.output
        assert "sesame" not in done.output
        looked = CliRunner().invoke(app, ["diagnose", url, *options, "--json"])
        assert looked.exit_code == 0, looked.output
        assert json.loads(looked.stdout)["inputs"] == 4
    assert unweave.compare(net, unweave.load(out)).is_same


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.npz"], "existing file"),
        (["net.npz", "--drop", "0.7", "--corrupt", "0.7"], "at most 1"),
        (["net.npz", "--token-env", "UNWEAVE_NOT_SET"], "UNWEAVE_NOT_SET"),
        (["net.npz", "--host", "0.0.0.0"], "beyond this machine"),
        (["net.npz", "--host", "203.0.113.1", "--token-env", "PATH"], "free to listen on"),
    ],
)
def test_what_cannot_be_served(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    unweave.random_network([3, 2, 1], seed=1000).save("net.npz")
    refused = CliRunner().invoke(app, ["serve-model", *arguments])
    assert refused.exit_code == 2, refused.output
    assert message in refused.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--http-header", "nocolon"], "NAME:VALUE"),
        (["--http-request", "{}"], "exactly one of"),
        (["--http-rate", "0"], "requests_per_second"),
        (["--http-token-env", "UNWEAVE_NOT_SET"], "UNWEAVE_NOT_SET"),
    ],
)
def test_http_options_are_checked(options, message):
    refused = CliRunner().invoke(app, ["recover", "http://127.0.0.1:9/", *options])
    assert refused.exit_code == 2, refused.output
    assert message in refused.stderr
