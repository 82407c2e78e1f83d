"""A target that fails half way: what arrived is kept, counted once, and never asked again."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.errors import InterruptedAnswers, PartialAnswers, TargetError
from unweave.targets.queries import Queries


class HalfWay:
    """Answers the sum of each row; the first time it is asked, only the rows ``answered``."""

    def __init__(self, answered: list[int], kind: type[PartialAnswers] = PartialAnswers) -> None:
        self.answered = np.array(answered, dtype=np.int64)
        self.kind = kind
        self.asked: list[np.ndarray] = []
        self.failed = False

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.asked.append(x)
        if self.failed:
            return x.sum(axis=1)
        self.failed = True
        raise self.kind("The line went dead.", self.answered, x[self.answered].sum(axis=1, keepdims=True))


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(1000).standard_normal((6, 3))


def test_what_arrived_is_kept(rows):
    target = HalfWay([4, 1])
    queries = Queries(target, 3, max_queries=6)
    with pytest.raises(TargetError, match=r"went dead.* 2 of 6 rows arrived and are kept") as failed:
        queries(rows)
    assert failed.value.ledger is queries
    assert isinstance(failed.value.__cause__, PartialAnswers)
    assert queries.sent == 2
    np.testing.assert_array_equal(queries(rows)[:, 0], rows.sum(axis=1))
    np.testing.assert_array_equal(target.asked[1], rows[[0, 2, 3, 5]])
    assert (queries.sent, queries.remaining) == (6, 0)


def test_duplicates_and_known_rows(rows):
    target = HalfWay([0])
    target.failed = True
    queries = Queries(target, 3)
    queries(rows[:2])
    target.failed = False
    with pytest.raises(TargetError):
        queries(np.concatenate([rows[:4], rows[3:5]]))  # asks rows 2, 3 and 4, of which 2 is answered
    assert queries.sent == 3
    queries(rows[:5])
    np.testing.assert_array_equal(target.asked[-1], rows[3:5])


def test_nothing_arrived(rows):
    queries = Queries(HalfWay([]), 3)
    with pytest.raises(TargetError, match=r"The line went dead\.$"):
        queries(rows)
    assert queries.sent == 0
    assert queries.n_outputs is None


def test_later_pieces(rows):
    target = HalfWay([1])
    target.failed = True
    queries = Queries(target, 3, batch_rows=2)
    queries(rows[:2])
    target.failed = False
    with pytest.raises(TargetError):
        queries(rows)
    assert queries.sent == 3
    queries(rows)
    np.testing.assert_array_equal(np.concatenate(target.asked[2:]), rows[[2, 4, 5]])


def test_interrupt_stays_an_interrupt(rows):
    queries = Queries(HalfWay([2], InterruptedAnswers), 3)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        queries(rows)
    assert type(interrupt.value) is KeyboardInterrupt  # nobody further up mistakes it for an answer's failure
    assert queries.sent == 1
    queries(rows)
    assert queries.sent == 6


def test_answers_that_are_not_finite_are_not_kept(rows):
    def target(x):
        raise PartialAnswers("Gone.", np.array([0, 1]), np.array([[1.0], [np.nan]]))

    queries = Queries(target, 3)
    with pytest.raises(TargetError, match="Gone"):
        queries(rows)
    assert queries.sent == 2
    assert queries(rows[:1]).item() == 1.0
    with pytest.raises(TargetError):
        queries(rows[1:2])


def test_fresh_rows_are_counted_but_not_kept(rows):
    queries = Queries(HalfWay([0, 1]), 3)
    with pytest.raises(TargetError, match="went dead"):
        queries(rows, fresh=True)
    assert queries.sent == 2
    queries(rows)
    assert queries.sent == 8
