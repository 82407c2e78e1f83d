"""Units that add least are the first that may be left out."""

from __future__ import annotations

import numpy as np

from planted_pairs import planted_pair
from unweave.methods.relu_pairs.surplus import contributions, weakest, without
from unweave.networks.network import Network

NET = planted_pair([5, 6, 4, 1], seed=1001)
POINTS = np.random.default_rng(1000).standard_normal((300, 5))


def with_weak(layer: int, unit: int) -> Network:
    weights = [weight.copy() for weight in NET.weights]
    weights[layer + 1][unit] *= 1e-6
    return Network(weights, NET.biases, NET.activations)


def test_the_weakest_unit_of_either_layer_is_named() -> None:
    assert weakest(with_weak(0, 3), POINTS, 1)[1] == (0, 3)
    assert weakest(with_weak(1, 2), POINTS, 1)[0] == (1, 2)


def test_the_last_unit_of_a_layer_is_never_left_out() -> None:
    one = without(without(planted_pair([5, 3, 2, 1]), 1, 0), 0, 0)
    assert one.hidden == (2, 1)
    assert [layer for layer, _ in weakest(one, POINTS, 4)] == [0, 0]


def test_a_unit_without_influence_changes_no_answer_when_left_out() -> None:
    weak = with_weak(0, 3)
    left = contributions(weak, 0, POINTS)
    assert left[3] < 1e-4 * np.delete(left, 3).max()
    np.testing.assert_allclose(without(weak, 0, 3)(POINTS), weak(POINTS), atol=1e-4)
