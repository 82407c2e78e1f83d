"""What kinks say about the unit behind them."""

from __future__ import annotations

import numpy as np

from planted_layers import assert_is_unit, first_layer, planted, probe_of, surface_kinks
from unweave.methods.shared.surfaces.flatness import Flatness, FlatnessOptions
from unweave.methods.shared.surfaces.probe import Kink
from unweave.methods.shared.surfaces.surface import Surface


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


def test_flat_pieces_are_told_from_bent_ones() -> None:
    network = planted([8, 6, 5, 1], 1008)
    flatness, kinks = (
        Flatness(probe_of(network), np.random.default_rng(17), FlatnessOptions()),
        surface_kinks(network, 2, 6, 18),
    )
    known = first_layer(network, signed=True)
    assert all(flatness.is_flat(known, kink) for kink in kinks)
    assert flatness.are_flat(known, kinks).all()
    # Without the first layer's units the same surface bends for no reason that is known.
    nothing = first_layer(planted([8, 1, 1, 1], 1009), signed=True)
    assert not flatness.are_flat(nothing, kinks).all()
