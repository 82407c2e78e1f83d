"""A ledger with a log pays for nothing twice, replays repeats, refuses other logs, and stands a full disk."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.errors import BudgetExhausted, CheckpointError, InvalidInput, TargetError
from unweave.execution import SerialExecutor
from unweave.execution.store import open_store
from unweave.targets import Queries
from unweave.targets.query_log import QueryLog

KINDS = ("run.sqlite", "run.ckpt")


class Memory:
    """A store in memory, which can be full."""

    def __init__(self):
        self.path, self.kept, self.head, self.full = "memory", [], {}, False

    def header(self):
        return dict(self.head)

    def write_header(self, header):
        self.head = dict(header)

    def append(self, arrays):
        if self.full:
            raise CheckpointError("memory must be writable. Got no space left instead.")
        self.kept.append({name: array.copy() for name, array in arrays.items()})

    def pieces(self, names):
        for piece in self.kept:
            yield {name: piece[name] for name in names}


def sums(x):
    return np.stack([x.sum(axis=1), (x**2).sum(axis=1)], axis=1)


def grid(n, d=2):
    return np.arange(n * d, dtype=np.float64).reshape(n, d)


@pytest.mark.parametrize("name", KINDS)
def test_rows_of_an_earlier_run_are_free(name, tmp_path, recorder):
    first, second = recorder(sums), recorder(sums)
    store = open_store(tmp_path / name)
    queries = Queries(first, 2, log=QueryLog(store), batch_rows=3)
    queries(grid(8))
    store.close()  # and no farewell from the ledger

    store = open_store(tmp_path / name)
    queries = Queries(second, 2, log=QueryLog(store))
    assert queries.n_outputs == 2
    answers = queries(grid(10))
    np.testing.assert_array_equal(answers, sums(grid(10)))
    np.testing.assert_array_equal(second.rows, grid(10)[8:])
    assert (queries.sent, queries.rows_from_log) == (2, 8)
    queries(grid(3))
    assert queries.rows_from_log == 8  # each counted once
    store.close()


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.lists(st.integers(-3, 3), max_size=12), st.booleans()), min_size=1, max_size=6),
    st.integers(0, 6),
    st.integers(1, 5),
)
def test_a_run_cut_anywhere_ends_as_the_whole_one(calls, cut, batch_rows):
    # The target is noisy: only the log can give the same answers again.
    noise = np.random.default_rng(1000)
    asked = []

    def target(x):
        asked.extend(x[:, 0].tolist())
        return x[:, 0] + noise.standard_normal(len(x))

    def run(store, count):
        queries = Queries(target, 1, log=QueryLog(store), batch_rows=batch_rows)
        rows = [np.array(values, dtype=np.float64).reshape(-1, 1) for values, _ in calls[:count]]
        answers = [queries(x, fresh=fresh) for x, (_, fresh) in zip(rows, calls, strict=False)]
        return [answer for answer in answers if len(answer)], queries.sent

    store = Memory()
    before, sent_before = run(store, cut)
    after, sent_after = run(store, len(calls))
    for one, other in zip(before, after, strict=False):
        np.testing.assert_array_equal(one, other)
    fresh = [value for values, is_fresh in calls for value in values if is_fresh]
    cached = {value for values, is_fresh in calls for value in values if not is_fresh}
    assert sent_before + sent_after == len(asked) == len(fresh) + len(cached)


def test_a_log_of_another_target_is_refused():
    store = Memory()
    Queries(sums, 2, log=QueryLog(store, target="credit model, May"))(grid(3))
    with pytest.raises(InvalidInput, match="whose target has 2"):
        Queries(sums, 3, log=QueryLog(store))
    with pytest.raises(InvalidInput, match="another description"):
        Queries(sums, 2, log=QueryLog(store, target="credit model, June"))
    assert "credit" not in str(store.head)  # the description may be a secret
    Queries(sums, 2, log=QueryLog(store))
    Queries(sums, 2, log=QueryLog(store, target="credit model, May"))
    with pytest.raises(TargetError, match="2 outputs as before"):
        Queries(lambda x: x[:, 0], 2, log=QueryLog(store))(grid(5))
    store.head["version"] = 99
    with pytest.raises(InvalidInput, match="version 99"):
        Queries(sums, 2, log=QueryLog(store))


def test_the_first_description_is_kept():
    store = Memory()
    Queries(sums, 2, log=QueryLog(store))(grid(3))
    Queries(sums, 2, log=QueryLog(store, target="one"))
    with pytest.raises(InvalidInput, match="another description"):
        Queries(sums, 2, log=QueryLog(store, target="two"))


@pytest.mark.parametrize("repeats", [0, 3])
def test_a_known_row_may_be_asked_again_to_see_whether_it_is_the_same_target(repeats, recorder):
    store = Memory()
    first = Queries(sums, 2, log=QueryLog(store))
    first(grid(3))
    for _ in range(repeats):
        first(grid(1) + 0.5, fresh=True)
    same, other = recorder(sums), recorder(lambda x: sums(x) + 1e-3)
    queries = Queries(same, 2, log=QueryLog(store), check_log=True)
    assert (queries.sent, len(same.rows)) == (1, 1)
    with pytest.raises(InvalidInput, match="another answer"):
        Queries(other, 2, log=QueryLog(store), check_log=True)
    Queries(other, 2, log=QueryLog(store))  # nothing is asked without being told to
    assert len(other.rows) == 1
    assert Queries(same, 2, log=QueryLog(Memory()), check_log=True).sent == 0


def test_a_log_that_was_refused_leaves_nothing_behind(recorder):
    store, target = Memory(), recorder(lambda x: x[:, 0])
    Queries(sums, 2, log=QueryLog(store))(grid(3))
    queries = Queries(target, 2)
    with pytest.raises(InvalidInput, match="another answer"):
        queries.attach_log(QueryLog(store), check=True)
    np.testing.assert_array_equal(queries(grid(3))[:, 0], grid(3)[:, 0])
    assert len(target.rows) == 4
    with pytest.raises(InvalidInput, match="1 outputs"):
        queries.attach_log(QueryLog(store))


def test_noise_that_the_log_shows_is_no_other_target():
    noise, store = np.random.default_rng(1001), Memory()

    def noisy(x):
        return sums(x) + 0.01 * noise.standard_normal((len(x), 2))

    first = Queries(noisy, 2, log=QueryLog(store))
    for _ in range(6):
        first(grid(4), fresh=True)
    Queries(noisy, 2, log=QueryLog(store), check_log=True)
    with pytest.raises(InvalidInput, match="another answer"):
        Queries(lambda x: noisy(x) + 1, 2, log=QueryLog(store), check_log=True)


def test_a_full_disk_keeps_everything_in_the_ledger(recorder):
    target, store = recorder(sums), Memory()
    queries = Queries(target, 2, log=QueryLog(store), batch_rows=4)
    queries(grid(4))
    store.full = True
    with pytest.raises(CheckpointError, match="memory") as caught:
        queries(grid(12))
    ledger = caught.value.ledger
    assert ledger is queries
    assert (ledger.sent, len(target.rows)) == (8, 8)
    ledger.detach_log()
    store.full = False
    ledger.attach_log(QueryLog(store))
    ledger(grid(12))
    assert (ledger.sent, len(target.rows)) == (12, 12)
    written = np.concatenate([piece["rows"] for piece in store.kept])
    np.testing.assert_array_equal(np.unique(written, axis=0), grid(12))  # those of the full disk too


def test_a_ledger_goes_on_without_a_log():
    store = Memory()
    queries = Queries(sums, 2, log=QueryLog(store))
    queries(grid(4))
    queries.detach_log()
    queries(grid(6))
    assert sum(len(piece["rows"]) for piece in store.kept) == 4
    assert (queries.sent, queries.rows_from_log) == (6, 0)


def test_rows_of_the_log_are_outside_the_budget():
    store = Memory()
    Queries(sums, 2, log=QueryLog(store))(grid(5))
    queries = Queries(sums, 2, log=QueryLog(store), max_queries=2)
    queries(grid(7))
    with pytest.raises(BudgetExhausted):
        queries(grid(8))


def test_fingerprints_of_another_program_are_made_anew(recorder):
    store, target = Memory(), recorder(sums)
    Queries(sums, 2, log=QueryLog(store))(grid(5))
    store.head["fingerprints"] = "something else"
    for piece in store.kept:
        piece["keys"] = np.zeros_like(piece["keys"])
    Queries(target, 2, log=QueryLog(store))(grid(5))
    assert len(target.rows) == 0


def test_answers_that_are_not_finite_are_not_written():
    store = Memory()
    queries = Queries(lambda x: np.where(x[:, :1] > 4, np.nan, x), 2, log=QueryLog(store))
    with pytest.raises(TargetError, match="finite"):
        queries(grid(5))
    assert sum(len(piece["rows"]) for piece in store.kept) == 3


def test_an_executor_may_set_the_rows_per_call(recorder):
    sizes = []

    def target(x):
        sizes.append(len(x))
        return sums(x)

    queries = Queries(target, 2, executor=SerialExecutor(target_rows=3))
    queries(grid(8))
    assert sizes == [3, 3, 2]
