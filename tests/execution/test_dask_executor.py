"""Worker processes: the same network for any number of them, also when one is killed."""

from __future__ import annotations

import math
import os
import signal
import threading
import time

import numpy as np
import pytest

import unweave
from unweave.errors import BudgetExhausted, ExecutionError, InvalidInput, OutOfTime, TargetError
from unweave.execution import DaskExecutor, SerialExecutor
from unweave.execution.store import open_store
from unweave.numerics import clock, memory
from unweave.targets import Queries
from unweave.targets.query_log import QueryLog

TRUTH = unweave.random_network([9, 16, 1], seed=1000, outer="normal")
WIDE = unweave.random_network([26, 300, 1], seed=1002, outer="normal")


@pytest.fixture(scope="module")
def two():
    with DaskExecutor(workers=2) as executor:
        yield executor


@pytest.fixture(scope="module")
def asking(two):
    """Another way into the same two workers, which may ask the target too."""
    with DaskExecutor(
        scheduler=two._cluster.scheduler_address, runs_target=True, target_rows=256
    ) as executor:
        yield executor


def parameters(result: unweave.Recovery) -> bytes:
    network = result.network
    return b"".join(array.tobytes() for array in (*network.weights, *network.biases))


def process_of(_: int) -> int:
    time.sleep(0.02)
    return os.getpid()


def slow_square(item: int) -> int:
    time.sleep(0.1)
    return item**2


def sum_of(shared: np.ndarray, item: np.ndarray) -> tuple[np.ndarray]:
    return (np.array([shared.flags.aligned and item.flags.aligned, (shared @ item).sum()]),)


def limits_of(_: int) -> tuple[float, float]:
    return clock.remaining_seconds(), memory.allowed_bytes()


def wait_for_the_clock(_: int) -> None:
    while True:
        clock.check()
        time.sleep(0.01)


def wait_without_looking(_: int) -> None:
    time.sleep(5)


def test_workers_see_the_clock_and_the_memory_limit(two):
    assert list(two.map(limits_of, [0])) == [(math.inf, math.inf)]
    with clock.time_limit(lambda: 100.0), memory.memory_limit(1e9):
        ((seconds, most_bytes),) = two.map(limits_of, [0])
    assert 0 < seconds <= 100
    assert most_bytes == 1e9


@pytest.mark.parametrize("task", [wait_for_the_clock, wait_without_looking])
def test_a_task_that_takes_too_long_ends_with_the_time(two, task):
    end = time.monotonic() + 0.5
    with clock.time_limit(lambda: max(0.0, end - time.monotonic())), pytest.raises(OutOfTime):
        list(two.map(task, [0]))


def test_tasks_run_elsewhere_and_come_back_in_order(two):
    assert os.getpid() not in set(two.map(process_of, range(6)))
    assert list(two.map(slow_square, iter(range(7)))) == [i**2 for i in range(7)]
    assert sorted(two.completed(slow_square, range(3))) == [(0, 0), (1, 1), (2, 4)]
    assert list(two.map(slow_square, [])) == []


def test_arrays_arrive_aligned_and_give_the_same_bits(two):
    rng = np.random.default_rng(1000)
    shared = rng.standard_normal((301, 301))
    items = [rng.standard_normal((301, n)) for n in (1, 2, 3, 257)]
    here = list(SerialExecutor().map(sum_of, items, shared=shared))
    there = list(two.map(sum_of, items, shared=shared))
    assert [a[0].tobytes() for a in here] == [b[0].tobytes() for b in there]
    assert all(result[0][0] == 1 for result in there)


