from __future__ import annotations

import numpy as np
import pytest

from unweave import get_activation, random_network
from unweave.arrays import Array
from unweave.methods.smooth.random_slice import RandomSlice, SliceOptions
from unweave.methods.smooth.slice_extension import Extension, ExtensionOptions, extend
from unweave.networks.parameters import NetworkParameters
from unweave.targets.region import Region


def planted(
    inputs: int, width: int, outputs: int, skip: bool = False, weakest: float = 1.0
) -> tuple[NetworkParameters, RandomSlice, list[int]]:
    net = random_network([inputs, width, outputs], seed=1000, outer="signed", norms=(0.5, 2), bias=1)
    outgoing = net.weights[1].copy()
    outgoing[0] *= weakest
    matrix = np.random.default_rng(1000).standard_normal((inputs, outputs)) if skip else None
    truth = NetworkParameters.shallow(
        get_activation("tanh"), net.weights[0], net.biases[0], outgoing, net.biases[1], matrix
    )
    asked: list[int] = []

    def ask(x: Array) -> Array:
        asked.append(len(x))
        return truth.values(x)

    return truth, RandomSlice(ask, Region.standard(inputs), 0.1, np.random.default_rng(1001)), asked


def on_slice(truth: NetworkParameters, slices: RandomSlice, d: int) -> NetworkParameters:
    frame = slices.frame[:, :d]
    skip = None if truth.skip is None else frame.T @ truth.skip
    return NetworkParameters.shallow(
        truth.activation, frame.T @ truth.weights[0], truth.biases[0], truth.weights[1], truth.biases[1], skip
    )


def extended(model: NetworkParameters, slices: RandomSlice) -> Extension:
    return extend(model, slices, 1e-15, ExtensionOptions(), SliceOptions())


@pytest.mark.parametrize(("inputs", "width", "outputs"), [(20, 9, 1), (14, 30, 1), (30, 12, 4)])
@pytest.mark.parametrize("skip", [False, True])
def test_the_other_components_are_exact(inputs: int, width: int, outputs: int, skip: bool) -> None:
    truth, slices, asked = planted(inputs, width, outputs, skip)
    found = extended(on_slice(truth, slices, 8), slices)
    # Answers are rounded by some 1e-15, steps are 0.02 sqrt(D), and G magnifies by its condition.
    np.testing.assert_allclose(found.model.weights[0], truth.weights[0], atol=1e-14 / 0.02 * found.condition)
    if skip:
        assert found.model.skip is not None
        np.testing.assert_allclose(found.model.skip, truth.skip, atol=1e-14 / 0.02 * found.condition)
    else:
        assert found.model.skip is None
    assert found.residual < 1e-13
    assert sum(asked) == found.sites * (inputs - 8)
    assert found.sites <= 1.5 * SliceOptions().sites_beside(width, outputs) + 2


def test_a_weak_unit_is_not_thrown_away_by_the_bending_of_the_others() -> None:
    truth, slices, _ = planted(20, 30, 1, weakest=1e-4)
    found = extended(on_slice(truth, slices, 12), slices)
    assert found.residual < 1e-13
    error = np.abs(found.model.weights[0] - truth.weights[0]).max(axis=0)
    assert error[0] < 1e-7  # its own rounding, 1e-15 / 0.02 / 1e-4, times the condition
    assert error[1:].max() < 1e-9
    assert error.max() < 100 * found.error_bar


def test_a_network_that_is_wrong_on_the_slice_is_seen_in_the_residual() -> None:
    truth, slices, _ = planted(20, 9, 1)
    wrong = on_slice(truth, slices, 8)
    wrong = wrong.from_vector(wrong.to_vector() + 1e-6)
    assert extended(wrong, slices).residual > 1e-8
