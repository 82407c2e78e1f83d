"""Rounded answers, read between flips, are those before rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planted_pairs import planted_pair
from unweave.arrays import Array
from unweave.methods.shared.coarse_answers.sharpened import SharpenedOptions, SharpenedQueries
from unweave.probing.noise import Noise
from unweave.targets.region import NormalisedQueries, Region
from unweave.targets.target import as_queries

GRID = 1e-4
NET = planted_pair([5, 8, 8, 2], seed=1001)


def sharpened(target: Callable[[Array], Array], outputs: int, bits: int) -> SharpenedQueries:
    view = NormalisedQueries(as_queries(lambda x: np.round(target(x), 4), 5), Region.standard(5))
    sigma = GRID / np.sqrt(12)
    noise = Noise("rounded", sigma, np.full(outputs, sigma), 4, 1.0, sigma, True)
    options = SharpenedOptions(bits=bits)
    return SharpenedQueries(view, noise, np.ones(outputs), np.random.default_rng(1000), options)


def test_every_output_is_read_to_the_number_of_bits() -> None:
    points = np.random.default_rng(1001).standard_normal((200, 5))
    for bits, error in ((14, 5 * GRID * 2.0**-14), (36, 1e-13)):
        read = sharpened(NET, 2, bits)(points)
        assert np.isfinite(read).mean() > 0.95
        assert np.nanmax(np.abs(read - NET(points))) < error


def test_points_on_a_kink_are_read_as_well() -> None:
    points = np.random.default_rng(1002).standard_normal((200, 5))
    weight, bias = NET.weights[0][:, 0], NET.biases[0][0]
    points -= np.outer((points @ weight + bias) / (weight @ weight), weight)
    read = sharpened(NET, 2, 36)(points)
    assert np.isfinite(read).mean() > 0.95
    assert np.nanquantile(np.abs(read - NET(points)), 0.98) < 1e-12


def test_where_answers_do_not_move_nothing_is_read() -> None:
    points = np.ones((3, 5))
    read = sharpened(lambda x: np.maximum(x[:, :1] - 5.00003, 0.0) + 0.12341, 1, 14)(points)
    assert np.isnan(read).all()
