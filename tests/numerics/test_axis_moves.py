"""Points moved along axes, piece by piece."""

from __future__ import annotations

import numpy as np

from unweave.numerics.axis_moves import NUMBERS_PER_CALL, answers_along_axes, one_call_is_enough


def test_every_axis_is_moved_once_in_calls_that_are_small() -> None:
    d, rng, calls = 3000, np.random.default_rng(0), []
    base, steps, weights = rng.standard_normal(d), rng.standard_normal(d), rng.standard_normal((d, 2))

    def ask(rows: np.ndarray) -> np.ndarray:
        calls.append(rows.size)
        return rows @ weights

    answers, taken = answers_along_axes(ask, base, steps)
    np.testing.assert_allclose(answers - base @ weights, steps[:, None] * weights, atol=1e-11)
    np.testing.assert_allclose(taken, steps, atol=1e-15)
    assert len(calls) > 1
    assert max(calls) <= NUMBERS_PER_CALL
    assert not one_call_is_enough(d)


def test_some_axes_may_be_chosen() -> None:
    axes = np.array([4, 1])
    answers, taken = answers_along_axes(lambda rows: rows, np.zeros(6), np.array([2.0, 3.0]), axes)
    np.testing.assert_array_equal(answers[:, axes], np.diag([2.0, 3.0]))
    np.testing.assert_array_equal(taken, [2.0, 3.0])
    assert one_call_is_enough(6)
