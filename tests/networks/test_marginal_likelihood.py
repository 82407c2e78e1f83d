"""The marginal likelihood of a fit: against integration, and what must not change it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from unweave.networks.activations import get_activation
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.marginal_likelihood import MOST_WEIGHED, log_equivalents, marginal_likelihood
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import fit_values


def model_of(name: str, inputs: int, width: int, outputs: int = 1, seed: int = 1000, skip: bool = False):
    rng = np.random.default_rng(seed)
    return NetworkParameters.shallow(
        get_activation(name),
        rng.standard_normal((inputs, width)),
        rng.standard_normal(width),
        rng.standard_normal((width, outputs)) + 1,
        rng.standard_normal(outputs),
        rng.standard_normal((inputs, outputs)) if skip else None,
    )


def fitted(model: NetworkParameters, rows: int, noise: float, seed: int = 1):
    rng = np.random.default_rng([seed, 7])
    x = rng.standard_normal((rows, model.n_inputs))
    y = model.values(x)
    y = y + noise * rng.standard_normal(y.shape)
    return fit_values(model, x, y).model, x, y


def likeliest_prior(information: np.ndarray, vector: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The fixed point a_c = gamma_c / |theta_c|^2, iterated until it stays."""
    prior = np.ones(len(vector))
    for _ in range(200):
        inverse = np.diag(np.linalg.inv(information + np.diag(prior)))
        determined = 1 - prior * inverse
        for each in set(classes):
            group = classes == each
            prior[group] = determined[group].sum() / (vector[group] @ vector[group])
    return prior


def integrated(model: NetworkParameters, x: np.ndarray, y: np.ndarray, classes: np.ndarray) -> float:
    """-2 log of the integral over one mode on a grid, times the number of modes."""
    n, vector = len(x), model.to_vector()
    squares = np.mean((model.values(x) - y) ** 2)
    information = ValueJacobian(model, x).dense()
    information = information.T @ information / squares
    prior = likeliest_prior(information, vector, classes)
    values, vectors = np.linalg.eigh(information + np.diag(prior))
    axis = np.linspace(-5, 5, 15)
    steps = np.array(list(product(axis, repeat=len(vector)))) / np.sqrt(values)
    inner = []
    for point in vector + steps @ vectors.T:
        misfit = model.from_vector(point).values(x) - y
        inner.append(-0.5 * (misfit**2).sum() / squares + n / 2 - 0.5 * point @ (prior * point))
    cell = np.prod((axis[1] - axis[0]) / np.sqrt(values))
    largest = max(inner)
    integral = np.log(np.exp(np.array(inner) - largest).sum() * cell) + largest
    normal = 0.5 * np.log(prior).sum() - len(vector) / 2 * np.log(2 * np.pi)
    return float(n * np.log(squares) - 2 * (integral + normal) - 2 * log_equivalents(model))


def test_it_is_the_integral_over_all_parameters():
    model, x, y = fitted(model_of("tanh", 1, 1), 60, 0.01)
    assert marginal_likelihood(model, x, y) == pytest.approx(
        integrated(model, x, y, np.array([0, 1, 2, 2])), abs=0.05
    )


@pytest.mark.parametrize("name", ["tanh", "softplus", "relu"])
def test_the_order_of_units_does_not_matter(name):
    model, x, y = fitted(model_of(name, 3, 4), 300, 0.05)
    other = model.keep(np.array([2, 0, 3, 1]))
    assert marginal_likelihood(other, x, y) == pytest.approx(marginal_likelihood(model, x, y), abs=1e-6)


@pytest.mark.parametrize("name", ["tanh", "erf", "sine"])
def test_the_signs_of_odd_units_do_not_matter(name):
    model, x, y = fitted(model_of(name, 3, 4, outputs=2), 300, 0.05)
    sign = np.array([1, -1, -1, 1])
    other = replace(
        model,
        weights=(model.weights[0] * sign, model.weights[1] * sign[:, None]),
        biases=(model.biases[0] * sign, model.biases[1]),
    )
    assert marginal_likelihood(other, x, y) == pytest.approx(marginal_likelihood(model, x, y), abs=1e-6)


@pytest.mark.parametrize(("name", "power"), [("relu", 1), ("leaky_relu", 1), ("squared_relu", 2)])
def test_the_lengths_of_homogeneous_units_do_not_matter(name, power):
    model, x, y = fitted(model_of(name, 3, 4), 300, 0.05)
    stretch = np.array([0.1, 1, 3, 20])
    other = replace(
        model,
        weights=(model.weights[0] * stretch, model.weights[1] / stretch[:, None] ** power),
        biases=(model.biases[0] * stretch, model.biases[1]),
    )
    assert marginal_likelihood(other, x, y) == pytest.approx(marginal_likelihood(model, x, y), abs=1e-5)


@pytest.mark.parametrize(
    ("name", "skip", "number"),
    [("tanh", False, 6 * 8), ("tanh", True, 6 * 8), ("sigmoid", False, 6 * 8), ("softplus", True, 6)],
)
def test_equal_networks_are_counted(name, skip, number):
    assert np.exp(log_equivalents(model_of(name, 2, 3, skip=skip))) == pytest.approx(number)


@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_a_unit_that_fits_noise_costs_more_than_it_is_worth(name):
    model, x, y = fitted(model_of(name, 3, 2), 300, 0.05)
    rng = np.random.default_rng(0)
    for _ in range(5):
        wider = replace(
            model,
            weights=(
                np.column_stack([model.weights[0], rng.standard_normal(3)]),
                np.vstack([model.weights[1], 0.01]),
            ),
            biases=(np.append(model.biases[0], rng.standard_normal()), model.biases[1]),
        )
        wider = fit_values(wider, x, y).model
        assert marginal_likelihood(wider, x, y) > marginal_likelihood(model, x, y)
    fewer = fit_values(model.keep(np.array([True, False])), x, y).model
    assert marginal_likelihood(fewer, x, y) > marginal_likelihood(model, x, y)


def test_relu_is_preferred_to_a_slope_that_does_nothing():
    model, x, y = fitted(model_of("relu", 3, 2), 300, 0.3)
    leaky = fit_values(replace(model, activations=(get_activation("leaky_relu"), model.activations[1])), x, y)
    difference = marginal_likelihood(leaky.model, x, y) - marginal_likelihood(model, x, y)
    assert difference > 0.5 * np.log(300)


def test_some_of_many_rows_form_the_matrix():
    model, x, y = fitted(model_of("tanh", 2, 2), 12_000, 0.05)
    some = marginal_likelihood(model, x[::-1], y[::-1])
    assert some == pytest.approx(marginal_likelihood(model, x, y), abs=1.0)


def test_a_large_network_pays_for_its_parameters():
    model = model_of("tanh", 20, 60)
    assert model.size > MOST_WEIGHED
    x = np.random.default_rng(0).standard_normal((100, 20))
    y = model.values(x) + 0.1
    expected = 100 * np.log(0.01) + model.size * np.log(100) - 2 * log_equivalents(model)
    assert marginal_likelihood(model, x, y) == pytest.approx(expected)


def test_units_that_ran_away_are_worth_nothing():
    model = model_of("tanh", 2, 2)
    broken = model.from_vector(np.full(model.size, np.nan))
    assert marginal_likelihood(broken, np.zeros((5, 2)), np.zeros((5, 1))) == np.inf
