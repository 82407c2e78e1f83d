"""Units of the second layer from their surfaces."""

from __future__ import annotations

import numpy as np
import pytest

from planted_layers import assert_is_unit, first_layer, planted, probe_of, surface_kinks
from unweave import Network
from unweave.methods.relu_deep.meet import find_meeting
from unweave.methods.relu_deep.trace import Unit, trace, vanishing
from unweave.methods.shared.kinked.lines import random_line
from unweave.methods.shared.surfaces.crossing import cross
from unweave.methods.shared.surfaces.probe import Kink, KinkPool, Probe, ScannedLine
from unweave.methods.shared.surfaces.sight import Sight, SightOptions
from unweave.methods.shared.surfaces.surface import Surface


def traced(
    probe: Probe, surface: Surface, kinks: list[Kink], lines: list[ScannedLine], rng: np.random.Generator
) -> Unit | None:
    sight = Sight(surface.known, KinkPool(lines, kinks), SightOptions())
    return trace(probe, surface, sight, list(range(len(kinks))), rng)


def sent_by(probe: Probe) -> int:
    return probe._view.ledger.sent


def test_where_the_surface_meets_a_known_unit_one_more_point_is_found() -> None:
    network = planted([8, 6, 5, 1], 1002)
    known, rng = first_layer(network, signed=True), np.random.default_rng(5)
    surface = Surface.through(known, surface_kinks(network, 0, 1, 6)[0])
    assert surface is not None
    unit = next(
        i for i in range(6) if surface.places[0].pattern[i] < 0 and find_meeting(surface, i, rng) is not None
    )
    meeting = find_meeting(surface, unit, rng)
    assert meeting is not None
    z = known.preactivations(meeting.point[None])[0]
    assert abs(z[unit]) < 1e-9
    crossed = cross(probe_of(network), surface, meeting, rng)
    assert crossed is not None
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
    probe, rng = probe_of(network), np.random.default_rng(7)
    lines = [probe.scan(random_line(probe.region, 100.0, rng)) for _ in range(2)]
    known, sent = first_layer(network, signed), sent_by(probe)
    surface = Surface.through(known, surface_kinks(network, 1, 1, 8)[0])
    assert surface is not None
    unit = traced(probe, surface, [], lines, rng)
    assert unit is not None
    assert (unit.unread, unit.denied) == ((), 0)
    assert_is_unit(network, known, unit.alpha, 1)
    assert sent_by(probe) - sent < 500


def test_other_kinks_of_the_unit_make_it_cheaper() -> None:
    network = planted([8, 6, 5, 1], 1004)
    probe, rng = probe_of(network), np.random.default_rng(9)
    lines = [probe.scan(random_line(probe.region, 100.0, rng)) for _ in range(3)]
    first, *own = surface_kinks(network, 0, 8, 10)
    pool = own + [kink for unit in range(1, 5) for kink in surface_kinks(network, unit, 3, 11)]
    surface = Surface.through(first_layer(network, signed=True), first)
    assert surface is not None
    rows = []
    for known_kinks in ([], pool):
        sent = sent_by(probe)
        unit = traced(probe, surface, known_kinks, lines, rng)
        assert unit is not None
        assert_is_unit(network, surface.known, unit.alpha, 0)
        rows.append(sent_by(probe) - sent)
    assert rows[1] < rows[0] / 2


def test_lines_deny_what_is_no_unit() -> None:
    network = planted([8, 6, 5, 1], 1005)
    probe, rng = probe_of(network), np.random.default_rng(12)
    lines = [probe.scan(random_line(probe.region, 100.0, rng)) for _ in range(3)]
    other = planted([8, 6, 5, 1], 1006)  # other second-layer units behind the same first layer
    mixed = Network(
        [network.weights[0], *other.weights[1:]], [network.biases[0], *other.biases[1:]], network.activations
    )
    surface = Surface.through(first_layer(network, signed=True), surface_kinks(mixed, 0, 1, 13)[0])
    assert surface is not None
    for kink in surface_kinks(mixed, 0, 12, 14):
        surface = surface.with_kink(kink) or surface
    assert surface.open == 0
    assert traced(probe, surface, [], lines, rng) is None


def test_what_a_surface_never_crosses_is_open() -> None:
    # Unit 0 of the first layer switches far away: what the second reads of it is open.
    network = planted([6, 4, 3, 1], 1007)
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    weights[0][:, 0] = [4.0, 0, 0, 0, 0, 0]
    biases[0][0] = -400.0
    network = Network(weights, biases, network.activations)
    known = first_layer(network, signed=True)
    vector = vanishing(known, 0, -1.0)
    assert vector is not None
    assert vanishing(known, 0, 1.0) is None
    surface = Surface.through(known, surface_kinks(network, 0, 1, 16)[0])
    assert surface is not None
    assert surface.is_free(vector)
