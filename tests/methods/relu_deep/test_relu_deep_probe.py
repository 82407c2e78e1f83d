"""Asking a target with kinks."""

from __future__ import annotations

import numpy as np

from planted_layers import planted, probe_of, surface_kinks
from unweave.methods.relu_deep.probe import Kink
from unweave.networks.lifted_layers import Layer
from unweave.numerics.line_kinks import Line


def hyperplane_kinks(network, count: int, seed: int) -> list[Kink]:
    rng = np.random.default_rng(seed)
    weights, biases = network.weights[0], network.biases[0]
    found = []
    for unit in range(count):
        normal = weights[:, unit] / np.linalg.norm(weights[:, unit])
        point = rng.standard_normal(len(normal))
        point -= (point @ weights[:, unit] + biases[unit]) / np.linalg.norm(weights[:, unit]) * normal
        found.append(Kink(point, normal, 1e-12))
    return found


def test_a_scanned_line_shows_the_kinks_of_both_layers_with_their_normals() -> None:
    network = planted([6, 5, 4, 1], 1000)
    probe = probe_of(network)
    direction = np.random.default_rng(1).standard_normal(6)
    scanned = probe.scan(Line(np.zeros(6), direction / np.linalg.norm(direction), -1e3, 1e3))
    assert scanned.complete
    kinks = probe.kinks_with_normals(scanned, np.arange(len(scanned.positions)))
    assert len(kinks) == len(scanned.positions)
    columns = network.weights[0] / np.linalg.norm(network.weights[0], axis=0)
    cosines = np.abs(np.stack([kink.normal for kink in kinks]) @ columns)
    assert (cosines.max(axis=0) > 1 - 1e-9).all()  # every unit of the first layer is crossed
    assert (cosines.max(axis=1) < 1 - 1e-3).any()  # and so are others


def test_kinks_are_told_from_straight_pieces() -> None:
    network = planted([6, 5, 4, 1], 1001)
    kinks = surface_kinks(network, 0, 5, 2)
    points, normals = (np.stack([getattr(kink, name) for kink in kinks]) for name in ("point", "normal"))
    probe, steps = probe_of(network), np.full(5, 1e-5)
    assert probe.have_kinks(points, normals, steps).all()
    assert not probe.have_kinks(points + 1e-4 * normals, normals, steps).any()  # beside it
    assert not probe.have_kinks(points + 3e-6 * normals, normals, steps).any()  # within the step


def test_every_answer_is_kept_once() -> None:
    probe = probe_of(planted([3, 2, 2, 1], 1002))
    points = np.random.default_rng(3).standard_normal((4, 3))
    answers = probe(points)
    probe(points[:2])
    kept, values = probe.asked()
    assert len(kept) == 4 == probe.sent
    order = np.lexsort(points.T[::-1])
    np.testing.assert_array_equal(kept, points[order])
    np.testing.assert_array_equal(values, answers[order])


def test_only_first_layer_kinks_are_hyperplanes() -> None:
    network = planted([8, 6, 5, 1], 1000)
    flat = hyperplane_kinks(network, 6, 4)
    bent = [surface_kinks(network, unit, 1, 5)[0] for unit in range(5)]
    found = probe_of(network).are_hyperplanes(flat + bent, np.random.default_rng(6))
    assert found.tolist() == [True] * 6 + [False] * 5


def test_a_hyperplane_is_taken_once() -> None:
    network = planted([8, 6, 5, 1], 1004)
    kinks = hyperplane_kinks(network, 6, 7)
    turned = [Kink(kink.point, -kink.normal, kink.error) for kink in hyperplane_kinks(network, 6, 8)]
    layer = probe_of(network).with_hyperplanes(Layer(np.zeros((8, 0)), np.zeros(0)), kinks + turned)
    assert layer.width == 6
    heights = np.stack([kink.point for kink in turned]) @ layer.weights + layer.biases
    np.testing.assert_allclose(np.abs(heights).min(axis=1), 0, atol=1e-12)