def test_an_error_in_a_task_comes_through(two):
    with pytest.raises(ZeroDivisionError):
        list(two.map(lambda item: 1 // item, [1, 0]))
    assert list(two.map(slow_square, [3])) == [9]


def test_a_caller_who_stops_leaves_nothing_running(two):
    results = two.map(slow_square, range(1000))
    assert next(results) == 0
    results.close()
    began = time.perf_counter()
    assert list(two.map(slow_square, [2])) == [4]
    assert time.perf_counter() - began < 20  # a thousand of them would take fifty seconds


def test_the_same_network_for_serial_and_two_workers(two):
    serial = unweave.recover(TRUTH, seed=1001)
    workers = unweave.recover(TRUTH, seed=1001, executor=two)
    assert serial.status is unweave.Status.RECOVERED
    assert parameters(serial) == parameters(workers)
    assert serial.queries == workers.queries
    assert serial.evidence.activation_residuals == workers.evidence.activation_residuals


def test_a_killed_worker_costs_only_time(two):
    pids = set(two.map(process_of, range(6)))
    victim = max(pids)
    killer = threading.Timer(0.4, os.kill, (victim, signal.SIGKILL))
    killer.start()
    assert list(two.map(slow_square, range(12))) == [i**2 for i in range(12)]
    killer.join()
    assert victim not in set(two.map(process_of, range(6)))


def test_a_worker_killed_during_a_recovery_does_not_change_it(asking):
    victims = []
    serial = unweave.recover(TRUTH, seed=1001, executor=SerialExecutor(target_rows=256))
    dearest = max(serial.stages, key=lambda stage: stage.queries).name

    def on_progress(progress: unweave.Progress) -> None:
        if progress.stage == dearest and not victims:
            victims.append(max(asking.map(process_of, range(6))))
            os.kill(victims[0], signal.SIGKILL)

    killed = unweave.recover(TRUTH, seed=1001, executor=asking, progress=on_progress)
    assert victims
    assert parameters(serial) == parameters(killed)
    assert serial.queries == killed.queries


def test_workers_ask_the_target_and_the_ledger_keeps_the_answers(asking, tmp_path):
    function = lambda x: np.stack([x.sum(axis=1), np.full(len(x), os.getpid())], axis=1)  # noqa: E731
    rows = np.random.default_rng(1003).standard_normal((1000, 3))
    store = open_store(tmp_path / "run.sqlite")
    queries = Queries(function, 3, executor=asking, log=QueryLog(store))
    answers = queries(rows)
    np.testing.assert_array_equal(answers[:, 0], rows.sum(axis=1))
    assert os.getpid() not in answers[:, 1]
    assert (queries.sent, queries.calls) == (1000, 4)
    assert queries.seconds_in_target > 0
    store.close()
    store = open_store(tmp_path / "run.sqlite")
    again = Queries(function, 3, log=QueryLog(store))
    np.testing.assert_array_equal(again(rows), answers)
    assert again.sent == 0
    store.close()


def test_a_deadline_stops_workers_but_keeps_what_they_answered(asking):
    seconds = iter(np.arange(0.0, 1000.0))
    queries = Queries(lambda x: x[:, 0], 1, executor=asking, deadline=4.0, clock=lambda: next(seconds))
    with pytest.raises(BudgetExhausted) as caught:
        queries(np.arange(256.0 * 12)[:, None])
    assert caught.value.reason == "deadline"
    assert 0 < queries.sent < 256 * 12
    queries.reset_budget()
    sent = queries.sent
    queries(np.arange(float(sent))[:, None])
    assert queries.sent == sent


def test_a_target_that_fails_in_a_worker_is_named(asking):
    def fails(x):
        raise RuntimeError("no model today")

    with pytest.raises(TargetError, match="no model today") as caught:
        Queries(fails, 2, executor=asking)(np.ones((1, 2)))
    assert caught.value.ledger is not None


def test_a_target_that_cannot_be_sent_is_named(asking):
    lock = threading.Lock()

    def target(x):
        with lock:
            return x[:, 0]

    with pytest.raises(InvalidInput, match="another process"):
        Queries(target, 2, executor=asking)(np.ones((1, 2)))


@pytest.mark.slow
def test_a_task_that_kills_every_worker_is_given_up():
    with DaskExecutor(workers=1) as executor, pytest.raises(ExecutionError, match="memory"):
        list(executor.map(lambda item: os.kill(os.getpid(), signal.SIGKILL), [1]))


def test_nobody_at_the_address(monkeypatch):
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}),
        pytest.raises(InvalidInput, match="running Dask scheduler"),
    ):
        DaskExecutor(scheduler="tcp://127.0.0.1:9").start()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1001, 1002, 1003])
def test_the_same_wide_network_for_serial_one_and_two_workers(two, seed):
    # More starts than one task holds: the power method is split.
    serial = unweave.recover(WIDE, seed=seed)
    with DaskExecutor(workers=1) as one:
        results = [unweave.recover(WIDE, seed=seed, executor=executor) for executor in (one, two)]
    assert {parameters(serial)} == {parameters(result) for result in results}
