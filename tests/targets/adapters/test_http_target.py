"""The adapter against a real server on loopback: same bits, no answer lost, none paid for twice."""

from __future__ import annotations

import pickle
import threading
import time

import numpy as np
import pytest

import unweave
from unweave.errors import InterruptedAnswers, PartialAnswers, TargetError
from unweave.serving import Faults, ReferenceServer, ServedModel
from unweave.targets.adapters.http_options import HttpOptions
from unweave.targets.adapters.http_target import HttpTarget, open_http_target
from unweave.targets.queries import Queries

NET = unweave.random_network([5, 4, 2], activation="tanh", seed=1000, outer="normal")
ROWS = np.random.default_rng(1000).standard_normal((1000, 5))
PATIENCE = 30.0  # seconds, on a busy machine
QUICK = {"backoff_seconds": 0.002}


def serve(function=NET, **faults) -> ReferenceServer:
    return ReferenceServer(ServedModel(function, 5, 2), faults=Faults(**faults))


def opened(server: ReferenceServer, **options) -> HttpTarget:
    return open_http_target(server.url, HttpOptions(**QUICK, **options))


def test_same_bits_and_one_connection_each():
    with serve() as server, opened(server, batch_rows=64, concurrency=3) as target:
        assert (target.n_inputs, target.n_outputs) == (5, 2)
        for _ in range(3):
            np.testing.assert_array_equal(target(ROWS), NET(ROWS))
        assert server.counts["rows_answered"] == 3000
        assert target.requests == server.counts["requests"] == 3 * 16
        assert server.counts["connections"] <= 3


def test_small_calls():
    with serve() as server, opened(server) as target:
        assert target(ROWS[:0]).shape == (0, 2)
        np.testing.assert_array_equal(target(ROWS[:1]), NET(ROWS[:1]))
        assert server.counts["rows_answered"] == 1


def test_one_row_per_request():
    with serve() as server, opened(server, batch_rows=1, concurrency=2) as target:
        expected = np.concatenate([NET(row[None]) for row in ROWS[:20]])
        np.testing.assert_array_equal(target(ROWS[:20]), expected)
        assert target.requests == 20


@pytest.mark.parametrize(("n_inputs", "rows"), [(5, 1024), (64, 1024), (784, 64), (3000, 21), (100_000, 1)])
def test_default_batches(n_inputs, rows):
    """Cut at multiples of 64 where that fits: there linear algebra gives the same bits as in one piece."""
    target = open_http_target("http://127.0.0.1:9/", HttpOptions(n_inputs=n_inputs))
    with target:
        assert target.batch_rows == rows
        assert target.rows_per_call % rows == 0


def test_faults_do_not_change_a_bit():
    with (
        serve(drop=0.15, delay=0.1, delay_seconds=0.01, corrupt=0.2, seed=2) as server,
        opened(server, batch_rows=16, retries=12) as target,
    ):
        queries = Queries(target, 5)
        np.testing.assert_array_equal(queries(ROWS), NET(ROWS))
        counts = server.counts
        assert counts["rows_answered"] == queries.sent == 1000
        assert counts["rows_dropped"] > 0
        assert counts["rows_corrupted"] > 0
        assert target.retried_rows == counts["rows_dropped"] + counts["rows_corrupted"]
        assert target.requests == target.retries + 63


def test_answers_that_came_too_late_are_asked_again_and_counted_once():
    with (
        serve(delay=0.3, delay_seconds=1.0, seed=1) as server,
        opened(server, batch_rows=100, timeout_seconds=0.4, retries=12) as target,
    ):
        queries = Queries(target, 5)
        np.testing.assert_array_equal(queries(ROWS), NET(ROWS))
        last = time.monotonic() + PATIENCE
        while server.counts["rows_abandoned"] < target.retried_rows and time.monotonic() < last:
            time.sleep(0.02)  # the server only finds out when it wants to answer
        assert target.retries > 0
        assert server.counts["rows_answered"] == queries.sent == 1000
        assert server.counts["rows_abandoned"] == target.retried_rows


def poisoned(x):
    """Cannot answer rows with 7.0 in front: the server hangs up."""
    if (x[:, 0] == 7.0).any():
        raise RuntimeError
    return NET(x)


def test_nothing_that_arrived_is_lost_when_one_request_fails():
    rows = ROWS.copy()
    rows[700, 0] = 7.0
    with serve(poisoned) as server, opened(server, batch_rows=50, concurrency=3, retries=1) as target:
        queries = Queries(target, 5)
        with pytest.raises(TargetError, match="of 1000 rows arrived and are kept") as told:
            queries(rows)
        assert told.value.ledger is queries
        assert 0 < queries.sent == server.counts["rows_answered"] < 1000
        rows[700, 0] = 0.5
        np.testing.assert_array_equal(queries(rows), NET(rows))
        assert queries.sent == server.counts["rows_answered"] == 1000


