"""Results in order whoever computes, one BLAS thread inside a task, expensive results kept."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from unweave.errors import InvalidInput
from unweave.execution import DaskExecutor, SerialExecutor
from unweave.execution.memory import Remembering, fingerprint
from unweave.execution.store import open_store
from unweave.numerics import clock, memory
from unweave.numerics.threads import allowed_threads


def wait_then_square(item: int) -> tuple[np.ndarray]:
    time.sleep(0.01 * (item % 3))
    return (np.array([item**2]),)


def threads_seen(item: int) -> int:
    return allowed_threads()


@pytest.mark.parametrize("threads", [1, 3])
def test_map_keeps_the_order_and_one_blas_thread(threads, monkeypatch):
    monkeypatch.setattr("unweave.execution.executor.allowed_threads", lambda: threads)
    executor = SerialExecutor()
    assert [int(result[0][0]) for result in executor.map(wait_then_square, range(9))] == [
        i**2 for i in range(9)
    ]
    assert sorted(index for index, _ in executor.completed(wait_then_square, range(9))) == list(range(9))
    with threadpool_limits(2, user_api="blas"):
        assert set(executor.map(threads_seen, range(4))) == {1}
        assert allowed_threads() == 2


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_a_task_comes_through(threads, monkeypatch):
    monkeypatch.setattr("unweave.execution.executor.allowed_threads", lambda: threads)

    def fails(item):
        if item == 2:
            raise ZeroDivisionError("two")
        return item

    with pytest.raises(ZeroDivisionError, match="two"):
        list(SerialExecutor().map(fails, range(5)))


@pytest.mark.parametrize("threads", [1, 3])
def test_tasks_see_the_clock_and_the_memory_limit_of_their_caller(threads, monkeypatch):
    monkeypatch.setattr("unweave.execution.executor.allowed_threads", lambda: threads)

    def limits(_):
        return clock.out_of_time(), memory.allowed_bytes()

    with clock.time_limit(lambda: 0.0), memory.memory_limit(1e9):
        assert set(SerialExecutor().map(limits, range(4))) == {(True, 1e9)}


def test_shared_is_handed_to_every_task():
    assert list(SerialExecutor().map(lambda shared, item: shared + item, [1, 2], shared=10)) == [11, 12]


@pytest.mark.parametrize("name", ["run.sqlite", "run"])
def test_expensive_results_are_computed_once(name, tmp_path):
    ran = []

    def task(factor, item):
        ran.append(int(item[0]))
        return (factor * item,)

    def run(factor, least=0.0, version="1"):
        store = open_store(tmp_path / name)
        memory = Remembering(SerialExecutor(), store, version, least)
        items = [np.array([float(i)]) for i in range(4)]
        results = [float(r[0][0]) for r in memory.map(task, items, shared=factor, key=("times", factor))]
        store.close()
        assert results == [factor * i for i in range(4)]
        return memory.reused

    assert run(2.0, least=np.inf) == 0  # too cheap to keep
    assert run(2.0) == 0
    assert run(2.0) == 4
    assert run(3.0) == 0  # what all items share is part of the name
    assert run(3.0, version="2") == 0
    assert len(ran) == 16


def test_without_a_key_nothing_is_kept(tmp_path):
    store = open_store(tmp_path / "run")
    memory = Remembering(SerialExecutor(), store, "1", 0.0)
    for _ in range(2):
        assert [int(r[0][0]) for r in memory.map(wait_then_square, [3, 4])] == [9, 16]
    assert memory.reused == 0


@dataclass(frozen=True)
class Setting:
    steps: int
    size: float


def test_fingerprints_tell_contents_apart():
    x = np.arange(6.0)
    different = [
        (x,),
        (x.reshape(2, 3),),
        (x.astype(np.float32),),
        (x + 1e-16,),  # not equal to x in its first entry only
        (x[:3], x[3:]),
        ((x[:3], x[3:]),),
        ("x", 1),
        ("x1",),
        (1, True),
        (1, 1.0),
        (1, None),
        (Setting(1, 2.0),),
        (Setting(2, 1.0),),
        (0.0,),
        (-0.0,),
    ]
    assert len({fingerprint(*parts) for parts in different}) == len(different)
    assert fingerprint(np.asfortranarray(x.reshape(2, 3))) == fingerprint(x.reshape(2, 3))
    for unnameable in (object(), np.array(["text"]), {1: 2}):
        with pytest.raises(InvalidInput):
            fingerprint(unnameable)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"workers": 2, "scheduler": "tcp://x:1"},
        {"workers": 0},
        {"workers": True},
        {"workers": 2, "target_rows": 0},
    ],
)
def test_dask_arguments_are_checked_before_anything_starts(arguments):
    with pytest.raises(InvalidInput, match="must be"):
        DaskExecutor(**arguments)
