"""Words follow from points: every number is one that was measured, every claim of order or cause holds."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from planted_attacks import ALARM, BUDGETS, LEVELS, point, random_points, summary

import unweave
from unweave.audits import Level
from unweave.audits.advice import Advice, advise, fewest_answers
from unweave.audits.curve import best_point, distinct
from unweave.audits.findings import findings, leaks
from unweave.audits.trace import TraceFigures
from unweave.recovery.wording import about, counted, listed, percent

CASES = range(40)


def said(audited, points, levels=LEVELS, budgets=BUDGETS) -> Advice:
    summaries = [summary(level, points) for level in levels]
    return advise(
        audited.recovery, audited.own, audited.check, levels, budgets, points, summaries, ALARM, False
    )


def took(points, level, budget):
    """What a client may take: with at most its queries, at its level or, throwing digits away, a coarser."""
    mine = [p for p in points if p.level == level or p.level.sigma > level.sigma]
    found = {p.leak(ALARM) for p in mine if p.queries <= budget}
    return next((leak for leak in ("weights", "function") if leak in found), "nothing")


@pytest.mark.parametrize("seed", CASES)
def test_best_attack_takes_what_any_attack_takes(seed):
    points = random_points(seed)
    for level in LEVELS:
        for budget in BUDGETS:
            best = best_point(points, level, budget, ALARM)
            assert best.leak(ALARM) == took(points, level, budget)
            assert best.queries <= budget
        taken = [took(points, level, budget) for budget in BUDGETS]
        order = ["nothing", "function", "weights"]
        assert taken == sorted(taken, key=order.index)  # more queries never take less


@pytest.mark.parametrize("seed", CASES)
def test_what_is_said_of_a_level_was_measured_and_improves(audited, seed):
    points = random_points(seed)
    advice = said(audited, points)
    for level, line in zip(LEVELS[1:], advice.details, strict=False):
        mine = [p for p in points if p.level == level and p.has_network]
        place = f"With {level.label}, " if level.noise else f"At {level.label}, "
        assert line.startswith(place)
        told = line.removeprefix(place)
        if not mine:
            assert told == f"{10 * BUDGETS[-1]:,} queries gave no network (too coarse)."
            continue
        runs = re.findall(
            r"([\d,]+) (?:queries )?give (?:the weights|them) to (\d[\d.]*(?<!\.)(?:e-\d+)?(?: %)?)( by)?",
            told,
        )
        if runs:
            counts = [int(count.replace(",", "")) for count, _, _ in runs]
            assert counts == sorted(counts)
            assert len(counts) == len(set(counts))
            known = []
            for count, (_, error, by) in zip(counts, runs, strict=True):
                [match] = [
                    p for p in mine if p.queries == count and percent(p.median_weight_error) == error
                ] or [None]
                assert match is not None, told
                assert bool(by) == (match.way == "bisection")
                known.append(match.median_weight_error)
            assert all(after <= before / 2 for before, after in pairwise([1.0, *known]))
            assert min(known) <= 2 * min(p.median_weight_error for p in mine)
        else:
            assert all(p.leak(ALARM) != "weights" for p in mine)
            count = int(re.search(r"[\d,]+", told).group().replace(",", ""))
            [match] = [p for p in mine if p.queries == count and percent(p.share_alike) in told]
            assert f"errs by at most {percent(match.fresh_error)}" in told
            assert ("copy the function" in told) == (match.leak(ALARM) == "function")


@pytest.mark.parametrize("seed", CASES)
def test_what_is_said_of_a_budget_holds(audited, seed):
    points = random_points(seed)
    names = {level.label if level != Level() else "the answers as they are": level for level in LEVELS}
    for budget in BUDGETS:
        [line] = [text for text in said(audited, points).details if text.startswith(f"Within {budget:,} q")]
        gave = {level for level in LEVELS if took(points, level, budget) != "nothing"}
        if "every level gave" in line:
            assert gave == set(LEVELS)
            continue
        if "every level held" in line:
            assert not gave
            continue
        held, leaking = line.removesuffix(" did not.").partition("queries, ")[2].split(" held; ")
        assert {names[name] for name in re.split(r", | and ", leaking)} == gave
        if "everything coarser" in held:
            finest = names[held.removesuffix(" and everything coarser")]
            assert {level for level in LEVELS if level.sigma >= finest.sigma} == set(LEVELS) - gave
        else:
            assert {names[name] for name in re.split(r", | and ", held)} == set(LEVELS) - gave


@pytest.mark.parametrize("seed", CASES)
def test_the_recommendation_is_one_sentence_and_held(audited, seed):
    points = random_points(seed)
    text = said(audited, points).recommendation
    assert text.count(". ") == 0
    assert text.endswith(".")
    held = {(level, b) for level in LEVELS for b in BUDGETS if took(points, level, b) == "nothing"}
    if not held:
        assert text.startswith("Allow each client fewer than 19 queries over its lifetime: every level")
        assert text.endswith(f"within {BUDGETS[0]:,} queries.")
        return
    budget = int(re.search(r"at most ([\d,]+) queries", text).group(1).replace(",", ""))
    assert budget == max(b for _, b in held)
    finest = min((level for level, b in held if b == budget), key=lambda level: level.sigma)
    begin = "Allow" if finest == Level() else f"Round the answers to {finest.label}"
    begin = "Add fresh noise of standard deviation 0.1" if finest.noise else begin
    assert text.startswith(begin)


@pytest.mark.parametrize("seed", CASES)
def test_findings_say_what_the_points_show(seed):
    points = random_points(seed)
    limits, precision, patterns = findings(LEVELS, BUDGETS, points, ALARM, TraceFigures(2_300, 20, 0.4, 0.05))
    assert limits.holds == all(took(points, Level(), budget) == "nothing" for budget in BUDGETS)
    if not limits.holds:
        cheapest = min(p.queries for p in points if p.leak(ALARM) != "nothing")
        assert f"succeeded with {cheapest:,} queries" in limits.result
        held = [budget for budget in BUDGETS if took(points, Level(), budget) == "nothing"]
        assert (f"A limit of {max(held):,} queries" in limits.result) if held else "too many" in limits.result
    held = [lv.label for lv in LEVELS[1:] if took(points, lv, BUDGETS[-1]) == "nothing"]
    assert precision.holds == bool(held)
    assert f"Within {BUDGETS[-1]:,} queries, " in precision.result
    assert listed(held) in precision.result
    assert patterns.holds is None
    assert "2,300 rows in 20 requests: 40 % of the rows" in patterns.result


def test_controls_are_named_as_their_standards_name_them():
    told = findings(LEVELS, BUDGETS, random_points(0), ALARM, TraceFigures(1, 1, 0, 0))
    controls = {name for finding in told for name in finding.controls}
    assert {name.split(" (")[0] for name in controls if "OWASP" in name} == {
        "OWASP AISVS 11.2.2",
        "OWASP AISVS 11.3.1",
        "OWASP AISVS 11.3.2",
    }
    assert {name for name in controls if "ATLAS" in name} == {
        "MITRE ATLAS AML.M0004 Restrict Number of AI Model Queries",
        "MITRE ATLAS AML.M0024 AI Telemetry Logging",
        "MITRE ATLAS AML.M0002 Passive AI Output Obfuscation",
    }


def test_a_copy_without_the_weights_is_no_level_that_held(audited):
    level = Level(decimals=2)
    copied = point(level, 100, 0.4, alike=0.98, fresh=0.05)
    advice = said(audited, [copied], [level], [100])
    assert "Within 100 queries, every level gave away the weights or the function." in advice.details
    assert (
        "At 2 decimals, 100 queries copy the function without the weights: it answers 98 %"
        in advice.details[0]
    )
    assert leaks([level], 100, [copied], ALARM) == {level: "function"}


def test_the_same_attack_is_told_once():
    level = Level(decimals=2)
    twice = [point(level, 100, 0.004, queries=70), point(level, 1_000, 0.004, queries=75)]
    failed = [point(level, 10, math.nan, queries=9), point(level, 50, math.nan, queries=9)]
    assert distinct([*failed, *twice]) == [*failed, twice[0]]


def test_the_verdict_has_the_numbers_of_the_recovery(audited):
    verdict = audited.verdict
    recovery = audited.recovery
    assert verdict.startswith(
        f"Yes: {recovery.queries:,} queries gave away all weights of this 4-3-1 network"
    )
    assert f"({recovery.network.n_parameters} parameters)" in verdict
    assert verdict.endswith(f"fresh answers agree to {percent(recovery.error)}.")


def test_an_incomplete_audit_recommends_to_finish_it(audited):
    points = random_points(3)
    advice = advise(audited.recovery, audited.own, audited.check, LEVELS, BUDGETS, points, [], ALARM)
    assert advice.recommendation.startswith("Repeat the audit and let it finish")


def test_an_interrupted_recovery_is_not_called_a_failed_one(audited):
    stopped = replace(audited.recovery, network=None, status=unweave.Status.FAILED, queries=1_234)
    advice = advise(stopped, audited.own, None, LEVELS, (), [], [], ALARM, interrupted=True)
    assert advice.verdict == (
        "Not decided: the audit was interrupted during the recovery of the target, after 1,234 queries."
    )
    assert advice.recommendation == "Repeat the audit and let it finish."


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
        (0.0, "0 %"),
    ],
)
def test_percent(share, text):
    assert percent(share) == text


def test_counts_and_lists():
    assert (about(123_456), about(98), about(100)) == ("120,000", "98", "100")
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert (listed(["a"]), listed([])) == ("a", "")
    assert (counted(1, "query", "queries"), counted(2_000, "row")) == ("1 query", "2,000 rows")