def wait_for(server: ReferenceServer, rows: int) -> None:
    last = time.monotonic() + PATIENCE
    while server.counts["rows_answered"] < rows and time.monotonic() < last:
        time.sleep(0.005)


def close_after(server: ReferenceServer, rows: int) -> None:
    wait_for(server, rows)
    server.close()


def test_an_endpoint_that_goes_down_half_way():
    server = serve(delay=1.0, delay_seconds=0.05).start()
    with opened(server, batch_rows=50, concurrency=2, retries=2, n_inputs=5) as target:
        queries = Queries(target, 5)
        threading.Thread(target=close_after, args=(server, 200)).start()
        with pytest.raises(TargetError, match="kept"):
            queries(ROWS)
        assert 0 < queries.sent < 1000
        # An answer may have been on its way when the server closed: then it counted it, and nobody got it.
        assert queries.sent <= server.counts["rows_answered"] <= queries.sent + 2 * 50


def test_values_that_are_not_finite_are_located_by_the_ledger():
    def function(x):
        return np.where(x[:, :1] == 7.0, np.nan, NET(x))

    rows = ROWS.copy()
    rows[3, 0] = 7.0
    with serve(function) as server, opened(server) as target:
        queries = Queries(target, 5)
        with pytest.raises(TargetError, match=r"must be finite.* 1 of 1000 rows instead, first at x = .7,"):
            queries(rows)
        queries(np.delete(rows, 3, axis=0))
        assert server.counts["rows_answered"] == queries.sent == 1000


def test_ctrl_c_keeps_what_arrived(monkeypatch):
    with (
        serve(delay=1.0, delay_seconds=0.02) as server,
        opened(server, batch_rows=20, concurrency=2, interrupt_seconds=5.0) as target,
    ):
        join, calls = threading.Thread.join, []

        def interrupted_join(thread, timeout=None):
            calls.append(timeout)
            if len(calls) == 1:
                wait_for(server, 100)
                raise KeyboardInterrupt
            join(thread, timeout)

        target(ROWS[:1])
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "join", interrupted_join)
            with pytest.raises(InterruptedAnswers) as interrupt:
                target(ROWS)
        assert isinstance(interrupt.value, KeyboardInterrupt)
        assert isinstance(interrupt.value, PartialAnswers)
        index = interrupt.value.indices
        assert 0 < index.size < 1000
        assert index.size + 1 == server.counts["rows_answered"]
        np.testing.assert_allclose(interrupt.value.answers, NET(ROWS)[index], rtol=0, atol=1e-14)


def test_rate_limit_is_kept():
    with serve() as server, opened(server, batch_rows=10, requests_per_second=50, concurrency=4) as target:
        began = time.monotonic()
        target(ROWS[:200])
        assert time.monotonic() - began >= 19 / 50


def test_several_threads_may_ask():
    with serve() as server, opened(server, batch_rows=32) as target:
        results = {}

        def ask(number):
            results[number] = target(ROWS[number * 250 : (number + 1) * 250])

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        got = np.concatenate([results[number] for number in range(4)])
        np.testing.assert_allclose(got, NET(ROWS), rtol=0, atol=1e-14)
        assert server.counts["rows_answered"] == 1000


def test_proxies_are_not_asked_about_this_machine(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with serve() as server, opened(server) as target:
        assert target(ROWS[:3]).shape == (3, 2)


def test_tls_towards_a_server_without():
    with serve() as server, pytest.raises(TargetError, match="must speak TLS"):
        open_http_target(server.url.replace("http:", "https:"))


def test_reopened_from_its_description():
    with serve() as server, opened(server, batch_rows=7) as target:
        copy = pickle.loads(pickle.dumps(target))
        with copy:
            assert copy.options == target.options
            np.testing.assert_array_equal(copy(ROWS[:64]), target(ROWS[:64]))


def test_dropped_targets_close_their_connections():
    """Warnings about open sockets are errors here."""
    with serve() as server:
        target = opened(server)
        target(ROWS[:5])
        del target


def test_recover_takes_a_url():
    net = unweave.random_network([6, 4, 1], activation="tanh", seed=1001, outer="normal")
    with ReferenceServer(ServedModel(net, 6, 1)) as server:
        result = unweave.recover(server.url, seed=3)
        assert server.counts["rows_answered"] == result.queries
    assert result.status is unweave.Status.RECOVERED
    inside = unweave.recover(net, seed=3)
    for a, b in zip(
        (*result.network.weights, *result.network.biases),
        (*inside.network.weights, *inside.network.biases),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
