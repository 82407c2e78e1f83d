"""Hard tanh, ReLU6 and hard sigmoid are one family of units."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.networks.clipped_units import CLIPPED, as_clipped_units
from unweave.networks.signs import to_form


def planted(kind: str, seed: int = 1000, skip: bool = False) -> unweave.Network:
    net = unweave.random_network([6, 5, 2], seed=seed, outer="signed", norms=(0.8, 1.5))
    rest = np.random.default_rng(seed).standard_normal((6, 2)) if skip else None
    return unweave.Network(net.weights, net.biases, [kind, "identity"], skip=rest)


@pytest.mark.parametrize("kind", CLIPPED)
@pytest.mark.parametrize("skip", [False, True])
def test_they_come_back_with_half_the_kinks(kind, skip):
    truth = planted(kind, skip=skip)
    result = unweave.recover(truth)
    assert result.status is unweave.Status.RECOVERED
    assert result.network.activations[0] == "hard_tanh"
    assert result.network.hidden == (5,)
    assert unweave.compare(truth, result.network).parameter_error <= 1e-10
    assert any("one family" in note for note in result.notes)


@pytest.mark.parametrize("kind", CLIPPED)
def test_the_kind_that_is_told_comes_back(kind):
    truth = planted(kind, 1001)
    result = unweave.recover(truth, activation=kind)
    assert result.network.activations[0] == kind
    assert unweave.compare(truth, result.network).parameter_error <= 1e-10


def test_relu_units_are_not_taken_for_clipped_ones():
    relu = unweave.Network(*_parts(planted("relu6")), ["relu", "identity"])
    assert as_clipped_units(to_form(relu)) is None
    assert unweave.recover(relu).network.activations[0] == "relu"


def _parts(network):
    return network.weights, network.biases


def test_slopes_of_their_own_are_named():
    net = unweave.random_network([6, 5, 2], seed=1000, outer="signed")
    slopes = np.array([0.1, 0.2, 0.3, -0.2, 0.5])
    (incoming, outgoing), (biases, offset) = net.weights, net.biases

    def target(x):
        z = x @ incoming + biases
        return np.where(z > 0, z, slopes * z) @ outgoing + offset

    result = unweave.recover(target, input_dim=6)
    assert result.status is unweave.Status.RECOVERED_UP_TO_AMBIGUITY
    assert "PReLU" in result.message
    listed = next(note for note in result.notes if note.startswith("slopes of the units"))
    found = sorted(float(word) for word in listed.split(": ")[1].split(", "))
    np.testing.assert_allclose(found, sorted(slopes), atol=1e-9)
