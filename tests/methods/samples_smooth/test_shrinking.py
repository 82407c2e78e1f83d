"""Many units in few inputs: starts with surplus units that are left out a few at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unweave
from unweave.errors import OutOfTime
from unweave.methods.samples_smooth.ending import Ending
from unweave.methods.samples_smooth.race_options import RaceOptions
from unweave.methods.samples_smooth.shrinking import ShrinkingOptions, is_structured, shrink_starts
from unweave.networks.activations import get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.standardized import StandardizedSamples


def planted(layers=(2, 5, 1), seed=1000, noise=0.0, activation="tanh"):
    net = unweave.random_network(list(layers), activation, seed=seed, outer="normal")
    rng = np.random.default_rng([seed, 1])
    x = rng.standard_normal((20 * net.n_parameters, layers[0]))
    y = net(x)
    samples = StandardizedSamples.of(x, y + noise * y.std() * rng.standard_normal(y.shape))
    entries = RaceOptions().final_entries
    return net, samples, Ending(samples, samples.inputs, samples.answers, None, 1e-10, entries, None)


def test_the_right_kind_and_width_are_found():
    net, samples, ending = planted()
    kinds = [get_activation(name) for name in ("softplus", "tanh")]
    found = shrink_starts(kinds, ending, rng=np.random.default_rng(0))
    assert found is not None
    assert found.kind == "tanh"
    assert unweave.compare(net, samples.network(found.model)).parameter_error < 1e-8


def test_a_long_valley_is_followed():
    """Sigmoid units of length one hardly bend: fits that end early stop at a millionth, in other networks."""
    net, samples, ending = planted((2, 8, 1), seed=1001, activation="sigmoid")
    options = ShrinkingOptions(rounds=1)
    found = shrink_starts([get_activation("tanh")], ending, rng=np.random.default_rng(1001), options=options)
    assert found is not None
    assert unweave.compare(net, samples.network(found.model)).parameter_error < 1e-8


def test_an_exact_fit_is_followed_to_rounding():
    net, samples, ending = planted((2, 8, 1), seed=0, activation="softplus")
    whitening = samples.whitening
    start = NetworkParameters.shallow(
        activation=get_activation("softplus"),
        weights=np.linalg.solve(whitening.matrix, net.weights[0]),
        biases=net.biases[0] + whitening.mean @ net.weights[0],
        outgoing=net.weights[1] / samples.spread,
        offset=(net.biases[1] - samples.center) / samples.spread,
    )
    vector = start.to_vector()
    near = start.from_vector(vector + 1e-4 * np.random.default_rng(2).standard_normal(len(vector)))
    ended = ending.end(near)
    assert ended.residual < 1e-14
    assert unweave.compare(net, samples.network(ended.model)).parameter_error < 1e-9


def test_nothing_is_exact_behind_noise():
    _, samples, ending = planted(noise=1e-3)
    options = ShrinkingOptions(rounds=1, starts=1)
    found = shrink_starts([get_activation("tanh")], ending, rng=np.random.default_rng(0), options=options)
    assert found is not None
    assert found.residual > 1e-4
    assert samples.residual(found.model) == found.residual  # the best start, as it is


def test_too_few_rows_start_nothing():
    _, samples, _ = planted()
    few = Ending(samples, samples.inputs[:6], samples.answers[:6], None, 1e-10, 10**6, None)
    assert shrink_starts([get_activation("tanh")], few, rng=np.random.default_rng(0)) is None


def test_time_ends_it():
    def late(steps, residual):
        raise OutOfTime

    _, _, ending = planted()
    with pytest.raises(OutOfTime):
        shrink_starts([get_activation("tanh")], ending, rng=np.random.default_rng(0), on_step=late)


def test_noise_has_no_structure_and_a_missing_unit_has():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((600, 2))
    options = ShrinkingOptions()
    assert is_structured(x, np.tanh(x[:, :1] + x[:, 1:]), options)
    assert not is_structured(x, rng.standard_normal((600, 1)), options)
    assert not is_structured(x[:1], np.ones((1, 1)), options)


def steps_behind_noise(options):
    ending = planted((8, 5, 1), noise=1e-3)[2]
    taken = []
    shrink_starts(
        [get_activation("tanh")],
        ending,
        rng=np.random.default_rng(0),
        options=options,
        on_step=lambda steps, residual: taken.append(residual),
    )
    return len(taken)


def test_starts_that_end_alike_show_noise():
    options = ShrinkingOptions(units=(8,), rounds=3)
    assert steps_behind_noise(options) < 0.7 * steps_behind_noise(replace(options, alike=0.0))


def test_units_that_are_nearly_parallel_come_back():
    """As weight decay leaves them: all units bend along one direction, and hardly."""
    rng = np.random.default_rng(1003)
    direction = np.linspace(-1, 1, 10)[:, None] / 3
    weights = direction * np.array([0.6, -0.8, 0.7, 0.5]) + 0.05 * rng.standard_normal((10, 4))
    outgoing = np.array([[1.5], [1.7], [-1.4], [1.6]])
    net = unweave.Network([weights, outgoing], [rng.standard_normal(4), [0.3]], ["sigmoid", "identity"])
    x = rng.standard_normal((20 * net.n_parameters, 10))
    samples = StandardizedSamples.of(x, net(x))
    ending = Ending(samples, samples.inputs, samples.answers, None, 1e-10, RaceOptions().final_entries, None)
    kind = get_activation("tanh")
    like = NetworkParameters.shallow(kind, direction, np.zeros(1), np.ones((1, 1)), np.zeros(1))
    options = ShrinkingOptions(units=(6,))
    found = shrink_starts([kind], ending, rng=np.random.default_rng(0), options=options, like=like)
    assert found is not None
    assert unweave.compare(net, samples.network(found.model)).parameter_error < 1e-7
