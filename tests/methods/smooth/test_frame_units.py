"""Layers that mix activations are named, not fitted."""

from __future__ import annotations

import numpy as np

import unweave
from unweave.methods.smooth.frame_units import ProfileSamples, UnitOptions, activations_seen
from unweave.networks.activations import get_activation


def profiles(names, seed, scale=1.3):
    """Second derivatives of one unit per name along its own direction."""
    rng = np.random.default_rng(seed)
    t = rng.standard_normal((80, len(names)))
    biases = rng.uniform(-0.5, 0.5, len(names))
    columns = [
        scale**2 * get_activation(name).jet(scale * t[:, k] + biases[k], 2)[2] for k, name in enumerate(names)
    ]
    return t, np.stack(columns, axis=1)[:, :, None]


def test_each_unit_is_told_apart():
    names = ("tanh", "sine", "softplus", "tanh")
    t, samples = profiles(names, 1000)
    seen = activations_seen(
        ("tanh", "softplus", "sine"), ProfileSamples(t, samples, 2), np.random.default_rng(0), UnitOptions()
    )
    assert seen == {"tanh": 2, "softplus": 1, "sine": 1}


def test_noise_is_explained_by_none():
    rng = np.random.default_rng(1001)
    t, samples = rng.standard_normal((80, 3)), rng.standard_normal((80, 3, 1))
    assert activations_seen(("tanh", "sine"), ProfileSamples(t, samples, 2), rng, UnitOptions()) == {}


def test_recover_names_the_mixture():
    rng = np.random.default_rng(1002)
    first, second = rng.standard_normal((2, 8, 5)) / 2.5
    a, b = rng.standard_normal((2, 5, 1))

    def target(x):
        return np.tanh(x @ first + 0.2) @ a + np.sin(x @ second - 0.1) @ b

    result = unweave.recover(target, input_dim=8)
    assert result.status not in (unweave.Status.RECOVERED, unweave.Status.RECOVERED_UP_TO_AMBIGUITY)
    assert "mixed activations" in result.message
    assert "5 as sine" in result.message
    assert "5 as tanh" in result.message
