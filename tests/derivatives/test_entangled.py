from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.derivatives.entangled import (
    coefficient_bounds,
    derivative_bound,
    entangled_lipschitz_bounds,
    entangled_norm_bounds,
    entangled_weights,
    hessian_terms,
    network_gradients,
    network_hessians,
)
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.random import random_network

TINY = 1e-30  # imaginary step: the derivative comes without a difference, to rounding


def complex_step_entangled(network: Network, point: np.ndarray) -> list[np.ndarray]:
    """V^l (D, m_l) of a tanh network by the complex step, without any formula for derivatives."""
    state = point[None, :] + 1j * TINY * np.eye(len(point))
    matrices = []
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        z = state @ weight + bias
        matrices.append(z.imag / TINY)
        state = z if network.activations[layer] == "identity" else np.tanh(z)
    return matrices


def layer_sums(network: Network, layer: int, points: np.ndarray) -> np.ndarray:
    """z of the layer: the network cut off there, with an identity on top."""
    return Network(
        network.weights[: layer + 1],
        network.biases[: layer + 1],
        (*network.activations[:layer], "identity"),
        skip=network.skip if layer == len(network.weights) - 1 else None,
    )(points)


def with_skip(network: Network) -> Network:
    skip = np.random.default_rng(1100).standard_normal((network.n_inputs, network.n_outputs))
    return Network(network.weights, network.biases, network.activations, skip=skip)


