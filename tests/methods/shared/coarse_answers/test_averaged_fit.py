"""Units that the answers do not ask for are left out; those that they do ask for stay, weak ones too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import unweave
from coarse_targets import noisy, planted, rows_of
from unweave.methods.shared.coarse_answers.averaged_fit import AveragedFit, costs_of_leaving_out, without_unit
from unweave.methods.shared.coarse_answers.rows import AnsweredRows, contributions
from unweave.methods.smooth_coarse.fit import UnitFits
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.parameters import NetworkParameters

SIGMA = 1e-2


def with_unit(
    model: NetworkParameters, weight: np.ndarray, bias: float, outgoing: float
) -> NetworkParameters:
    """``model`` with one unit more, the same outgoing weight to every output."""
    last = np.full((1, model.weights[1].shape[1]), outgoing)
    return replace(
        model,
        weights=(np.hstack([model.weights[0], weight[:, None]]), np.vstack([model.weights[1], last])),
        biases=(np.append(model.biases[0], bias), model.biases[1]),
    )


def noisy_rows(network: unweave.Network, count: int, seed: int) -> AnsweredRows:
    rows = rows_of(noisy(network, SIGMA, seed), network.n_inputs, seed)
    rows.sigma = np.full(network.n_outputs, SIGMA)
    rows.extend_to(count)
    return rows


def fits_to(rows: AnsweredRows) -> UnitFits:
    return UnitFits(rows, np.random.default_rng(2), lambda *_: None)


def width(fit: AveragedFit) -> int:
    return int(fit.model.weights[0].shape[1])


# -- what leaving out costs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outputs", "output", "skip", "skip_helps"),
    [
        (1, "identity", False, True),
        (2, "identity", True, True),
        (2, "identity", True, False),
        (3, "softmax", False, True),
    ],
)
def test_costs_are_those_of_a_linear_fit_of_all_other_parameters(
    outputs: int, output: str, skip: bool, skip_helps: bool
) -> None:
    network = planted(5, 4, outputs, 1000, "gelu", output)
    if skip:
        network = unweave.Network(
            network.weights, network.biases, network.activations, skip=np.full((5, outputs), 0.3)
        )
    model = NetworkParameters.from_network(network)
    rng = np.random.default_rng(1001)
    points = rng.standard_normal((300, 5))
    answers = model.values(points)
    answers += SIGMA * rng.standard_normal(answers.shape)
    sigma = SIGMA * np.linspace(1, 2, outputs)
    costs = costs_of_leaving_out(model, points, answers, sigma, skip_helps=skip_helps)
    jacobian = ValueJacobian(model, points, np.broadcast_to(1 / sigma, answers.shape)).dense()
    numbers = model.from_vector(np.arange(model.size, dtype=np.float64))
    held = [] if numbers.skip is None or skip_helps else [int(each) for each in numbers.skip.ravel()]
    left = np.sum(((answers - model.values(points)) / sigma) ** 2)
    for unit in range(4):
        own = [*numbers.weights[0][:, unit], numbers.biases[0][unit], *numbers.weights[1][unit]]
        others = np.delete(jacobian, [int(each) for each in own] + held, axis=1)
        more = ((answers - without_unit(model, unit).values(points)) / sigma).reshape(-1)
        change = np.linalg.lstsq(others, more, rcond=None)[0]
        expected = np.sum((more - others @ change) ** 2) - left
        # The ridge keeps 1e-9 of the steps back, whose squares are those of what the unit adds.
        assert_allclose(costs[unit], expected, rtol=1e-6, atol=1e-6 * (more @ more))


def test_neither_of_two_equal_units_costs_anything() -> None:
    truth = NetworkParameters.from_network(planted(5, 3, 1, 1002))
    twice = with_unit(truth, truth.weights[0][:, 0], truth.biases[0][0], float(truth.weights[1][0, 0]))
    points = np.random.default_rng(1003).standard_normal((300, 5))
    costs = costs_of_leaving_out(twice, points, twice.values(points), np.array([SIGMA]))
    scale = np.sum((truth.values(points) / SIGMA) ** 2)
    assert np.abs(costs[[0, 3]]).max() < 1e-6 * scale
    assert costs[[1, 2]].min() > 1e-3 * scale


def test_a_network_that_ran_away_tells_nothing() -> None:
    model = NetworkParameters.from_network(planted(5, 3, 1, 1004))
    far = replace(model, weights=(model.weights[0], 1e200 * model.weights[1]))
    points = np.random.default_rng(1005).standard_normal((100, 5))
    costs = costs_of_leaving_out(far, points, model.values(points), np.array([SIGMA]))
    assert (costs == np.inf).all()


def test_what_a_unit_costs_is_at_least_its_significance() -> None:
    """(a / standard error)^2: what is not asked for in detail where that is clear."""
    network = planted(6, 5, 1, 1017)
    rows = noisy_rows(network, 400, 1018)
    fit = fits_to(rows).averaged(NetworkParameters.from_network(network), 1e-3)
    assert fit.standard_errors is not None
    errors = fit.standard_errors[fit.model.ends[0] :][:5] / max(fit.misfit, 1.0)
    costs = costs_of_leaving_out(fit.model, rows.points, rows.answers, rows.sigma)
    assert (costs > (fit.model.weights[1][:, 0] / errors) ** 2).all()


# -- what is left out -------------------------------------------------------------------------------------


def test_steep_units_that_cancel_each_other_are_left_out() -> None:
    """Each adds more than noise could hide; together they add nothing."""
    network = planted(6, 4, 1, 1006, "gelu")
    rows = noisy_rows(network, 800, 1007)
    fits = fits_to(rows)
    larger = NetworkParameters.from_network(network)
    direction = np.random.default_rng(1008).standard_normal(6)
    for bias, outgoing in ((5.0, 2e-3), (5.5, -4e-3), (6.0, 2e-3)):
        larger = with_unit(larger, 20 * direction / np.linalg.norm(direction), bias, outgoing)
    parts = contributions(larger, rows)
    parameters = 6 + 1 + 1
    assert len(rows) * parts.min() ** 2 > 2 * np.log(len(rows)) * parameters  # the premise
    settled = fits.settled(fits.averaged(larger, 1e-3))
    assert width(settled) == 4
    assert fits.is_determined(settled)
    assert settled.misfit <= rows.acceptable_misfit()


def test_of_two_equal_units_one_is_left_out() -> None:
    network = planted(6, 4, 1, 1009)
    truth = NetworkParameters.from_network(network)
    fits = fits_to(noisy_rows(network, 800, 1010))
    halves = replace(truth, weights=(truth.weights[0], truth.weights[1] * np.array([[0.5], [1], [1], [1]])))
    twice = with_unit(halves, truth.weights[0][:, 0], truth.biases[0][0], float(halves.weights[1][0, 0]))
    fit = fits.averaged(twice, 1e-3)
    assert not fits.is_determined(fit)
    settled = fits.settled(fit)
    assert width(settled) == 4
    # Standard errors of some hundredth of a weight at 800 rows.
    assert_allclose(np.sort(settled.model.weights[1][:, 0]), np.sort(truth.weights[1][:, 0]), atol=0.1)


@pytest.mark.parametrize("strength", [0.02, 0.05])
def test_a_weak_unit_that_the_answers_ask_for_stays(strength: float) -> None:
    """Weak next to others of 0.5 to 2, and as strong as the noise of one answer or a few times that."""
    network = planted(6, 4, 1, 1011)
    outgoing = network.weights[1].copy()
    outgoing[2] = strength
    network = unweave.Network([network.weights[0], outgoing], network.biases, network.activations)
    rows = noisy_rows(network, 2000, 1012)
    fits = fits_to(rows)
    fit = fits.settled(fits.averaged(NetworkParameters.from_network(network), 1e-3))
    assert width(fit) == 4
    assert np.abs(fit.model.weights[1]).min() == pytest.approx(strength, rel=0.5)


def test_a_nearly_linear_unit_does_not_disappear_in_a_skip() -> None:
    """With a skip the answers hardly show whether it is there; the skip would then have to stay."""
    planted_one = planted(6, 4, 1, 1013, "gelu")
    biases = planted_one.biases[0].copy()
    biases[1] = 7.0
    network = unweave.Network(planted_one.weights, [biases, planted_one.biases[1]], planted_one.activations)
    skipping = replace(NetworkParameters.from_network(network), skip=np.zeros((6, 1)))
    rows = noisy_rows(network, 800, 1014)
    costs = costs_of_leaving_out(skipping, rows.points, rows.answers, rows.sigma)
    assert costs[1] < 30  # the premise: less than noise would gain
    fits = fits_to(rows)
    settled = fits.settled(fits.averaged(skipping, 1e-3))
    assert width(settled) == 4


# -- determined -------------------------------------------------------------------------------------------


def test_a_fit_is_determined_if_every_unit_is_seen_to_act() -> None:
    network = planted(6, 4, 2, 1015)
    truth = NetworkParameters.from_network(network)
    fits = fits_to(noisy_rows(network, 400, 1016))
    fit = fits.averaged(truth, 1e-3)
    assert fits.is_determined(fit)
    assert not fits.is_determined(replace(fit, standard_errors=None))
    assert fit.standard_errors is not None
    assert not fits.is_determined(replace(fit, standard_errors=1e3 * fit.standard_errors))
