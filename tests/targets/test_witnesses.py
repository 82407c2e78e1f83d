"""Rows that were asked are kept as witnesses, whatever order they were asked in."""

from __future__ import annotations

import numpy as np
import pytest

from unweave import Queries
from unweave.targets import witnesses
from unweave.targets.answer_cache import row_keys
from unweave.targets.witnesses import MOST_WITNESSES, Witnesses


def square(x: np.ndarray) -> np.ndarray:
    return (x**2).sum(axis=1)


def test_every_row_is_kept_once_while_there_are_few() -> None:
    queries = Queries(square, 3)
    x = np.random.default_rng(1).standard_normal((50, 3))
    queries(x)
    queries(x[::-1])
    rows, answers = queries.witnesses.rows()
    assert len(rows) == 50
    np.testing.assert_array_equal(answers[:, 0], square(rows))
    assert {tuple(row) for row in rows} == {tuple(row) for row in x}


@pytest.mark.parametrize("batch", [100, 7000])
def test_of_many_rows_a_sample_is_kept_that_does_not_depend_on_the_order(batch: int) -> None:
    x = np.random.default_rng(2).standard_normal((3 * MOST_WITNESSES, 2))
    kept = []
    for order in (x, x[::-1]):
        sample = Witnesses()
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            sample.add(rows, square(rows)[:, None], row_keys(rows).first)
        kept.append(sample.rows()[0][:MOST_WITNESSES])
    np.testing.assert_array_equal(*kept)
    assert len(kept[0]) == MOST_WITNESSES


def test_wide_rows_are_kept_within_a_limit_of_memory() -> None:
    inputs = 5000
    sample = Witnesses()
    for seed in range(4):
        rows = np.random.default_rng(seed).standard_normal((600, inputs))
        sample.add(rows, np.zeros((600, 1)), row_keys(rows).first)
    assert sample.rows()[0].nbytes <= 2 * witnesses._MOST_BYTES
