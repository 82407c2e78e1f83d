from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from planted_bias_free import error_of, planted

import unweave
from unweave.errors import InvalidInput
from unweave.tensor_start import (
    DescentOptions,
    gauss_newton,
    gradient_descent,
    hermite_constants,
    local_convexity,
    recover_from_tensors,
    tensor_order,
    tensor_start,
)
from unweave.tensor_start.initialization import (
    fourth_order_matrices,
    iterated_frame,
    low_moments,
    third_order_slices,
)


def monic_hermite(order: int, z: np.ndarray) -> np.ndarray:
    return np.polynomial.hermite_e.hermeval(z, [0] * order + [1])


def hermite_entry(x: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
    """Entry of He_j(x): the product over coordinates of He of their multiplicity."""
    return np.prod([monic_hermite(index.count(i), x[:, i]) for i in set(index)], axis=0)


def test_contractions_are_those_of_the_hermite_tensor() -> None:
    rng = np.random.default_rng(1000)
    x, y = rng.standard_normal((50, 3)), rng.standard_normal(50)
    third = np.empty((3, 3, 3))
    for index in itertools.product(range(3), repeat=3):
        third[index] = np.mean(y * hermite_entry(x, index))
    fourth = np.empty((3, 3, 3, 3))
    for index in itertools.product(range(3), repeat=4):
        fourth[index] = np.mean(y * hermite_entry(x, index))
    np.testing.assert_allclose(third_order_slices(x, y), third, rtol=0, atol=1e-12)
    rows, columns = np.triu_indices(3)
    scale = np.where(rows == columns, 1, math.sqrt(2))[:, None, None]
    np.testing.assert_allclose(fourth_order_matrices(x, y), scale * fourth[rows, columns], rtol=0, atol=1e-12)


def test_an_iterated_frame_is_that_of_the_dense_matrix() -> None:
    rng = np.random.default_rng(1002)
    network, x, y = planted(60, 3, "relu", 1002, 20_000)
    frame = iterated_frame(x, y, 3, rng)
    rest = y - y.mean() - x @ (x.T @ (y - y.mean()) / len(x))
    dense = (x * rest[:, None]).T @ x / len(x) - rest.mean() * np.eye(60)
    values, vectors = np.linalg.eigh(dense)
    wanted = vectors[:, np.argsort(-np.abs(values))[:3]]
    assert np.linalg.svd(frame.T @ wanted)[1].min() > 1 - 1e-8
    start = tensor_start(x, y, 3, "relu", rng)
    assert np.isnan(start.gap)
    assert error_of(network, start.network) < 0.3


def test_a_quadratic_polynomial_is_read_exactly() -> None:
    rng = np.random.default_rng(1001)
    x = rng.standard_normal((200, 4))
    form = rng.standard_normal((4, 4))
    form += form.T
    slope = rng.standard_normal(4)
    found = low_moments(x, np.einsum("ni,ij,nj->n", x, form, x) + x @ slope + 3)
    assert found.degree == 2
    np.testing.assert_allclose(found.first, slope, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.second, 2 * form, rtol=0, atol=1e-11)
    assert np.abs(found.remainder).max() < 1e-11


def test_few_samples_lower_the_degree() -> None:
    rng = np.random.default_rng(1002)
    x = rng.standard_normal((40, 6))  # 28 features of degree two, 7 of degree one
    assert low_moments(x, x[:, 0]).degree == 1
    assert low_moments(x[:10], x[:10, 0]).degree == 0


def test_hermite_constants_of_the_source() -> None:
    root = math.sqrt(2 * math.pi)
    np.testing.assert_allclose(
        hermite_constants("relu", 6), [1 / root, 0.5, 1 / root, 0, -1 / root, 0], atol=1e-13
    )
    expected = [0.5, 2 / root, 1, 2 / root, 0, -2 / root]
    np.testing.assert_allclose(hermite_constants("squared_relu", 6), expected, atol=1e-13)


def test_the_order_is_the_first_that_does_not_vanish() -> None:
    # c_3 = 0 for ReLU: the third-order tensor of the source is zero for it.
    assert [tensor_order(name) for name in ("relu", "leaky_relu", "squared_relu")] == [4, 4, 3]


@pytest.mark.parametrize("name", ["tanh", "quadratic", "cubic", "identity"])
def test_activations_without_a_start_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="must be homogeneous with Hermite"):
        tensor_order(name)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "squared_relu"])
def test_the_start_improves_like_the_root_of_the_samples(name: str) -> None:
    errors = []
    for samples in (4_000, 64_000):
        truth, x, y = planted(8, 4, name, 1003, samples)
        start = tensor_start(x, y, 4, name)
        errors.append(error_of(truth, start.network))
        assert start.gap > 3
        assert start.first_order_misfit < 0.2
    assert errors[0] < 0.4
    # sqrt(16) = 4 up to luck.
    assert errors[1] < errors[0] / 2


