"""The ledger counts what it sends, keeps what it learns, and says what is wrong."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.errors import BudgetExhausted, InvalidInput, TargetError
from unweave.targets import Queries


class Recorder:
    """A target that remembers the batches it was given."""

    def __init__(self, function=lambda x: x.sum(axis=1)):
        self.function = function
        self.batches = []

    def __call__(self, x):
        self.batches.append(x.copy())
        return self.function(x)

    @property
    def rows(self):
        return sum(len(batch) for batch in self.batches)


def grid(n, d=2):
    return np.arange(n * d, dtype=np.float64).reshape(n, d)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(axis=1),
        lambda x: x.sum(axis=1, keepdims=True),
        lambda x: x.sum(axis=1).tolist(),
        lambda x: x.sum(axis=1).astype(np.float32),
        lambda x: x.sum(axis=1).astype(int),
        lambda x: [Fraction(int(row.sum())) for row in x],
    ],
)
def test_every_form_of_answer_becomes_a_float64_table(function):
    queries = Queries(function, 2)
    assert queries.n_outputs is None
    answers = queries(grid(3))
    assert answers.dtype == np.float64
    np.testing.assert_array_equal(answers, [[1.0], [5.0], [9.0]])
    assert queries.n_outputs == 1


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(-4, 4), max_size=30), min_size=1, max_size=6), st.integers(1, 9))
def test_each_distinct_row_is_sent_exactly_once(calls, batch_rows):
    target = Recorder(lambda x: np.stack([x[:, 0], x[:, 0] ** 2], axis=1))
    queries = Queries(target, 1, batch_rows=batch_rows)
    for call in calls:
        x = np.array(call, dtype=np.float64).reshape(-1, 1)
        answers = queries(x)
        if call:
            np.testing.assert_array_equal(answers, np.hstack([x, x**2]))
    flat = [value for call in calls for value in call]
    assert target.rows == queries.sent == len(set(flat))
    assert queries.cache_hits == len(flat) - len(set(flat))
    assert all(len(batch) <= batch_rows for batch in target.batches)


def test_negative_zero_is_answered_as_zero():
    queries = Queries(Recorder(), 1)
    queries([[0.0]])
    queries([[-0.0]])
    assert (queries.sent, queries.cache_hits) == (1, 1)


def test_fresh_rows_are_asked_again_and_counted():
    noise = np.random.default_rng(1000)
    queries = Queries(lambda x: noise.standard_normal(len(x)), 1, max_queries=5)
    kept = queries([[1.0]])
    assert queries([[1.0]], fresh=True)[0, 0] != kept[0, 0]
    assert queries([[1.0], [1.0]], fresh=True).shape == (2, 1)
    np.testing.assert_array_equal(queries([[1.0]]), kept)
    assert (queries.sent, queries.remaining) == (4, 1)


def test_target_cannot_change_the_callers_rows_nor_the_kept_answers():
    buffer = np.zeros(3)

    def scribbler(x):
        x[:] = 7.0
        buffer[:] += 1.0
        return buffer

    queries = Queries(scribbler, 2)
    x = grid(3)
    first = queries(x)
    np.testing.assert_array_equal(x, grid(3))
    queries(x + 100.0)
    np.testing.assert_array_equal(queries(x), first)


def test_budget_is_checked_before_anything_is_sent():
    target = Recorder()
    queries = Queries(target, 2, max_queries=5)
    queries(grid(3))
    with pytest.raises(
        BudgetExhausted, match=r"budget of 5 queries is too small: 3 rows were sent.*needs 4 more"
    ) as info:
        queries(grid(7))
    assert info.value.reason == "queries"
    assert target.rows == queries.sent == 3
    queries(grid(5))  # three are known, two are within the budget
    assert queries.remaining == 0
    queries(grid(5))  # known rows are free even then


def test_budget_can_be_renewed_and_keeps_the_answers():
    queries = Queries(Recorder(), 2, max_queries=3)
    queries(grid(3))
    queries.reset_budget(max_queries=2)
    assert queries.remaining == 2
    queries(grid(5))
    assert queries.sent == 5
    queries.reset_budget()
    assert queries.remaining is None


def test_deadline_stops_between_pieces_and_keeps_what_was_answered():
    now = [0.0]

    def slow(x):
        now[0] += 1.0
        return x[:, 0]

    queries = Queries(slow, 2, deadline=2.5, batch_rows=2, clock=lambda: now[0])
    assert queries.seconds_left == 2.5
    with pytest.raises(BudgetExhausted, match="deadline") as info:
        queries(grid(10))
    assert info.value.reason == "deadline"
    assert queries.sent == 6  # pieces sent at 0, 1 and 2 seconds
    assert queries.seconds_in_target == 3.0
    np.testing.assert_array_equal(queries(grid(6)), grid(6)[:, :1])  # free, hence allowed
    queries.reset_budget(deadline=100.0)
    queries(grid(10))
    assert queries.sent == 10


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[:-1, 0], "one answer per row, 4 in all. Got shape"),
        (lambda x: 1.0, r"shape \(n,\) or \(n, m\). Got shape \(\)"),
        (lambda x: x[:, :, None], r"shape \(n,\) or \(n, m\). Got shape \(4, 2, 1\)"),
        (lambda x: x[:, :0], "at least one output"),
        (lambda x: x[:, 0] + 1j, "real numbers. Got values of type complex128"),
        (lambda x: ["a"] * len(x), "real numbers. Got values of type"),
        (lambda x: [None] * len(x), "array of numbers. Got list that cannot"),
        (lambda x: [[1.0], [1.0, 2.0], [1.0], [1.0]], "array of numbers. Got list that cannot"),
        (lambda x: None, "array of numbers. Got NoneType that cannot"),
        (lambda x: 1 / 0, "Got ZeroDivisionError: division by zero"),
    ],
)
def test_bad_answers_are_named_and_carry_the_ledger(function, message):
    queries = Queries(function, 2)
    with pytest.raises(TargetError, match=message) as info:
        queries(grid(4))
    assert info.value.ledger is queries
    assert queries.sent == 4


def test_number_of_outputs_may_not_change():
    queries = Queries(lambda x: np.ones((len(x), len(x))), 2)
    queries(grid(2))
    with pytest.raises(TargetError, match=r"2 outputs as before\. Got 3 outputs"):
        queries(grid(3) + 50.0)


def test_exception_of_the_target_is_chained():
    def broken(x):
        raise KeyError("feature 7")

    with pytest.raises(TargetError, match="KeyError: 'feature 7'") as info:
        Queries(broken, 1)([[1.0]])
    assert isinstance(info.value.__cause__, KeyError)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_answers_are_counted_and_the_finite_ones_kept(bad):
    target = Recorder(lambda x: np.where(x[:, 0] < 6, x[:, 0], bad))
    queries = Queries(target, 2)
    with pytest.raises(
        TargetError, match=r"in 2 of 5 rows instead, first at x = \[6, 7\].*domain=\(low, high\)"
    ):
        queries(grid(5))
    queries(grid(3))
    assert queries.sent == target.rows == 5
    with pytest.raises(TargetError, match="1 of 1 rows"):
        queries([[6.0, 7.0]], fresh=True)


def test_overflow_inside_the_target_is_no_warning():
    queries = Queries(lambda x: 1.0 / (1.0 + np.exp(-x[:, 0])), 1)
    np.testing.assert_array_equal(queries([[-1e9]]), [[0.0]])


def test_keyboard_interrupt_passes_and_the_cache_stays():
    def interrupted(x):
        if (x > 3).any():
            raise KeyboardInterrupt
        return x[:, 0]

    queries = Queries(interrupted, 1, batch_rows=2)
    with pytest.raises(KeyboardInterrupt):
        queries(grid(6, 1))
    sent = queries.sent
    queries(grid(4, 1))
    assert queries.sent == sent


@pytest.mark.parametrize(
    "x",
    [[1.0, 2.0], [[1.0]], [[1.0, np.nan]], [[1.0, np.inf]], [["a", "b"]], [[1j, 1.0]], [[1.0, 2.0], [1.0]]],
)
def test_unusable_rows_are_refused(x):
    queries = Queries(Recorder(), 2)
    with pytest.raises(InvalidInput, match="must be"):
        queries(x)
    assert queries.sent == 0


@pytest.mark.parametrize(
    "options",
    [{"max_queries": -1}, {"max_queries": 1.5}, {"deadline": -1.0}, {"deadline": np.nan}, {"batch_rows": 0}],
)
def test_unusable_options_are_refused(options):
    with pytest.raises(InvalidInput, match="must be"):
        Queries(Recorder(), 2, **options)


def test_no_rows_no_call():
    target = Recorder()
    assert Queries(target, 2)(np.empty((0, 2))).shape[0] == 0
    assert target.batches == []
