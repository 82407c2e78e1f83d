"""Steps that factor J where units nearly depend on each other."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.methods.shared.value_search import smooth_feature
from unweave.networks.activations import get_activation
from unweave.numerics.variable_projection.problem import ProjectedProblem, ProjectionOptions
from unweave.numerics.variable_projection.search import SearchOptions, search_units
from unweave.numerics.variable_projection.steps import factored_solver, gram_solver


def problem_and_units(activation, angle, outputs=1, seed=1000):
    """Units whose directions are ``angle`` apart, and samples of them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((400, 2))
    angles = angle * np.arange(4)
    units = np.vstack([np.cos(angles), np.sin(angles), 0.3 * np.arange(4) - 0.4])
    feature = smooth_feature(get_activation(activation))
    y = feature.value(x @ units[:-1] + units[-1]) @ rng.uniform(1, 2, (4, outputs))
    return ProjectedProblem(x, y, feature), units


@pytest.mark.parametrize("activation", ["tanh", "softplus"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_both_solvers_give_the_same_step(activation, outputs):
    problem, units = problem_and_units(activation, 0.7, outputs)
    at = problem.linearised(problem.at(units + 0.1 * np.random.default_rng(0).standard_normal(units.shape)))
    jacobian = at.jacobian()
    np.testing.assert_allclose(jacobian.T @ jacobian, at.gram(), atol=1e-10)
    np.testing.assert_allclose(factored_solver(at)(1e-2), gram_solver(at)(1e-2), rtol=1e-6)


def test_nearly_dependent_units_come_back():
    problem, units = problem_and_units("tanh", 0.02)
    start = units * (1 + 1e-3 * np.random.default_rng(1).standard_normal(units.shape))
    found = {
        factored: problem.minimise(start, ProjectionOptions(steps=60, floor=0.0, factored=factored))
        for factored in (False, True)
    }
    errors = {factored: np.abs(fit.units - units).max() for factored, fit in found.items()}
    assert errors[True] < 1e-6
    assert errors[False] > 100 * errors[True]


def test_only_an_exact_fit_is_worth_the_last_steps():
    rng = np.random.default_rng(1000)
    x = rng.standard_normal((500, 4))
    kinked = np.abs(x @ rng.standard_normal((4, 3)) + 0.2) @ np.array([[1.0], [-2.0], [1.5]])
    brief = SearchOptions(starts=1, most=8, all_or_nothing=True)
    exact = search_units(x, kinked, None, floor=1e-10, rng=np.random.default_rng(0), options=brief)
    assert exact.exact
    assert exact.fit.units.shape[1] == 3
    smooth = np.sin(2 * x[:, :1]) * x[:, 1:2]
    imitation = search_units(x, smooth, None, floor=1e-10, rng=np.random.default_rng(0), options=brief)
    thorough = search_units(
        x, smooth, None, floor=1e-10, rng=np.random.default_rng(0), options=SearchOptions(starts=1, most=8)
    )
    assert not imitation.exact
    assert imitation.fit.units.shape[1] >= thorough.fit.units.shape[1] > 0
    assert imitation.fit.residual == pytest.approx(thorough.fit.residual, rel=0.5)
