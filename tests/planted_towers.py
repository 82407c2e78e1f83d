"""Planted networks with hidden layers of kinked units, and probes of them."""

from __future__ import annotations

import numpy as np

from planted_layers import planted, second_preactivations, slope_of
from unweave import Network
from unweave.methods.relu_layers.lifted import LiftedLayers
from unweave.methods.relu_layers.probe import Kink, Probe, ProbeOptions
from unweave.targets.queries import Queries
from unweave.targets.region import NormalisedQueries, Region

__all__ = ["first_layer", "planted", "probe_of", "second_preactivations", "slope_of", "surface_kinks"]


def probe_of(network: Network) -> Probe:
    """A probe in the network's own inputs, outputs in units of their spread."""
    queries = Queries(network, network.n_inputs)
    spread = network(np.random.default_rng(0).standard_normal((500, network.n_inputs))).std(axis=0)
    return Probe(NormalisedQueries(queries, Region.standard(network.n_inputs)), spread, 0.0, ProbeOptions())


def first_layer(network: Network, signed: bool) -> LiftedLayers:
    """The true first layer; without signs, every other unit is turned round."""
    matrix = np.hstack([network.weights[0].T, network.biases[0][:, None]])
    nothing = LiftedLayers(network.n_inputs, slope=slope_of(network))
    if signed:
        return nothing.with_signed(matrix)
    turn = np.where(np.arange(len(matrix)) % 2, -1.0, 1.0)
    return nothing.with_unsigned(turn[:, None] * matrix)


def surface_kinks(network: Network, unit: int, count: int, seed: int) -> list[Kink]:
    """Points of the surface of a second-layer unit, with their normals, by bisection of the truth."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(1000 * count):
        ends = 3 * rng.standard_normal((2, network.n_inputs))
        heights = second_preactivations(network, ends)[:, unit]
        if heights[0] * heights[1] >= 0:
            continue
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            point = ends[0] + middle * (ends[1] - ends[0])
            same = second_preactivations(network, point[None])[0, unit] * heights[0] > 0
            low, high = (middle, high) if same else (low, middle)
        z = point @ network.weights[0] + network.biases[0]
        slopes = np.where(z > 0, 1.0, slope_of(network))
        normal = network.weights[0] @ (slopes * network.weights[1][:, unit])
        found.append(Kink(point, normal / np.linalg.norm(normal), 1e-12))
        if len(found) == count:
            return found
    raise AssertionError(f"unit {unit} hardly ever switches: plant another network")
