"""What must not change the result, and what must change it in a known way."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import unweave
from unweave import Network, Recovery, Status

SHAPES = ((5, 3), (4, 4), (4, 6))  # inputs and neurons: fewer, as many, more
FEW = settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
SAME = 1e-9
"""Two recoveries of one network: each is off by its error, 1e-13 times a condition number of at most 1e4."""

shapes = st.sampled_from(SHAPES)
seeds = st.integers(1000, 1019)


def planted(shape: tuple[int, int], seed: int, outputs: int = 1) -> Network:
    return unweave.random_network([shape[0], shape[1], outputs], seed=seed, outer="signed", norms=(0.7, 1.4))


def recovered(network: Network, **how: Any) -> Network:
    result = unweave.recover(network, activation="tanh", **how)
    assert result.status is Status.RECOVERED, result.message
    assert result.network is not None
    return result.network


def assert_same(first: Network, second: Network) -> None:
    assert unweave.compare(first, second).parameter_error <= SAME


@FEW
@given(shapes, seeds, st.randoms(use_true_random=False))
def test_order_and_signs_of_the_planted_units_do_not_matter(
    shape: tuple[int, int], seed: int, random: Any
) -> None:
    network = planted(shape, seed)
    order = list(range(shape[1]))
    random.shuffle(order)
    sign = np.array([random.choice([-1.0, 1.0]) for _ in order])
    other = Network(
        [network.weights[0][:, order] * sign, network.weights[1][order] * sign[:, None]],
        [network.biases[0][order] * sign, network.biases[1]],
        network.activations,
    )
    first, second = unweave.canonical(recovered(network)), unweave.canonical(recovered(other))
    assert_same(first, second)
    for one, two in zip((*first.weights, *first.biases), (*second.weights, *second.biases), strict=True):
        np.testing.assert_allclose(one, two, atol=SAME)


@FEW
@given(shapes, seeds, st.integers(0, 1000))
def test_turning_the_inputs_turns_the_weights(shape: tuple[int, int], seed: int, turn: int) -> None:
    network = planted(shape, seed)
    q, _ = np.linalg.qr(np.random.default_rng(turn).standard_normal((shape[0], shape[0])))
    turned = Network([q @ network.weights[0], network.weights[1]], network.biases, network.activations)
    found = recovered(turned)
    back = Network([q.T @ found.weights[0], found.weights[1]], found.biases, found.activations)
    assert_same(recovered(network), back)


@FEW
@given(shapes, seeds, st.floats(-8, 8))
def test_scaling_the_outputs_scales_the_outgoing_weights(
    shape: tuple[int, int], seed: int, power: float
) -> None:
    network, scale = planted(shape, seed, outputs=2), 10.0**power
    larger = Network(
        [network.weights[0], network.weights[1] * scale],
        [network.biases[0], network.biases[1] * scale],
        network.activations,
    )
    found = recovered(larger)
    back = Network(
        [found.weights[0], found.weights[1] / scale],
        [found.biases[0], found.biases[1] / scale],
        found.activations,
    )
    assert_same(recovered(network), back)


@FEW
@given(shapes, seeds, st.integers(0, 2**31))
def test_a_power_of_two_in_the_outputs_changes_nothing_but_them(
    shape: tuple[int, int], seed: int, run: int
) -> None:
    network = planted(shape, seed)
    larger = Network(
        [network.weights[0], network.weights[1] * 64],
        [network.biases[0], network.biases[1] * 64],
        network.activations,
    )
    first, second = recovered(network, seed=run), recovered(larger, seed=run)
    assert_same(
        first,
        Network(
            [second.weights[0], second.weights[1] / 64],
            [second.biases[0], second.biases[1] / 64],
            second.activations,
        ),
    )


def everything(result: Recovery) -> list[Any]:
    assert result.network is not None
    parameters = [part.tobytes() for part in (*result.network.weights, *result.network.biases)]
    stages = [(stage.name, stage.queries, stage.figures) for stage in result.stages]
    return [result.status, result.error, result.queries, result.message, result.notes, parameters, stages]


@FEW
@given(shapes, seeds, st.integers(0, 2**31))
def test_the_same_seed_gives_the_same_result_bit_for_bit(shape: tuple[int, int], seed: int, run: int) -> None:
    network = planted(shape, seed)
    first, second = (unweave.recover(network, activation="tanh", seed=run) for _ in range(2))
    assert everything(first) == everything(second)


@FEW
@given(shapes, seeds, st.integers(0, 2**31), st.integers(0, 2**31))
def test_another_seed_gives_the_same_network(shape: tuple[int, int], seed: int, one: int, two: int) -> None:
    network = planted(shape, seed)
    assert_same(recovered(network, seed=one), recovered(network, seed=two))
