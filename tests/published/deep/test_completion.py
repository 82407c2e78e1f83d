from __future__ import annotations

import itertools

import numpy as np
import pytest
from planted_published import disordered, planted, true_layers

import unweave
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.published.deep import (
    ExactDerivatives,
    PublishedDeepOptions,
    complete,
    complete_in_closed_form,
    reparametrise,
)
from unweave.published.deep.completion import training_count


def training(network: Network, count: int = 300) -> tuple[np.ndarray, np.ndarray]:
    points = np.random.default_rng(1601).standard_normal((count, network.n_inputs))
    return points, network(points)


def case(noise: float, seed: int = 1602) -> tuple:
    """A planted network and its model from entangled weights that are off by ``noise``."""
    network = planted(12, (12, 6, 5), seed)
    rng = np.random.default_rng(1603)
    layers, _, _ = disordered(true_layers(network), rng)
    layers = [layer + noise * rng.standard_normal(layer.shape) for layer in layers[:-1]] + layers[-1:]
    return network, reparametrise(layers, network.activations), rng


def test_exact_entangled_weights_complete_to_rounding() -> None:
    network, model, rng = case(noise=0.0)
    fit = complete(model, *training(network), rng)
    assert fit.history[-1] < 1e-12
    assert unweave.compare(network, model.to_network(fit.parameters)).parameter_error < 1e-11
    assert fit.steps == len(fit.history) - 1
    assert all(after < before for before, after in itertools.pairwise(fit.history))


@pytest.mark.parametrize("noise", [1e-4, 1e-3])
def test_errors_of_entangled_weights_stay(noise: float) -> None:
    network, model, rng = case(noise)
    fit = complete(model, *training(network), rng)
    # Scales and shifts make up for some of the error of the frozen numbers, not for its size; the fixed
    # matrices hold it times the pseudo-inverses of the layers.
    amplified = noise / min(np.linalg.svd(layer, compute_uv=False)[-1] for layer in true_layers(network)[:2])
    assert 0.1 * noise < fit.history[-1] < amplified
    assert (
        0.1 * noise < unweave.compare(network, model.to_network(fit.parameters)).weight_error < 5 * amplified
    )


@pytest.mark.parametrize(("name", "rate"), [("sgd", 0.05), ("adam", 0.03)])
def test_stochastic_gradients_come_down(name: str, rate: float) -> None:
    network, model, rng = case(noise=0.0)
    options = PublishedDeepOptions(completion=name, learning_rate=rate, max_steps=2000)
    fit = complete(model, *training(network, 2000), rng, options)
    assert fit.steps == 2000
    assert fit.history[-1] < fit.history[0] / 10


@pytest.mark.parametrize("name", ["levenberg-marquardt", "sgd"])
def test_time_runs_out(name: str) -> None:
    network, model, rng = case(noise=0.0)
    ticks = itertools.count()
    options = PublishedDeepOptions(completion=name, seconds=2.5)
    fit = complete(model, *training(network), rng, options, clock=lambda: float(next(ticks)))
    assert 1 <= fit.steps <= 3
    assert fit.history[-1] < fit.history[0]


def test_training_counts() -> None:
    _, model, _ = case(noise=0.0)
    assert training_count(model, PublishedDeepOptions(completion="sgd")) == 23 * 144
    assert training_count(model, PublishedDeepOptions()) == 200
    assert training_count(model, PublishedDeepOptions(training_samples=7)) == 7
    with pytest.raises(InvalidInput, match="complete_in_closed_form"):
        complete(
            model, *training(case(0.0)[0]), np.random.default_rng(0), PublishedDeepOptions(completion="none")
        )


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "erf"])
@pytest.mark.parametrize("output", ["identity", "tanh", "sigmoid", "erf"])
@pytest.mark.parametrize("widths", [(6, 5), (10, 7, 9), (9, 6, 5, 4)])
def test_closed_form_is_exact(activation: str, output: str, widths: tuple[int, ...]) -> None:
    network = planted(12, widths, 1604, output, activation, shift=0.3)
    rng = np.random.default_rng(1605)
    lengths = rng.uniform(0.5, 2, network.n_outputs)  # of the output weights, which need not be one
    network = Network(
        [*network.weights[:-1], network.weights[-1] * lengths], network.biases, network.activations
    )
    anchor = 0.3 * rng.standard_normal(12)
    layers, _, _ = disordered(true_layers(network, anchor), rng)
    source, here = ExactDerivatives(network), anchor[None]
    model = reparametrise(layers, network.activations)
    found = model.to_network(
        complete_in_closed_form(
            model, layers, anchor, network(here)[0], source.gradients(here)[0], source.hessians(here)[0]
        )
    )
    assert unweave.compare(network, found).parameter_error < 1e-9


def test_closed_form_keeps_the_error_it_is_given() -> None:
    network = planted(12, (12, 6, 8), seed=1606)
    rng = np.random.default_rng(1607)
    exact, _, _ = disordered(true_layers(network), rng)
    source, here = ExactDerivatives(network), np.zeros((1, 12))
    at_anchor = (network(here)[0], source.gradients(here)[0], source.hessians(here)[0])
    errors = []
    for noise in (1e-5, 1e-4):
        layers = [layer + noise * rng.standard_normal(layer.shape) for layer in exact[:-1]] + exact[-1:]
        layers = [layer / np.linalg.norm(layer, axis=0) for layer in layers]
        model = reparametrise(layers, network.activations)
        found = model.to_network(complete_in_closed_form(model, layers, here[0], *at_anchor))
        errors.append(unweave.compare(network, found).parameter_error / noise)
    assert 0.3 < errors[0] < 300
    assert errors[1] == pytest.approx(errors[0], rel=2)  # linear in the error


def test_closed_form_knows_its_activations() -> None:
    model = reparametrise([np.eye(4), np.eye(4)], ["softplus", "identity"])
    with pytest.raises(InvalidInput, match="tanh, sigmoid, erf"):
        complete_in_closed_form(model, [], np.zeros(4), np.zeros(4), np.zeros((4, 4)), np.zeros((4, 10)))