NETWORKS = {
    "shallow": random_network([5, 4, 3], seed=1101, outer="normal"),
    "curved output": random_network(
        [4, 6, 5, 2], "sigmoid", seed=1102, outer="normal", output_activation="tanh"
    ),
    "deep": random_network([3, 5, 4, 3, 2], "softplus", seed=1103, outer="normal", norms=(0.5, 2)),
    "skip": with_skip(random_network([4, 5, 3, 2], seed=1104, outer="normal", output_activation="sigmoid")),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_entangled_weights_are_the_gradients_of_all_pre_activations(name: str) -> None:
    network = NETWORKS[name]
    points = np.random.default_rng(1105).standard_normal((3, network.n_inputs))
    found = entangled_weights(network, points)
    h = 1e-3
    for layer, matrix in enumerate(found.matrices):
        assert_allclose(found.pre_activations[layer], layer_sums(network, layer, points), atol=1e-13)
        for axis in range(network.n_inputs):
            step = h * np.eye(network.n_inputs)[axis]
            near = layer_sums(network, layer, points + step) - layer_sums(network, layer, points - step)
            far = layer_sums(network, layer, points + 2 * step) - layer_sums(
                network, layer, points - 2 * step
            )
            # Error of the five-point rule: h^4/30 times fifth derivatives, plus rounding / h.
            assert_allclose(matrix[:, axis], (8 * near - far) / (12 * h), atol=1e-9)


@pytest.mark.parametrize("output", ["identity", "tanh"])
def test_entangled_weights_agree_with_the_complex_step(output: str) -> None:
    network = random_network([6, 6, 5, 4, 3], seed=1106, outer="unit", output_activation=output)
    points = np.random.default_rng(1107).standard_normal((4, 6))
    found = entangled_weights(network, points)
    for i, point in enumerate(points):
        for matrix, expected in zip(found.matrices, complex_step_entangled(network, point), strict=True):
            assert_allclose(matrix[i], expected, atol=1e-14)


@pytest.mark.parametrize("name", NETWORKS)
def test_rank_one_terms_add_up_to_the_hessians(name: str) -> None:
    network = NETWORKS[name]
    points = np.random.default_rng(1108).standard_normal((3, network.n_inputs))
    terms = hessian_terms(network, points)
    expected = np.zeros((3, network.n_outputs, network.n_inputs, network.n_inputs))
    for n in range(3):
        for matrix, coefficient in zip(terms.entangled.matrices, terms.coefficients, strict=True):
            for k in range(network.n_outputs):
                for j in range(matrix.shape[2]):
                    v = matrix[n, :, j]
                    expected[n, k] += coefficient[n, k, j] * np.outer(v, v)
    assert_allclose(terms.hessians(), expected, atol=1e-13)
    assert_allclose(network_hessians(network, points), expected, atol=1e-13)
    h = 1e-3
    for axis in range(network.n_inputs):
        step = h * np.eye(network.n_inputs)[axis]
        near = network_gradients(network, points + step) - network_gradients(network, points - step)
        far = network_gradients(network, points + 2 * step) - network_gradients(network, points - 2 * step)
        assert_allclose(expected[:, :, axis], (8 * near - far) / (12 * h), atol=1e-9)


def test_last_layer_coefficients_are_its_own_curvature_only() -> None:
    network = random_network([4, 5, 3], seed=1109, outer="normal", output_activation="tanh")
    terms = hessian_terms(network, np.full((1, 4), 0.3))
    last = terms.coefficients[-1][0]
    assert_allclose(last, np.diag(terms.entangled.curvatures[-1][0]), atol=0)
    identity = Network(network.weights, network.biases, ["tanh", "identity"])
    assert not hessian_terms(identity, np.full((1, 4), 0.3)).coefficients[-1].any()


def test_derivative_bounds_of_known_functions() -> None:
    for name, kappa in (("tanh", 2.0), ("sigmoid", 0.25), ("identity", 1.0), ("sine", 1.0)):
        found = derivative_bound(Network([[[1.0]]], [[0.0]], [name]))
        assert found == pytest.approx(kappa, rel=1e-6)  # the grid misses a maximum by O(spacing^2)
    assert derivative_bound(Network([[[1.0]]], [[0.0]], ["quadratic"])) == np.inf


def test_bounds_of_a_chain_of_single_units() -> None:
    a, b, c, kappa = 2.0, 3.0, 0.5, 1.5
    chain = Network([[[a]], [[b]], [[c]]], [[0.0]] * 3, ["tanh", "tanh", "tanh"])
    assert_allclose(entangled_norm_bounds(chain, kappa), [a, kappa * a * b, kappa**2 * a * b * c])
    assert_allclose(
        entangled_lipschitz_bounds(chain, kappa),
        [0, a * b * kappa * a, a * b * c * (kappa**2 * a + kappa**3 * b * a)],
    )
    assert_allclose(coefficient_bounds(chain, kappa)[:, 0], [kappa**3 * c * b, kappa**2 * c, kappa])


@pytest.mark.parametrize("name", ["shallow", "curved output", "deep", "skip"])
def test_bounds_hold(name: str) -> None:
    network = NETWORKS[name]
    rng = np.random.default_rng(1110)
    points = rng.standard_normal((200, network.n_inputs))
    moved = points + 1e-3 * rng.standard_normal(points.shape)
    distance = np.linalg.norm(points - moved, axis=1)
    terms = hessian_terms(network, points)
    other = entangled_weights(network, moved)
    norms, lipschitz = entangled_norm_bounds(network), entangled_lipschitz_bounds(network)
    for layer, matrix in enumerate(terms.entangled.matrices):
        assert np.linalg.norm(matrix, 2, axis=(1, 2)).max() <= norms[layer] * (1 + 1e-12)
        change = np.linalg.norm(matrix - other.matrices[layer], 2, axis=(1, 2)) / distance
        assert change.max() <= lipschitz[layer] * (1 + 1e-9)
        sizes = np.linalg.norm(terms.coefficients[layer], axis=2).max(axis=0)
        assert (sizes <= coefficient_bounds(network)[layer] * (1 + 1e-12)).all()


def test_first_layer_does_not_move_and_softmax_is_refused() -> None:
    network = random_network([4, 5, 3], seed=1111, outer="normal")
    found = entangled_weights(network, np.random.default_rng(1112).standard_normal((3, 4)))
    assert all(np.array_equal(matrix, network.weights[0]) for matrix in found.matrices[0])
    softmax = Network(network.weights, network.biases, ["tanh", "softmax"])
    with pytest.raises(InvalidInput, match="identity output"):
        entangled_weights(softmax, np.zeros((1, 4)))
