from __future__ import annotations

import numpy as np
import pytest

from unweave.deep.far_field import RADIUS, Unit
from unweave.deep.saturating import ERF, TANH, Saturating
from unweave.deep.step_profiles import fit_step_profile
from unweave.network import Network
from unweave.random_networks import random_network

FAMILY = {"tanh": TANH, "erf": ERF}


def planted(layers: list[int], activation: str = "tanh", seed: int = 1000) -> Network:
    return random_network(layers, activation, seed=seed, outer="normal", norms=(0.7, 1.4))


def planted_unit(network: Network, number: int, crossings: int = 3, width: float = 1.0) -> Unit:
    """The unit with its true direction and random far points near its hyperplane."""
    rng = np.random.default_rng(1001)
    weights = network.weights[0][:, number]
    norm = float(np.linalg.norm(weights))
    points = RADIUS * rng.standard_normal((crossings, network.n_inputs))
    z = points @ weights + network.biases[0][number] - rng.uniform(-0.5, 0.5, crossings)
    points -= np.outer(z, weights) / norm**2
    return Unit(weights / norm, width * 2 / norm, list(points))


def norm_error(network: Network, g: Saturating, width: float = 1.0) -> float:
    errors = []
    for number in range(network.hidden[0]):
        profile = fit_step_profile(network, planted_unit(network, number, width=width), g)
        errors.append(abs(abs(profile.norm) / np.linalg.norm(network.weights[0][:, number]) - 1))
    return max(errors)


@pytest.mark.parametrize("activation", ["tanh", "erf"])
@pytest.mark.parametrize("layers", [[6, 5, 3, 2], [5, 4, 3, 1], [5, 5, 5, 4, 2]])
def test_norms_come_to_a_thousandth(layers: list[int], activation: str) -> None:
    assert norm_error(planted(layers, activation), FAMILY[activation]) < 1e-3


@pytest.mark.parametrize("width", [0.4, 2.5])
def test_a_width_that_is_off_does_no_harm(width: float) -> None:
    assert norm_error(planted([6, 5, 3, 2]), TANH, width) < 1e-3


@pytest.mark.parametrize("activation", ["tanh", "erf"])
def test_a_shallow_network_has_straight_profiles(activation: str) -> None:
    network = planted([6, 5, 2], activation)
    for number in range(5):
        profile = fit_step_profile(network, planted_unit(network, number), FAMILY[activation])
        # z is rounded to 1e-16 times the radius times |w| sqrt(D), the profile has height one.
        assert profile.straight < 1e-10
        weights = network.weights[0][:, number]
        assert abs(profile.norm) == pytest.approx(np.linalg.norm(weights), rel=1e-9)
        # With a straight outer function the bias is determined too; it changes sign with the norm.
        assert profile.bias * np.sign(profile.norm) == pytest.approx(network.biases[0][number], abs=1e-6)


def test_a_deep_network_has_bent_profiles() -> None:
    network = planted([6, 5, 3, 2])
    for number in range(5):
        profile = fit_step_profile(network, planted_unit(network, number), TANH)
        assert profile.straight > 1e-5
        assert profile.residual < 0.1 * profile.straight


@pytest.mark.parametrize(("activation", "other"), [("tanh", "erf"), ("erf", "tanh")])
def test_the_other_activation_fits_worse(activation: str, other: str) -> None:
    network = planted([6, 5, 3, 2], activation)
    right, wrong = (
        np.median(
            [fit_step_profile(network, planted_unit(network, unit), FAMILY[g]).residual for unit in range(5)]
        )
        for g in (activation, other)
    )
    assert wrong > 10 * right


def test_one_crossing_and_a_spoilt_one() -> None:
    network = planted([6, 5, 3, 2])
    norm = np.linalg.norm(network.weights[0][:, 0])
    single = planted_unit(network, 0, crossings=1)
    assert abs(fit_step_profile(network, single, TANH).norm) == pytest.approx(norm, rel=1e-2)
    spoilt = planted_unit(network, 0)
    # Another unit is made to cross at the same place: moved there along what is orthogonal to the first.
    point, weights = spoilt.crossings[1], network.weights[0]
    across = weights[:, 1] - spoilt.direction * (spoilt.direction @ weights[:, 1])
    z = point @ weights[:, 1] + network.biases[0][1]
    spoilt.crossings[1] = point - across * z / (across @ weights[:, 1])
    assert abs(fit_step_profile(network, spoilt, TANH).norm) == pytest.approx(norm, rel=1e-3)
