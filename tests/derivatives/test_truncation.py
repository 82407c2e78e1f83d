from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from random_models import random_model, sites_of
from unweave.derivatives.entangled import network_hessians
from unweave.derivatives.stencils import hessian_jets
from unweave.derivatives.truncation import difference_gradients, hessian_truncation
from unweave.networks.activations import get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.subspace.symmetric import symmetric_packing


def model_of(name: str = "tanh") -> NetworkParameters:
    rng = np.random.default_rng(1000)
    return NetworkParameters.shallow(
        get_activation(name),
        rng.standard_normal((4, 6)) / 2,
        rng.uniform(-1, 1, 6),
        rng.standard_normal((6, 2)),
        rng.standard_normal(2),
    )


def scaled_outgoing(model: NetworkParameters, factor: float) -> NetworkParameters:
    return replace(model, weights=(model.weights[0], model.weights[1] * factor))


def errors(
    model: NetworkParameters, predictor: NetworkParameters, scheme: str, step: float
) -> tuple[float, float]:
    """Error of the difference Hessians before and after the predicted truncation is taken away."""
    sites = np.random.default_rng(1001).standard_normal((5, 4))
    exact = symmetric_packing(4).pack(network_hessians(model.to_network(), sites))
    jets = hessian_jets(model.values, sites, step, scheme)
    corrected = jets.hessians - hessian_truncation(predictor, jets, scheme)
    return float(np.abs(jets.hessians - exact).max()), float(np.abs(corrected - exact).max())


@pytest.mark.parametrize("name", ["tanh", "gelu"])
@pytest.mark.parametrize("scheme", ["compact", "four-point"])
def test_the_prediction_turns_second_into_fourth_order(scheme: str, name: str) -> None:
    model = model_of(name)
    coarse, fine = (errors(model, model, scheme, h) for h in (0.1, 0.05))
    assert_allclose(np.log2(coarse[0] / fine[0]), 2, atol=0.2)
    assert_allclose(np.log2(coarse[1] / fine[1]), 4, atol=0.3)
    assert fine[1] < 0.05 * fine[0]


def test_a_model_of_relative_error_e_leaves_e_of_the_truncation() -> None:
    model = model_of()
    step = 3e-3  # so small that the next order does not show
    for size in (1e-1, 1e-2):
        before, after = errors(model, scaled_outgoing(model, 1 + size), "compact", step)
        assert_allclose(after, size * before, rtol=0.2)


def test_richardson_has_no_leading_truncation_left() -> None:
    model = model_of()
    sites = np.random.default_rng(1002).standard_normal((3, 4))
    jets = hessian_jets(model.values, sites, 0.1, "richardson")
    assert not hessian_truncation(model, jets, "richardson").any()


@pytest.mark.parametrize("scheme", ["compact", "four-point"])
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus", "sine"])
def test_difference_gradients_are_those_of_the_differences(name: str, scheme: str) -> None:
    model = random_model(4, 5, 2, True, name=name)
    x = sites_of(4)
    errors = []
    for step in (0.2, 0.1):
        jets = hessian_jets(model.values, x, step, scheme)
        errors.append(np.abs(difference_gradients(model, x, step, jets.rule) - jets.gradients).max())
    assert errors[1] < 1e-5
    assert errors[0] / errors[1] > 40  # what is left is of order h^6
