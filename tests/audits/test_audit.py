"""The audit as a whole: what it costs, what it refuses, what it says where nothing was recovered."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import unweave
from unweave.audits import Level, Trace
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
    again = unweave.audit(planted, decimals=[3], budgets=[10_000], seed=1000, activation="tanh")
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
    found = unweave.audit(
        lambda x: np.round(planted(x), 3),
        [4],
        budgets=[10_000],
        seed=1000,
        input_dim=4,
        activation="tanh",
    )
    assert found.own.decimals == 3
    assert any("gives 3 decimals" in note for note in found.notes)
    assert unweave.compare(planted, found.recovery.network).parameter_error < 1e-10
    best = found.best(found.levels[0], 10_000)
    assert (best.way, best.share_alike) == ("bisection", 1)


def test_not_recovered_is_said_plainly():
    found = unweave.audit(riddle, decimals=[3], seed=1000, input_dim=6, activation="tanh")
    assert found.points == ()
    assert found.verdict.startswith("Not shown: this program did not recover the target within")
    assert found.target_queries == found.recovery.queries
    assert any("There is no leakage curve" in line for line in found.details)
    assert any("no sign of safety" in line for line in found.details)
    assert found.headline == "NOT RECOVERED"
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


def test_says_what_was_audited_when_and_how(audited):
    settings = audited.settings
    assert settings["target"] == {"kind": "object", "name": "unweave.networks.network:Network"}
    assert settings["arguments"]["seed"] == 1000
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", settings["date"])
    assert audited.to_dict()["settings"] == settings


def test_ctrl_c_during_the_recovery_keeps_what_was_found(planted):
    asked = []

    def interrupted(x):
        asked.append(len(x))
        if sum(asked) > 300:
            raise KeyboardInterrupt
        return planted(x)

    found = unweave.audit(interrupted, decimals=[3], seed=1000, input_dim=4)
    assert found.interrupted
    assert found.points == ()
    assert found.verdict.startswith("Not decided: the audit was interrupted during the recovery")
    assert found.headline == "INTERRUPTED before any attack ended"
    assert "NOT RECOVERED" not in found.to_html()
    assert 0 < found.trace_figures.rows <= found.target_queries  # those that were answered


def test_trace_has_every_row_in_order(audited, planted, recorder, tmp_path):
    target = recorder(planted)
    unweave.recover(target, seed=1000, input_dim=4, activation="tanh")
    audited.save_trace(tmp_path / "trace.jsonl")
    records = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    np.testing.assert_array_equal([record["inputs"] for record in records], target.rows)
    np.testing.assert_array_equal([record["answers"] for record in records], planted(target.rows))
    times, requests = ([record[name] for record in records] for name in ("time", "request"))
    assert times == sorted(times)
    assert (times[0], requests[0]) == (0, 1)
    assert requests == sorted(requests)
    audited.save_trace(tmp_path / "trace.csv")
    lines = (tmp_path / "trace.csv").read_text().splitlines()
    assert lines[0] == "time,request,x1,x2,x3,x4,y1"
    np.testing.assert_array_equal(np.loadtxt(lines[1:], delimiter=",")[:, 2:6], target.rows)
    with pytest.raises(unweave.InvalidInput, match=r"must end in \.jsonl or \.csv"):
        audited.save_trace(tmp_path / "trace.txt")


def test_figures_of_a_trace():
    near, far = np.array([[1.0, 0.0], [1.0, 0.005]]), np.array([[0.0, 1.0], [9.0, 0.0], [0.5, 0.5]])
    trace = Trace(lambda: iter([(near, near[:, :1]), (far, far[:, :1])]))
    figures = trace.figures()
    assert (figures.rows, figures.requests) == (5, 2)
    assert figures.close_share == pytest.approx(1 / 5)
    assert figures.far_share == pytest.approx(1 / 5)
    assert next(trace.records())["time"] is None
    assert Trace(lambda: iter([])).figures().rows == 0


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
