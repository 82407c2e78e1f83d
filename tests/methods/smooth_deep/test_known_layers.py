from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.methods.smooth_deep.known_layers import KnownLayers, Layer, Peeled
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.networks.saturation import ERF, TANH

FAMILY = {"tanh": TANH, "erf": ERF}
INPUTS, WIDTHS = 7, (6, 5, 3)


def planted(activation: str = "tanh") -> Network:
    return random_network([INPUTS, *WIDTHS, 2], activation, seed=1000, outer="normal", norms=(0.7, 1.4))


def layer_of(weights: np.ndarray, biases: np.ndarray) -> Layer:
    frame, mixing = np.linalg.qr(weights)
    return Layer(frame, mixing, biases)


def known_of(network: Network, depth: int) -> KnownLayers:
    known = KnownLayers((), FAMILY[network.activations[0]])
    for weights, biases in zip(network.weights[:depth], network.biases[:depth], strict=True):
        known = known.with_layer(layer_of(weights, biases))
    return known


def frame_after(network: Network, depth: int) -> np.ndarray:
    return np.linalg.qr(network.weights[depth])[0]


def base_inputs(count: int = 20, size: float = 0.6) -> np.ndarray:
    return size * np.random.default_rng(1001).standard_normal((count, INPUTS))


@pytest.mark.parametrize("activation", ["tanh", "erf"])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_lifted_inputs_have_the_displacement_that_was_asked_for(activation: str, depth: int) -> None:
    network = planted(activation)
    known, frame = known_of(network, depth), frame_after(network, depth)
    base = known.states(base_inputs())
    rng = np.random.default_rng(1002)
    sites = rng.integers(0, 20, 50)
    steps = known.safe_steps(base, frame, 1.0, 1.0)[sites]
    direction = rng.standard_normal((50, frame.shape[1]))
    displacement = steps[:, None] * direction / np.abs(direction).sum(axis=1, keepdims=True)
    inputs = known.lifted(base, sites, frame, displacement)
    moved = known.states(inputs).last @ frame - base.last[sites] @ frame
    assert_allclose(moved, displacement, rtol=0, atol=1e-10)
    assert np.abs(displacement).max() > 1e-3


def test_what_the_next_layer_does_not_read_stays() -> None:
    network = planted()
    known, frame = known_of(network, 2), frame_after(network, 2)
    base = known.states(base_inputs(5))
    inputs = known.lifted(base, np.arange(5), frame, np.full((5, 3), 1e-3))
    change = known.states(inputs).last - base.last
    assert_allclose(change - change @ frame @ frame.T, 0, atol=1e-10)
    # Layer 1 is moved within what layer 2 reads, the inputs within what layer 1 reads.
    frame_1 = frame_after(network, 0)
    away = inputs - base.inputs
    assert_allclose(away - away @ frame_1 @ frame_1.T, 0, atol=1e-10)


@pytest.mark.parametrize("reach", [1.0, 2.0])
@pytest.mark.parametrize("depth", [1, 2])
def test_safe_steps_never_leave_the_boxes(depth: int, reach: float) -> None:
    network = planted()
    known, frame = known_of(network, depth), frame_after(network, depth)
    x = base_inputs(60, size=1.5)
    low, high = np.full(INPUTS, x.min() - 0.01), np.full(INPUTS, x.max() + 0.3)
    base = known.states(x)
    steps = known.safe_steps(base, frame, 0.5, reach, (low, high))
    assert steps.max() <= 0.5
    assert steps.min() > 0
    d = frame.shape[1]
    corners = reach * np.concatenate([np.eye(d), -np.eye(d)])
    sites = np.repeat(np.arange(60), 2 * d)
    inputs = known.lifted(base, sites, frame, steps[sites, None] * np.tile(corners, (60, 1)))
    assert np.isfinite(inputs).all()  # no state came to +-1, where the inverse ends
    assert (inputs > low).all()
    assert (inputs < high).all()


def test_safe_steps_shrink_near_the_walls_and_with_reach() -> None:
    network = planted()
    known, frame = known_of(network, 1), frame_after(network, 1)
    calm, wild = (known.states(base_inputs(20, size)) for size in (0.1, 5.0))
    assert np.median(known.safe_steps(wild, frame, 1.0, 2.0)) < np.median(
        known.safe_steps(calm, frame, 1.0, 2.0)
    )
    one, two = (known.safe_steps(calm, frame, 1e9, reach) for reach in (1.0, 2.0))
    assert_allclose(one, 2 * two)
    assert_allclose(known.safe_steps(calm, frame, 1e-6, 2.0), 1e-6)


