"""Two small hidden layers from values alone."""

import pytest

from unweave import Status, compare, random_network, recover


def planted(layers, kind, seed):
    return random_network(layers, kind, seed=seed, outer="normal", norms=(0.7, 1.5), bias=0.6)


@pytest.mark.parametrize(
    ("layers", "kind", "seed"),
    [([3, 2, 2, 1], "tanh", 1000), ([4, 3, 2, 2], "erf", 1001), ([3, 3, 3, 2], "sigmoid", 1002)],
)
def test_widths_and_kind_are_found(layers, kind, seed):
    truth = planted(layers, kind, seed)
    result = recover(truth, input_dim=layers[0], method="smooth_deep_values")
    assert result.status is Status.RECOVERED, result.message
    assert result.network.hidden == tuple(layers[1:-1])
    assert compare(truth, result.network).parameter_error < 1e-8
    assert result.queries < 1500


def test_told_widths_and_kind_come_back_as_told():
    truth = planted([4, 3, 2, 2], "sigmoid", 1003)
    told = {"hidden": [3, 2], "activation": "sigmoid", "method": "smooth_deep_values"}
    result = recover(truth, input_dim=4, **told)
    assert result.status is Status.RECOVERED, result.message
    assert result.network.activations[:2] == ("sigmoid", "sigmoid")


@pytest.mark.parametrize("layers", [[3, 9, 1], [3, 3, 3, 3, 1]])
def test_other_depths_are_never_taken_for_two_layers(layers):
    truth = planted(layers, "tanh", 1004)
    result = recover(truth, input_dim=layers[0], method="smooth_deep_values", deadline=20)
    assert not result.status.is_recovered


def test_what_is_refused_says_why():
    truth = planted([8, 3, 2, 1], "tanh", 1005)
    result = recover(truth, input_dim=8, method="smooth_deep_values")
    assert result.status is Status.FAILED
    assert "up to 6 inputs" in result.message
    wide = recover(truth, input_dim=8, hidden=[20, 20], method="smooth_deep_values")
    assert "150 parameters" in wide.message
