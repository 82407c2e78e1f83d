"""The first hidden layer from kinks on lines."""

from __future__ import annotations

import numpy as np

from planted_layers import hyperplane_kinks, planted, probe_of, surface_kinks
from unweave.methods.shared.surfaces.first_layer import FirstLayer, FirstLayerOptions
from unweave.methods.shared.surfaces.flatness import Flatness, FlatnessOptions
from unweave.methods.shared.surfaces.probe import Kink, KinkPool


def test_a_hyperplane_is_taken_once_and_other_kinks_wait() -> None:
    network = planted([8, 6, 5, 1], 1004)
    turned = [Kink(kink.point, -kink.normal, kink.error) for kink in hyperplane_kinks(network, 6, 8)]
    bent = [surface_kinks(network, unit, 1, 5)[0] for unit in range(5)]
    pool = KinkPool()
    layer = FirstLayer(probe_of(network), pool, np.random.default_rng(1), FirstLayerOptions())
    assert layer.sort([*hyperplane_kinks(network, 6, 7), *turned, *bent])
    assert layer.width == 6
    heights = np.stack([kink.point for kink in turned]) @ layer.weights + layer.biases
    np.testing.assert_allclose(np.abs(heights).min(axis=1), 0, atol=1e-12)
    assert pool.kinks == bent
    assert not layer.sort([])


def test_all_units_are_found_and_inputs_reduced_to_what_they_read() -> None:
    network = planted([8, 5, 4, 1], 1000)
    probe, pool = probe_of(network), KinkPool()
    layer = FirstLayer(probe, pool, np.random.default_rng(2), FirstLayerOptions())
    layer.find(np.random.default_rng(3))
    layer.reduce_inputs()
    truth = network.weights[0] / np.linalg.norm(network.weights[0], axis=0)
    cosines = np.abs((probe.frame @ layer.weights).T @ truth)
    assert layer.matrix.shape == (5, 6)
    np.testing.assert_allclose(cosines.max(axis=0), 1, atol=1e-9)
    assert {len(kink.point) for kink in pool.kinks} == {len(line.line.start) for line in pool.lines} == {5}


def test_planes_of_deeper_units_bend_behind_others() -> None:
    network = planted([8, 6, 5, 1], 1001)
    deeper = [surface_kinks(network, unit, 1, 5)[0] for unit in range(3)]
    kinks = [*hyperplane_kinks(network, 6, 8), *deeper]
    probe, rng = probe_of(network), np.random.default_rng(1)
    pool = KinkPool()
    layer = FirstLayer(probe, pool, rng, FirstLayerOptions())
    layer.take(kinks)
    bent = Flatness(probe, rng, FlatnessOptions()).bent_planes(layer.matrix, layer.kinks)
    assert [kink in deeper for kink in layer.kinks] == bent.tolist()
    layer.drop(bent)
    assert layer.width == 6
    assert all(kink in deeper for kink in pool.kinks)
    assert len(pool.kinks) == 3
