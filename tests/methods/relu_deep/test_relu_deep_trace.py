"""Units of the second layer from their surfaces."""

from __future__ import annotations

import numpy as np
import pytest

from planted_layers import first_layer, planted, probe_of, surface_kinks
from unweave import Network
from unweave.arrays import Array
from unweave.methods.relu_deep.cross import cross, find_meeting
from unweave.methods.relu_deep.probe import Kink
from unweave.methods.relu_deep.surface import Surface
from unweave.methods.relu_deep.trace import is_flat, trace, vanishing
from unweave.methods.shared.kinked.lines import random_line


def assert_is_unit(network: Network, known, alpha: Array, unit: int, tolerance: float = 1e-7) -> None:
    """Whether alpha . phi is the unit's pre-activation up to a factor."""
    points = np.random.default_rng(0).standard_normal((200, network.n_inputs))
    z = points @ network.weights[0] + network.biases[0]
    slope = 0.01 if network.activations[0] == "leaky_relu" else 0.0
    truth = np.where(z > 0, z, slope * z) @ network.weights[1][:, unit] + network.biases[1][unit]
    found = known.values(points) @ alpha
    factor = found @ truth / (truth @ truth)
    np.testing.assert_allclose(found, factor * truth, atol=tolerance * np.abs(found).max())


def test_kinks_of_one_unit_fit_together_and_others_do_not() -> None:
    network = planted([8, 6, 5, 1], 1000)
    known = first_layer(network, signed=True)
    first, *own = surface_kinks(network, 0, 8, 1)
    surface = Surface.through(known, first)
    assert surface is not None
    others = [surface_kinks(network, unit, 8, 2) for unit in range(1, 5)]
    for kinks in others:
        assert all(surface.with_kink(kink) is None for kink in kinks)
    for kink in own:
        surface = surface.with_kink(kink) or surface
    assert surface.open == 0
    assert_is_unit(network, known, surface.representative, 0)


def test_a_normal_that_no_unit_can_have_is_refused() -> None:
    network = planted([8, 4, 5, 1], 1012)  # all normals lie in four dimensions
    kink = surface_kinks(network, 0, 1, 3)[0]
    turned = np.random.default_rng(4).standard_normal(8)
    wrong = Kink(kink.point, turned / np.linalg.norm(turned), kink.error)
    known = first_layer(network, signed=True)
    assert Surface.through(known, kink) is not None
    assert Surface.through(known, wrong) is None


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
    assert crossed.open == surface.open - 1
    alpha = np.append(network.weights[1][:, 0], network.biases[1][0])
    new = np.stack([place.point for place in crossed.places[1:]])
    np.testing.assert_allclose(known.values(new) @ alpha, 0, atol=1e-10)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize(
    ("layers", "signed", "narrow"),
    [([8, 6, 5, 1], False, True), ([8, 6, 5, 1], True, False), ([5, 8, 6, 1], False, False)],
)
def test_one_kink_is_enough_for_a_unit(
    layers: list[int], signed: bool, narrow: bool, activation: str
) -> None:
    network = planted(layers, 1003, activation)
    probe, rng = probe_of(network), np.random.default_rng(7)
    lines = [probe.scan(random_line(probe.region, 100.0, rng)) for _ in range(2)]
    known, sent = first_layer(network, signed, narrow), probe.sent
    surface = Surface.through(known, surface_kinks(network, 1, 1, 8)[0])
    assert surface is not None
    unit = trace(probe, surface, [], lines, rng)
    assert unit is not None
    assert (unit.unread, unit.denied) == ((), 0)
    assert_is_unit(network, known, unit.alpha, 1)
    assert probe.sent - sent < 500


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
        sent = probe.sent
        unit = trace(probe, surface, known_kinks, lines, rng)
        assert unit is not None
        assert_is_unit(network, surface.known, unit.alpha, 0)
        rows.append(probe.sent - sent)
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
    assert trace(probe, surface, [], lines, rng) is None


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


def test_flat_pieces_are_told_from_bent_ones() -> None:
    network = planted([8, 6, 5, 1], 1008)
    probe, rng = probe_of(network), np.random.default_rng(17)
    kinks = surface_kinks(network, 2, 6, 18)
    assert all(is_flat(probe, first_layer(network, signed=True), kink, rng) for kink in kinks)
    # Without the first layer's units the same surface bends for no reason that is known.
    nothing = first_layer(planted([8, 1, 1, 1], 1009), signed=True)
    assert not all(is_flat(probe, nothing, kink, rng) for kink in kinks)
