"""Kinked units from coarse answers and behind links: recovered to what the answers allow, never wrongly."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave import Status
from unweave.methods.relu_coarse.search import ReluCoarseSearch
from unweave.methods.shared.coarse_answers import refinement
from unweave.methods.shared.coarse_answers.averaged_fit import AveragedFit
from unweave.networks.error_bars import standard_errors
from unweave.networks.parameters import NetworkParameters

LINKS = {"identity": 1, "sigmoid": 1, "tanh": 2, "softmax": 3}
"""Output activations, each with a number of outputs."""
PRECISIONS = {"float32": 1e-4, "6 decimals": 1e-10, "3 decimals": 1e-10, "noise 1e-4": 0.05}
"""How coarse the answers are, and the largest error of a parameter: flips are exact, noise is not."""


def planted(link="identity", seed=1000, activation="relu", inputs=6, width=4):
    rng = np.random.default_rng(seed)
    incoming = rng.standard_normal((inputs, width))
    incoming /= np.linalg.norm(incoming, axis=0)
    outer = rng.uniform(0.5, 1.5, (width, LINKS[link])) * rng.choice([-1, 1], (width, LINKS[link]))
    biases = [rng.uniform(-0.5, 0.5, width), rng.uniform(-0.2, 0.2, LINKS[link])]
    return unweave.Network([incoming, outer], biases, [activation, link])


def answering(network, precision, seed=0):
    rng = np.random.default_rng([seed, 1])
    if precision == "float32":
        return lambda x: network(x.astype(np.float32)).astype(np.float32)
    if precision.startswith("noise"):
        sigma = float(precision.split()[1])
        return lambda x: network(x) + sigma * rng.standard_normal((len(x), network.n_outputs))
    return network if precision == "float64" else lambda x: np.round(network(x), int(precision[0]))


def recover(network, precision, seed=1000, **options):
    target = answering(network, precision, seed)
    return unweave.recover(target, input_dim=network.n_inputs, seed=seed, **options)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("seed", [1000, 1001])
def test_coarse_answers(precision, seed):
    network = planted(seed=seed)
    result = recover(network, precision, seed, activation="relu")
    assert result.status is Status.RECOVERED
    assert unweave.compare(network, result.network).parameter_error < PRECISIONS[precision]


@pytest.mark.parametrize("precision", ["float32", "6 decimals", "2 decimals"])
def test_coarse_answers_with_nothing_told(precision):
    network = planted(seed=1002)
    result = recover(network, precision)
    assert result.status is Status.RECOVERED
    assert unweave.compare(network, result.network).parameter_error < 1e-4


@pytest.mark.parametrize("seed", [1000, 1001])
def test_wide_layer_in_single_precision(seed):
    """Forty units are close together on a line: few are measured well there, least squares does the rest."""
    network = unweave.random_network([6, 40, 2], "relu", seed=seed, outer="normal")
    result = recover(network, "float32", seed)
    assert result.status is Status.RECOVERED
    assert result.network.hidden == (40,)
    assert unweave.compare(network, result.network).parameter_error < 1e-4


@pytest.mark.parametrize("link", ["sigmoid", "tanh", "softmax"])
@pytest.mark.parametrize(("precision", "allowed"), [("float64", 1e-9), ("6 decimals", 1e-9)])
@pytest.mark.parametrize("seed", [1000, 1001])
def test_behind_a_link(link, precision, allowed, seed):
    network = planted(link, seed)
    result = recover(network, precision, seed)
    assert result.status is Status.RECOVERED
    assert result.network.activations == ("relu", link)
    assert unweave.compare(network, result.network).parameter_error < allowed


@pytest.mark.parametrize(
    "told", [{"hidden": [4]}, {"activation": "relu"}, {"hidden": [4], "activation": "relu"}]
)
def test_what_is_told_costs_no_more(told):
    network = planted("sigmoid")
    free, bound = recover(network, "float64"), recover(network, "float64", **told)
    assert bound.status is Status.RECOVERED
    assert bound.queries <= free.queries
    assert unweave.compare(network, bound.network).parameter_error < 1e-9


@pytest.mark.parametrize("activation", ["leaky_relu", "squared_relu"])
def test_other_kinked_units(activation):
    network = planted(activation=activation)
    result = recover(network, "6 decimals", activation=activation)
    assert result.status is Status.RECOVERED
    assert unweave.compare(network, result.network).parameter_error < 1e-9


def test_leaky_units_are_told_from_others():
    network = planted("sigmoid", activation="leaky_relu")
    result = recover(network, "float64")
    assert result.status is Status.RECOVERED
    assert result.network.activations[0] == "leaky_relu"


def test_error_bars_hold_the_truth():
    inside = []
    for seed in range(1000, 1004):
        network = planted(seed=seed)
        result = recover(network, "noise 1e-4", seed, method="relu_coarse")
        found, bars = result.network, result.standard_errors
        order = np.argmax(network.weights[0].T @ found.weights[0], axis=1)
        assert sorted(order) == list(range(4))
        off = [found.weights[0][:, order] - network.weights[0], found.biases[0][order] - network.biases[0]]
        sizes = [bars.weights[0][:, order], bars.biases[0][order]]
        inside += [np.abs(a) <= 1.645 * b for a, b in zip(off, sizes, strict=True)]
    assert 0.8 <= np.mean(np.concatenate([each.reshape(-1) for each in inside])) <= 0.97


def test_error_bars_are_worked_out_when_somebody_asks(monkeypatch):
    """Of large networks they take as long as a fit: not those of every fit on the way."""
    counted = []

    def counting(*arguments):
        counted.append(arguments)
        return standard_errors(*arguments)

    monkeypatch.setattr(refinement, "standard_errors", counting)
    result = recover(planted(), "float32")
    assert result.status is Status.RECOVERED
    assert result.standard_errors is not None
    assert result.evidence.parameter_error_bar < 1e-5
    assert len(counted) == 1


def test_weak_units_behind_a_sigmoid_are_found():
    """Strong units hide on lines what they leave; some of the weak ones switch far out."""
    rng = np.random.default_rng(1000)
    incoming = rng.standard_normal((8, 30)).astype(np.float32)
    outer = (rng.uniform(0.5, 1, (30, 1)) * rng.choice([-1, 1], (30, 1)) / 8).astype(np.float32)
    biases = rng.uniform(-0.5, 0.5, 30)
    outer[24:] *= np.geomspace(1e-2, 1e-3, 6)[:, None].astype(np.float32)
    biases[24:] = [0.5, -6, 2, -1, 8, 0]
    network = unweave.Network([incoming, outer], [biases.astype(np.float32), [-0.5]], ["relu", "sigmoid"])
    result = recover(network, "float32")
    assert result.status in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)
    assert result.network.hidden == (30,)
    x = 3 * rng.standard_normal((2000, 8))
    assert np.abs(result.network(x) - network(x)).max() < 1e-5


@pytest.mark.parametrize("precision", ["3 decimals", "noise 1e-2"])
def test_smooth_units_are_not_taken_for_kinked_ones(precision):
    network = planted(activation="tanh")
    result = recover(network, precision, method="relu_coarse")
    assert result.status in (Status.APPROXIMATE, Status.FAILED)
    assert "kink" in result.message


def test_two_layers_are_not_taken_for_one():
    network = unweave.random_network([6, 5, 4, 1], "relu", seed=1000, outer="normal")
    result = recover(network, "6 decimals", deadline=8)
    assert result.status in (Status.APPROXIMATE, Status.FAILED)


def test_a_budget_ends_it_with_what_was_found():
    network = planted("sigmoid")
    whole = recover(network, "float64")
    for share in (0.2, 0.4, 0.8):
        result = recover(network, "float64", max_queries=int(share * whole.queries))
        assert result.queries <= share * whole.queries
        if result.status is Status.RECOVERED:  # a short look leaves more to the search
            assert share > 0.5
            assert unweave.compare(network, result.network).parameter_error < 1e-9
        else:
            assert "queries" in result.message


def test_inside_a_box():
    network, asked = planted("sigmoid"), []

    def answer(x):
        asked.append(np.abs(x).max())
        return np.round(network(x), 6)

    result = unweave.recover(answer, input_dim=6, domain=(-2, 2), seed=1000)
    assert max(asked) <= 2
    assert result.status is Status.RECOVERED
    assert unweave.compare(network, result.network).parameter_error < 1e-9


def test_too_many_inputs_are_refused_by_name():
    result = unweave.recover(
        lambda x: np.round(np.maximum(x[:, :1], 0) + x[:, 1:2], 3),
        input_dim=300,
        method="relu_coarse",
        seed=1000,
    )
    assert "beyond 256 inputs it needs answers in floating point" in result.message
    assert "the target has 300" in result.message


def in_single_precision(network):
    """Answer as float32 arithmetic would, inside the network as well."""
    (incoming, outer), (biases, offset) = (
        [part.astype(np.float32) for part in parts] for parts in (network.weights, network.biases)
    )
    return lambda x: np.maximum(x.astype(np.float32) @ incoming + biases, 0) @ outer + offset


def test_units_too_weak_for_single_precision_are_named():
    """Training leaves units that switch far out with hardly any weight: rows out there show that some are."""
    strong, rng = planted(seed=1003, inputs=8, width=12), np.random.default_rng(1003)
    normals = rng.standard_normal((8, 4)) / np.sqrt(8)
    weights = [np.hstack([strong.weights[0], normals]), np.vstack([strong.weights[1], np.full((4, 1), 3e-6)])]
    biases = [np.append(strong.biases[0], np.full(4, -9.0)), strong.biases[1]]
    network = unweave.Network(weights, biases, ["relu", "identity"])
    result = unweave.recover(in_single_precision(network), input_dim=8, seed=1003)
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert "too weak to be told" in result.message
    assert 12 <= result.network.hidden[0] < 16
    assert unweave.compare(network, result.network).function_error < 1e-6


def test_strong_units_that_are_nearly_parallel_come_apart_in_single_precision():
    """Training leaves bundles of strong units: with some missing, a fit moves the others away."""
    rng = np.random.default_rng(1000)
    normal = rng.standard_normal(5)
    bundle = (normal / np.linalg.norm(normal))[:, None] + 0.03 * rng.standard_normal((5, 30))
    weak = 0.1 * rng.standard_normal((5, 10))
    biases = np.concatenate([rng.uniform(0.35, 0.6, 30), 0.03 * rng.standard_normal(10)])
    heights = np.concatenate([rng.uniform(0.5, 1.5, 30), 0.1 * rng.standard_normal(10)])
    network = unweave.Network(
        [np.hstack([bundle, weak]), heights[:, None]], [biases, np.zeros(1)], ["relu", "identity"]
    )
    result = unweave.recover(in_single_precision(network), input_dim=5, seed=1000)
    assert result.status in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)
    assert result.network.hidden == (40,)
    assert unweave.compare(network, result.network).function_error < 1e-6


def test_one_output_does_not_hide_that_two_kinks_are_close():
    """Two units that look like one on a line are no unit: other lines tell them apart."""
    network = unweave.random_network([10, 40, 1], "relu", seed=1000, outer="normal")
    result = unweave.recover(in_single_precision(network), input_dim=10, seed=1000)
    assert result.status.is_recovered
    assert result.network.hidden == (40,)
    assert unweave.compare(network, result.network).function_error < 1e-6


@pytest.mark.parametrize(
    ("misfits", "rounds"), [((200, 8, 7.5), 3), ((200, 100), 2), ((200, 8, 0.7, 0.06), 3)]
)
def test_more_rows_are_asked_while_they_explain_ten_times_more(monkeypatch, misfits, rounds):
    network, asked = planted(width=20, inputs=4), []

    def search(self, link):
        asked.append(len(self._rows))
        model = NetworkParameters.from_network(network)
        self._best.fit = AveragedFit(model, misfits[len(asked) - 1], None, 1.0, (1.0,), 1000)

    monkeypatch.setattr(ReluCoarseSearch, "_search", search)
    monkeypatch.setattr(ReluCoarseSearch, "_on_lines", lambda self: False)
    recover(network, "2 decimals", method="relu_coarse", output_activation="identity")
    assert len(asked) == rounds
    assert np.all(np.diff(asked) > 0)
