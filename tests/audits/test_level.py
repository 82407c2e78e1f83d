"""Levels: names, order, what they do to answers."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.audits import Level, OwnPrecision, Published
from unweave.audits.level import checked_levels
from unweave.search.journal import Stage

ROWS = np.random.default_rng(1000).standard_normal((4000, 4))


@pytest.mark.parametrize(
    ("level", "label", "rounded"),
    [
        (Level(), "as it is", False),
        (Level(decimals=1), "1 decimal", True),
        (Level(decimals=3), "3 decimals", True),
        (Level(noise=0.01), "noise 0.01", False),
        (Level(2, 1e-3), "noise 0.001, 2 decimals", False),
    ],
)
def test_labels(level, label, rounded):
    assert (level.label, level.is_rounded) == (label, rounded)


def test_levels_go_from_fine_to_coarse_each_once():
    levels = checked_levels([2, 4, 2], (0.1, 0.01))
    assert [level.label for level in levels] == [
        "as it is",
        "4 decimals",
        "2 decimals",
        "noise 0.01",
        "noise 0.1",
    ]


@pytest.mark.parametrize("decimals", [[-1], [13], [2.5], ["many"], 3, [True]])
def test_bad_decimals_are_refused(decimals):
    with pytest.raises(unweave.InvalidInput, match="decimals must be whole numbers from 0 to 12"):
        checked_levels(decimals, ())


@pytest.mark.parametrize("noise", [[0.0], [-1.0], [np.inf], ["loud"], 0.1])
def test_bad_noise_is_refused(noise):
    with pytest.raises(unweave.InvalidInput, match="noise must be positive"):
        checked_levels([3], noise)


def test_rounding_repeats_itself(planted):
    answers = Published(planted, Level(decimals=2), 0)
    np.testing.assert_array_equal(answers(ROWS), np.round(planted(ROWS), 2))
    np.testing.assert_array_equal(answers(ROWS), answers(ROWS))


def test_noise_is_fresh_for_every_answer(planted):
    answers = Published(planted, Level(noise=0.1), 1000)
    first, second = answers(ROWS) - planted(ROWS), answers(ROWS) - planted(ROWS)
    # A standard deviation of 4000 numbers is known to 1/sqrt(8000); five of these.
    assert np.std(first) == pytest.approx(0.1, rel=5 / np.sqrt(2 * len(ROWS)))
    assert abs(np.mean(first * second)) < 5 * 0.01 / np.sqrt(len(ROWS))
    np.testing.assert_array_equal(Published(planted, Level(noise=0.1), 1000)(ROWS) - planted(ROWS), first)


def test_own_error_comes_first(planted):
    single = Published(planted, Level(), 0, OwnPrecision("float32", 1e-7))(ROWS)
    np.testing.assert_array_equal(single, single.astype(np.float32))
    assert 0 < np.abs(single - planted(ROWS)).max() < 1e-5
    np.testing.assert_array_equal(
        Published(planted, Level(decimals=4), 0, OwnPrecision("rounded", 1e-2 / np.sqrt(12)))(ROWS),
        np.round(planted(ROWS), 2),
    )
    noisy = Published(planted, Level(), 0, OwnPrecision("noisy", 0.1))(ROWS)
    assert np.std(noisy - planted(ROWS)) == pytest.approx(0.1, rel=5 / np.sqrt(2 * len(ROWS)))


def test_own_precision_is_read_from_the_stages():
    look = Stage("look", 0.1, 200, {"noise": "noisy", "sigma": 0.008, "outputs": 1})
    better = Stage("noise", 0.1, 400, {"sigma": 0.01})
    assert OwnPrecision.of((look, better)) == OwnPrecision("noisy", 0.01)
    rounded = Stage("look", 0.1, 200, {"noise": "rounded", "sigma": 1e-3 / np.sqrt(12), "outputs": 1})
    assert OwnPrecision.of((rounded,)).decimals == 3
    assert OwnPrecision.of(()) == OwnPrecision()
