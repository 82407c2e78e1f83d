from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unweave import Queries
from unweave.methods.affine.search import recover_affine
from unweave.probing.look import Findings, look
from unweave.search.candidate import Candidate
from unweave.search.journal import Journal
from unweave.targets import NormalisedQueries

D = 5


def fitted(function: Any, budget: int | None = None, **where: Any) -> tuple[Candidate, Findings, Queries]:
    queries = Queries(function, D)
    findings = look(queries, rng=np.random.default_rng(1000), **where)
    queries.reset_budget(max_queries=budget)
    view = NormalisedQueries(queries, findings.region)
    candidate = recover_affine(view, findings, Journal(queries), np.random.default_rng(1001))
    return candidate, findings, queries


def affine(x: np.ndarray) -> np.ndarray:
    return x @ (np.arange(2.0 * D).reshape(D, 2) - 3.5) + [1.0, -2.0]


@pytest.mark.parametrize("where", [{}, {"domain": (5.0, 5.5)}, {"domain": (-1e3, 1e3)}])
def test_slopes_and_offsets_are_exact_in_the_inputs_of_the_target(where: dict[str, Any]) -> None:
    candidate, _, _ = fitted(affine, **where)
    assert candidate.network is not None
    # Rounding of the answers over the width of the region: eps 60 / 0.14 in the narrow box.
    np.testing.assert_allclose(
        candidate.network.weights[0], affine(np.eye(D)) - affine(np.zeros((1, D))), atol=1e-11
    )
    x = np.random.default_rng(1002).uniform(5.0, 5.5, (20, D))
    np.testing.assert_allclose(candidate.network(x), affine(x), atol=1e-11)
    assert candidate.notes == ("the target is affine: no hidden layer is needed",)
    assert candidate.problem is None


def test_a_constant_has_slopes_that_are_exactly_zero() -> None:
    candidate, _, _ = fitted(lambda x: np.full((len(x), 2), [0.1, -7.0]))
    assert candidate.network is not None
    assert not candidate.network.weights[0].any()
    np.testing.assert_allclose(candidate.network.biases[0], [0.1, -7.0], rtol=1e-14)
    assert candidate.notes == ("the target is constant: no hidden layer is needed",)


def test_rows_asked_are_the_unknowns_and_a_few_to_spare() -> None:
    _, findings, queries = fitted(affine)
    assert queries.sent - findings.queries == D + 1 + 8


def test_the_misfit_of_a_curved_target_is_told() -> None:
    candidate, _, _ = fitted(lambda x: np.tanh(2 * x).sum(axis=1))
    assert candidate.evidence.fit_history[0] > 1e-2
    assert candidate.evidence.fit_floor < 1e-14
    assert candidate.notes == ()


def test_a_budget_that_is_too_small_gives_no_network_but_the_reason() -> None:
    candidate, _, _ = fitted(affine, budget=D)
    assert candidate.network is None
    assert candidate.problem is not None
    assert "budget" in candidate.problem
