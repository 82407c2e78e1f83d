"""More smooth units than inputs: random starts of least squares, from samples and from queries."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.errors import OutOfTime
from unweave.methods.shared.value_search import ValueSearchOptions, search_values, smooth_feature
from unweave.methods.smooth_values.search import SmoothValuesOptions
from unweave.networks.activations import get_activation
from unweave.numerics.variable_projection.problem import ProjectedProblem
from unweave.numerics.variable_projection.steps import gram_solver


def planted(layers, activation="tanh", seed=1000):
    return unweave.random_network(
        layers, activation, seed=seed, outer="normal", norms=(0.5, 2), bias=1, output_activation="identity"
    )


@pytest.mark.parametrize("name", ["tanh", "softplus", "sine"])
def test_the_gram_matrix_is_that_of_the_projected_jacobian(name):
    rng = np.random.default_rng(1000)
    feature = smooth_feature(get_activation(name))
    x, y, units = rng.standard_normal((300, 3)), rng.standard_normal((300, 2)), rng.standard_normal((4, 5))
    problem = ProjectedProblem(x, y, feature)
    point = problem.at(units)
    slopes = feature.slope(problem.inputs @ units)
    columns = [(slopes * point.heights[:, k])[:, :, None] * problem.inputs[:, None] for k in range(2)]
    expected = sum(part.T @ part for part in (problem.project(c.reshape(300, -1), point) for c in columns))
    np.testing.assert_allclose(problem.linearised(point).gram(), expected, atol=1e-9 * np.abs(expected).max())
    assert problem.scaled(units) is units  # the length of a smooth unit matters
    lowered = problem.at(units + gram_solver(problem.linearised(point))(1e2))
    assert lowered.size < point.size


@pytest.mark.parametrize(
    ("layers", "activation"),
    [((1, 3, 1), "tanh"), ((2, 5, 1), "gelu"), ((3, 7, 2), "erf"), ((4, 9, 1), "tanh"), ((2, 4, 1), "sine")],
)
@pytest.mark.parametrize("told", [True, False])
def test_units_come_back_from_samples(layers, activation, told):
    for seed in (1000, 1001):
        net, rng = planted(layers, activation, seed), np.random.default_rng(seed)
        x = rng.laplace(0, 1, (1200, layers[0]))
        width = layers[1] if told else None
        found = search_values(x, net(x), width, [get_activation(activation)], floor=1e-11, rng=rng)
        assert found is not None
        assert found.exact
        assert unweave.compare(net, found.network).parameter_error < 1e-8


@pytest.mark.parametrize(
    ("layers", "activation"), [((1, 2, 1), "tanh"), ((2, 5, 1), "tanh"), ((2, 4, 2), "softplus")]
)
def test_recover_finds_more_units_than_derivatives_can_show(layers, activation):
    net = planted(layers, activation)
    result = unweave.recover(net)
    assert result.status is unweave.Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error < 1e-9
    assert result.stages[-2].name == "random starts"


def test_units_of_one_direction_are_no_unknown_kind():
    # Hessians show one direction for two units; other methods tell them apart before splines are fitted.
    net = planted([8, 5, 1])
    weights = [net.weights[0].copy(), net.weights[1]]
    weights[0][:, 1] = -0.6 * weights[0][:, 0]
    twins = unweave.Network(weights, net.biases, net.activations)
    result = unweave.recover(twins)
    assert result.status is unweave.Status.RECOVERED
    assert unweave.compare(twins, result.network).is_same


def test_two_neurons_of_one_direction():
    net = planted([4, 5, 1])
    weights = [net.weights[0].copy(), net.weights[1]]
    weights[0][:, 1] = -0.6 * weights[0][:, 0]
    twins = unweave.Network(weights, net.biases, net.activations)
    result = unweave.recover(twins, activation="tanh")
    assert result.status is unweave.Status.RECOVERED
    assert unweave.compare(twins, result.network).parameter_error < 1e-9


def test_what_is_no_network_ends_and_says_so():
    def bump(x):
        return np.exp(-((x - 0.3) ** 2).sum(axis=1, keepdims=True)) * np.cos(3 * x[:, :1])

    brief = SmoothValuesOptions(work=1.0)
    result = unweave.recover(bump, input_dim=2, options=brief)
    assert result.status not in (unweave.Status.RECOVERED, unweave.Status.RECOVERED_UP_TO_AMBIGUITY)
    again = unweave.recover(bump, input_dim=2, options=brief)
    assert (again.queries, again.message) == (result.queries, result.message)


def test_too_few_rows_and_no_time():
    net, rng = planted([2, 5, 1]), np.random.default_rng(1000)
    tanh = [get_activation("tanh")]
    x = rng.standard_normal((20, 2))
    assert search_values(x, net(x), 5, tanh, floor=1e-11, rng=rng) is None

    def late(step, residual):
        raise OutOfTime

    x = rng.standard_normal((500, 2))
    found = search_values(x, net(x), 5, tanh, floor=1e-11, rng=rng, on_step=late)
    assert found is None or found.out_of_time
    brief = ValueSearchOptions(rounds=(1,), work=1e-9)
    one = search_values(x, net(x), None, tanh, floor=1e-11, rng=rng, options=brief)
    assert one is not None
    assert one.starts == 1
