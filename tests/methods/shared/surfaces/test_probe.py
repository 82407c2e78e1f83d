"""Asking a target with kinks."""

from __future__ import annotations

import numpy as np

from planted_layers import hyperplane_kinks, planted, probe_of, surface_kinks
from unweave import Network
from unweave.methods.shared.surfaces.probe import Probe, ProbeOptions
from unweave.numerics.line_kinks import Line
from unweave.targets.queries import Queries
from unweave.targets.region import NormalisedQueries, Region


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
    assert probe.have_kinks(points, normals, steps).seen.all()
    assert not probe.have_kinks(points + 1e-4 * normals, normals, steps).seen.any()  # beside it
    assert not probe.have_kinks(points + 3e-6 * normals, normals, steps).seen.any()  # within the step


def test_where_nothing_moves_a_kink_is_neither_seen_nor_missed() -> None:
    weights = [np.eye(3), np.array([[-1.0], [-1.0], [-1.0]]), np.ones((1, 1))]
    dead = Network(weights, [np.zeros(3), -np.ones(1), np.zeros(1)], ["relu", "relu", "identity"])
    probe = Probe(NormalisedQueries(Queries(dead, 3), Region.standard(3)), np.ones(1), 0.0, ProbeOptions())
    sightings = probe.have_kinks(np.zeros((1, 3)), np.eye(3)[:1], np.array([1e-3]))
    assert (sightings.seen[0], sightings.dull[0], sightings.missed[0]) == (False, True, False)


def test_reduced_inputs_stand_for_points_of_the_frame() -> None:
    network = planted([6, 3, 3, 1], 1002)
    probe = probe_of(network)
    frame = np.linalg.qr(network.weights[0])[0]
    points = np.random.default_rng(3).standard_normal((4, 3))
    expected = probe(points @ frame.T)
    probe.reduce(frame)
    np.testing.assert_array_equal(probe(points), expected)
    kept, answers = probe.asked()  # what was asked before is forgotten
    np.testing.assert_array_equal(kept, points)
    np.testing.assert_array_equal(answers, expected)


def test_gradients_cost_no_more_rows_than_the_first_layer_has_units() -> None:
    network = planted([60, 3, 4, 1], 1003)
    probe = probe_of(network)
    direction = np.random.default_rng(2).standard_normal(60)
    scanned = probe.scan(Line(np.zeros(60), direction / np.linalg.norm(direction), -1e3, 1e3))
    sent = probe._view.ledger.sent
    kinks = probe.kinks_with_normals(scanned, np.arange(len(scanned.positions)))
    assert len(kinks) == len(scanned.positions) >= 5
    assert probe.visible.shape == (60, 3)
    assert probe._view.ledger.sent - sent <= 5 * 60 + 10 * len(kinks)
    inside = probe.visible @ (probe.visible.T @ network.weights[0])
    np.testing.assert_allclose(inside, network.weights[0], atol=1e-8)


def test_only_first_layer_kinks_are_hyperplanes() -> None:
    network = planted([8, 6, 5, 1], 1000)
    flat = hyperplane_kinks(network, 6, 4)
    bent = [surface_kinks(network, unit, 1, 5)[0] for unit in range(5)]
    found = probe_of(network).are_hyperplanes(flat + bent, np.random.default_rng(6))
    assert found.tolist() == [True] * 6 + [False] * 5
