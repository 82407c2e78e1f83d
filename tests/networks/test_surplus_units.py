from __future__ import annotations

import numpy as np

import unweave
from unweave.networks.parameters import NetworkParameters
from unweave.networks.ridge_continuation import RidgeFit
from unweave.networks.surplus_units import without_surplus


def doubled(model: NetworkParameters, rng: np.random.Generator) -> NetworkParameters:
    """Share the first unit of each hidden layer among two, and add a random one that does nothing."""
    first, second, last = model.weights
    drawn = rng.standard_normal((len(first), 1))
    wider = np.hstack([first, first[:, :1], drawn])
    middle = np.vstack([second, second[:1], np.zeros((1, second.shape[1]))])
    middle[[0, -2]] *= [[0.4], [0.6]]
    middle = np.hstack([middle, middle[:, :1]])
    outgoing = np.vstack([last, 0.3 * last[:1]])
    outgoing[0] *= 0.7
    biases = (
        np.append(model.biases[0], [model.biases[0][0], 0.1]),
        np.append(model.biases[1], model.biases[1][0]),
        model.biases[2],
    )
    return NetworkParameters(model.activations, (wider, middle, outgoing), biases)


def test_surplus_units_of_both_layers_are_left_out() -> None:
    network = unweave.random_network([5, 6, 4, 2], "tanh", seed=1000, outer="normal")
    rng = np.random.default_rng(1000)
    x = rng.standard_normal((400, 5))
    answers = network(x)
    fit = RidgeFit(x, answers, NetworkParameters.from_network(network).activation)
    level = fit.fit(doubled(NetworkParameters.from_network(network), rng), 1e-8)
    assert [bias.size for bias in level.model.biases] == [8, 5, 2]
    fewer = without_surplus(fit, level)
    assert [bias.size for bias in fewer.model.biases] == [6, 4, 2]
    assert fewer.residual < 1.5 * level.residual


def test_needed_units_stay() -> None:
    network = unweave.random_network([4, 3, 2, 1], "tanh", seed=1001, outer="normal")
    x = np.random.default_rng(1001).standard_normal((200, 4))
    model = NetworkParameters.from_network(network)
    fit = RidgeFit(x, network(x), model.activation)
    assert without_surplus(fit, fit.fit(model, 1e-8)).model.size == model.size
