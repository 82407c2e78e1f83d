"""Endpoints and commands that hang, drip or flood: every call ends, within the deadline if there is one."""

from __future__ import annotations

import gzip
import resource
import socket
import sys
import threading
import time
import zlib
from contextlib import contextmanager

import numpy as np
import pytest

import unweave
from unweave.errors import PartialAnswers, TargetError
from unweave.serving import ReferenceServer, ServedModel
from unweave.targets.adapters.command_target import CommandTarget
from unweave.targets.adapters.http_options import HttpOptions
from unweave.targets.adapters.http_target import open_http_target

NET = unweave.random_network([3, 2, 1], seed=0)
ROWS = np.ones((2, 3))
LATEST = 20.0  # seconds: far above what is allowed below, far below what each of these took
SILENT = "import time\ntime.sleep(600)"
ENDLESS = "import sys\nwhile True: sys.stdout.write('1' * 65536)"
TOO_LATE = """
import sys, time
sys.stdin.readline()
print(0.5, flush=True)
time.sleep(600)
"""


@contextmanager
def listening(behave):
    """A server that does ``behave(connection)`` with every connection."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.2)
    over = threading.Event()

    def accept():
        while not over.is_set():
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            threading.Thread(target=run, args=(connection,), daemon=True).start()

    def run(connection):
        with connection:
            try:
                connection.recv(1 << 16)
                behave(connection, over)
            except OSError:
                pass

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/predict"
    finally:
        over.set()
        server.close()


def hang(connection, over):
    over.wait()


def drip(connection, over):
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not over.wait(0.05):
        connection.sendall(b"x")


def drip_body(connection, over):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not over.wait(0.05):
        connection.sendall(b" ")


def answering(body, *headers):
    head = "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "", ""])
    return lambda connection, over: connection.sendall(head.encode() + body)


def once(url, **options):
    return open_http_target(url, HttpOptions(n_inputs=3, retries=0, **options))


@pytest.mark.parametrize("behave", [hang, drip, drip_body])
def test_an_endpoint_that_does_not_end_its_answer_is_cut_off(behave):
    began = time.monotonic()
    with (
        listening(behave) as url,
        once(url, timeout_seconds=0.3) as target,
        pytest.raises(PartialAnswers, match=r"within 0\.3 s"),
    ):
        target(ROWS)
    assert time.monotonic() - began < LATEST


@pytest.mark.parametrize("behave", [hang, drip, drip_body])
def test_the_deadline_reaches_an_endpoint_that_hangs(behave):
    began = time.monotonic()
    with listening(behave) as url:
        result = unweave.recover(url, input_dim=3, deadline=0.5)
        assert result.status is unweave.Status.FAILED
        assert "deadline" in result.message
        with pytest.raises(TargetError, match=r"deadline|within"):
            unweave.recover(url, deadline=0.5)  # metadata is asked for first
    assert time.monotonic() - began < LATEST


def test_the_deadline_ends_the_search_for_an_address(monkeypatch):
    over, search = threading.Event(), socket.getaddrinfo

    def never_found(host, *how, **else_):
        if host == "endpoint.invalid":
            over.wait(2 * LATEST)
            raise socket.gaierror("no such name")
        return search(host, *how, **else_)

    monkeypatch.setattr(socket, "getaddrinfo", never_found)
    began = time.monotonic()
    try:
        result = unweave.recover("http://endpoint.invalid/predict", input_dim=3, deadline=0.5)
        assert result.status is unweave.Status.FAILED
        assert "deadline" in result.message
        assert time.monotonic() - began < LATEST
    finally:
        over.set()


def test_the_deadline_ends_retries_and_keeps_what_was_found():
    hanging = threading.Event()

    def model(x):
        if hanging.is_set():
            time.sleep(600)
        return NET(x)

    def progress(told):
        if told.queries > 200:
            hanging.set()

    began = time.monotonic()
    with ReferenceServer(ServedModel(model, 3, 1)) as server:
        result = unweave.recover(server.url, deadline=3.0, progress=progress)
    assert time.monotonic() - began < LATEST
    assert result.queries > 200
    assert "deadline" in result.message


@pytest.mark.parametrize("times", [1, 2])
def test_an_answer_that_unpacks_to_gigabytes_is_refused(times):
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(2**20)) for _ in range(400)) + packer.flush()
    bomb = gzip.compress(bomb, 9) if times == 2 else bomb
    names = ", ".join(["gzip"] * times)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with (
        listening(answering(bomb, f"Content-Encoding: {names}")) as url,
        once(url, max_answer_bytes=2**20) as target,
        pytest.raises(PartialAnswers, match=r"at most 1048576 bytes|packed with"),
    ):
        target(ROWS)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 50 * 1024  # kilobytes


def test_a_packed_answer_is_read():
    body = gzip.compress(b'{"predictions": [[0.5], [1.5]]}')
    with listening(answering(body, "Content-Encoding: gzip")) as url, once(url) as target:
        np.testing.assert_array_equal(target(ROWS), [[0.5], [1.5]])


@pytest.mark.parametrize(
    "body",
    [b"not packed at all", gzip.compress(b'{"predictions": [[0.5]]}', mtime=0)[:-9]],
    ids=["not packed", "cut"],
)
def test_a_badly_packed_answer_is_told(body):
    with (
        listening(answering(body, "Content-Encoding: gzip")) as url,
        once(url) as target,
        pytest.raises(PartialAnswers, match="DecodingError"),
    ):
        target(ROWS)


@pytest.mark.parametrize("code", [SILENT, TOO_LATE])
def test_the_deadline_reaches_a_command(code):
    began = time.monotonic()
    with CommandTarget([sys.executable, "-c", code], input_dim=3) as target:
        result = unweave.recover(target, deadline=1.0)
    assert time.monotonic() - began < LATEST
    assert "deadline" in result.message


def test_a_line_without_end_is_refused():
    with (
        CommandTarget([sys.executable, "-c", ENDLESS], input_dim=3) as target,
        pytest.raises(PartialAnswers, match="one line per row, of at most"),
    ):
        target(ROWS)
