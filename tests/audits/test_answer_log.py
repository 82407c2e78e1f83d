"""The stand-in against everything that the target answered."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.audits import OwnPrecision
from unweave.audits.answer_log import MemoryStore, check_log, logged_answers
from unweave.targets.queries import Queries
from unweave.targets.query_log import QueryLog

ROWS = np.random.default_rng(1000).standard_normal((500, 4))


def moved(network, shift):
    return unweave.Network(
        network.weights, [network.biases[0], network.biases[1] + shift], network.activations
    )


def test_ledger_writes_to_memory(planted):
    store = MemoryStore()
    queries = Queries(planted, 4, log=QueryLog(store))
    queries(ROWS[:300])
    queries(ROWS)
    queries(ROWS[:5], fresh=True)
    pieces = list(logged_answers(store, 4))
    assert sum(len(rows) for rows, _ in pieces) == queries.sent == 505
    for rows, answers in pieces:
        # In pieces of other sizes a sum of four products may be rounded otherwise.
        np.testing.assert_allclose(answers, planted(rows), rtol=0, atol=1e-14)


def test_memory_is_limited(planted):
    store = MemoryStore(most_bytes=300 * 8 * (2 + 4 + 1 + 1))
    queries = Queries(planted, 4, log=QueryLog(store))
    queries(ROWS[:300])
    queries(ROWS)
    assert sum(len(rows) for rows, _ in logged_answers(store, 4)) == 300


@pytest.mark.parametrize(
    ("own", "coarse", "allowed", "refused"),
    [
        (OwnPrecision("float64", 1e-16), lambda y: y, 1e-12, 1e-6),
        (OwnPrecision("rounded", 1e-2 / np.sqrt(12)), lambda y: np.round(y, 2), 0.0, 1e-2),
        (
            OwnPrecision("noisy", 0.1),
            lambda y: y + 0.1 * np.random.default_rng(1000).standard_normal(y.shape),
            0.01,
            2.0,
        ),
    ],
)
def test_what_stands_in(planted, own, coarse, allowed, refused):
    answers = coarse(planted(ROWS))
    check = check_log(moved(planted, allowed), lambda: iter([(ROWS, answers)]), own, 1e-13, [1, 6])
    assert check.agrees
    assert check.rows == 500
    assert check.alike[1] >= check.alike[6]
    check = check_log(moved(planted, refused), lambda: iter([(ROWS, answers)]), own, 1e-13)
    assert not check.agrees


def test_rows_far_out_lean_on_the_parameters(planted):
    """A relative error of 1e-11 in the weights is allowed where inputs are a thousand times larger."""
    far = np.concatenate([ROWS, 1e3 * ROWS[:50]])
    scaled = unweave.Network(
        [planted.weights[0] * (1 + 1e-11), planted.weights[1]], planted.biases, planted.activations
    )
    assert check_log(scaled, lambda: iter([(far, planted(far))]), OwnPrecision(), 1e-13).agrees


def test_empty_log_does_not_agree(planted):
    assert not check_log(planted, lambda: iter([]), OwnPrecision(), 1e-13).agrees
