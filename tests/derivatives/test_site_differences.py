from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.derivatives.entangled import network_gradients, network_hessians
from unweave.derivatives.site_differences import (
    GRADIENT_REACH,
    HESSIAN_REACH,
    HessianStencils,
    gradients_around,
    hessian_stencils,
)
from unweave.networks.network import Network
from unweave.networks.random import random_network

D, K = 4, 3
POINTS = np.random.default_rng(1001).standard_normal((6, D))


def planted(output: str = "identity") -> Network:
    return random_network([D, 4, 3, K], seed=1000, outer="normal", output_activation=output)


def around(network: Network, points: np.ndarray = POINTS):  # type: ignore[no-untyped-def]
    return lambda sites, moves: network(points[sites] + moves)


def test_gradients_have_the_fourth_order() -> None:
    network = planted()
    exact = network_gradients(network, POINTS).transpose(0, 2, 1)
    errors = [
        np.abs(gradients_around(around(network), np.full(6, h), D) - exact).max() for h in (0.1, 0.05, 0.025)
    ]
    assert 3.7 < np.log2(errors[0] / errors[1]) < 4.3
    assert 3.8 < np.log2(errors[1] / errors[2]) < 4.2
    # h^4/30 times a fifth derivative at 1e-3, eps/h beside it.
    assert_allclose(gradients_around(around(network), np.full(6, 1e-3), D), exact, rtol=0, atol=1e-11)


def test_hessians_have_the_second_order() -> None:
    network = planted()
    exact = network_hessians(network, POINTS)
    errors = []
    for h in (0.04, 0.02, 0.01):
        _, hessians = hessian_stencils(around(network), np.full(6, h), D).derivatives(lambda f: f)
        errors.append(np.abs(hessians - exact).max())
        assert_allclose(hessians, hessians.transpose(0, 1, 3, 2))
    assert 1.9 < np.log2(errors[0] / errors[1]) < 2.1
    assert 1.9 < np.log2(errors[1] / errors[2]) < 2.1


def test_gradients_on_hessian_stencils_have_the_second_order() -> None:
    network = planted()
    exact = network_gradients(network, POINTS).transpose(0, 2, 1)
    errors = []
    for h in (0.04, 0.02):
        gradients, _ = hessian_stencils(around(network), np.full(6, h), D).derivatives(lambda f: f)
        errors.append(np.abs(gradients - exact).max())
    assert 1.9 < np.log2(errors[0] / errors[1]) < 2.1


def test_every_site_has_its_own_step() -> None:
    network = planted()
    steps = np.geomspace(1e-3, 0.2, 6)
    together = gradients_around(around(network), steps, D)
    stencils = hessian_stencils(around(network), steps, D)
    for site in range(6):
        alone = gradients_around(around(network, POINTS[[site]]), steps[[site]], D)
        assert_allclose(together[site], alone[0], rtol=1e-14)
        one = hessian_stencils(around(network, POINTS[[site]]), steps[[site]], D)
        for mine, other in zip(
            stencils.take(np.array([site])).derivatives(np.sin), one.derivatives(np.sin), strict=True
        ):
            assert_allclose(mine, other, rtol=1e-14)


@pytest.mark.parametrize(
    ("output", "undo"), [("tanh", np.arctanh), ("sigmoid", lambda f: np.log(f / (1 - f)))]
)
def test_a_transformation_of_the_answers_is_undone_before_differences(output: str, undo) -> None:  # type: ignore[no-untyped-def]
    bent = planted(output)
    straight = Network(bent.weights, bent.biases, [*bent.activations[:-1], "identity"])
    stencils = hessian_stencils(around(bent), np.full(6, 1e-3), D)
    gradients, hessians = stencils.derivatives(undo)
    # h^2 of fourth derivatives, eps/h^2 of rounding through the slope of the inverse: some 1e-6.
    assert_allclose(gradients, network_gradients(straight, POINTS).transpose(0, 2, 1), rtol=0, atol=1e-4)
    assert_allclose(hessians, network_hessians(straight, POINTS), rtol=0, atol=1e-4)
    untouched = stencils.derivatives(lambda f: f)[1]
    assert np.abs(untouched - network_hessians(bent, POINTS)).max() < 1e-4
    assert np.abs(untouched - hessians).max() > 0.01


def test_the_rows_that_are_asked() -> None:
    network, asked = planted(), []

    def function(sites: np.ndarray, moves: np.ndarray) -> np.ndarray:
        asked.append(np.c_[sites, moves])
        return network(POINTS[sites] + moves)

    gradients_around(function, np.full(6, 0.1), D)
    rows = np.concatenate(asked)
    assert len(rows) == 6 * 4 * D
    assert np.abs(rows[:, 1:]).sum(axis=1).max() <= 0.1 * GRADIENT_REACH + 1e-15
    asked.clear()
    hessian_stencils(function, np.full(6, 0.1), D)
    rows = np.concatenate(asked)
    assert len(rows) == 6 * (D * D + D + 1)
    assert np.abs(rows[:, 1:]).sum(axis=1).max() <= 0.1 * HESSIAN_REACH + 1e-15


def test_large_batches_are_cut_without_a_difference() -> None:
    network = planted()
    whole = gradients_around(around(network), np.full(6, 0.1), D)
    cut = gradients_around(around(network), np.full(6, 0.1), D, rows_per_call=40)
    assert_allclose(cut, whole, rtol=1e-14)


def test_stencils_put_together() -> None:
    network = planted()
    whole = hessian_stencils(around(network), np.full(6, 0.1), D)
    parts = [whole.take(np.array([0, 1])), whole.take(np.array([2, 3, 4, 5]))]
    for mine, other in zip(
        HessianStencils.concatenate(parts).derivatives(np.sin), whole.derivatives(np.sin), strict=True
    ):
        assert_allclose(mine, other)
