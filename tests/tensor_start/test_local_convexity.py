from __future__ import annotations

import numpy as np
import pytest
from planted_bias_free import planted

import unweave
from unweave.errors import InvalidInput
from unweave.tensor_start import empirical_hessian, local_convexity, predicted_extremes
from unweave.tensor_start.bias_free import gauss_newton_matrix


def loss(weights: np.ndarray, truth: unweave.Network, x: np.ndarray, y: np.ndarray) -> float:
    network = unweave.Network([weights, truth.weights[1]], truth.biases, truth.activations)
    return float(np.mean((network(x)[:, 0] - y) ** 2) / 2)


def test_the_hessian_is_the_second_derivative_of_the_loss() -> None:
    truth, x, y = planted(3, 2, "tanh", 1000, 200)
    hessian, h = empirical_hessian(truth, x), 1e-3
    rng = np.random.default_rng(1001)
    for _ in range(5):
        direction = rng.standard_normal((3, 2))
        direction /= np.linalg.norm(direction)
        up, down = (loss(truth.weights[0] + s * h * direction, truth, x, y) for s in (1, -1))
        second = (up + down) / h**2  # the loss at the truth is zero
        vector = direction.T.reshape(-1)  # unit by unit
        assert vector @ hessian @ vector == pytest.approx(second, rel=1e-4)


def test_blocks_of_rows_do_not_change_the_hessian() -> None:
    truth, x, _ = planted(4, 3, "relu", 1002, 101)
    slopes = (x @ truth.weights[0] > 0) * truth.weights[1][:, 0]
    in_blocks = gauss_newton_matrix(slopes, x, block_entries=12 * 10) / len(x)
    np.testing.assert_allclose(in_blocks, empirical_hessian(truth, x), rtol=0, atol=1e-13)


def test_linear_units_leave_a_null_direction() -> None:
    # sum_i v_i a_i = 0 moves weights without moving the output.
    truth, x, _ = planted(6, 3, "identity", 1003, 2000)
    found = local_convexity(truth, x)
    assert found.smallest < 1e-10 * found.largest
    assert found.predicted_smallest is None


def test_quadratic_units_can_be_rotated() -> None:
    # W = I, output weights one: W + A with A = -A^T changes no answer to first order.
    net = unweave.Network([np.eye(5), np.ones((5, 1))], [np.zeros(5), np.zeros(1)], ["quadratic", "identity"])
    x = np.random.default_rng(1004).standard_normal((2000, 5))
    values = np.linalg.eigvalsh(empirical_hessian(net, x))
    assert (np.abs(values[:10]) < 1e-12 * values[-1]).all()  # 10 antisymmetric matrices
    assert values[10] > 1e-3 * values[-1]


@pytest.mark.parametrize("name", ["relu", "squared_relu", "tanh"])
def test_others_are_strongly_convex_and_the_prediction_is_a_lower_bound(name: str) -> None:
    truth, x, _ = planted(8, 4, name, 1005, 20_000)
    found = local_convexity(truth, x)
    assert found.predicted_smallest is not None
    assert found.predicted_largest is not None
    assert found.smallest > found.predicted_smallest > 0
    # The factors of the benchmark are 0.3 to 1.6; slopes that are mostly small do not reach k.
    assert 0.1 < found.largest / found.predicted_largest < 2
    assert found.step == 1 / found.largest
    assert found.rate == (1 - found.smallest / found.largest) ** 2
    # |error|^2 falls by rate a step.
    assert found.rate ** (found.steps_for(1e-3) / 2) == pytest.approx(1e-3, rel=1e-9)


def test_relu_prediction_from_its_formula() -> None:
    weights = np.diag([2.0, 1.0, 1.0])[:, :2]
    net = unweave.Network([weights, [[1.0], [-2.0]]], [np.zeros(2), np.zeros(1)], ["relu", "identity"])
    # sigma = (2, 1), kappa = 2, lambda = 2, p = 0; output weights squared between 1 and 4.
    smallest, largest = predicted_extremes(net)
    assert smallest == pytest.approx((1 / 4 - 1 / (2 * np.pi)) / (4 * 2))
    assert largest == pytest.approx(2 * 4)


def test_more_units_than_inputs_have_no_prediction() -> None:
    net = unweave.random_network([2, 3, 1], activation="relu", seed=1006, bias=0)
    assert predicted_extremes(net) == (None, pytest.approx(3))


def test_networks_of_another_class_are_refused() -> None:
    x = np.zeros((5, 3))
    with pytest.raises(InvalidInput, match="no biases"):
        local_convexity(unweave.random_network([3, 2, 1], seed=1007), x)
    with pytest.raises(InvalidInput, match="one hidden layer"):
        local_convexity(unweave.random_network([3, 2, 2, 1], seed=1007, bias=0), x)
    with pytest.raises(InvalidInput, match="x must be of shape"):
        local_convexity(unweave.random_network([2, 2, 1], seed=1007, bias=0), x)
    with pytest.raises(InvalidInput, match="gain must be"):
        local_convexity(unweave.random_network([3, 2, 1], seed=1007, bias=0), x + 1).steps_for(2)
