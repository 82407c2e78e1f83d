"""Points of the curve are recoveries, within their budgets, and follow the laws they should."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import unweave
from unweave.audits import Level, OwnPrecision, Published, StandIn, attack
from unweave.audits.attack import FIRST_ROWS, Plan
from unweave.audits.curve import LeakageCurve, Point
from unweave.errors import BudgetExhausted

BUDGETS = (300, 3_000, 10_000)
LEVELS = (Level(), Level(decimals=3), Level(decimals=2), Level(noise=1e-2))
ROWS = np.random.default_rng(1000).standard_normal((200, 4))


def points_of(audited, level, **wanted):
    mine = [point for point in audited.points if point.level == level]
    return [point for point in mine if all(getattr(point, name) == value for name, value in wanted.items())]


def test_every_level_has_every_budget(audited):
    assert audited.is_complete
    assert audited.levels == LEVELS
    for level in LEVELS:
        assert {point.budget for point in points_of(audited, level)} >= set(BUDGETS)
    assert all(point.queries <= point.budget for point in audited.points)


def test_direct_attack_is_exact(audited):
    for budget in (300, 3_000):
        point = audited.best(Level(), budget)
        assert (point.way, point.status) == ("direct", "RECOVERED")
        assert point.parameter_error < 1e-10


@pytest.mark.parametrize("decimals", [3, 2])
def test_bisection_is_exact_whatever_the_decimals(audited, decimals):
    level = Level(decimals=decimals)
    [exact] = points_of(audited, level, way="bisection")
    assert exact.budget == 10_000
    assert exact.parameter_error < 1e-12
    assert exact.share_alike == 1
    assert audited.summary(level).exact_after == exact.queries


def test_averaging_uses_its_budget_up(audited):
    for level in LEVELS[1:]:
        [point] = points_of(audited, level, way="averaging", budget=10_000)
        # Six rows that are to be rounded to zero are not needed where averaging has met zeros.
        assert 9_998 - 6 <= point.queries <= 10_000
        assert point.status == "RECOVERED"


def test_averaging_follows_the_noise(audited):
    """Errors of one level and another differ like their standard deviations: same rows, other noise."""
    errors = {
        level: points_of(audited, level, way="averaging", budget=10_000)[0].median_weight_error
        for level in LEVELS[1:]
    }
    # The median of three neurons scatters; a factor of four is far beyond, one of ten is between levels.
    ratio = errors[Level(decimals=2)] / errors[Level(decimals=3)]
    assert 10 / 4 < ratio < 10 * 4
    ratio = errors[Level(noise=1e-2)] / errors[Level(decimals=2)]
    assert np.sqrt(12) / 4 < ratio < np.sqrt(12) * 4


def test_shared_point_is_what_a_run_of_its_own_would_be(audited):
    network, level = audited.recovery.network, Level(decimals=3)
    [shared] = points_of(audited, level, way="bisection")
    published = Published(network, level, 1001)
    alone = unweave.recover(published, seed=1001, max_queries=10_000, activation="tanh")
    assert alone.queries == shared.queries
    assert unweave.compare(network, alone.network).parameter_error == shared.parameter_error


def test_plan_predicts_what_is_sent(planted):
    stand_in = StandIn(planted, OwnPrecision(), ROWS, 1000, {"activation": "tanh"})
    level = Level(noise=1e-2)
    first = attack(stand_in, level, 100_000, averaging=FIRST_ROWS)
    plan = Plan.of(first.recovery, FIRST_ROWS)
    assert plan is not None
    assert plan.rows_within(first.recovery.queries) == round(plan.rows_per_unit * FIRST_ROWS)
    for rows in (20.0, 40.0):
        sent = attack(stand_in, level, 100_000, averaging=rows).recovery.queries
        assert sent == pytest.approx(plan.queries_for(rows * planted.n_parameters), abs=1)
    assert plan.averaging_within(plan.onset) is None


def test_predicted_alarm(planted):
    """An alarm below what the budgets reach is predicted: a tenth of the error, a hundred times the rows."""
    stand_in = StandIn(planted, OwnPrecision(), ROWS, 1000, {"activation": "tanh"})
    plan = Plan.of(attack(stand_in, Level(noise=1e-2), 10_000, averaging=FIRST_ROWS).recovery, FIRST_ROWS)
    alarm = 1e-5
    [*points, summary] = LeakageCurve(stand_in, [Level(noise=1e-2)], [10_000], alarm)
    point = max(points, key=lambda point: point.queries)
    assert summary.alarm_predicted
    rows = plan.rows_within(point.queries) * (point.median_weight_error / alarm) ** 2
    assert summary.alarm_after == pytest.approx(plan.onset - plan.already + rows, rel=1e-6)


def test_kinked_units_behind_rounding_are_attacked_as_smooth_ones_are():
    network = unweave.random_network([3, 3, 1], activation="relu", seed=1001, outer="unit")
    stand_in = StandIn(network, OwnPrecision(), np.ones((10, 3)), 1000)
    found = list(LeakageCurve(stand_in, LEVELS[1:2], [100, 10_000], 0.01))
    [few] = [point for point in found if isinstance(point, Point) and point.budget == 100]
    assert few.status == "FAILED"
    exact = [point for point in found if isinstance(point, Point) and point.way == "bisection"]
    assert [point.status for point in exact] == ["RECOVERED"]
    assert exact[0].parameter_error < 1e-10


def test_deadline_ends_it(planted):
    stand_in = StandIn(planted, OwnPrecision(), ROWS, 1000, {"activation": "tanh"})
    with pytest.raises(BudgetExhausted):
        list(LeakageCurve(stand_in, LEVELS, BUDGETS, 0.01, deadline=0.0))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, BudgetExhausted])
def test_what_is_done_is_kept(planted, monkeypatch, kind):
    module, calls = sys.modules["unweave.audits.curve"], []

    def cut_short(*given, **named):
        calls.append(given)
        if len(calls) > 3:
            raise KeyboardInterrupt if kind is KeyboardInterrupt else BudgetExhausted("over", "deadline")
        return attack(*given, **named)

    monkeypatch.setattr(module, "attack", cut_short)
    found = unweave.audit(planted, decimals=[3], budgets=[300, 1_000], seed=1000, activation="tanh")
    assert found.interrupted == (kind is KeyboardInterrupt)
    assert not found.is_complete
    assert [point.level for point in found.points][:2] == [Level(), Level()]
    assert any("the missing attacks were not run" in note for note in found.notes)
    assert found.recommendation.startswith("Repeat the audit")
    assert found.headline.startswith("INTERRUPTED, so far LEAKS") == found.interrupted
    assert found.to_html().count("<table") >= 2
