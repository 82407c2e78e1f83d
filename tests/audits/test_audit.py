"""The audit as a whole: what it costs, what it refuses, what it says where nothing was recovered."""

from __future__ import annotations

import json

import numpy as np
import pytest

import unweave
from unweave.audits import Level
from unweave.audits.run import default_budgets


def riddle(x):
    """No network of any class that is recovered; in more inputs than random starts are tried in."""
    return np.sin(3 * x[:, 0]) * np.cos(x[:, 1]) + np.abs(x[:, 2])


def test_costs_one_recovery_and_nothing_more(planted, recorder):
    target = recorder(planted)
    found = unweave.audit(target, decimals=[], noise=[0.5], budgets=[1_000], seed=1000, input_dim=4)
    alone = unweave.recover(planted, seed=1000)
    assert found.target_queries == found.recovery.queries == alone.queries == len(target.rows)
    assert found.check.rows == len(target.rows)
    assert found.check.agrees
    assert len(found.points) >= 2


def test_same_seed_same_points(planted, audited):
    again = unweave.audit(planted, decimals=[3], budgets=[10_000], seed=1000)
    before = [repr(point) for point in audited.points]  # in words, because nan is not nan
    assert len(again.points) == 4
    assert all(repr(point) in before or point.level == Level() for point in again.points)


def test_plain_values(audited):
    content = json.loads(json.dumps(audited.to_dict(), allow_nan=False))
    assert content["target_queries"] == content["recovery_queries"] == audited.recovery.queries
    assert len(content["points"]) == len(audited.points)
    assert content["check"]["agrees"] is True
    assert content["complete"] is True


def test_checkpoint_makes_it_free(planted, tmp_path):
    first = unweave.audit(
        planted, decimals=[], budgets=[1_000], seed=1000, checkpoint=tmp_path / "run.sqlite"
    )
    again = unweave.audit(
        planted, decimals=[], budgets=[1_000], seed=1000, checkpoint=tmp_path / "run.sqlite"
    )
    assert (first.target_queries > 0, again.target_queries) == (True, 0)
    assert again.check == first.check
    assert repr(again.points) == repr(first.points)


def test_target_that_rounds_itself(planted):
    found = unweave.audit(lambda x: np.round(planted(x), 3), [4], budgets=[10_000], seed=1000, input_dim=4)
    assert found.own.decimals == 3
    assert any("gives 3 decimals" in note for note in found.notes)
    assert unweave.compare(planted, found.recovery.network).parameter_error < 1e-10
    best = found.best(found.levels[0], 10_000)
    assert (best.way, best.share_alike) == ("bisection", 1)


def test_not_recovered_is_said_plainly():
    found = unweave.audit(riddle, decimals=[3], seed=1000, input_dim=6)
    assert found.points == ()
    assert found.verdict.startswith("Not shown: this program did not recover the target within")
    assert found.target_queries == found.recovery.queries
    assert any("There is no leakage curve" in line for line in found.recommendations)
    assert any("no sign of safety" in line for line in found.recommendations)
    json.dumps(found.to_dict(), allow_nan=False)


def test_network_that_is_only_close_does_not_stand_in(planted):
    """A tolerance of the target's own: what was found is approximate, and only compared with the log."""
    found = unweave.audit(
        lambda x: planted(x) + 1e-3 * np.sin(40 * x[:, :1]),
        [2],
        seed=1000,
        input_dim=4,
        hidden=[3],
        activation="tanh",
    )
    assert found.recovery.status is not unweave.Status.RECOVERED
    assert found.points == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budgets": []}, "budgets must be whole numbers"),
        ({"budgets": [0]}, "budgets must be whole numbers"),
        ({"budgets": [10.5]}, "budgets must be whole numbers"),
        ({"budgets": ["many"]}, "budgets must be whole numbers"),
        ({"alarm": 0}, "alarm must be between 0 and 1"),
        ({"decimals": [99]}, "decimals must be whole numbers"),
    ],
)
def test_bad_arguments_cost_nothing(planted, recorder, arguments, message):
    target = recorder(planted)
    with pytest.raises(unweave.InvalidInput, match=message):
        unweave.audit(target, input_dim=4, **arguments)
    assert target.rows.size == 0


def test_default_budgets_start_at_the_parameters():
    assert default_budgets(641) == (1_000, 10_000, 100_000)
    assert default_budgets(3) == (100, 1_000, 10_000)
    assert default_budgets(1_000) == (1_000, 10_000, 100_000)