def test_as_many_units_as_inputs() -> None:
    truth, x, y = planted(6, 6, "relu", 1004, 30_000)
    start = tensor_start(x, y, 6, "relu")
    assert start.gap == np.inf
    assert error_of(truth, start.network) < 0.3


def test_many_inputs_through_the_few_that_matter() -> None:
    # 70 inputs: the quadratic polynomial has 2556 features, too many to fit; in 3 dimensions it has 10.
    truth, x, y = planted(70, 3, "relu", 1005, 20_000)
    found = recover_from_tensors(x, y, 3, "relu")
    assert unweave.compare(truth, found.network).parameter_error < 1e-12


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "squared_relu"])
@pytest.mark.parametrize("width", [1, 3, 6])
def test_recovery_to_rounding(name: str, width: int) -> None:
    truth, x, y = planted(6, width, name, 1006 + width, 5_000)
    found = recover_from_tensors(x, y, width, name)
    assert unweave.compare(truth, found.network).parameter_error < 1e-12
    assert found.held_out_error < 1e-12
    assert found.convexity.smallest > 0


def test_a_failure_shows_on_held_out_samples() -> None:
    _, x, _ = planted(5, 3, "relu", 1010, 3_000)
    labels = np.random.default_rng(1011).standard_normal(3_000)
    found = recover_from_tensors(x, labels, 3, "relu")
    assert found.held_out_error > 0.1


def test_descent_contracts_at_the_predicted_rate() -> None:
    truth, x, y = planted(6, 3, "squared_relu", 1012, 20 * 18)
    rng = np.random.default_rng(1013)
    near = truth.weights[0] + 1e-3 * rng.standard_normal((6, 3))
    start = unweave.Network([near, truth.weights[1]], truth.biases, truth.activations)
    errors: list[float] = []
    descent = gradient_descent(
        start, x, y, on_step=lambda _, w: errors.append(float(np.linalg.norm(w - truth.weights[0])))
    )
    assert descent.converged
    assert len(errors) == len(descent.history)
    expected = local_convexity(truth, x)
    assert descent.step == pytest.approx(expected.step, rel=1e-3)
    square = np.array(errors) ** 2
    late = np.flatnonzero(square < 1e-14)[0], np.flatnonzero(square < 1e-20)[0]
    rate = (square[late[1]] / square[late[0]]) ** (1 / (late[1] - late[0]))
    # The square of the source's bound, 1 - m0/M0; faster modes are gone by then, up to a per cent of a digit.
    assert 1 - rate == pytest.approx(1 - expected.rate, rel=0.05)
    assert 1 - rate > 1.5 * expected.smallest / expected.largest


def test_gauss_newton_needs_few_steps_from_where_descent_needs_hundreds() -> None:
    truth, x, y = planted(8, 4, "relu", 1014, 8_000)
    start = tensor_start(x, y, 4, "relu").network
    rows = slice(0, 20 * 32)
    network, fit = gauss_newton(start, x[rows], y[rows])
    assert unweave.compare(truth, network).parameter_error < 1e-12
    assert len(fit.history) <= 20
    descent = gradient_descent(start, x[rows], y[rows], DescentOptions(steps=200, tolerance=1e-12))
    assert not descent.converged
    assert descent.history[-1] < descent.history[0] / 10


def test_descent_before_gauss_newton_changes_nothing_but_the_start() -> None:
    truth, x, y = planted(5, 2, "squared_relu", 1015, 2_000)
    found = recover_from_tensors(x, y, 2, "squared_relu", descent=DescentOptions(steps=30))
    assert found.descent is not None
    assert len(found.descent.history) == 31
    assert unweave.compare(truth, found.network).parameter_error < 1e-12


def test_output_signs_are_determined() -> None:
    # (v, u) -> (-v, -u) leaves the third-order tensor as it is; the start must not mix the two up.
    for seed in range(1016, 1021):
        truth, x, y = planted(6, 3, "squared_relu", seed, 4_000)
        error_of(truth, tensor_start(x, y, 3, "squared_relu").network)


@pytest.mark.parametrize(
    ("x", "y", "width", "match"),
    [
        (np.zeros((5, 3)), np.zeros(4), 2, "x and y must be"),
        (np.zeros(5), np.zeros(5), 2, "x and y must be"),
        (np.full((5, 3), np.nan), np.zeros(5), 2, "x and y must be"),
        (np.zeros((5, 3)), np.ones(5), 4, "width must be from 1 to"),
        (np.zeros((5, 3)), np.ones(5), 0, "width must be from 1 to"),
        (np.ones((5, 3)), np.zeros(5), 2, "y must not be zero"),
    ],
)
def test_bad_samples_are_refused(x: np.ndarray, y: np.ndarray, width: int, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        tensor_start(x, y, width, "relu")
