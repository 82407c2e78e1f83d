from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unweave
from unweave.methods.smooth_wide.far_units import FarUnitOptions, far_units
from unweave.methods.smooth_wide.growth import GrowthOptions
from unweave.methods.smooth_wide.search import WideOptions
from unweave.networks.activations import get_activation
from unweave.recovery.result import Status

Array = np.ndarray


def recovered(network: unweave.Network, **more: object) -> unweave.Recovery:
    result = unweave.recover(network, **more)
    assert result.status is Status.RECOVERED, result.message
    assert unweave.compare(network, result.network).parameter_error < 1e-10
    return result


@pytest.mark.parametrize("activation", ["tanh", "softplus"])
def test_more_units_than_hessians_show(activation: str) -> None:
    network = unweave.random_network([6, 20, 1], activation, seed=1000, outer="signed")
    result = recovered(network)
    assert "far units" in [stage.name for stage in result.stages]
    assert result.queries < 50 * network.n_parameters


def test_units_are_grown_where_the_far_field_is_out_of_reach() -> None:
    network = unweave.random_network([6, 20, 1], seed=1001, outer="signed")
    result = recovered(network, domain=(-4, 4), method="smooth_wide")
    assert "far units" not in [stage.name for stage in result.stages]


def test_several_outputs() -> None:
    network = unweave.random_network([5, 14, 2], seed=1000, outer="signed")
    recovered(network, method="smooth_wide")


def test_far_units_tell_kinds_and_widths() -> None:
    network = unweave.random_network([5, 18, 1], "swish", seed=1000, outer="signed", norms=(0.5, 1.5))
    rng = np.random.default_rng(1000)
    x = rng.standard_normal((400, 5))
    y = network(3 * x)
    y = (y - y.mean()) / y.std()
    kinds = [get_activation(name) for name in ("softplus", "gelu", "swish")]
    found = far_units(network, x, y, 3.0, kinds, rng, FarUnitOptions())
    assert found is not None
    assert found.activation.name == "swish"
    assert found.width == 18
    norms = np.linalg.norm(found.weights[0] / 3, axis=0)
    np.testing.assert_allclose(np.sort(norms), np.sort(np.linalg.norm(network.weights[0], axis=0)), rtol=1e-3)


@pytest.mark.parametrize("seed", [1007, 1011])
def test_a_profile_that_another_unit_disturbs_is_taken_elsewhere(seed: int) -> None:
    network = unweave.random_network(
        [6, 40, 1], "tanh", seed=seed, outer="signed", norms=(0.2, 0.4), bias=1.0
    )
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((400, 6))
    y = network(3 * x)
    y = (y - y.mean()) / y.std()
    close = FarUnitOptions(circles=replace(FarUnitOptions().circles, radius=1e4))
    found = far_units(network, x, y, 3.0, [get_activation("tanh")], rng, close)
    assert found is not None
    norms = np.linalg.norm(found.weights[0] / 3, axis=0)
    np.testing.assert_allclose(np.sort(norms), np.sort(np.linalg.norm(network.weights[0], axis=0)), rtol=1e-3)


def radial(x: Array) -> Array:
    return np.sqrt(1 + (x**2).sum(axis=1, keepdims=True))


@pytest.mark.slow
@pytest.mark.parametrize("domain", [None, (-3, 3)])
def test_what_is_no_network_ends_early_without_one(domain: tuple[float, float] | None) -> None:
    result = unweave.recover(radial, input_dim=6, method="smooth_wide", domain=domain)
    assert result.status is Status.FAILED
    assert result.network is None


def test_work_is_limited() -> None:
    network = unweave.random_network([6, 20, 1], seed=1001, outer="signed")
    options = WideOptions(growth=GrowthOptions(work=1.0))
    result = unweave.recover(network, method="smooth_wide", domain=(-4, 4), options=options)
    assert result.status is Status.FAILED
    assert "units leave a residual" in result.message


def test_few_inputs_are_refused() -> None:
    network = unweave.random_network([3, 4, 1], seed=1000)
    result = unweave.recover(network, method="smooth_wide")
    assert result.status is Status.FAILED
    assert "needs 5 inputs" in result.message


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["tanh", "erf", "gelu"])
def test_sixty_units_in_ten_inputs(activation: str) -> None:
    recovered(unweave.random_network([10, 60, 1], activation, seed=1003, outer="normal"))


@pytest.mark.slow
def test_forty_units_in_a_box() -> None:
    network = unweave.random_network([8, 40, 1], seed=1003, outer="normal")
    result = recovered(network, domain=(-4, 4))
    assert result.queries < 20 * network.n_parameters
