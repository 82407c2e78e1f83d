from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from unweave.errors import InvalidInput
from unweave.quadratic import (
    InputMoments,
    QuadraticDescentOptions,
    barrier_point,
    counterexample,
    empirical_barrier,
    empirical_gradient,
    empirical_risk,
    identity_start,
    matched_scale,
    population_barrier,
    population_risk,
    quadratic_descent,
    start_over_barrier,
    stationary_certificate,
)


def form(inputs: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    weights = np.random.default_rng(seed).standard_normal((inputs, width))
    return weights, weights @ weights.T


def samples(weights: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(seed).standard_normal((count, len(weights)))
    return x, np.sum((x @ weights) ** 2, axis=1)


@pytest.mark.parametrize(
    ("moments", "values", "chances"),
    [
        # Three values with chances, so that all of E (x^T A x)^2 is a finite sum.
        (InputMoments(2 / 3, 2 / 3), [-1.0, 0.0, 1.0], [1 / 3, 1 / 3, 1 / 3]),
        (InputMoments(1.0, 3.0), [-np.sqrt(3), 0.0, np.sqrt(3)], [1 / 6, 2 / 3, 1 / 6]),
        (InputMoments(1.0, 1.0), [-1.0, 1.0], [0.5, 0.5]),
    ],
)
def test_population_risk_is_the_expectation(
    moments: InputMoments, values: list[float], chances: list[float]
) -> None:
    rng = np.random.default_rng(1000)
    difference = rng.standard_normal((3, 3))
    difference += difference.T
    grid = np.stack(np.meshgrid(values, values, values), axis=-1).reshape(-1, 3)
    weight = np.prod(np.stack(np.meshgrid(chances, chances, chances), axis=-1).reshape(-1, 3), axis=1)
    expected = np.sum(weight * np.einsum("ni,ij,nj->n", grid, difference, grid) ** 2)
    assert population_risk(difference, moments) == pytest.approx(expected, rel=1e-12)
    assert expected >= moments.curvature * np.sum(difference**2) - 1e-12


@pytest.mark.parametrize("inputs", [2, 3, 5, 10])
def test_barrier_is_the_minimum_over_deficient_weights(inputs: int) -> None:
    _, matrix = form(inputs, 2 * inputs, 1001 + inputs)

    def risk(vector: np.ndarray) -> tuple[float, np.ndarray]:
        w = vector.reshape(inputs, inputs - 1)
        a = w @ w.T - matrix
        gradient = 2 * (4 * a + 2 * np.trace(a) * np.eye(inputs)) @ w
        return population_risk(a), gradient.reshape(-1)

    values, vectors = np.linalg.eigh(matrix)
    rng = np.random.default_rng(1002)
    starts = [vectors[:, 1:] * np.sqrt(values[1:]) + 0.1 * rng.standard_normal((inputs, inputs - 1))]
    starts += [2 * rng.standard_normal((inputs, inputs - 1)) for _ in range(2)]
    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}
    found = min(minimize(risk, w.ravel(), jac=True, method="L-BFGS-B", options=options).fun for w in starts)
    barrier = population_barrier(matrix)
    assert found == pytest.approx(barrier, rel=1e-6)
    assert barrier == pytest.approx(2 * (inputs + 2) / (inputs + 1) * values[0] ** 2, rel=1e-12)
    # And the point where it is attained.
    point = barrier_point(matrix)
    assert np.linalg.eigvalsh(point)[0] == pytest.approx(0, abs=1e-12 * values[-1])
    assert population_risk(point - matrix) == pytest.approx(barrier, rel=1e-10)


def test_barrier_of_other_moments_is_a_bound_and_vacuous_for_signs() -> None:
    _, matrix = form(4, 8, 1010)
    assert population_barrier(matrix, InputMoments(1.0, 1.0)) == 0
    uniform = InputMoments(1 / 3, 1 / 5)
    assert population_barrier(matrix, uniform) == pytest.approx(
        (1 / 5 - 1 / 9) * np.linalg.eigvalsh(matrix)[0] ** 2
    )


def test_no_deficient_weights_are_below_the_barrier_of_the_samples() -> None:
    weights, matrix = form(4, 8, 1011)
    x, y = samples(weights, 40, 1012)
    barrier = empirical_barrier(x, matrix)
    assert 0 < barrier < population_barrier(matrix)

    def risk(vector: np.ndarray) -> tuple[float, np.ndarray]:
        w = vector.reshape(4, 3)
        return empirical_risk(x, y, w), empirical_gradient(x, y, w).reshape(-1)

    rng = np.random.default_rng(1013)
    found = [minimize(risk, rng.standard_normal(12), jac=True, method="L-BFGS-B").fun for _ in range(5)]
    assert min(found) >= barrier
    # Too few samples have none.
    assert empirical_barrier(x[:9], matrix) == 0


def test_barrier_of_the_samples_from_the_gram_matrix() -> None:
    _, matrix = form(2, 3, 1070)
    x = np.random.default_rng(1071).standard_normal((12, 2))
    rows = np.column_stack([x[:, 0] ** 2, np.sqrt(2) * x[:, 0] * x[:, 1], x[:, 1] ** 2])
    expected = np.linalg.eigvalsh(rows.T @ rows / 12)[0] * np.linalg.eigvalsh(matrix)[0] ** 2
    assert empirical_barrier(x, matrix) == pytest.approx(expected, rel=1e-9)


def test_the_gradient_is_that_of_the_risk() -> None:
    weights, _ = form(3, 4, 1014)
    x, y = samples(weights, 20, 1015)
    rng = np.random.default_rng(1016)
    at, direction, h = rng.standard_normal((3, 4)), rng.standard_normal((3, 4)), 1e-5
    slope = (empirical_risk(x, y, at + h * direction) - empirical_risk(x, y, at - h * direction)) / (2 * h)
    assert np.sum(empirical_gradient(x, y, at) * direction) == pytest.approx(slope, rel=1e-7)


def test_certificate_bounds_the_distance() -> None:
    weights, matrix = form(5, 7, 1017)
    x, y = samples(weights, 60, 1018)
    rng = np.random.default_rng(1019)
    for size in (1e-6, 1e-3, 0.1, 1.0):
        near = weights + size * rng.standard_normal((5, 7))
        found = stationary_certificate(x, y, near)
        distance = np.linalg.norm(near @ near.T - matrix)
        assert distance <= found.distance_bound < 1e3 * distance
        assert empirical_risk(x, y, near) <= found.risk_bound


def test_no_certificate_without_rank_or_span() -> None:
    weights, _ = form(4, 6, 1020)
    x, y = samples(weights, 30, 1021)
    # Zero is stationary, and not the truth: what it lacks is rank.
    zero = stationary_certificate(x, y, np.zeros((4, 6)))
    assert (zero.gradient_norm, zero.distance_bound) == (0, np.inf)
    assert stationary_certificate(x, y, np.ones((4, 2))).distance_bound == np.inf
    assert stationary_certificate(x[:9], y[:9], weights).distance_bound == np.inf
    with pytest.raises(InvalidInput, match="weights must be of shape"):
        stationary_certificate(x, y, np.ones((3, 6)))


@pytest.mark.parametrize("inputs", [2, 5, 10, 20])
@pytest.mark.parametrize("missing", [1, 3])
def test_counterexample_fits_and_is_far(inputs: int, missing: int) -> None:
    weights, matrix = form(inputs, 2 * inputs, 1022 + inputs)
    count = inputs * (inputs + 1) // 2 - missing
    x, y = samples(weights, max(count, 1), 1030)
    found = counterexample(x, matrix, width=inputs + 1)
    assert found.empirical_risk < 1e-26  # rounding squared, times the condition of M
    assert empirical_risk(x, y, found.network.weights[0]) < 1e-26 * np.mean(y**2)
    assert np.linalg.matrix_rank(found.matrix, tol=1e-10 * np.linalg.norm(matrix)) == inputs - 1
    assert found.population_risk >= found.bound > 0
    assert found.population_risk >= population_barrier(matrix) * (1 - 1e-9)
    assert found.network.hidden == (inputs + 1,)


def test_counterexample_of_samples_in_a_hyperplane() -> None:
    # Here A may be semidefinite: only one of A and -A leads to the boundary of the positive matrices.
    for seed in range(1072, 1082):
        _, matrix = form(2, 4, seed)
        x = np.random.default_rng(seed).standard_normal((5, 1)) * [1.0, 0.0]
        found = counterexample(x, matrix)
        assert found.empirical_risk < 1e-28
        assert found.population_risk >= found.bound
        assert np.linalg.norm(found.matrix) <= 10 * np.linalg.norm(matrix)


def test_counterexample_needs_room_and_a_gap() -> None:
    weights, matrix = form(4, 8, 1040)
    x, _ = samples(weights, 10, 1041)
    with pytest.raises(InvalidInput, match="must not span"):
        counterexample(x, matrix)
    with pytest.raises(InvalidInput, match="at least d - 1"):
        counterexample(x[:9], matrix, width=2)
    with pytest.raises(InvalidInput, match="positive definite"):
        counterexample(x[:9], np.diag([1.0, 1.0, 1.0, 0.0]))
    assert counterexample(x[:9], matrix, width=3).network.hidden == (3,)


def test_wide_truths_put_the_identity_below_the_barrier() -> None:
    ratios = []
    for seed in range(1042, 1062):
        _, matrix = form(5, 200, seed)
        ratios.append(population_risk(200 * np.eye(5) - matrix) / np.linalg.eigvalsh(matrix)[0] ** 2)
    # Median of 20 draws of a ratio that varies by half of itself.
    assert np.median(ratios) == pytest.approx(start_over_barrier(5, 200), rel=0.4)
    assert start_over_barrier(10, 450) < 1.1 < start_over_barrier(10, 400)
    assert start_over_barrier(5, 5) == np.inf
    with pytest.raises(InvalidInput, match="width must be at least"):
        identity_start(5, 4)


@pytest.mark.parametrize("start", ["identity", "random"])
def test_descent_ends_at_the_truth(start: str) -> None:
    weights, matrix = form(6, 60, 1063)
    x, y = samples(weights, 4 * 21, 1064)
    begin = identity_start(6, 60)
    if start == "random":
        begin = 0.5 * np.random.default_rng(1065).standard_normal((6, 60))
    found = quadratic_descent(x, y, begin)
    assert found.converged
    assert (np.diff(found.history) < 0).all()
    assert np.linalg.norm(found.weights @ found.weights.T - matrix) < 1e-10 * np.linalg.norm(matrix)
    certificate = stationary_certificate(x, y, found.weights)
    assert np.linalg.norm(found.weights @ found.weights.T - matrix) <= certificate.distance_bound
    assert certificate.distance_bound < 1e-8 * np.linalg.norm(matrix)


def test_descent_below_the_threshold_fits_without_finding() -> None:
    weights, matrix = form(6, 12, 1066)
    x, y = samples(weights, 21 - 4, 1067)
    found = quadratic_descent(x, y, identity_start(6, 12, matched_scale(x, y)))
    assert found.history[-1] < 1e-6
    assert np.linalg.norm(found.weights @ found.weights.T - matrix) > 1e-2 * np.linalg.norm(matrix)


def test_descent_stops_when_told() -> None:
    weights, _ = form(3, 5, 1068)
    x, y = samples(weights, 30, 1069)
    found = quadratic_descent(x, y, identity_start(3, 5), QuadraticDescentOptions(steps=4))
    assert len(found.history) == 5
    assert not found.converged
