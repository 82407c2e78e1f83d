"""Words follow from points."""

from __future__ import annotations

import math

import pytest

import unweave
from unweave.audits import Level
from unweave.audits.advice import about, advise, fewest_answers, listed, percent
from unweave.audits.curve import LevelSummary, Point


def point(level, budget, error, way="averaging"):
    status = "FAILED" if math.isnan(error) else "RECOVERED"
    return Point(level, budget, way, status, budget, error, error, error, error, 1.0, None, "")


def words(audited, levels, points, summaries=()):
    verdict, lines, defences, _ = advise(
        audited.recovery, audited.own, audited.check, levels, (10, 100), points, summaries, 0.01
    )
    return verdict, " ".join(lines), defences


def test_fine_level_leaks_and_coarse_one_holds(audited):
    fine, coarse, coarser = Level(decimals=4), Level(decimals=2), Level(noise=0.5)
    points = [
        point(fine, 10, math.nan),
        point(coarse, 10, math.nan),
        point(coarser, 10, math.nan),
        point(fine, 100, 0.002),
        point(coarse, 100, 0.2),
        point(coarser, 100, 0.3),
    ]
    verdict, text, _ = words(audited, [fine, coarse, coarser], points)
    assert verdict.startswith("Yes: all parameters of this 4-3-1 network with 19 parameters")
    assert "With 10 queries per client, no attack came to 1 % at any level" in text
    assert (
        "With 100 queries per client, 2 decimals and noise 0.5 held; the rest gives the weights to 1 %"
        in text
    )
    assert "not proven safe" in text


def test_finer_than_a_leak_is_a_leak(audited):
    """Whoever gets four decimals can throw two away, even if our attack on four was unlucky."""
    fine, coarse = Level(decimals=4), Level(decimals=2)
    _, text, _ = words(audited, [fine, coarse], [point(fine, 100, math.nan), point(coarse, 100, 1e-3)])
    assert "With 100 queries per client, every level gives the weights to 1 % or better" in text


def test_everything_leaks(audited):
    _, text, _ = words(audited, [Level(decimals=2)], [point(Level(decimals=2), 100, 1e-3)])
    assert "every level gives the weights to 1 % or better: allow fewer" in text


def test_level_in_words(audited):
    level = Level(decimals=3)
    summary = LevelSummary(level, 50, 90, 2e-15, 50, False, 1000, "")
    points = [point(level, 50, 0.003), point(level, 100, 1e-15, "bisection")]
    _, text, defences = words(audited, [level], points, [summary])
    assert (
        "At 3 decimals, 50 queries give the weights to 0.3 % and 90 give them to 2e-15, by bisection." in text
    )
    assert any("Here 90 queries were enough at 3 decimals" in defence.worth for defence in defences)


def test_level_without_network_says_why(audited):
    level = Level(decimals=0)
    summary = LevelSummary(level, None, None, math.nan, None, False, 1000, "mostly noise")
    _, text, _ = words(audited, [level], [point(level, 100, math.nan)], [summary])
    assert "At 0 decimals, 1,000 queries gave no network (mostly noise)." in text


def test_copy_with_other_weights(audited):
    level = Level(decimals=3)
    summary = LevelSummary(level, 50, None, math.nan, None, False, 1000, "")
    _, text, _ = words(audited, [level], [point(level, 100, 1.0)], [summary])
    assert "100 queries give a network that answers alike to 100 %, but with other weights" in text


def test_no_attack_with_fewer_equations_than_unknowns():
    tanh = unweave.random_network([5, 4, 2], activation="tanh", seed=1000)
    assert fewest_answers(tanh) == math.ceil((4 * 6 + 5 * 2) / 2)
    relu = unweave.random_network([5, 4, 1], activation="relu", seed=1000)
    assert fewest_answers(relu) == 4 * 6 + 5 - 4
    softmax = unweave.Network(tanh.weights, tanh.biases, ["tanh", "softmax"])
    assert fewest_answers(softmax) == 4 * 6 + 5  # two classes are one sigmoid output


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (math.nan, "no network"),
        (1.0, "100 %"),
        (0.31, "31 %"),
        (0.012, "1.2 %"),
        (1e-4, "0.01 %"),
        (3.2e-6, "3e-6"),
    ],
)
def test_percent(share, text):
    assert percent(share) == text


def test_counts_and_lists():
    assert (about(123_456), about(98), about(100)) == ("120,000", "98", "100")
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert (listed(["a"]), listed([])) == ("a", "")
