from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unweave.networks.activations import get_activation
from unweave.networks.comparison import compare
from unweave.networks.parameters import NetworkParameters
from unweave.networks.random import random_network
from unweave.networks.ridge_continuation import ContinuationOptions, RidgeFit
from unweave.networks.value_fit import fit_values


def standardized(activation: str = "tanh", units: int = 8) -> tuple[np.ndarray, np.ndarray]:
    network = random_network([4, units, 1], activation, seed=1000, outer="signed")
    x = np.random.default_rng(1000).standard_normal((600, 4))
    y = network(3 * x)
    return x, (y - y.mean()) / y.std()


def test_a_lower_ridge_leaves_less() -> None:
    x, y = standardized()
    fit = RidgeFit(x, y, get_activation("tanh"))
    start = fit.random(12, np.random.default_rng(1))
    first = fit.fit(start, 1e-3)
    second = fit.fit(first.model, 1e-5)
    assert second.residual < 0.5 * first.residual < 0.5 * fit.residual(start)


def test_surplus_units_are_left_out_and_the_others_are_exact() -> None:
    x, y = standardized()
    fit = RidgeFit(x, y, get_activation("tanh"))
    level = fit.settled(fit.random(12, np.random.default_rng(1)), fit.options.first)
    assert level.model.width == 12
    fewer = fit.without_surplus(level)
    assert fewer.model.width == 8
    fitted = fit_values(fewer.model, x, y)
    assert fitted.history[-1] < 1e-14
    truth = random_network([4, 8, 1], seed=1000, outer="signed")
    found = fitted.model.to_network()
    assert compare(truth, truth).parameter_error == 0
    directions = truth.weights[0] / np.linalg.norm(truth.weights[0], axis=0)
    seen = found.weights[0] / np.linalg.norm(found.weights[0], axis=0)
    np.testing.assert_allclose(np.abs(directions.T @ seen).max(axis=1), 1.0, atol=1e-10)


def test_more_units_explain_what_too_few_leave() -> None:
    x, y = standardized()
    fit, rng = RidgeFit(x, y, get_activation("tanh")), np.random.default_rng(1)
    few = fit.settled(fit.random(4, rng), fit.options.first)
    assert few.residual > 0.02
    more = fit.settled(fit.with_more_units(few.model, 6, few.ridge, rng), few.ridge)
    assert more.model.width == 10
    assert more.residual < 0.1 * few.residual


@pytest.mark.parametrize("activation", ["softplus", "gelu"])
def test_an_affine_part_is_free_where_mirrored_units_differ_by_one(activation: str) -> None:
    x = np.random.default_rng(1000).standard_normal((200, 3))
    y = x @ np.ones((3, 1))
    fit = RidgeFit(x, y, get_activation(activation), ContinuationOptions())
    level = fit.fit(fit.random(3, np.random.default_rng(1)), 1.0)
    assert level.residual < 1e-6
    assert np.abs(level.model.weights[1]).max() < 1e-3


def valley() -> tuple[RidgeFit, NetworkParameters]:
    """Return a layer behind signs of few inputs, and where the first ridge leads."""
    rng = np.random.default_rng(1000)
    signs = np.sign(rng.standard_normal((700, 3)) @ rng.standard_normal((3, 16)))
    y = np.tanh(signs @ rng.uniform(-0.5, 0.5, (16, 12))) @ rng.standard_normal((12, 1))
    fit = RidgeFit(
        signs, (y - y.mean()) / y.std(), get_activation("tanh"), ContinuationOptions(many=100, inner_steps=40)
    )
    return fit, fit.fit(fit.random(15, rng), 1e-3).model


def test_patience_leads_through_long_valleys() -> None:
    fit, model = valley()
    usual, patient = fit.fit(model, 1e-6), fit.patiently(model, 1e-6)
    assert patient.steps > usual.steps
    assert patient.residual < 0.95 * usual.residual


def test_patience_has_steps_of_its_own() -> None:
    fit, model = valley()
    fit.options = replace(fit.options, steps=5, long_steps=20)
    assert fit.patiently(model, 1e-6).steps > fit.fit(model, 1e-6).steps


def test_quick_steps_leave_out_only_units_that_cost_nothing() -> None:
    fit, model = valley()
    level = fit.patiently(model, 1e-7)
    lenient = fit.without_surplus(level)
    fit.options = replace(fit.options, quick_worsening=1.0)
    strict = fit.without_surplus(level)
    assert strict.residual <= level.residual
    assert strict.model.width > lenient.model.width


def test_a_large_fit_that_gains_nothing_ends_soon() -> None:
    fit, model = valley()
    few = np.arange(15) < 6  # units are missing: no ridge leaves little
    level = fit.patiently(model.keep(few), 1e-8)
    assert fit.closer(level.model, 1e-10).steps < fit.fit(level.model, 1e-10).steps
