"""Walks on surfaces of the second layer."""

from __future__ import annotations

import numpy as np
import pytest

from planted_layers import first_layer, planted, second_preactivations, surface_kinks
from unweave.methods.shared.surfaces.surface import Surface
from unweave.methods.shared.surfaces.walk import is_determined, meetings_from


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize("signed", [True, False])
def test_walks_meet_units_where_the_surface_is_known_on_one_side_only(signed: bool, activation: str) -> None:
    network = planted([4, 24, 6, 1], 1000, activation)
    known = first_layer(network, signed)
    kink = surface_kinks(network, 0, 1, 6)[0]
    surface = Surface.through(known, kink)
    assert surface is not None
    points = np.repeat(kink.point[None], 24, axis=0)
    found = meetings_from(surface, points, surface.open_units, np.random.default_rng(3))
    assert found
    assert len({meeting.unit for meeting in found}) == len(found)
    for meeting in found:
        heights = known.preactivations(meeting.point[None])[0]
        assert abs(heights[meeting.unit]) < 1e-9
        assert abs(second_preactivations(network, meeting.point[None])[0, 0]) < 1e-9
        before = meeting.behind.copy()
        before[meeting.unit] *= -1
        assert surface.normal(before) is not None
        assert surface.normal(meeting.behind) is None
    assert is_determined(surface, kink.point[None]).all()


def test_walks_go_over_units_behind_which_the_surface_is_known() -> None:
    network = planted([4, 24, 6, 1], 1001)
    known = first_layer(network, signed=True)
    kinks = surface_kinks(network, 1, 40, 7)
    surface = Surface.through(known, kinks[0])
    assert surface is not None
    for kink in kinks[1:]:
        surface = surface.with_point(kink.point, known.pattern(kink.point))
        if surface.open == 1:
            break
    # One direction is open: nothing next to where the walks begin need be.
    unit = int(np.argmax(np.abs(surface.open_directions[:-1, 0])))
    points = np.repeat(surface.places[0].point[None], 24, axis=0)
    found = meetings_from(surface, points, surface.open_units, np.random.default_rng(3))
    assert all(surface.normal(meeting.behind) is None for meeting in found)
    assert unit in surface.open_units
    truth = np.append(network.weights[1][:, 1], network.biases[1][1])
    for meeting in found:
        assert abs(known.values(meeting.point[None])[0] @ truth) < 1e-9


def test_derivatives_of_many_regions_are_those_of_each() -> None:
    network = planted([4, 8, 6, 1], 1002, "leaky_relu")
    matrix = np.hstack([network.weights[1].T, network.biases[1][:, None]])
    signed = first_layer(network, signed=True)
    for known in (signed, signed.with_unsigned(matrix), signed.with_signed(matrix, np.eye(9)[:2])):
        points = np.random.default_rng(0).standard_normal((7, 4))
        patterns = np.stack([known.pattern(point) for point in points])
        derivatives, gradients = known.jacobians(patterns)
        for number, pattern in enumerate(patterns):
            derivative, gradient = known.jacobian(pattern)
            np.testing.assert_allclose(derivatives[number], derivative, atol=1e-14)
            np.testing.assert_allclose(gradients[number], gradient, atol=1e-14)