def test_states_are_those_of_the_network() -> None:
    network = planted()
    known, x = known_of(network, 3), base_inputs()
    states = known.states(x)
    y = x
    for depth in range(3):
        z = y @ network.weights[depth] + network.biases[depth]
        y = np.tanh(z)
        assert_allclose(states.pre[depth], z, atol=1e-14)
        assert_allclose(states.post[depth], y, atol=1e-14)
    assert_allclose(states.last, y, atol=1e-14)
    few = states.take(np.array([3, 1]))
    assert_allclose(few.inputs, x[[3, 1]])
    assert_allclose(few.last, y[[3, 1]], atol=1e-14)


def test_layer_is_its_frame_times_its_mixing() -> None:
    network = planted()
    layer = layer_of(network.weights[0], network.biases[0])
    assert layer.width == 6
    assert_allclose(layer.weights, network.weights[0], atol=1e-14)
    assert_allclose(layer.unmixing @ layer.mixing, np.eye(6), atol=1e-13)


@pytest.mark.parametrize("activation", ["tanh", "erf"])
def test_as_network(activation: str) -> None:
    network = planted(activation)
    assert known_of(network, 0).as_network() is None
    part = known_of(network, 2).as_network()
    assert part is not None
    assert part.activations == (activation, activation)
    assert part.hidden == (6,)
    expected = Network(network.weights[:2], network.biases[:2], network.activations[:2])
    assert_allclose(part(base_inputs()), expected(base_inputs()), atol=1e-14)


def test_inputs_with_given_first_states() -> None:
    network = planted()
    known = known_of(network, 2)
    states = np.random.default_rng(1003).uniform(-0.95, 0.95, (10, 6))
    assert_allclose(known.states(known.inputs_with_first_states(states)).post[0], states, atol=1e-13)


def test_the_rest_is_a_function_of_the_coordinates() -> None:
    network = planted()
    known, frame = known_of(network, 1), frame_after(network, 1)
    base = known.states(base_inputs(8))
    peeled = Peeled(network, known, base, frame)
    assert (len(peeled), peeled.dimension) == (8, 5)
    assert_allclose(peeled.coordinates, np.tanh(base.pre[0]) @ frame, atol=1e-14)
    mixing = frame.T @ network.weights[1]

    def rest(c: np.ndarray) -> np.ndarray:
        y = np.tanh(c @ mixing + network.biases[1])
        y = np.tanh(y @ network.weights[2] + network.biases[2])
        return np.asarray(y @ network.weights[3] + network.biases[3])

    sites = np.array([0, 3, 3, 7])
    moves = 1e-3 * np.random.default_rng(1004).standard_normal((4, 5))
    assert_allclose(peeled(sites, moves), rest(peeled.coordinates[sites] + moves), rtol=0, atol=1e-12)


def test_with_layer_leaves_the_old_ones_alone() -> None:
    network = planted()
    one = known_of(network, 1)
    two = one.with_layer(layer_of(network.weights[1], network.biases[1]))
    assert (len(one.layers), len(two.layers)) == (1, 2)
    assert two.layers[0] is one.layers[0]


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("activation", ["tanh", "erf"])
def test_a_saturated_state_leaves_no_room(activation: str, depth: int, bounded: bool) -> None:
    network = planted(activation)
    known, frame = known_of(network, depth), frame_after(network, depth)
    x = 60 * base_inputs(10)
    bounds = (np.full(INPUTS, x.min() - 1), np.full(INPUTS, x.max() + 1)) if bounded else None
    base = known.states(x)
    assert (np.abs(base.post[0]) == 1).any(axis=1).all()
    steps = known.safe_steps(base, frame, 1.0, 2.0, bounds)
    assert steps.max() < 1e-10
    assert steps.min() >= 0


def test_a_saturated_site_takes_no_room_from_others() -> None:
    network = planted()
    known, frame = known_of(network, 2), frame_after(network, 2)
    x = base_inputs(10)
    calm = known.safe_steps(known.states(x), frame, 1.0, 2.0)
    x[0] *= 1e3
    steps = known.safe_steps(known.states(x), frame, 1.0, 2.0)
    assert_allclose(steps[1:], calm[1:])
    assert steps[0] < 1e-10 < calm.min()


@pytest.mark.parametrize(
    "depth",
    [
        1,
        2,
        3,
    ],
)
@pytest.mark.parametrize("activation", ["tanh", "erf"])
def test_saturation_in_every_layer(activation: str, depth: int) -> None:
    base = planted(activation)
    steep = [60.0, 60.0, 60.0, 1.0]
    network = Network(
        [size * w for size, w in zip(steep, base.weights, strict=True)],
        [size * b for size, b in zip(steep, base.biases, strict=True)],
        base.activations,
    )
    known, frame = known_of(network, depth), frame_after(network, depth)
    steps = known.safe_steps(known.states(60 * base_inputs(10)), frame, 1.0, 2.0)
    assert steps.max() < 1e-10
    assert steps.min() >= 0
