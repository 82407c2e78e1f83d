"""From samples to networks: signs, several outputs, other units, badly scaled inputs, noise."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.methods.samples_relu.standard_errors import standard_errors
from unweave.methods.shared.kinked.sample_fit import fit_samples


def exact(inputs, width, outputs, seed, activation="relu", per_parameter=20):
    net = unweave.random_network(
        [inputs, width, outputs], activation=activation, seed=seed, outer="signed", bias=1, norms=(0.5, 2)
    )
    x = np.random.default_rng(seed + 77).standard_normal((per_parameter * net.n_parameters, inputs))
    return net, x, net(x)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize(
    ("inputs", "width", "outputs", "activation"),
    [
        (8, 6, 1, "relu"),
        (5, 12, 1, "relu"),
        (6, 8, 3, "relu"),
        (8, 6, 1, "leaky_relu"),
        (6, 7, 1, "squared_relu"),
        (5, 6, 2, "squared_relu"),
    ],
)
def test_planted_networks_come_back(told, inputs, width, outputs, activation):
    net, x, y = exact(inputs, width, outputs, 1000, activation)
    rng = np.random.default_rng(1000)
    fit = fit_samples(x, y, width if told else None, activation, floor=1e-10, rng=rng)
    assert fit.search.exact
    assert (fit.signs_solved, fit.signs_unique) == (True, True)
    assert fit.network.hidden == (width,)
    assert unweave.compare(net, fit.network).parameter_error <= 1e-11


def test_leaky_units_are_told_from_plain_ones():
    for activation in ("relu", "leaky_relu"):
        _, x, y = exact(6, 4, 1, 1001, activation)
        fit = fit_samples(x, y, 4, None, floor=1e-10, rng=np.random.default_rng(0))
        assert fit.network.activations[0] == activation


def test_badly_scaled_and_correlated_inputs():
    net, x, _ = exact(6, 5, 1, 1002)
    rng = np.random.default_rng(1)
    mixing = rng.standard_normal((6, 6)) * 10.0 ** np.arange(-3, 3)
    seen = x @ mixing + 50 * np.abs(mixing).max(axis=0)
    fit = fit_samples(seen, net(x), 5, "relu", floor=1e-9, rng=rng)
    assert fit.search.exact
    assert fit.residual <= 1e-11


def test_inputs_that_never_vary_get_no_weight():
    _, x, y = exact(4, 3, 1, 1003)
    seen = np.column_stack([x[:, :2], np.full(len(x), 5.0), x[:, 2:], x[:, 0] - x[:, 1]])
    fit = fit_samples(seen, y, 3, "relu", floor=1e-10, rng=np.random.default_rng(0))
    assert fit.missing_directions == 2
    assert not fit.network.weights[0][2].any()
    np.testing.assert_allclose(fit.network(seen), y, atol=1e-11)


def test_signs_that_cannot_be_told_are_listed():
    rng = np.random.default_rng(1005)
    weights = rng.standard_normal((3, 5))
    weights /= np.linalg.norm(weights, axis=0)
    outer = np.linalg.svd(weights)[2][-1][:, None]  # sum a_i w_i = 0: turning all units changes nothing
    net = unweave.Network([weights, outer], [np.zeros(5), [0.0]], ["relu", "identity"])
    x = rng.standard_normal((500, 3))
    fit = fit_samples(x, net(x), 5, "relu", floor=1e-10, rng=rng)
    assert not fit.signs_unique
    assert [sorted(np.flatnonzero(pattern < 0)) for pattern in fit.alternatives] == [[0, 1, 2, 3, 4]]


def test_error_is_linear_in_the_noise_and_intervals_cover():
    inside, errors = [], {1e-4: [], 1e-2: []}
    for seed in range(1000, 1004):
        net, x, y = exact(6, 4, 1, seed, per_parameter=30)
        unit = np.random.default_rng(seed).standard_normal(y.shape) * y.std()
        for noise, found in errors.items():
            rng = np.random.default_rng(seed)
            fit = fit_samples(x, y + noise * unit, 4, "relu", floor=1e-10, rng=rng)
            found.append(unweave.compare(net, fit.network).parameter_error)
            bars = standard_errors(fit.network, x, y + noise * unit)
            assert bars.sigma[0] == pytest.approx(noise * y.std(), rel=0.15)
            truth = standard_errors(net, x, y + noise * unit).network
            order = np.argmax(truth.weights[0].T @ bars.network.weights[0], axis=1)
            for part in ("weights", "biases"):
                exact_part = np.asarray(getattr(truth, part)[0])
                seen = getattr(bars.network, part)[0][..., order]
                width = getattr(bars, part)[0][..., order]
                inside.append((np.abs(exact_part - seen) <= 1.645 * width).reshape(-1))
    ratio = np.median(errors[1e-2]) / np.median(errors[1e-4])
    assert 50 <= ratio <= 200
    # 8 x 28 correlated parameters: 0.9 within four standard errors of as many independent ones
    share = np.mean(np.concatenate(inside))
    assert abs(share - 0.9) <= 4 * np.sqrt(0.09 / 224)


def test_standard_errors_need_one_homogeneous_layer():
    net, x, y = exact(4, 3, 1, 1006)
    with pytest.raises(unweave.InvalidInput, match="one hidden layer of homogeneous"):
        standard_errors(unweave.random_network([4, 3, 1]), x, y)
    assert standard_errors(net, x[:10], y[:10]) is None


@pytest.mark.parametrize(("teacher", "noise"), [("relu", 0.05), ("leaky_relu", 1e-3)])
def test_leaky_units_are_told_from_others_as_far_as_noise_allows(teacher, noise):
    """A slope below zero counts as one number more, so that noise alone does not ask for it."""
    net = unweave.random_network([6, 4, 1], teacher, seed=1000, outer="normal")
    rng = np.random.default_rng([1000, 1])
    x = rng.standard_normal((20 * net.n_parameters, 6))
    y = net(x)
    y = y + noise * y.std() * rng.standard_normal(y.shape)
    found = fit_samples(x, y, 4, None, floor=1e-10, rng=np.random.default_rng(0))
    assert found.network.activations[0] == teacher
