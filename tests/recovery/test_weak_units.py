"""Units that add a hundred-millionth of what others do are found, not imitated and not left out."""

import numpy as np
import pytest

from unweave import Network, Status, compare, random_network, recover


def _with_weak_unit(kind: str, layers: list[int], seed: int, size: float) -> Network:
    net = random_network(layers, kind, seed=seed, outer="normal")
    weights = [w.copy() for w in net.weights]
    weights[1][0] *= size / np.abs(weights[1][0]).max()
    return Network(weights, net.biases, net.activations)


@pytest.mark.parametrize(
    ("kind", "size", "seed"),
    [("tanh", 1e-7, 1000), ("tanh", 1e-9, 1001), ("softplus", 1e-7, 1002), ("gelu", 1e-7, 1000)],
)
def test_a_weak_unit_is_recovered(kind, size, seed):
    truth = _with_weak_unit(kind, [10, 8, 1], seed, size)
    result = recover(truth, input_dim=10)
    assert result.status is Status.RECOVERED, result.message
    assert result.network.hidden == (8,)
    assert compare(truth, result.network).function_error < 1e-13


def test_one_bad_start_among_units_with_kinks_is_made_good():
    truth = random_network([10, 16, 1], "selu", seed=5, outer="normal")
    result = recover(truth, input_dim=10)
    assert result.status is Status.RECOVERED, result.message
    assert result.network.hidden == (16,)
