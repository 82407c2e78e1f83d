"""Starts that one kind of unit gives another."""

from __future__ import annotations

import numpy as np

import unweave
from unweave.methods.samples_smooth.race_options import RaceOptions
from unweave.methods.samples_smooth.screening import Heat, Screening
from unweave.networks.activations import get_activation
from unweave.networks.standardized import StandardizedSamples


def screening(kind, seed=1000):
    net = unweave.random_network([6, 3, 1], kind, seed=seed, outer="normal")
    x = np.random.default_rng([seed, 1]).standard_normal((20 * net.n_parameters, 6))
    samples = StandardizedSamples.of(x, net(x))
    rng = np.random.default_rng(0)
    return Screening(
        samples.inputs, samples.answers, samples.affine_residual, rng, RaceOptions(), lambda *_: None
    )


def test_one_of_every_family_is_screened_first():
    race, heat = screening("tanh"), Heat(4)
    waiting = [get_activation(name) for name in ("tanh", "erf", "softplus", "gelu")]
    order = []
    while waiting:
        kind = race.next_of(waiting, heat)
        waiting.remove(kind)
        race.screen(kind, heat)
        order.append(kind.name)
    assert order == ["tanh", "softplus", "erf", "gelu"]


def test_kin_find_the_right_kind_in_few_steps():
    steps = []
    race, heat = screening("erf"), Heat(4)
    race.on_step = lambda *_: steps.append(1)
    tanh = race.screen(get_activation("tanh"), heat)
    alone = len(steps)
    erf = race.screen(get_activation("erf"), heat)
    assert erf.residual < 0.1 * tanh.residual
    assert len(steps) - alone < alone
