"""Kinds of units that imitate each other, and starts that one kind gives another."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.methods.shared.kinship import imitation
from unweave.methods.samples_smooth.race_options import RaceOptions
from unweave.methods.samples_smooth.screening import Heat, Screening
from unweave.networks.activations import get_activation
from unweave.networks.standardized import StandardizedSamples

KINDS = ("tanh", "erf", "softplus", "gelu", "swish", "sine", "squared_relu")


def screening(kind, seed=1000):
    net = unweave.random_network([6, 3, 1], kind, seed=seed, outer="normal")
    x = np.random.default_rng([seed, 1]).standard_normal((20 * net.n_parameters, 6))
    samples = StandardizedSamples.of(x, net(x))
    rng = np.random.default_rng(0)
    return Screening(
        samples.inputs, samples.answers, samples.affine_residual, rng, RaceOptions(), lambda *_: None
    )


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_imitates_itself(name):
    kind = get_activation(name)
    assert imitation(kind, kind).misfit < 1e-6


@pytest.mark.parametrize(("first", "second"), [("tanh", "erf"), ("softplus", "gelu"), ("gelu", "swish")])
def test_kin_are_near(first, second):
    assert imitation(get_activation(first), get_activation(second)).misfit < 0.05


@pytest.mark.parametrize(("first", "second"), [("tanh", "softplus"), ("gelu", "erf"), ("sine", "swish")])
def test_families_are_apart(first, second):
    assert imitation(get_activation(first), get_activation(second)).misfit > 0.5


def test_steepness_goes_both_ways():
    there = imitation(get_activation("gelu"), get_activation("swish")).sharpness
    back = imitation(get_activation("swish"), get_activation("gelu")).sharpness
    assert 0.8 < there * back < 1.25


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
