"""Variable projection against plain linear algebra, and on planted units."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.numerics.variable_projection.features import KINK, SQUARED_KINK, feature_of
from unweave.numerics.variable_projection.orthonormal import orthonormal_columns
from unweave.numerics.variable_projection.problem import ProjectedProblem, ProjectionOptions, unit_columns
from unweave.numerics.variable_projection.prune import (
    Elimination,
    prune_exact,
    prune_noisy,
    random_units,
    removal_costs,
)
from unweave.numerics.variable_projection.steps import conjugate_gradient_solver, gram_solver


def planted(inputs, width, outputs, seed, feature=KINK, rows=600):
    rng = np.random.default_rng(seed)
    units = unit_columns(rng.standard_normal((inputs + 1, width)))
    units[-1] = rng.uniform(-1, 1, width)
    heights = rng.choice([-1, 1], (width, outputs)) * rng.uniform(0.5, 2, (width, outputs))
    x = rng.standard_normal((rows, inputs))
    z = x @ units[:-1] + units[-1]
    y = feature.value(z) @ heights + x @ rng.standard_normal((inputs, outputs)) + 1
    return x, y, units, heights


@pytest.mark.parametrize("feature", [KINK, SQUARED_KINK])
def test_elimination_is_least_squares(feature):
    x, y, units, _ = planted(4, 3, 2, 1000, feature)
    other = unit_columns(units + 0.3)
    design = np.hstack([feature.value(x @ other[:-1] + other[-1]), feature.polynomial(x)])
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    point = ProjectedProblem(x, y, feature).at(other)
    np.testing.assert_allclose(point.heights, solution[:3], atol=1e-11)
    np.testing.assert_allclose(point.residual, y - design @ solution, atol=1e-11)


@pytest.mark.parametrize("feature", [KINK, SQUARED_KINK])
def test_gram_is_that_of_the_projected_jacobian(feature):
    x, y, units, _ = planted(4, 3, 2, 1001, feature)
    problem = ProjectedProblem(x, y, feature)
    point = problem.at(unit_columns(units + 0.2))
    slopes = feature.slope(problem.inputs @ point.units)
    jacobian = []
    for output in range(2):
        part = (slopes * point.heights[:, output])[:, :, None] * problem.inputs[:, None, :]
        jacobian.append(problem.project(part.reshape(len(x), -1), point))
    expected = sum(part.T @ part for part in jacobian)
    np.testing.assert_allclose(problem.linearised(point).gram(), expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("feature", [KINK, SQUARED_KINK])
def test_conjugate_gradients_and_gram_give_the_same_step(feature, rough):
    x, y, units, _ = planted(8, 6, 2, 1002, feature)
    problem = ProjectedProblem(x, y, feature)
    point = problem.at(unit_columns(units + 0.1))
    damping = 1e-4
    dense = gram_solver(problem.linearised(point))(damping)
    # Solvers damp differently in detail: compare what the steps do to the model, not the steps.
    slopes = problem.feature.slope(problem.inputs @ point.units)
    seen = problem.roughly_at(point.units) if rough else point
    span, single = problem.in_single_precision(seen)
    free = conjugate_gradient_solver(span, single, seen.heights, seen.residual, 1e-4)(damping)
    images = [
        problem.project(((problem.inputs @ step) * slopes) @ point.heights, point) for step in (dense, free)
    ]
    assert np.linalg.norm(images[0] - images[1]) <= 0.05 * np.linalg.norm(images[0])


@pytest.mark.parametrize("feature", [KINK, SQUARED_KINK])
def test_single_precision_sees_the_same_residual(feature):
    x, y, units, _ = planted(8, 6, 2, 1002, feature)
    problem = ProjectedProblem(x, y, feature)
    moved = unit_columns(units + 0.1)
    exact, rough = problem.at(moved), problem.roughly_at(moved)
    assert type(rough) is not type(exact)
    assert rough.size == pytest.approx(exact.size, rel=1e-4)
    np.testing.assert_allclose(rough.residual, exact.residual, atol=1e-4 * np.abs(exact.residual).max())
    np.testing.assert_allclose(rough.heights, exact.heights, atol=1e-3 * np.abs(exact.heights).max())
    assert type(problem.roughly_at(units)) is type(exact)  # so near the end float64 takes over


def test_units_left_out_cost_what_refits_say():
    x, y, units, _ = planted(6, 5, 2, 1005)
    problem = ProjectedProblem(x, y)
    units = unit_columns(units + 0.05)
    fewer = Elimination(problem, units)
    for gone in ([3], [3, 1], [3, 1, 0]):
        place = int(np.flatnonzero(fewer.left == gone[-1])[0])
        fewer.leave_out(place, float(fewer.costs()[place]))
        refitted = problem.at(np.delete(units, gone, axis=1))
        assert fewer.residual == pytest.approx(refitted.size, rel=1e-9)
        np.testing.assert_allclose(fewer.costs(), removal_costs(problem, refitted.units), rtol=1e-7)


def test_twins_left_out_cost_the_others_no_digits():
    """Units that are nearly one make the inverse large; what is left of it once they are gone is small."""
    x, y, units, _ = planted(6, 8, 2, 1005)
    rng = np.random.default_rng(1006)
    twins = units[:, :4] + 1e-10 * rng.standard_normal((units.shape[0], 4))
    problem = ProjectedProblem(x, y + 0.1 * rng.standard_normal(y.shape))
    fewer = Elimination(problem, np.hstack([twins, units]))
    for _ in twins.T:
        fewer.leave_out(0, float(fewer.costs()[0]))
    np.testing.assert_allclose(fewer.costs(), removal_costs(problem, units), rtol=1e-9)


@pytest.mark.parametrize("limit", [10_000, 0])
@pytest.mark.parametrize("feature", [KINK, SQUARED_KINK])
def test_planted_units_come_back_to_rounding(limit, feature):
    x, y, units, heights = planted(6, 4, 2, 1003, feature)
    rng = np.random.default_rng(1004)
    start = unit_columns(units + 0.1 * rng.standard_normal(units.shape))
    fit = ProjectedProblem(x, y, feature).minimise(start, ProjectionOptions(gram_parameters=limit))
    assert fit.residual <= 1e-13
    assert all(after < before for before, after in zip(fit.history, fit.history[1:], strict=False))
    np.testing.assert_allclose(fit.units, units, atol=1e-11)
    np.testing.assert_allclose(fit.heights, heights, atol=1e-11)


def test_removal_cost_is_what_removal_costs():
    x, y, units, _ = planted(5, 4, 1, 1005)
    problem = ProjectedProblem(x, y + 0.1 * np.random.default_rng(0).standard_normal(y.shape))
    before = problem.at(units).size
    costs = removal_costs(problem, units)
    for unit in range(4):
        after = problem.at(np.delete(units, unit, axis=1)).size
        assert np.sqrt(after**2 - before**2) == pytest.approx(costs[unit], rel=1e-8)


def test_duplicate_and_idle_units_are_pruned():
    x, y, units, _ = planted(6, 4, 1, 1006)
    problem = ProjectedProblem(x, y)
    idle = random_units(problem, 2, np.random.default_rng(1))
    twin = unit_columns(-units[:, :1] + 1e-9)  # the first unit's hyperplane, turned round
    fit = problem.minimise(np.hstack([units, twin, idle]))
    pruned = prune_exact(problem, fit, 1e-10)
    assert pruned.units.shape[1] == 4
    assert pruned.residual <= 1e-12


def test_noise_keeps_no_surplus_unit_and_no_true_one_is_lost():
    x, y, units, _ = planted(6, 4, 1, 1007)
    rng = np.random.default_rng(1)
    problem = ProjectedProblem(x, y + 0.05 * rng.standard_normal(y.shape))
    fit = problem.minimise(np.hstack([units, random_units(problem, 2, rng)]))
    assert prune_noisy(problem, fit, None).units.shape[1] == 4


def test_no_units_is_the_polynomial_fit():
    x, y, _, _ = planted(3, 2, 1, 1008)
    problem = ProjectedProblem(x, y)
    fit = problem.minimise(np.zeros((4, 0)))
    assert fit.residual == pytest.approx(problem.polynomial_residual)


@pytest.mark.parametrize("condition", [1e0, 1e6, 1e12])
def test_orthonormal_columns(condition):
    rng = np.random.default_rng(1000)
    left = np.linalg.qr(rng.standard_normal((500, 12)))[0]
    right = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    matrix = left * np.geomspace(1, 1 / condition, 12) @ right
    basis, triangle = orthonormal_columns(matrix)
    # Rounding of products of this size; the shift of the badly conditioned case adds nothing visible.
    np.testing.assert_allclose(basis.T @ basis, np.eye(12), atol=1e-13)
    np.testing.assert_allclose(basis @ triangle, matrix, atol=1e-13)
    assert np.allclose(triangle, np.triu(triangle))


def test_other_activations_are_refused():
    with pytest.raises(ValueError, match="activation must be one of relu"):
        feature_of("tanh")


def test_a_fit_that_begins_where_another_ended_does_not_form_its_features_again(monkeypatch):
    x, y, units, _ = planted(8, 6, 2, 1002, KINK)
    problem = ProjectedProblem(x, y)
    fit = problem.minimise(unit_columns(units + 0.01))
    formed = []
    monkeypatch.setattr(ProjectedProblem, "features", lambda *_: formed.append(1))
    again = problem.minimise(fit.units, ProjectionOptions(steps=0))
    assert not formed
    assert again.residual == fit.residual
