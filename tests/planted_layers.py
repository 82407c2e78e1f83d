"""Planted networks with hidden layers of kinked units, and probes of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from unweave import Network
from unweave.arrays import Array
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.probe import Kink, Probe, ProbeOptions
from unweave.targets.queries import Queries
from unweave.targets.region import NormalisedQueries, Region


def planted(layers: list[int], seed: int, activation: str = "relu") -> Network:
    """Normal weights of variance 2 / n_in, normal biases."""
    rng = np.random.default_rng(seed)
    weights = [rng.standard_normal(shape) * np.sqrt(2 / shape[0]) for shape in pairwise(layers)]
    biases = [rng.standard_normal(width) * (0.5 if number else 1) for number, width in enumerate(layers[1:])]
    return Network(weights, biases, [activation] * (len(layers) - 2) + ["identity"])


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


def slope_of(network: Network) -> float:
    return 0.01 if network.activations[0] == "leaky_relu" else 0.0


def second_preactivations(network: Network, points: Array) -> Array:
    """(n, m) of the second layer."""
    first = Network(network.weights[:1], network.biases[:1], network.activations[:1])
    return first(points) @ network.weights[1] + network.biases[1]


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


def hyperplane_kinks(network: Network, count: int, seed: int) -> list[Kink]:
    """Points of the hyperplanes of the first units, with their normals."""
    rng = np.random.default_rng(seed)
    weights, biases = network.weights[0], network.biases[0]
    found = []
    for unit in range(count):
        normal = weights[:, unit] / np.linalg.norm(weights[:, unit])
        point = rng.standard_normal(len(normal))
        point -= (point @ weights[:, unit] + biases[unit]) / np.linalg.norm(weights[:, unit]) * normal
        found.append(Kink(point, normal, 1e-12))
    return found


def assert_is_unit(
    network: Network, known: LiftedLayers, alpha: Array, unit: int, tolerance: float = 1e-7
) -> None:
    """Whether alpha . phi is the unit's pre-activation up to a factor."""
    points = np.random.default_rng(0).standard_normal((200, network.n_inputs))
    z = points @ network.weights[0] + network.biases[0]
    slope = 0.01 if network.activations[0] == "leaky_relu" else 0.0
    truth = np.where(z > 0, z, slope * z) @ network.weights[1][:, unit] + network.biases[1][unit]
    found = known.values(points) @ alpha
    factor = found @ truth / (truth @ truth)
    np.testing.assert_allclose(found, factor * truth, atol=tolerance * np.abs(found).max())
