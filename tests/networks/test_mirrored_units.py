from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from unweave.derivatives.stencils import gradient_jets
from unweave.methods.smooth.frame_search import fit_linear_part, skip_matrix
from unweave.networks.activations import get_activation
from unweave.networks.mirrored_units import mirror_back, with_least_skip
from unweave.networks.parameters import NetworkParameters

MIRRORED = ("softplus", "gelu", "swish")


def model_of(
    name: str, skip: bool, d: int = 6, m: int = 5, k: int = 2, seed: int = 1000
) -> NetworkParameters:
    rng = np.random.default_rng(seed)
    return NetworkParameters.shallow(
        get_activation(name),
        rng.standard_normal((d, m)) / 2,
        rng.uniform(-1, 1, m),
        rng.uniform(0.5, 2, (m, k)) * rng.choice([-1, 1], (m, k)),
        rng.standard_normal(k),
        rng.standard_normal((d, k)) if skip else None,
    )


def jets_of(model: NetworkParameters, n: int = 12, step: float = 0.02):
    sites = np.random.default_rng(1001).standard_normal((n, model.n_inputs))
    return gradient_jets(model.values, sites, step)


def mirrored(model: NetworkParameters, units: list[int]) -> NetworkParameters:
    """The model with some units mirrored and nothing else changed: what Hessians alone would give."""
    sign = np.ones(model.width)
    sign[units] = -1
    (weights, outgoing), (biases, offset) = model.weights, model.biases
    return replace(model, weights=(weights * sign, outgoing), biases=(biases * sign, offset))


@pytest.mark.parametrize("skip", [False, True])
def test_constant_and_skip_are_those_of_the_target(skip: bool) -> None:
    model = model_of("tanh", skip)
    blank = replace(model, biases=(model.biases[0], np.zeros(2)), skip=None)
    fitted = fit_linear_part(blank, jets_of(model), with_skip=skip)
    assert_allclose(fitted.biases[1], model.biases[1], atol=1e-9)
    if skip:
        assert_allclose(fitted.skip, model.skip, atol=1e-9)
    else:
        assert fitted.skip is None


def test_what_the_model_held_before_does_not_matter() -> None:
    model = model_of("tanh", True)
    wrong = replace(model, biases=(model.biases[0], model.biases[1] + 3), skip=model.skip - 2)
    fitted = fit_linear_part(wrong, jets_of(model), with_skip=True)
    assert_allclose(fitted.to_vector(), model.to_vector(), atol=1e-9)
    assert_allclose(skip_matrix(wrong, jets_of(model)), model.skip, atol=1e-9)


@pytest.mark.parametrize("name", MIRRORED)
@pytest.mark.parametrize("units", [[], [0], [1, 3], [0, 1, 2, 3, 4]])
def test_mirrored_units_are_found_and_turned_back(name: str, units: list[int]) -> None:
    model = model_of(name, skip=False)
    jets = jets_of(model)
    turned = fit_linear_part(mirrored(model, units), jets, with_skip=True)
    back = mirror_back(turned)
    assert_allclose(back.weights[0], model.weights[0], atol=1e-12)
    assert_allclose(back.biases[0], model.biases[0], atol=1e-12)
    assert_allclose(back.skip, np.zeros((6, 2)), atol=1e-7)
    assert_allclose(back.biases[1], model.biases[1], atol=1e-7)


@pytest.mark.parametrize("name", MIRRORED)
def test_turning_back_does_not_change_the_function(name: str) -> None:
    model = model_of(name, skip=False)
    turned = fit_linear_part(mirrored(model, [2, 4]), jets_of(model), with_skip=True)
    x = np.random.default_rng(1002).standard_normal((20, 6))
    assert_allclose(turned.values(x), model.values(x), atol=1e-7)
    assert_allclose(mirror_back(turned).values(x), turned.values(x), atol=1e-12)


def test_a_true_skip_is_not_taken_for_mirrored_units() -> None:
    model = model_of("softplus", skip=True)
    assert mirror_back(model) is model


def test_odd_activations_and_models_without_skip_are_left_alone() -> None:
    for model in (model_of("tanh", True), model_of("softplus", False)):
        assert mirror_back(model) is model


@pytest.mark.parametrize("name", MIRRORED)
@pytest.mark.parametrize(("d", "m"), [(6, 20), (8, 60)])
def test_mirrored_units_are_turned_back_where_they_outnumber_equations(name: str, d: int, m: int) -> None:
    model = model_of(name, skip=False, d=d, m=m, k=1)
    units = np.flatnonzero(np.random.default_rng(1003).random(m) < 0.5).tolist()
    turned = mirrored(model, units)
    # What mirroring leaves, as the fit of the affine part would find it.
    slope = get_activation(name).reflection.slope
    left = (model.weights[0][:, units] * slope) @ model.weights[1][units]
    shift = slope * model.biases[0][units] @ model.weights[1][units]
    turned = replace(turned, skip=-left, biases=(turned.biases[0], turned.biases[1] - shift))
    x = np.random.default_rng(1002).standard_normal((20, d))
    assert_allclose(turned.values(x), model.values(x), atol=1e-12)
    back = mirror_back(turned)
    assert_allclose(back.weights[0], model.weights[0], atol=1e-12)
    assert_allclose(back.skip, np.zeros((d, 1)), atol=1e-12)


def test_a_true_skip_beside_more_units_than_equations_is_left_alone() -> None:
    model = model_of("softplus", True, d=2, m=5, k=2)
    assert mirror_back(model) is model
    assert_array_equal(mirror_back(model).weights[0], model.weights[0])


@pytest.mark.parametrize("name", [*MIRRORED, "relu"])
def test_noise_on_the_skip_does_not_keep_units_from_turning(name: str) -> None:
    rng = np.random.default_rng(1002)
    true = model_of(name, True)
    true = replace(true, skip=np.zeros_like(true.skip))
    points = rng.standard_normal((50, true.n_inputs))
    turned = mirrored(true, [0, 3])
    slope = get_activation(name).reflection.slope  # g(-z) = g(z) + l z
    (weights, outgoing), (biases, offset) = turned.weights, turned.biases
    kept = [0, 3]
    turned = replace(
        turned,
        skip=slope * weights[:, kept] @ outgoing[kept],
        biases=(biases, offset + slope * biases[kept] @ outgoing[kept]),
    )
    assert_allclose(turned.values(points), true.values(points), atol=1e-12)
    noisy = replace(turned, skip=turned.skip + 0.1 * rng.standard_normal(turned.skip.shape))
    found = with_least_skip(noisy)
    assert_allclose(found.values(points), noisy.values(points), atol=1e-12)
    assert_allclose(found.weights[0], true.weights[0])
    assert np.linalg.norm(found.skip) < 0.5 * np.linalg.norm(noisy.skip)


def test_nothing_turns_where_units_have_no_sides() -> None:
    model = model_of("tanh", True)
    assert with_least_skip(model) is model
