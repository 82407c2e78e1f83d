from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from searches import Searched, searched

D = 5


def fitted(function: Any, budget: int | None = None, **where: Any) -> Searched:
    return searched("affine", function, budget=budget, input_dim=D, **where)


def affine(x: np.ndarray) -> np.ndarray:
    return x @ (np.arange(2.0 * D).reshape(D, 2) - 3.5) + [1.0, -2.0]


@pytest.mark.parametrize("where", [{}, {"domain": (5.0, 5.5)}, {"domain": (-1e3, 1e3)}])
def test_slopes_and_offsets_are_exact_in_the_inputs_of_the_target(where: dict[str, Any]) -> None:
    candidate = fitted(affine, **where).candidate
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
    candidate = fitted(lambda x: np.full((len(x), 2), [0.1, -7.0])).candidate
    assert candidate.network is not None
    assert not candidate.network.weights[0].any()
    np.testing.assert_allclose(candidate.network.biases[0], [0.1, -7.0], rtol=1e-14)
    assert candidate.notes == ("the target is constant: no hidden layer is needed",)


def test_rows_asked_are_the_unknowns_and_a_few_to_spare() -> None:
    done = fitted(affine)
    assert done.queries.sent - done.findings.queries == D + 1 + 8


def test_the_misfit_of_a_curved_target_is_told() -> None:
    candidate = fitted(lambda x: np.tanh(2 * x).sum(axis=1)).candidate
    assert candidate.evidence.fit_history[0] > 1e-2
    assert candidate.evidence.fit_floor < 1e-14
    assert candidate.notes == ()


def test_a_budget_that_is_too_small_gives_no_network_but_the_reason() -> None:
    candidate = fitted(affine, budget=D).candidate
    assert candidate.network is None
    assert candidate.problem is not None
    assert "budget" in candidate.problem
