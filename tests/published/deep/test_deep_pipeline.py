from __future__ import annotations

import numpy as np
import pytest
from planted_published import planted, true_layers, worst_distance

import unweave
from unweave.derivatives.entangled import entangled_weights
from unweave.errors import InvalidInput
from unweave.experiments.planted import distances
from unweave.published.deep import (
    ExactDerivatives,
    Outcome,
    PublishedDeepOptions,
    complete,
    recover_deep_as_published,
    reparametrise,
)

FAST = PublishedDeepOptions(power_steps=100, newton_steps=50)


@pytest.mark.parametrize("exact", [True, False])
def test_three_layers_from_answers(exact: bool, recorder) -> None:
    network = planted(12, (12, 6, 8), seed=1002)
    watched = recorder(network)
    target = ExactDerivatives(network) if exact else watched
    result = recover_deep_as_published(target, 12, (12, 6, 8), "tanh", FAST, rng=1079)
    assert result.outcome is Outcome.COMPLETED
    assert result.layers is not None
    assert result.network is not None
    for found, layer in zip(result.layers, true_layers(network), strict=True):
        assert worst_distance(found.T, layer) < 0.05
    assert result.figures["found"] == result.figures["needed"] == 18
    assert result.figures["score gap"] > 0.1
    assert result.figures["range residual"] < 0.05
    comparison = unweave.compare(network, result.network)
    # As good as the entangled weights, which stay as they are: neither much worse nor exact.
    assert 1e-5 < comparison.parameter_error < 0.1
    assert comparison.function_error < 0.05
    if not exact:
        assert sum(result.queries.values()) == len(watched.rows)
        assert result.queries["completion"] == 200
    assert result.seconds.keys() == {"entangled weights", "assignment", "completion"}


def test_an_activation_for_each_layer() -> None:
    """Exact entangled weights complete to the network if each layer's activation is told, and not else."""
    tanh = planted(12, (12, 6, 8), seed=1002)
    network = unweave.Network(tanh.weights, tanh.biases, ["tanh", "erf", "tanh"])
    errors, x = {}, np.random.default_rng(1000).standard_normal((300, 12))
    for second in ("erf", "tanh"):
        model = reparametrise(true_layers(network), ("tanh", second, "tanh"))
        fit = complete(model, x, network(x), np.random.default_rng(1), FAST)
        errors[second] = fit.history[-1]
    assert errors["erf"] < 1e-8
    assert errors["tanh"] > 1e-4
    found = recover_deep_as_published(
        ExactDerivatives(network), 12, (12, 6, 8), "tanh", FAST, 1079, activation=("tanh", "erf")
    )
    assert found.network is not None
    assert found.network.activations == ("tanh", "erf", "tanh")
    with pytest.raises(InvalidInput, match="one for each of 2"):
        recover_deep_as_published(network, 12, (12, 6, 8), "tanh", FAST, activation=["tanh"])


def test_same_seed_same_answer() -> None:
    network = planted(8, (8, 6), seed=1701)
    runs = [recover_deep_as_published(network, 8, (8, 6), "tanh", FAST, rng=1702) for _ in range(2)]
    assert runs[0].network is not None
    assert runs[0].network == runs[1].network


@pytest.mark.parametrize("completion", ["closed form", "adam", "none"])
def test_completions(completion: str) -> None:
    network = planted(8, (8, 6), seed=1703, output="identity")
    options = PublishedDeepOptions(power_steps=100, newton_steps=50, completion=completion, max_steps=1500)
    result = recover_deep_as_published(ExactDerivatives(network), 8, (8, 6), "identity", options, rng=1704)
    if completion == "none":
        assert (result.outcome, result.network) == (Outcome.STOPPED_AS_ASKED, None)
        return
    assert result.network is not None
    # One hidden layer: nothing is entangled, so only the completion's own error remains.
    assert unweave.compare(network, result.network).parameter_error < (
        1e-6 if completion == "closed form" else 0.05
    )


def test_too_few_outputs_are_reported() -> None:
    network = planted(10, (10, 5, 1), seed=1705)
    options = PublishedDeepOptions(power_steps=100, newton_steps=50, threshold=0.9999)
    result = recover_deep_as_published(ExactDerivatives(network), 10, (10, 5, 1), "tanh", options, rng=1706)
    assert result.outcome is Outcome.TOO_FEW_FOUND
    assert result.network is None
    assert result.figures["found"] < result.figures["needed"] == 15
    assert "More outputs" in str(result.outcome)


def test_four_layers_stop_without_an_oracle_and_go_on_with_one() -> None:
    widths = (14, 8, 5, 14)
    network = planted(14, widths, seed=1707, output="identity")
    source = ExactDerivatives(network)
    layers = true_layers(network)
    stopped = recover_deep_as_published(source, 14, widths, "identity", FAST, rng=1708)
    assert stopped.outcome is Outcome.INNER_LAYERS_UNKNOWN
    assert stopped.assignment is not None
    assert stopped.assignment.inner.shape == (14, 13)
    assert (stopped.layers, stopped.network) == (None, None)

    def oracle(rows: np.ndarray) -> np.ndarray:
        closeness = [np.abs(rows @ layers[layer]).max(axis=1) for layer in (1, 2)]
        return np.where(closeness[0] > closeness[1], 2, 3)

    went_on = recover_deep_as_published(source, 14, widths, "identity", FAST, rng=1708, layer_oracle=oracle)
    assert went_on.outcome is Outcome.COMPLETED
    assert went_on.network is not None
    assert went_on.network.hidden == (14, 8, 5)


def test_a_first_layer_wider_than_the_inputs_has_entangled_weights_only() -> None:
    network = planted(8, (10, 6), seed=1709, output="identity")
    result = recover_deep_as_published(ExactDerivatives(network), 8, (10, 6), "identity", FAST, rng=1710)
    assert result.outcome is Outcome.NOT_A_PYRAMID
    assert result.network is None
    assert worst_distance(result.directions, true_layers(network)[0]) < 1e-5


def test_bad_widths_are_refused() -> None:
    network = planted(4, (4, 3), seed=1711)
    with pytest.raises(InvalidInput, match="at least two positive"):
        recover_deep_as_published(network, 4, (4,), options=FAST)
    with pytest.raises(InvalidInput, match="number of outputs, 3"):
        recover_deep_as_published(network, 4, (4, 2), options=FAST)


def test_any_anchor() -> None:
    network = planted(12, (12, 6, 8), seed=1002)
    source = ExactDerivatives(network)
    options = PublishedDeepOptions(power_steps=100, newton_steps=50, completion="none")
    errors = []
    for place in (0.0, 0.1, 2.0):
        anchor = np.full(12, place / np.sqrt(12))
        found = recover_deep_as_published(source, 12, (12, 6, 8), "tanh", options, 1079, anchor=anchor)
        assert np.array_equal(found.entangled.anchor, anchor)
        matrix = entangled_weights(network, anchor[None]).matrices[0][0]
        layer = (matrix / np.linalg.norm(matrix, axis=0)).T
        errors.append(distances(layer, found.entangled.directions).max())
    assert max(errors[:2]) < 0.05
    assert errors[2] > 3 * max(errors[:2])  # away from the origin g'' stands still where g' moves
    with pytest.raises(InvalidInput, match="anchor must be of shape"):
        recover_deep_as_published(source, 12, (12, 6, 8), "tanh", options, anchor=np.zeros(3))
