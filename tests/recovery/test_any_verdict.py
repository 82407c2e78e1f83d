"""What holds of every verdict: one thing that speaks against a network is enough, whatever else is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import unweave
from searches import looked
from unweave import Status
from unweave.probing.findings import Findings
from unweave.recovery.certificate import certify
from unweave.recovery.hearing import Hearing
from unweave.recovery.judge import judge
from unweave.recovery.residuals import Pattern
from unweave.recovery.trial import Trial
from unweave.search import Candidate, Evidence

NETWORK = unweave.random_network([3, 2, 1], seed=1000, outer="signed")
FINDINGS = looked(NETWORK).findings
NOISY = replace(FINDINGS, noise=replace(FINDINGS.noise, kind="noisy", sigma=1e-3, repeatable=False))
CANDIDATE = Candidate(NETWORK, Evidence(fit_history=(1.0, 1e-15), fit_floor=1e-15))
HEARING = Hearing(
    heard=300,
    contradicting=0,
    worst=0.0,
    farthest=3.0,
    asked_again=8,
    change=0.0,
    largest_change=1e-13,
    pattern=Pattern(growth=1.0, correlation=0.0, rows=300),
)
TRIAL = Trial("fresh", rows=100, error=1e-14, threshold=1e-13, hearing=HEARING)
Said = tuple[Candidate, Trial]


def of_search(**said: object) -> Callable[[Candidate, Trial], Said]:
    return lambda candidate, trial: (replace(candidate, **said), trial)


def of_trial(**seen: object) -> Callable[[Candidate, Trial], Said]:
    return lambda candidate, trial: (candidate, replace(trial, **seen))


def of_hearing(**heard: object) -> Callable[[Candidate, Trial], Said]:
    def told(candidate: Candidate, trial: Trial) -> Said:
        assert trial.hearing is not None
        return candidate, replace(trial, hearing=replace(trial.hearing, **heard))

    return told


AGAINST = {
    "a problem": of_search(problem="the budget ended"),
    "an objection": of_search(objection="mish units explain the answers as well"),
    "a fit that has not settled": of_search(evidence=Evidence(fit_history=(1.0, 0.5), fit_floor=1e-15)),
    "no rows": of_trial(rows=0, error=np.nan, threshold=np.nan),
    "an error": of_trial(error=1e-3),
    "no number": of_trial(error=np.nan),
    "an error as large as the answers": of_trial(threshold=10.0, error=2.0, share=2.0),
    "errors below those of repeats": of_trial(over_noise=1e-3),
    "an answer given before": of_hearing(contradicting=1, worst=0.1),
    "another answer at the end": of_hearing(change=1e-3),
    "errors that grow": of_hearing(pattern=Pattern(growth=3.0, correlation=0.0, rows=300)),
    "neighbours that err alike": of_hearing(pattern=Pattern(growth=1.0, correlation=20.0, rows=300)),
}
ONLY_BEHIND_NOISE = {"errors below those of repeats"}
EXCUSED_BY_A_TOLERANCE = {"a problem", "a fit that has not settled"}
KINDS = pytest.mark.parametrize("findings", [FINDINGS, NOISY], ids=["float64", "noisy"])


@KINDS
def test_where_nothing_speaks_against_it_a_network_is_recovered(findings: Findings) -> None:
    verdict = judge(CANDIDATE, TRIAL, findings)
    assert verdict.status is Status.RECOVERED, verdict.reason
    assert certify(CANDIDATE, verdict, findings).holds


@KINDS
@pytest.mark.parametrize("told_tolerance", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_nothing_that_speaks_against_a_network_is_overruled(
    findings: Findings, told_tolerance: bool, count: int
) -> None:
    for names in combinations(AGAINST, count):
        candidate, trial = CANDIDATE, TRIAL
        for name in names:
            candidate, trial = AGAINST[name](candidate, trial)
        weighty = set(names) - (ONLY_BEHIND_NOISE if findings is FINDINGS else set())
        weighty -= EXCUSED_BY_A_TOLERANCE if told_tolerance else set()
        verdict = judge(candidate, trial, findings, told_tolerance=told_tolerance)
        assert verdict.status.is_recovered == (not weighty), (names, verdict.reason)
        assert certify(candidate, verdict, findings).holds == verdict.status.is_recovered, names


def test_weak_units_excuse_a_residual_only_where_they_are_named() -> None:
    left = Evidence(fit_history=(1.0, 1e-10), fit_floor=1e-15, weak_units=1e-9)
    named = replace(CANDIDATE, evidence=left, ambiguity="weak units are not told apart")
    verdict = judge(named, TRIAL, FINDINGS)
    assert verdict.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert certify(named, verdict, FINDINGS).holds
    for refused in (
        replace(named, ambiguity=None),
        replace(named, evidence=replace(left, fit_history=(1.0, 1e-8))),
        replace(named, evidence=replace(left, weak_units=0.0)),
    ):
        assert judge(refused, TRIAL, FINDINGS).status is Status.APPROXIMATE


@KINDS
def test_what_failed_has_no_certificate_that_holds(findings: Findings) -> None:
    for candidate, trial in (
        (Candidate(), None),
        (Candidate(problem="the deadline passed"), None),
        AGAINST["an error as large as the answers"](CANDIDATE, TRIAL),
    ):
        verdict = judge(candidate, trial, findings)
        assert verdict.status is Status.FAILED
        assert not certify(candidate, verdict, findings).holds
    assert not certify(Candidate(), None, findings).holds


def test_an_ambiguity_is_never_left_out() -> None:
    named = replace(CANDIDATE, ambiguity="only the quadratic form is determined")
    verdict = judge(named, TRIAL, FINDINGS)
    assert verdict.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert certify(named, verdict, FINDINGS).holds
