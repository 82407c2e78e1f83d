"""Units fitted to coefficients of several orders."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.numerics.hermite.estimated_coefficients import estimate_coefficients, in_batches
from unweave.numerics.hermite.symmetric_tensors import tensor_packing
from unweave.published.relu.gaussian_samples import GaussianSampleOptions, recover_from_gaussian_samples
from unweave.published.relu.moment_fit import (
    MomentProblem,
    fit_moments,
    fit_moments_with_restarts,
    power_gradients,
    strongest,
)
from unweave.published.relu.relu_units import ReLUUnits, hermite_coefficients


def planted(dimension, width, seed):
    rng = np.random.default_rng(seed)
    outer = rng.choice([-1.0, 1.0], width) * rng.uniform(0.5, 1.5, width)
    return ReLUUnits.normalised(rng.standard_normal((dimension, width)), rng.uniform(-1, 1, width), outer)


def moved(units, size, seed):
    rng = np.random.default_rng(seed)
    weights = units.weights + size * rng.standard_normal(units.weights.shape)
    weights /= np.linalg.norm(weights, axis=0)
    return ReLUUnits(weights, units.biases + size * rng.standard_normal(units.width), units.outer)


def test_jacobian_matches_differences():
    units = planted(4, 3, 1000)
    deviations = {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.5, 5: 1.0}
    problem = MomentProblem(hermite_coefficients(units, 5), deviations, units)
    vector = problem.vector(moved(units, 0.2, 1001))
    jacobian = problem.linearise(vector).dense()
    step = 1e-5
    differences = [
        (problem.residual(vector - step * e) - problem.residual(vector + step * e)) / (2 * step)
        for e in np.eye(len(vector))
    ]
    # Third derivatives of order ten times 1 / sigma, times step squared.
    np.testing.assert_allclose(jacobian, np.stack(differences, axis=1), atol=1e-7)


def test_gradients_of_powers_are_homogeneous():
    weights = planted(4, 3, 1002).weights
    for order in (1, 2, 3, 4):
        along = np.einsum("pmd,dm->pm", power_gradients(order, weights), weights)
        np.testing.assert_allclose(along, order * tensor_packing(4, order).powers(weights), atol=1e-14)


def test_parameters_and_units_are_the_same():
    units = planted(5, 4, 1003)
    problem = MomentProblem(hermite_coefficients(units, 2), {2: 1.0}, units)
    back = problem.units(problem.vector(units))
    for a, b in ((units.weights, back.weights), (units.biases, back.biases), (units.outer, back.outer)):
        np.testing.assert_allclose(a, b, atol=1e-14)


def test_exact_coefficients_are_fitted_exactly():
    units = planted(6, 4, 1004)
    exact = hermite_coefficients(units, 4)
    fit = fit_moments(exact, dict.fromkeys((2, 3, 4), 1.0), moved(units, 0.1, 1005))
    assert fit.misfit < 1e-14 < fit.misfit_before
    np.testing.assert_allclose(fit.units.weights, units.weights, atol=1e-10)
    np.testing.assert_allclose(fit.units.biases, units.biases, atol=1e-10)


def test_deviations_must_be_usable():
    units = planted(3, 2, 1006)
    for deviations in ({}, {0: 1.0}, {2: 0.0}):
        with pytest.raises(InvalidInput, match="deviations must be positive"):
            fit_moments(hermite_coefficients(units, 3), deviations, units)


def test_missing_units_are_found_and_wrong_fits_noticed():
    units = planted(6, 4, 1007)
    x = np.random.default_rng(1008).standard_normal((60_000, 6))
    estimate = estimate_coefficients(in_batches(x, units(x)), 4)
    deviations = estimate.deviations(2, 3, 4)
    right = fit_moments(estimate.coefficients, deviations, units)
    # 203 equations, 28 parameters: a right fit leaves about sqrt(1 - 28/203) of the noise.
    assert 0.7 < right.misfit < 1.2
    fewer = fit_moments(estimate.coefficients, deviations, strongest(units, 3))
    assert fewer.misfit > 2 * right.misfit
    rng = np.random.default_rng(1009)
    # One unit short, and another one pointing elsewhere.
    start = ReLUUnits(units.weights[:, [0, 1, 1]], units.biases[:3], units.outer[:3])
    found = fit_moments_with_restarts(estimate.coefficients, deviations, start, 4, rng, rounds=20)
    assert found.misfit <= max(1.0, 1.01 * right.misfit)
    overlaps = np.abs(units.weights.T @ found.units.weights).max(axis=1)
    assert overlaps.min() > np.cos(0.15)


def test_fit_beats_eigenvectors():
    errors = {True: [], False: []}
    for seed in (1010, 1011, 1012):
        units = planted(8, 4, seed)
        x = np.random.default_rng(seed + 100).standard_normal((40_000, 8))
        for fit in errors:
            options = GaussianSampleOptions(fit=fit)
            found = recover_from_gaussian_samples(
                in_batches(x, units(x)), np.random.default_rng(0), 4, options
            ).recovery
            overlaps = np.abs(units.weights.T @ found.units.weights).max(axis=1)
            errors[fit].append(np.sqrt(2 - 2 * overlaps))
    # Measured: three to eight times as close.
    assert np.median(errors[True]) < np.median(errors[False]) / 1.5
