"""Damaged files, stores, results, answers and requests: an `UnweaveError` or a valid result, nothing else.

Some hundred of each kind in the ordinary suite, ten thousand with ``-m slow``. The number of a mutation is
its seed. The first that goes wrong is named.
"""

from __future__ import annotations

import socket
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fuzzing import mutations
from fuzzing.formats import FORMATS, KEY, MODEL, Format, page_client
from fuzzing.mutations import some
from unweave.errors import UnweaveError
from unweave.serving import ReferenceServer

SAMPLE, MANY = 100, 10_000
NAMES = [format.name for format in FORMATS]


def damage(format: Format, count: int, folder: Path) -> Counter[str]:
    """Read ``count`` damaged files; return how often which outcome came, and fail at the first wrong one."""
    seeds = format.seeds(folder)
    path = folder / f"damaged{format.suffix}"
    outcomes: Counter[str] = Counter()
    for seed in range(count):
        rng = np.random.default_rng(seed)
        path.write_bytes(format.mutate(seeds[seed % len(seeds)], rng))
        for left in path.parent.glob(f"{path.name}-*"):
            left.unlink()  # SQLite's own journals of the file before
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                format.read(path)
            outcomes["read"] += 1
        except UnweaveError:
            outcomes["refused"] += 1
        except Exception as error:
            told = f"mutation {seed} of {format.name}: {type(error).__name__}: {error}"
            raise AssertionError(told) from error
    return outcomes


@pytest.mark.parametrize("format", FORMATS, ids=NAMES)
def test_a_sample_of_damage_is_refused_in_words(format: Format, tmp_path: Path) -> None:
    for number, content in enumerate(format.seeds(tmp_path)):
        good = tmp_path / f"good{number}{format.suffix}"
        good.write_bytes(content)
        format.read(good)
    assert damage(format, format.sample, tmp_path)["refused"] > 0 or format.name == "answers of an endpoint"


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS, ids=NAMES)
def test_much_damage_is_refused_in_words(format: Format, tmp_path: Path) -> None:
    outcomes = damage(format, MANY, tmp_path)
    print(f"{format.name}: {dict(outcomes)}")


METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "X")
PATHS = (
    *("/", "/login", "/api/runs", "/api/about", "/static/run.js", "/static/../app.py", "/favicon.ico"),
    *("/api/runs/20260131-120000-1a2b3c4d", "/api/runs/x/cancel", "/api/runs/x/files/log.txt"),
    *("/runs/x", "/runs/x/report", "/api/runs/" + "9" * 3000),
)


def requests_to_the_page(count: int, folder: Path) -> Counter[int]:
    """Send ``count`` damaged requests; return the statuses."""
    forms = next(format for format in FORMATS if format.name == "form of the page").seeds(folder)
    statuses: Counter[int] = Counter()
    with page_client(folder / "runs") as send:
        for seed in range(count):
            rng = np.random.default_rng(seed)
            headers = {"Content-Type": "multipart/form-data; boundary=frontier"}
            if rng.random() < 0.8:
                headers["Authorization"] = f"Bearer {KEY}"
            if rng.random() < 0.5:
                name = some(["Host", "Origin", "Cookie", "Content-Type", "Authorization", "Range"], rng)
                text = mutations.bytes_mutated(headers.get(name, "localhost").encode(), rng)
                headers[name] = "".join(chr(33 + byte % 94) for byte in text[:200])
            posting = rng.random() < 0.5
            method, path = ("POST", "/api/runs") if posting else (some(METHODS, rng), some(PATHS, rng))
            body = mutations.bytes_mutated(some(forms, rng), rng) if posting else rng.bytes(30)
            status = send(method, path, headers, body)
            assert status < 500, f"request {seed}: {method} {path} {headers}: {status}"
            statuses[status] += 1
    return statuses


def test_a_sample_of_requests_does_not_break_the_page(tmp_path: Path) -> None:
    assert requests_to_the_page(SAMPLE, tmp_path).total() == SAMPLE


@pytest.mark.slow
def test_many_requests_do_not_break_the_page(tmp_path: Path) -> None:
    print(f"requests to the page: {dict(requests_to_the_page(MANY, tmp_path))}")


def raw_requests_to_a_model(count: int) -> Counter[str]:
    """Send ``count`` damaged requests, as bytes, to the server of a model; return the first words it says."""
    body = b'{"instances": [[0.5, 1.5, -2.0]]}'
    head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    said: Counter[str] = Counter()
    with ReferenceServer(MODEL) as server:
        port = int(server.url.split(":")[2].split("/")[0])
        for seed in range(count):
            message = mutations.bytes_mutated(head + body, np.random.default_rng(seed))
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(message)
                connection.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda connection=connection: connection.recv(65536), b""))
            assert b" 500 " not in answer[:20], f"request {seed}: {message!r}"
            said[answer[:12].decode("latin-1")] += 1
    return said


def test_a_sample_of_raw_requests_does_not_break_a_served_model() -> None:
    assert raw_requests_to_a_model(SAMPLE).total() == SAMPLE


@pytest.mark.slow
def test_many_raw_requests_do_not_break_a_served_model() -> None:
    print(f"raw requests to a model: {dict(raw_requests_to_a_model(MANY))}")
