"""Units of the second layer from their surfaces."""

from __future__ import annotations

import numpy as np
import pytest

from planted_layers import assert_is_unit, first_layer, planted, probe_of, surface_kinks
from unweave import Network
from unweave.methods.relu_layers.inner_signs import InnerSignOptions, InnerSigns
from unweave.methods.relu_layers.layer_units import LayerOptions, LayerUnits, Unit
from unweave.methods.relu_layers.trace import TraceOptions, Tracer, Verdict
from unweave.methods.shared.kinked.lines import random_line
from unweave.methods.shared.surfaces.crossing import cross
from unweave.methods.shared.surfaces.probe import Kink, KinkPool, Probe
from unweave.methods.shared.surfaces.sight import Sight, SightOptions
from unweave.methods.shared.surfaces.surface import Surface


def tracer_of(network: Network, seed: int) -> Tracer:
    return Tracer(probe_of(network), np.random.default_rng(seed), TraceOptions())


def test_where_the_surface_meets_a_known_unit_one_more_point_is_found() -> None:
    network = planted([8, 6, 5, 1], 1002)
    known, tracer = first_layer(network, signed=True), tracer_of(network, 5)
    surface = Surface.through(known, surface_kinks(network, 0, 1, 6)[0])
    assert surface is not None
    meeting, *_ = tracer.meetings(surface)
    assert abs(known.preactivations(meeting.point[None])[0, meeting.unit]) < 1e-9
    crossed = cross(probe_of(network), surface, meeting, np.random.default_rng(5))
    assert crossed is not None
    assert tracer._is_far(crossed, meeting) is not False
    assert crossed.surface.open == surface.open - 1
    alpha = np.append(network.weights[1][:, 0], network.biases[1][0])
    new = np.stack([place.point for place in crossed.surface.places[1:]])
    np.testing.assert_allclose(known.values(new) @ alpha, 0, atol=1e-10)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize(
    ("layers", "signed"), [([8, 6, 5, 1], False), ([8, 6, 5, 1], True), ([5, 8, 6, 1], False)]
)
def test_one_kink_is_enough_for_a_unit(layers: list[int], signed: bool, activation: str) -> None:
    network = planted(layers, 1003, activation)
    tracer, known = tracer_of(network, 7), first_layer(network, signed)
    surface = Surface.through(known, surface_kinks(network, 1, 1, 8)[0])
    assert surface is not None
    sight = Sight(known, KinkPool(), SightOptions())
    surface, verdict = tracer.follow(surface, sight)
    assert verdict is Verdict.COMPLETE
    assert_is_unit(network, known, surface.representative, 1)


def pool_of(network: Network, kinks: list[Kink], lines: int, seed: int) -> tuple[Probe, KinkPool]:
    probe, rng = probe_of(network), np.random.default_rng(seed)
    scanned = [probe.scan(random_line(probe.region, 100.0, rng)) for _ in range(lines)]
    return probe, KinkPool(scanned, kinks)


def test_kinks_of_a_unit_are_picked_from_a_pool_and_its_zeros_on_lines_foretold() -> None:
    network = planted([8, 6, 5, 1], 1004)
    kinks = [kink for unit in range(5) for kink in surface_kinks(network, unit, 16, 10 + unit)]
    _, pool = pool_of(network, kinks, 3, 9)
    sight = Sight(first_layer(network, signed=True), pool, SightOptions())
    surface = sight.surface(0)
    assert surface is not None
    merged, members = sight.absorb(surface, range(1, 80))
    assert members <= set(range(16))
    assert merged.open == 0
    assert_is_unit(network, sight.known, merged.representative, 0)
    counts = sight.foretold(merged)
    assert (counts.confirmed > 0, counts.denied) == (True, 0)
    assert sight.verified(merged.representative)[0] == counts
    left = sight.open_kinks(merged.representative[:, None])
    assert sorted(left) == list(range(16, 80))


def test_lines_and_places_deny_what_is_no_unit() -> None:
    network = planted([8, 6, 5, 1], 1005)
    other = planted([8, 6, 5, 1], 1006)  # other second-layer units behind the same first layer
    mixed = Network(
        [network.weights[0], *other.weights[1:]], [network.biases[0], *other.biases[1:]], network.activations
    )
    probe, pool = pool_of(network, [], 3, 12)
    sight = Sight(first_layer(network, signed=True), pool, SightOptions())
    tracer = Tracer(probe, np.random.default_rng(13), TraceOptions())
    search = LayerUnits(probe, sight, tracer, np.random.default_rng(14), LayerOptions())
    for truth, accepted in ((network, True), (mixed, False)):
        surface = Surface.through(sight.known, surface_kinks(truth, 0, 1, 13)[0])
        for kink in surface_kinks(truth, 0, 12, 14):
            surface = surface.with_kink(kink) or surface
        assert surface.open == 0
        assert (search.finished(surface) is not None) is accepted


def test_a_kink_tells_what_was_open_of_a_unit() -> None:
    network = planted([8, 6, 5, 1], 1008)
    kinks = surface_kinks(network, 1, 30, 19)
    probe, pool = pool_of(network, kinks, 1, 20)
    sight = Sight(first_layer(network, signed=True), pool, SightOptions())
    tracer = Tracer(probe, np.random.default_rng(21), TraceOptions())
    alpha = np.append(network.weights[1][:, 1], network.biases[1][1])
    free = np.eye(7)[:, :1]
    wrong = Unit(alpha + 3 * free[:, 0], free, [kinks[0].point])
    search = LayerUnits(probe, sight, tracer, np.random.default_rng(22), LayerOptions(), [wrong])
    assert any(search.completed_by(kink) for kink in range(30))
    assert wrong.open.shape[1] == 0
    np.testing.assert_allclose(wrong.alpha, alpha, atol=1e-6)


def test_units_that_hardly_any_surface_meets_are_told() -> None:
    network = planted([6, 5, 4, 1], 1001)
    sight = Sight(first_layer(network, signed=False), KinkPool(), SightOptions())
    tracer = Tracer(probe_of(network), np.random.default_rng(0), TraceOptions())
    search = InnerSigns(sight, tracer, (0.0,), np.zeros((0, 7)), InnerSignOptions())
    met = np.ones(5, dtype=bool)
    met[3] = False
    search.met += 7 * [met]
    assert search.unmet == ()  # too few
    search.met += [np.ones(5, dtype=bool), met]
    assert search.unmet == (3,)
