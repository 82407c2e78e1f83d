from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from planted_published import disordered, planted

import unweave
from unweave.derivatives.entangled import entangled_weights
from unweave.errors import InvalidInput
from unweave.published.deep import exact_parameters, flip_signs, reparametrise
from unweave.published.deep.reparametrization import forward, gradient, jacobian

CASES = {
    "two layers": (7, (6, 3), "tanh", "tanh"),
    "three layers": (8, (8, 5, 9), "tanh", "identity"),
    "four layers": (9, (7, 6, 4, 3), "erf", "tanh"),
    "not odd": (8, (6, 5, 4), "sigmoid", "sigmoid"),
}


def disordered_case(name: str) -> tuple:
    """A network, an anchor, its entangled weights there in random order and scale, and that disorder."""
    n_inputs, widths, activation, output = CASES[name]
    network = planted(n_inputs, widths, 1501, output, activation, shift=0.3)
    rng = np.random.default_rng(1502)
    anchor = 0.4 * rng.standard_normal(n_inputs)
    exact = [matrix[0] for matrix in entangled_weights(network, anchor[None]).matrices]
    return (network, anchor, *disordered(exact, rng, 0.5, 2.0), rng)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("normalisation", ["inverse", "none"])
def test_both_optima_are_the_network(name: str, normalisation: str) -> None:
    network, anchor, layers, permutations, scales, rng = disordered_case(name)
    model = reparametrise(layers, network.activations)
    optimum = exact_parameters(network, anchor, permutations, scales, normalisation)
    found = model.to_network(optimum, normalisation)
    points = rng.standard_normal((50, network.n_inputs))
    assert_allclose(found(points), network(points), atol=1e-12)
    for layer, order in enumerate(permutations[:-1]):
        assert_allclose(found.biases[layer], network.biases[layer][order], atol=1e-12)
    assert unweave.compare(network, found).parameter_error < 1e-12


@pytest.mark.parametrize("name", CASES)
def test_key_identity_of_the_fixed_matrices(name: str) -> None:
    network, anchor, layers, permutations, scales, _ = disordered_case(name)
    slopes = entangled_weights(network, anchor[None]).slopes
    model = reparametrise(layers, network.activations)
    for layer in range(1, len(layers)):
        before, after = permutations[layer - 1], permutations[layer]
        expected = (slopes[layer - 1][0][:, None] * network.weights[layer])[np.ix_(before, after)]
        expected = expected / scales[layer - 1][:, None] * scales[layer]
        assert_allclose(model.matrices[layer], expected, atol=1e-12)


@pytest.mark.parametrize("name", ["two layers", "three layers", "four layers"])
def test_signs_do_not_matter_for_odd_activations(name: str) -> None:
    network, anchor, layers, permutations, scales, rng = disordered_case(name)
    model = reparametrise(layers, network.activations)
    optimum = exact_parameters(network, anchor, permutations, scales)
    signs = [rng.choice([-1.0, 1.0], len(right)) for right in optimum.right[:-1]]
    points = rng.standard_normal((20, network.n_inputs))
    flipped = model.to_network(flip_signs(optimum, signs))
    assert_allclose(flipped(points), network(points), atol=1e-12)
    positive = flip_signs(optimum, [np.sign(right) for right in optimum.right[:-1]])
    assert min(part.min() for part in (*positive.left, *positive.right)) > 0


def test_signs_do_matter_for_the_sigmoid() -> None:
    network, anchor, layers, permutations, scales, rng = disordered_case("not odd")
    model = reparametrise(layers, network.activations)
    optimum = exact_parameters(network, anchor, permutations, scales)
    flipped = model.to_network(flip_signs(optimum, [-np.ones(len(right)) for right in optimum.right[:-1]]))
    points = rng.standard_normal((20, network.n_inputs))
    assert np.abs(flipped(points) - network(points)).max() > 1e-3


@pytest.mark.parametrize("name", CASES)
def test_model_and_plain_network_answer_alike(name: str) -> None:
    network, _, layers, _, _, rng = disordered_case(name)
    model = reparametrise(layers, network.activations)
    vector = model.identity().to_vector() + 0.2 * rng.standard_normal(model.n_parameters)
    parameters = model.from_vector(vector)
    assert np.array_equal(parameters.to_vector(), vector)
    points = rng.standard_normal((11, network.n_inputs))
    plain = model.to_network(parameters)
    assert_allclose(forward(model, parameters, points).answers, plain(points), atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_jacobian_agrees_with_differences(name: str) -> None:
    network, _, layers, _, _, rng = disordered_case(name)
    model = reparametrise(layers, network.activations)
    vector = model.identity().to_vector() + 0.1 * rng.standard_normal(model.n_parameters)
    points = rng.standard_normal((4, network.n_inputs))
    parameters = model.from_vector(vector)
    passed = forward(model, parameters, points)
    found = jacobian(model, parameters, passed)
    h = 1e-5
    for k in range(model.n_parameters):
        step = h * np.eye(model.n_parameters)[k]
        up, down = (forward(model, model.from_vector(vector + s * step), points).answers for s in (1, -1))
        # Central differences: h^2/6 times third derivatives plus rounding / h.
        assert_allclose(found[:, :, k], (up - down) / (2 * h), atol=1e-7)
    cotangent = rng.standard_normal(passed.answers.shape)
    assert_allclose(
        gradient(model, parameters, passed, cotangent), np.einsum("nk,nkp->p", cotangent, found), atol=1e-12
    )


def test_number_of_free_parameters_is_the_published_one() -> None:
    layers = [np.ones((50, 50)), np.ones((50, 25)), np.ones((50, 10))]
    model = reparametrise(layers, ["tanh"] * 3)
    assert model.n_parameters == 3 * 85 - 10 + 50 == len(model.identity().to_vector())


def test_widths_must_not_increase() -> None:
    with pytest.raises(InvalidInput, match="must not increase"):
        reparametrise([np.ones((5, 3)), np.ones((5, 4)), np.ones((5, 2))], ["tanh"] * 3)
    with pytest.raises(InvalidInput, match="hidden layers"):
        flip_signs(reparametrise([np.eye(3), np.eye(3)], ["tanh"] * 2).identity(), [])
