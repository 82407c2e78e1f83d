"""Fits to coarse answers: scales alone, all parameters, and what their standard errors are worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import unweave
from coarse_targets import noisy, planted
from unweave.methods.samples_relu.standard_errors import standard_errors as sample_standard_errors
from unweave.methods.shared.coarse_answers.averaged_fit import fit_averaged
from unweave.methods.smooth_coarse.fit import ScaleFit, fit_scales
from unweave.networks.error_bars import standard_error_network
from unweave.networks.parameters import NetworkParameters
from unweave.targets.region import Region


def scaled(model: NetworkParameters, factors: np.ndarray, shifts: np.ndarray) -> NetworkParameters:
    """The same directions with other scales and biases."""
    return replace(
        model,
        weights=(model.weights[0] * factors, model.weights[1]),
        biases=(model.biases[0] + shifts, model.biases[1]),
    )


def data(model: NetworkParameters, n: int, sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, model.n_inputs))
    values = model.values(points)
    return points, values + sigma * rng.standard_normal(values.shape)


# -- scales ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outputs", "output"), [(1, "identity"), (2, "identity"), (1, "sigmoid"), (3, "softmax")]
)
def test_scales_and_biases_come_back_when_the_directions_are_right(outputs: int, output: str) -> None:
    truth = NetworkParameters.from_network(planted(6, 4, outputs, 1000, output=output))
    points, answers = data(truth, 400, 0.0, 1001)
    start = scaled(truth, np.array([1.4, 0.7, 1.2, 0.8]), np.array([0.3, -0.2, 0.2, -0.3]))
    factors = np.full((1, answers.shape[1]), 1e3)
    fitted = fit_scales(start, points, answers, factors)
    # No noise: the residual goes down to rounding, well below the 1e-6 asked here.
    assert np.abs(fitted.to_vector() - truth.to_vector()).max() < 1e-6
    turned = fitted.weights[0] / np.linalg.norm(fitted.weights[0], axis=0)
    assert_allclose(turned, truth.weights[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("outputs", "output"), [(2, "identity"), (3, "softmax")])
def test_the_jacobian_of_scales_is_that_of_differences(outputs: int, output: str) -> None:
    model = NetworkParameters.from_network(planted(5, 3, outputs, 1002, output=output))
    points, answers = data(model, 20, 0.1, 1003)
    problem = ScaleFit(model, model.weights[0], points, answers, np.linspace(1, 2, outputs)[None, :])
    vector = np.concatenate([np.ones(3), model.biases[0], model.to_vector()[model.ends[0] :]])
    direction, step = np.random.default_rng(1004).standard_normal(len(vector)), 1e-5
    change = problem.residual(vector - step * direction) - problem.residual(vector + step * direction)
    # Central differences: h^2 / 6 |f'''| + eps / h, about 1e-9.
    expected = change / (2 * step)
    assert_allclose(problem.linearise(vector).dense() @ direction, expected, rtol=0, atol=1e-7)


def test_a_fit_that_runs_away_makes_no_noise() -> None:
    # Warnings are errors here: answers that no network gives drive scales to infinity.
    model = NetworkParameters.from_network(planted(4, 3, 1, 1005))
    points = np.random.default_rng(1006).standard_normal((200, 4))
    answers = 1e100 * np.prod(np.sin(50 * points), axis=1)[:, None]
    assert fit_scales(model, points, answers, np.ones((1, 1))).size == model.size
    assert fit_averaged(model, points, answers, np.ones(1)).misfit > 1


# -- all parameters --------------------------------------------------------------------------------------


def test_noise_is_averaged_down_to_the_bound() -> None:
    """E |theta - truth|^2 = tr (J^T J)^-1 sigma^2: errors over standard errors have mean square one."""
    truth = NetworkParameters.from_network(planted(5, 3, 1, 1007))
    squares, misfits = [], []
    for seed in range(1100, 1120):
        points, answers = data(truth, 20 * truth.size, 1e-3, seed)
        fit = fit_averaged(truth, points, answers, np.array([1e-3]))
        assert fit.standard_errors is not None
        squares.append(((fit.model.to_vector() - truth.to_vector()) / fit.standard_errors) ** 2)
        misfits.append(fit.misfit)
    # 20 fits with 22 parameters that are correlated within a fit: at least 20 independent numbers.
    assert np.mean(squares) == pytest.approx(1, abs=5 * np.sqrt(2 / 20) / np.sqrt(3))
    assert np.mean(misfits) == pytest.approx(1, abs=5 / np.sqrt(2 * 20 * 20 * truth.size))


def test_twice_the_misfit_doubles_the_standard_errors() -> None:
    truth = NetworkParameters.from_network(planted(5, 3, 1, 1008))
    points, answers = data(truth, 600, 2e-3, 1009)
    told, wrong = (fit_averaged(truth, points, answers, np.array([sigma])) for sigma in (2e-3, 1e-3))
    assert wrong.misfit == pytest.approx(2 * told.misfit, rel=1e-6)
    assert told.standard_errors is not None
    assert wrong.standard_errors is not None
    # Against sigma too large they are not made smaller.
    assert_allclose(
        wrong.standard_errors, told.standard_errors * told.misfit / max(told.misfit, 1), rtol=1e-3
    )


def test_what_the_rows_do_not_determine_has_no_standard_error() -> None:
    truth = NetworkParameters.from_network(planted(5, 3, 1, 1010))
    points, answers = data(truth, truth.size - 5, 1e-3, 1011)
    fit = fit_averaged(truth, points, answers, np.array([1e-3]))
    assert fit.standard_errors is None or not np.isfinite(fit.condition) or fit.condition > 1e6


# -- standard errors in the target's inputs -----------------------------------------------------------------


def error_bars(network: unweave.Network, n: int, sigma: float) -> unweave.Network:
    points = np.random.default_rng(1012).standard_normal((n, network.n_inputs))
    weights = np.full((n, network.n_outputs), 1 / sigma)
    bars = standard_error_network(NetworkParameters.from_network(network), points, weights)
    assert bars is not None
    return bars


def test_standard_errors_cover_nine_in_ten() -> None:
    """90 % of the parameters within 1.645 standard errors, in inputs with location and scale of their own."""
    network = planted(5, 3, 1, 1013)
    region = Region(np.array([3.0, -2.0, 0.0, 1.0, 5.0]), np.array([0.5, 2.0, 1.0, 10.0, 0.1]))
    incoming = network.weights[0] / region.scale[:, None]
    moved = unweave.Network(
        [incoming, network.weights[1]],
        [network.biases[0] - region.location @ incoming, network.biases[1]],
        network.activations,
    )
    seen, truth = NetworkParameters.from_network(network), NetworkParameters.from_network(moved)
    shares = []
    for seed in range(1200, 1240):
        points, answers = data(seen, 15 * seen.size, 1e-3, seed)
        fit = fit_averaged(seen, points, answers, np.array([1e-3]))
        found = fit.model.to_network()
        first = found.weights[0] / region.scale[:, None]
        back = unweave.Network(
            [first, found.weights[1]],
            [found.biases[0] - region.location @ first, found.biases[1]],
            found.activations,
        )
        bars = standard_error_network(
            NetworkParameters.from_network(back), region.to_inputs(points), np.full(answers.shape, 1e3)
        )
        assert bars is not None
        off = NetworkParameters.from_network(back).to_vector() - truth.to_vector()
        shares.append(np.mean(np.abs(off) <= 1.645 * NetworkParameters.from_network(bars).to_vector()))
    # 40 independent fits; the share within one varies by at most sqrt(.9 x .1): 4 standard errors.
    assert np.mean(shares) == pytest.approx(0.9, abs=4 * 0.3 / np.sqrt(40) / 2)


def test_standard_errors_fall_with_the_square_root_of_rows_also_where_rows_are_left_out() -> None:
    network = planted(5, 3, 1, 1014)
    size = network.n_parameters
    few, many = error_bars(network, 10 * size, 1e-3), error_bars(network, 160 * size, 1e-3)
    ratio = few.weights[0] / many.weights[0]
    # 16 times the rows; each Gram matrix is known to sqrt(P / n) or so.
    assert np.median(ratio) == pytest.approx(4, rel=0.15)


def test_errors_of_a_softmax_are_those_of_differences() -> None:
    network = planted(5, 3, 3, 1015, output="softmax")
    bars = error_bars(network, 500, 1e-3)
    assert bars.activations == network.activations
    assert not bars.weights[1][:, -1].any()
    assert (bars.weights[1][:, :-1] > 0).all()


def test_a_unit_that_does_not_act_leaves_them_undetermined() -> None:
    network = planted(5, 3, 1, 1016)
    outgoing = network.weights[1].copy()
    outgoing[1] = 0
    dead = unweave.Network([network.weights[0], outgoing], network.biases, network.activations)
    points = np.random.default_rng(1017).standard_normal((100, 5))
    model = NetworkParameters.from_network(dead)
    assert standard_error_network(model, points, np.ones((100, 1))) is None


def test_error_bars_of_homogeneous_units_are_those_with_fixed_lengths():
    """Two ways to the same: a heavy weight on the lengths here, tangents to them there."""
    network = planted(5, 4, 2, 1000, "relu")
    x = np.random.default_rng(1000).standard_normal((400, 5))
    y = noisy(network, 1e-3, 1000)(x)
    by_tangents = sample_standard_errors(network, x, y)
    weights = np.broadcast_to(1 / by_tangents.sigma, y.shape)
    bars = standard_error_network(NetworkParameters.from_network(network), x, weights)
    for ours, theirs in zip(
        (*bars.weights, *bars.biases), (*by_tangents.weights, *by_tangents.biases), strict=True
    ):
        assert_allclose(ours, theirs, rtol=0.02)
