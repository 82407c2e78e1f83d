from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unweave.networks.activations import get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.projected_ridge import ProjectedRidge
from unweave.networks.random import random_network
from unweave.networks.ridge_continuation import ContinuationOptions, RidgeFit

PULL = 0.3


def problem(activation: str = "tanh", units: int = 5) -> tuple[ProjectedRidge, np.ndarray]:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((1500, 3)), rng.standard_normal((1500, 2))
    model = RidgeFit(x, y, get_activation(activation)).random(units, rng)
    projected = ProjectedRidge(model, x, y, PULL)
    return projected, 2 * projected.start()


@pytest.mark.parametrize("activation", ["tanh", "softplus"])
def test_linear_numbers_are_the_best_ones(activation: str) -> None:
    projected, vector = problem(activation)
    least = float(np.sum(projected.residual(vector) ** 2))
    model = projected.model_at(vector)
    x, y = projected._points, projected._answers

    def cost(other: NetworkParameters) -> float:
        units = np.sum(other.weights[0] ** 2) + np.sum(other.biases[0] ** 2) + np.sum(other.weights[1] ** 2)
        return float(np.sum((y - other.values(x)) ** 2) + PULL**2 * units)

    assert cost(model) == pytest.approx(least, rel=1e-12)
    rng = np.random.default_rng(4)
    for _ in range(5):
        moved = model.weights[1] + 1e-3 * rng.standard_normal(model.weights[1].shape)
        assert cost(replace(model, weights=(model.weights[0], moved))) > least


@pytest.mark.parametrize("activation", ["tanh", "softplus"])
def test_the_gradient_is_exact(activation: str) -> None:
    projected, vector = problem(activation)
    linear = projected.linearise(vector)
    gradient = linear.adjoint(projected.residual(vector))
    direction = np.random.default_rng(5).standard_normal(vector.size)
    ahead, behind = (
        float(np.sum(projected.residual(vector + step * direction) ** 2)) for step in (1e-5, -1e-5)
    )
    assert (behind - ahead) / 4e-5 == pytest.approx(float(gradient @ direction), rel=1e-6)


def test_products_are_those_of_one_matrix_in_either_precision() -> None:
    projected, vector = problem()
    linear, rng = projected.linearise(vector), np.random.default_rng(6)
    first, second = rng.standard_normal((2, vector.size))
    image = linear.apply(first)
    assert float(image @ linear.apply(second)) == pytest.approx(float(linear.adjoint(image) @ second))
    np.testing.assert_allclose(linear.dense() @ first, image, atol=1e-11)
    single = linear.in_single_precision().apply(first.astype(np.float32))
    np.testing.assert_allclose(single, image, atol=1e-4 * np.abs(image).max())


def test_equal_units_are_no_obstacle() -> None:
    projected, vector = problem()
    units = vector.reshape(4, -1)
    units[:, 1] = units[:, 0]
    units[:, 2] = 0.0
    free = ProjectedRidge(projected._model, projected._points, projected._answers, 0.0)
    for each in (projected, free):
        assert np.isfinite(each.residual(units.reshape(-1))).all()
        assert np.isfinite(each.model_at(units.reshape(-1)).weights[1]).all()


def test_fits_take_fewer_steps_where_linear_numbers_are_eliminated() -> None:
    network = random_network([6, 16, 1], "tanh", seed=1000, outer="signed")
    x = np.random.default_rng(1000).standard_normal((900, 6))
    y = network(2 * x)
    y = (y - y.mean()) / y.std()
    taken = {}
    for projected in (False, True):
        eliminated = 0 if projected else 10**6
        options = ContinuationOptions(many=0, eliminated=eliminated, worthwhile=1e-3, steps=400)
        fit = RidgeFit(x, y, get_activation("tanh"), options)
        model, steps = fit.random(20, np.random.default_rng(1)), 0
        for ridge in (1e-3, 1e-4, 1e-5):
            level = fit.fit(model, ridge)
            model, steps = level.model, steps + level.steps
        taken[projected] = steps, level.residual
    assert taken[True][0] < 0.7 * taken[False][0]
    assert taken[True][1] < 1.2 * taken[False][1]
