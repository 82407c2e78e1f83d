"""Every method solves its problems, by name and when it is chosen; others do not pretend."""

from __future__ import annotations

import pytest

import unweave
from problems import PROBLEMS, SOLVES
from unweave import InvalidInput, Status
from unweave.methods.table import METHODS

PAIRS = [(method, problem) for method, problems in SOLVES.items() for problem in problems]
ROWS = {method.name: method for method in METHODS}
EXEMPT = {
    "published",
    "quadratic_form",
    "relu_pairs",
    "samples_quadratic",
    "samples_quadratic_form",
    "samples_relu_wide",
    "samples_weighed",
    "trees",
}
"""Rows that are tried by name only, recover a restricted class, quadratic forms, what others left, noisy
samples, or no network: they have tests of their own."""


def test_every_row_has_a_problem() -> None:
    assert set(SOLVES) == set(ROWS) - EXEMPT
    assert {name for problems in SOLVES.values() for name in problems} == set(PROBLEMS)


@pytest.mark.parametrize(("method", "name"), PAIRS)
@pytest.mark.parametrize("by_name", [True, False])
def test_it_is_solved(method: str, name: str, by_name: bool) -> None:
    problem = PROBLEMS[name]()
    result = unweave.recover(problem.target, method=method if by_name else None, **problem.told)
    assert result.status is Status.RECOVERED, result.message
    assert result.network is not None
    assert unweave.compare(problem.network, result.network).parameter_error <= problem.tolerance


@pytest.mark.parametrize("name", ["tanh", "relu", "two tanh layers", "two relu layers"])
@pytest.mark.parametrize("method", [m.name for m in METHODS if m.asks == "queries" and not m.by_name_only])
def test_a_method_that_is_not_for_a_target_does_not_pretend(method: str, name: str) -> None:
    problem = PROBLEMS[name]()
    result = unweave.recover(problem.target, method=method, deadline=20, **problem.told)
    if result.status.is_recovered:
        assert result.network is not None
        assert unweave.compare(problem.network, result.network).function_error < 1e-7


@pytest.mark.parametrize("method", [m.name for m in METHODS if m.asks == "samples"])
def test_samples_are_not_asked(method: str) -> None:
    with pytest.raises(InvalidInput, match="for a target that is asked"):
        unweave.recover(PROBLEMS["tanh"]().target, method=method)
