from __future__ import annotations

import numpy as np
import pytest

from unweave.methods.smooth_deep.base_points import BasePoints, PointSource
from unweave.methods.smooth_deep.known_layers import KnownLayers, Layer
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.networks.saturation import TANH
from unweave.targets.region import Region

LAYERS = [6, 5, 4, 3, 2]


def planted() -> Network:
    return random_network(LAYERS, seed=1000, outer="normal", norms=(0.7, 1.4))


def known_of(network: Network, depth: int) -> KnownLayers:
    layers = []
    for weights, biases in zip(network.weights[:depth], network.biases[:depth], strict=True):
        layers.append(Layer(*np.linalg.qr(weights), biases))
    return KnownLayers(tuple(layers), TANH)


def frame_after(network: Network, depth: int) -> np.ndarray:
    return np.linalg.qr(network.weights[depth])[0]


def source(region: Region | None = None) -> PointSource:
    return PointSource(Region.standard(6) if region is None else region, np.random.default_rng(1001))


def stencil_inputs(known: KnownLayers, frame: np.ndarray, base: BasePoints, reach: float) -> np.ndarray:
    d = frame.shape[1]
    corners = np.concatenate([np.eye(d), -np.eye(d)])
    sites = np.repeat(np.arange(len(base.steps)), 2 * d)
    moves = reach * base.steps[sites, None] * np.tile(corners, (len(base.steps), 1))
    return known.lifted(base.states, sites, frame, moves)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_points_leave_room_for_their_stencils(depth: int) -> None:
    network = planted()
    known, frame = known_of(network, depth), frame_after(network, depth)
    base = source().around(known, frame, 50, 3e-3, 2.0)
    assert base is not None
    assert len(base.steps) == len(base.states.inputs) == 50
    assert (base.steps <= 3e-3).all()
    assert (base.steps >= 1e-3 * 3e-3).all()
    assert np.isfinite(stencil_inputs(known, frame, base, 2.0)).all()


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("half", [0.5, 3.0])
def test_points_and_their_stencils_stay_in_the_box(depth: int, half: float) -> None:
    network = planted()
    region = Region.from_domain(-half, half, 6)
    known, frame = known_of(network, depth), frame_after(network, depth)
    points = source(region)
    base = points.around(known, frame, 40, 3e-3, 2.0)
    assert base is not None
    assert region.contains(base.states.inputs).all()
    assert region.contains(stencil_inputs(known, frame, base, 2.0)).all()
    assert region.contains(points.inputs(100)).all()
    assert region.contains(points.for_values(known, 100)).all()


def test_pre_activations_are_pushed_out() -> None:
    network = planted()
    known, frame = known_of(network, 1), frame_after(network, 1)
    base = source().around(known, frame, 100, 3e-3, 2.0)
    assert base is not None
    np.testing.assert_allclose(np.abs(base.states.post[0]), 0.93, atol=1e-10)
    pushed = np.abs(base.states.last @ network.weights[1]).mean()
    plain = np.abs(known.states(source().inputs(100)).last @ network.weights[1]).mean()
    assert pushed > plain


def test_amplitudes_are_spread_if_asked() -> None:
    network = planted()
    known, frame = known_of(network, 1), frame_after(network, 1)
    base = source().around(known, frame, 100, 3e-3, 2.0, amplitude=0.9, shortest_radius=0.3)
    assert base is not None
    sizes = np.abs(base.states.post[0])
    assert sizes.min() >= 0.9 * 0.3 - 1e-10
    assert sizes.max() <= 0.9 + 1e-10
    assert sizes.min() < 0.4
    assert np.ptp(sizes, axis=1).max() < 1e-10  # one size per point


def test_no_room_at_all_is_said() -> None:
    """Layer 1 saturated to rounding everywhere: no displacement of its states can be asked for."""
    network = planted()
    known = KnownLayers((Layer(np.eye(6)[:, :5], 1e-9 * np.eye(5), np.full(5, 17.0)),), TANH)
    box = Region.from_domain(-1.0, 1.0, 6)
    assert source(box).around(known, frame_after(network, 1), 30, 3e-3, 2.0) is None


def test_the_same_generator_gives_the_same_points() -> None:
    network = planted()
    known, frame = known_of(network, 1), frame_after(network, 1)
    one, two = (source().around(known, frame, 20, 3e-3, 2.0) for _ in range(2))
    assert one is not None
    assert two is not None
    np.testing.assert_array_equal(one.states.inputs, two.states.inputs)


def test_values_are_asked_where_the_first_layer_acts() -> None:
    network = planted()
    known = known_of(network, 1)
    points = source().for_values(known, 200)
    assert points.shape == (200, 6)
    acting = np.abs(known.states(points).post[0]).max(axis=1)
    assert acting[:100].max() <= 0.95 + 1e-12
    assert acting[100:].max() > 0.95
    assert source().for_values(KnownLayers((), TANH), 10).shape == (10, 6)


def test_margins_are_kept() -> None:
    region = Region.from_domain(-1.0, 1.0, 6)
    bounds = region.normalised_bounds
    assert bounds is not None
    points = source(region).inputs(500, margin=0.3)
    assert (points >= bounds[0] + 0.3).all()
    assert (points <= bounds[1] - 0.3).all()
