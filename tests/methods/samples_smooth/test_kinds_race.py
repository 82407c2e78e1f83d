"""Kinds of units race for samples: the right one wins, noise included, and nothing else is called right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unweave
from unweave import Samples, Status
from unweave.methods.samples_smooth.ending import Ending
from unweave.methods.samples_smooth.race import RaceOptions, race_kinds
from unweave.networks.activations import get_activation
from unweave.networks.standardized import StandardizedSamples


def planted(kind, layers=(6, 3, 1), per=20, seed=1000, noise=0.0):
    net = unweave.random_network(list(layers), kind, seed=seed, outer="normal")
    rng = np.random.default_rng([seed, 1])
    x = rng.standard_normal((per * net.n_parameters, layers[0]))
    y = net(x)
    return net, x, y + noise * y.std() * rng.standard_normal(y.shape)


@pytest.mark.parametrize("kind", ["tanh", "erf", "softplus", "gelu", "swish", "sine", "squared_relu"])
def test_kind_and_width_are_found_with_nothing_told(kind):
    net, x, y = planted(kind)
    result = unweave.recover(Samples(x, y))
    assert result.status is Status.RECOVERED
    assert result.network.activations[0] == kind
    assert unweave.compare(net, result.network).parameter_error <= 1e-10


def test_sines_of_one_direction_become_one():
    _, x, y = planted("sine")
    samples = StandardizedSamples.of(x, y)
    found = race_kinds(samples, 3, [get_activation("sine")], floor=1e-10, rng=np.random.default_rng(0))
    model = found.winner.model
    (weights, outgoing), (biases, offset), turn = model.weights, model.biases, 0.3
    # a sin(u + t) = a cos t sin u - a sin t sin(-u - pi/2)
    first = biases[:1] - turn
    doubled = replace(
        model,
        weights=(
            np.hstack([weights, -weights[:, :1]]),
            np.vstack([outgoing[:1] * np.cos(turn), outgoing[1:], -outgoing[:1] * np.sin(turn)]),
        ),
        biases=(np.concatenate([first, biases[1:], -first - np.pi / 2]), offset),
    )
    ending = Ending(samples, samples.inputs, samples.answers, None, 1e-10, 10**6, None)
    assert ending.as_it_is(doubled).residual <= 1e-12
    assert ending.end(doubled).model.width == 3


def test_few_rows_are_enough():
    net, x, y = planted("gelu", per=6)
    result = unweave.recover(Samples(x, y))
    assert result.status is Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error <= 1e-10


def test_more_units_than_inputs():
    net, x, y = planted("tanh", (4, 6, 1))
    result = unweave.recover(Samples(x, y))
    assert result.status is Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error <= 1e-9


def test_inputs_of_two_values():
    net, x, _ = planted("tanh", (8, 3, 1), per=8)
    x = (x > 0).astype(float)
    result = unweave.recover(Samples(x, net(x)))
    assert result.status.is_recovered
    assert unweave.compare(net, result.network).parameter_error <= 1e-8


def test_noise_leaves_kind_width_and_standard_errors():
    net, x, y = planted("tanh", (6, 4, 1), noise=0.01)
    result = unweave.recover(Samples(x, y))
    assert result.status is Status.APPROXIMATE
    assert result.network.activations[0] == "tanh"
    assert result.network.hidden == (4,)
    assert [w.shape for w in result.standard_errors.weights] == [w.shape for w in result.network.weights]
    error = unweave.compare(net, result.network).parameter_error
    largest = max(w.max() for w in (*result.standard_errors.weights, *result.standard_errors.biases))
    assert error < 5 * largest


def test_noise_leaves_standard_errors_of_kinked_units():
    _, x, y = planted("relu", (6, 4, 1), noise=0.01)
    result = unweave.recover(Samples(x, y), activation="relu")
    assert result.network.hidden == (4,)
    assert np.allclose(np.linalg.norm(result.network.weights[0], axis=0), 1)
    assert result.standard_errors.weights[0].shape == (6, 4)


def test_rivals_are_told():
    _, x, y = planted("erf")
    stages = {stage.name: stage.figures for stage in unweave.recover(Samples(x, y)).stages}
    figures = stages["fit smooth units"]
    assert figures["kind"] == "erf"
    assert figures["residual of erf"] <= 1e-10


@pytest.mark.slow
def test_one_layer_that_does_not_fit_names_depth():
    net = unweave.random_network([3, 4, 3, 1], "tanh", seed=1000, outer="normal")
    x = np.random.default_rng(1).standard_normal((600, 3))
    result = unweave.recover(Samples(x, net(x)))
    assert result.status is not Status.RECOVERED
    assert "more than one hidden layer" in result.message


def test_the_race_ends_where_a_smaller_rival_explains_more():
    _, x, y = planted("relu", (6, 4, 1), noise=0.01)
    samples = StandardizedSamples.of(x, y)
    kinds = [get_activation(name) for name in ("tanh", "gelu")]
    counts = []
    for rival in (None, (-1e9, 2)):
        rng = np.random.default_rng(0)
        options = RaceOptions(work=2.0)
        found = race_kinds(samples, None, kinds, floor=1e-10, rng=rng, options=options, rival=rival)
        counts.append(found.starts)
    assert counts[1] == 2
    assert counts[1] < counts[0]
