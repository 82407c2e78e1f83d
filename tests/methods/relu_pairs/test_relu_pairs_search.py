"""Two hidden layers of kinked units in float32, behind a link, in a box; nothing else is told."""

from __future__ import annotations

import numpy as np

import unweave
from planted_pairs import in_float32, planted_pair
from unweave.arrays import Array


def test_float32() -> None:
    net = planted_pair([5, 6, 4, 1], seed=1001)
    result = unweave.recover(in_float32(net), input_dim=5, seed=0)
    assert result.status is unweave.Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error < 1e-5


def test_behind_a_softmax() -> None:
    net = planted_pair([5, 6, 4, 3], output="softmax", seed=1001)
    result = unweave.recover(net, seed=0)
    assert result.status.is_recovered
    assert unweave.compare(net, result.network).function_error < 1e-9


def test_in_a_box_nothing_outside_is_asked() -> None:
    net, asked = planted_pair([5, 6, 4, 1], seed=1001), []

    def target(x: Array) -> Array:
        asked.append(np.abs(x).max())
        return net(x)

    result = unweave.recover(target, input_dim=5, domain=(-3, 3), seed=0)
    assert max(asked) <= 3
    assert result.status.is_recovered
    assert unweave.compare(net, result.network).function_error < 1e-9


def test_precise_answers_everywhere_are_left_to_surfaces() -> None:
    result = unweave.recover(planted_pair([5, 6, 4, 1], seed=1001), method="relu_pairs")
    assert result.status is unweave.Status.FAILED
    assert "surfaces are followed" in result.message


def test_smooth_layers_are_not_called_kinked() -> None:
    net = planted_pair([4, 5, 3, 1], "tanh")
    result = unweave.recover(net, domain=(-3, 3), method="relu_pairs")
    assert not result.status.is_recovered
