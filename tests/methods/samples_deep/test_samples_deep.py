"""Two hidden layers of told widths from samples."""

from __future__ import annotations

import numpy as np

import unweave
from unweave import Samples, Status
from unweave.methods.samples_deep.search import SamplesDeepOptions


def planted(layers=(4, 4, 3, 1), per=50, seed=1000):
    net = unweave.random_network(list(layers), "tanh", seed=seed, outer="normal")
    x = np.random.default_rng([seed, 1]).standard_normal((per * net.n_parameters, layers[0]))
    return net, x, net(x)


def test_two_layers_are_found():
    net, x, y = planted((6, 8, 5, 1), seed=1000)
    result = unweave.recover(Samples(x, y), hidden=[8, 5], activation="tanh")
    assert result.status is Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error <= 1e-9


def test_too_few_samples_are_not_recovered():
    _, x, y = planted(per=1)
    result = unweave.recover(Samples(x, y), hidden=[4, 3], activation="tanh")
    assert not result.status.is_recovered


def test_wrong_widths_are_only_approximate():
    _, x, y = planted((4, 6, 4, 1))
    options = SamplesDeepOptions(starts=2)
    result = unweave.recover(Samples(x, y), hidden=[2, 2], activation="tanh", options=options)
    assert result.status is Status.APPROXIMATE
    assert result.network.hidden == (2, 2)
