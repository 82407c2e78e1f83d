"""The cache finds every row again, never mistakes one for another, and stays small."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.targets.answer_cache import AnswerCache, distinct, row_keys

N = 1_000_000


def one_ulp_apart() -> np.ndarray:
    x = np.ones((N, 4))
    x[:, 2] += np.arange(N) * np.finfo(np.float64).eps
    return x


def round_numbers() -> np.ndarray:
    """All 4**10 rows over a few round numbers: permuted columns and zeros in every place."""
    index = np.arange(4**10)
    digits = (index[:, None] // 4 ** np.arange(10)) % 4
    return np.array([0.0, 1.0, 2.0, -1.0])[digits]


def same_differences() -> np.ndarray:
    """What one column gains another loses, in units of one ulp: sums of columns are all equal."""
    x = np.full((N, 2), 1.5)
    steps = (np.arange(N) - N // 2) * np.finfo(np.float64).eps
    return x + np.stack([steps, -steps], axis=1) / 2**4


def repeated(words: np.ndarray) -> int:
    return int((np.diff(np.sort(words)) == 0).sum())


@pytest.mark.parametrize("rows", [one_ulp_apart, round_numbers])
def test_near_identical_rows_differ_in_each_word(rows):
    keys = row_keys(rows())
    # With 64 random bits, two of 1e6 rows share a word with probability 3e-8.
    assert repeated(keys.first) == 0
    assert repeated(keys.second) == 0


def test_opposite_changes_do_not_cancel():
    x = same_differences()
    assert repeated(row_keys(x).first) == repeated(x[:, 0])


def test_negative_zero_is_zero_and_columns_have_places():
    keys = row_keys(np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]]))
    assert keys.first[0] == keys.first[1]
    assert keys.second[0] == keys.second[1]
    assert keys.first[0] != keys.first[2]
    assert keys.second[0] != keys.second[2]


def test_key_does_not_depend_on_the_batch_or_the_layout():
    x = np.random.default_rng(1000).standard_normal((40_000, 7))
    keys = row_keys(x)
    np.testing.assert_array_equal(row_keys(x[12_345:12_346]).first, keys.first[12_345:12_346])
    np.testing.assert_array_equal(row_keys(np.asfortranarray(x)).second, keys.second)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=40))
def test_distinct_rebuilds_the_batch_in_order_of_appearance(labels):
    x = np.array(labels, dtype=np.float64)[:, None]
    index, inverse = distinct(row_keys(x))
    np.testing.assert_array_equal(x[index][inverse], x)
    assert x[index, 0].tolist() == list(dict.fromkeys(float(label) for label in labels))
    assert (np.diff(index) > 0).all()


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=25), st.integers(1000, 2000))
def test_every_answer_is_found_after_any_history_of_batches(sizes, seed):
    rng = np.random.default_rng(seed)
    cache = AnswerCache()
    x = rng.standard_normal((sum(sizes), 3))
    y = rng.standard_normal((sum(sizes), 2))
    start = 0
    for size in sizes:
        stop = start + size
        keys = row_keys(x[start:stop])
        assert (cache.find(keys) == -1).all()
        assert cache.insert(keys, y[start:stop]) == start
        start = stop
    order = rng.permutation(len(x))
    np.testing.assert_array_equal(cache.find(row_keys(x[order])), order)
    np.testing.assert_array_equal(cache.answers(order), y[order])
    assert (cache.find(row_keys(x + 1.0)) == -1).all()


def test_memory_per_row():
    cache = AnswerCache()
    for start in range(0, 200_000, 10_000):
        x = np.arange(start, start + 10_000, dtype=np.float64)[:, None]
        cache.insert(row_keys(x), x)
    # Two words, a position of four bytes, and an answer of 8 bytes with at most half of it in reserve.
    assert cache.nbytes <= len(cache) * (16 + 4 + 12)
