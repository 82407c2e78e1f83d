"""A climb over kinds and widths by marginal likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unweave
from unweave.errors import OutOfTime
from unweave.methods.samples_weighed.climb import Climb, ClimbOptions
from unweave.networks.activations import get_activation
from unweave.networks.mirrored_units import with_least_skip
from unweave.networks.parameters import NetworkParameters
from unweave.networks.standardized import StandardizedSamples

KINDS = ("tanh", "erf", "softplus", "gelu", "swish", "sine", "squared_relu", "relu", "leaky_relu")


def planted(kind="tanh", layers=(4, 3, 1), noise=0.02, seed=1000):
    net = unweave.random_network(list(layers), kind, seed=seed, outer="normal")
    rng = np.random.default_rng([seed, 1])
    x = rng.standard_normal((400, layers[0]))
    y = net(x)
    return net, StandardizedSamples.of(x, y + noise * y.std() * rng.standard_normal(y.shape))


def climb_of(samples, kinds=KINDS, on_step=None, **options):
    activations = [get_activation(name) for name in kinds]
    rng = np.random.default_rng(0)
    return Climb(samples.inputs, samples.answers, activations, rng, ClimbOptions(**options), on_step)


def start_of(kind, units, samples, skip=False):
    rng = np.random.default_rng(2)
    inputs = samples.inputs.shape[1]
    return NetworkParameters.shallow(
        get_activation(kind),
        rng.standard_normal((inputs, units)),
        rng.standard_normal(units),
        rng.standard_normal((units, 1)),
        np.zeros(1),
        np.zeros((inputs, 1)) if skip else None,
    )


@pytest.mark.parametrize(("kind", "start", "units"), [("tanh", "erf", 1), ("relu", "gelu", 5)])
def test_kind_and_width_are_found_from_others(kind, start, units):
    _, samples = planted(kind)
    climb = climb_of(samples)
    climb.enter(start_of(start, units, samples))
    climb.run()
    assert climb.best.form == (kind, False)
    assert climb.best.model.width == 3


def test_a_kind_that_is_told_is_kept():
    _, samples = planted("tanh")
    climb = climb_of(samples, kinds=("erf",))
    climb.enter(start_of("erf", 2, samples))
    climb.run()
    assert {fit.form for fit in climb.ranked()} == {("erf", False)}


def test_a_skip_that_is_not_needed_goes():
    net, samples = planted("softplus")
    climb = climb_of(samples, kinds=("softplus",))
    turned = samples.model(net)
    sign = np.array([1, -1, 1])
    turned = replace(
        turned,
        weights=(turned.weights[0] * sign, turned.weights[1]),
        biases=(turned.biases[0] * sign, turned.biases[1]),
        skip=turned.weights[0][:, 1:2] @ turned.weights[1][1:2],
    )
    climb.enter(turned)
    assert climb.best.form == ("softplus", True)
    climb.run()
    assert climb.best.form == ("softplus", False)
    assert climb.best.model.width == 3
    assert np.linalg.norm(with_least_skip(turned).skip) < np.linalg.norm(turned.skip)


def test_the_work_is_bounded():
    _, samples = planted()
    climb = climb_of(samples, work=0.0)
    climb.enter(start_of("tanh", 2, samples))
    climb.run()
    assert climb.fits == 1


def test_no_more_units_than_the_rows_carry():
    _, samples = planted()
    samples = replace(samples, inputs=samples.inputs[:50], answers=samples.answers[:50])
    climb = climb_of(samples, kinds=("tanh",), fewest_equations=2.0)
    climb.enter(start_of("tanh", 3, samples))
    climb.run()
    assert max(fit.model.size for fit in climb.ranked()) <= 25


def test_what_was_found_stays_where_time_ends():
    _, samples = planted()
    steps = []

    def stop(*_):
        steps.append(1)
        if len(steps) > 40:
            raise OutOfTime

    climb = climb_of(samples, on_step=stop)
    climb.enter(start_of("tanh", 1, samples))
    with pytest.raises(OutOfTime):
        climb.run()
    assert climb.best is not None


def test_a_fit_that_runs_away_is_no_fit():
    _, samples = planted()
    climb = climb_of(samples)
    with np.errstate(all="ignore"):
        climb.enter(replace(start_of("tanh", 1, samples), biases=(np.array([np.nan]), np.zeros(1))))
        climb.run()
    assert climb.best is None
