"""The judge: the only place that may say RECOVERED.

It hears a trial on rows that nothing was fitted to, the answers given before, and what the search itself says
against its candidate. Every ground of its verdict is a check that decides; a network counts as recovered if
and only if all of them hold, and the certificate lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from unweave.probing.findings import Findings
from unweave.recovery.residuals import LARGEST_CORRELATION, LARGEST_GROWTH, Pattern
from unweave.recovery.result import Status
from unweave.recovery.trial import NO_TRIAL, Trial
from unweave.search import Candidate, Check

UNDETERMINED_NOISY = 0.1
"""Standard error, in normalised inputs, above which noisy answers do not determine a parameter."""
UNDETERMINED = 1e-3
"""The same for float32 answers."""
UNDETERMINED_FLOAT64 = 1e-5
"""The same for float64 answers, of which more can be asked."""
NOTHING_HELD_OUT = "no sample could be held out, so that nothing verifies the fit"
_LEAST_OVER_NOISE = 0.1  # root mean square error over the noise: a network is no better than its answers
_MOST = 0.5  # share of the rows: a network that explains them is of use, wrong as it is on others
_UNSETTLED = 300.0  # times its floor: a fit that stopped above has not come to its minimum


@dataclass(frozen=True)
class Verdict:
    """What the judge says, and on what grounds."""

    status: Status
    reason: str
    trial: Trial = NO_TRIAL
    grounds: tuple[Check, ...] = ()
    """The checks that decided."""


@dataclass(frozen=True)
class _Ground:
    """One check that decides, and what to tell if it does not hold."""

    check: Check
    against: str


def judge(
    candidate: Candidate, trial: Trial | None, findings: Findings, *, told_tolerance: bool = False
) -> Verdict:
    """Judge ``candidate`` by its ``trial``, which is None where there is no network to try.

    ``told_tolerance`` says that the user set the error that counts as recovered.
    """
    if trial is None:
        return unverified(Status.FAILED, candidate.problem or "no network was found")
    grounds = tuple(_grounds(candidate, trial, findings, told_tolerance))
    checks = tuple(replace(ground.check, decides=True) for ground in grounds)
    against = next((ground.against for ground in grounds if not ground.check.holds), None)
    if against is not None:
        return Verdict(*_refused(trial, against), trial, checks)
    ambiguity = _ambiguity(candidate, findings)
    if ambiguity is None:
        return Verdict(Status.RECOVERED, trial.agreement(), trial, checks)
    if not trial.rows:
        ambiguity += "; no sample was left to verify that the network is of this kind"
    return Verdict(Status.RECOVERED_UP_TO_AMBIGUITY, ambiguity, trial, checks)


def unverified(status: Status, reason: str) -> Verdict:
    """The verdict on what no row could be put to."""
    implies = "the network was tested on rows kept out of every fit"
    check = replace(Check.above("rows to verify", 0, 1, implies), decides=True)
    return Verdict(status, reason, grounds=(check,))


def largest_error_bar(findings: Findings) -> float:
    """Return the standard error above which answers of this precision do not determine a parameter."""
    if findings.is_noisy:
        return UNDETERMINED_NOISY
    return UNDETERMINED_FLOAT64 if findings.noise.kind == "float64" else UNDETERMINED


def _grounds(
    candidate: Candidate, trial: Trial, findings: Findings, told_tolerance: bool
) -> Iterator[_Ground]:
    """Every ground on which a network is recovered, the weightiest first."""
    told_first = candidate.objection is not None and (trial.rows or candidate.needs_no_rows)
    objections = _objections(candidate, trial, findings, told_tolerance)
    if told_first:
        yield objections
    if not candidate.needs_no_rows:
        problem = f"{candidate.problem}; " if candidate.problem else ""
        implies = "the network was tested on rows kept out of every fit"
        yield _Ground(Check.above("rows to verify", trial.rows, 1, implies), problem + NOTHING_HELD_OUT)
    if trial.rows:
        seen, whose = ("method had", "target does") if trial.kind == "fresh" else ("fit had", "samples do")
        implies = f"on {trial.rows} rows that no {seen} seen, the network answers as the {whose}"
        off = _explained(candidate, trial.disagreement())
        yield _Ground(Check.below(f"{trial.kind} error", trial.error, trial.threshold, implies), off)
        implies = "largest error relative to the spread of the answers; a larger one no precision excuses"
        yield _Ground(Check.below("error over spread", trial.share, trial.largest_share, implies), off)
    agreed, hearing = trial.agreement(), trial.hearing
    if hearing is not None:
        implies = f"none of {hearing.heard:,} answers given before contradicts the network"
        check = Check.below("contradicting answers", hearing.contradicting, 0, implies)
        yield _Ground(check, f"{agreed}, but {hearing.contradiction()}")
        implies = f"{hearing.asked_again} early rows, asked again at the end, got the same answers"
        check = Check.below("change of answers", hearing.change, hearing.largest_change, implies)
        yield _Ground(check, f"{agreed}, but the target changes: early rows asked again get other answers")
    if trial.rows and findings.noise.kind == "noisy" and not findings.noise.repeatable:
        implies = "errors are as large as repeated answers differ: the target does not remember rows"
        check = Check.above("error over noise", trial.over_noise, _LEAST_OVER_NOISE, implies)
        told = "a row that is asked again gets an answer off by more than the others err"
        yield _Ground(check, f"{agreed}, but the target remembers what it was asked: {told}")
    if hearing is not None and hearing.pattern is not None:
        yield from _noise_grounds(hearing.pattern, agreed)
    evidence = candidate.evidence
    if not told_tolerance and evidence.fit_history and evidence.fit_floor:
        # Agreeing is not enough where the fit has not come to its minimum: parameters may be off by more.
        implies = "the final fit reached the rounding or noise of the answers"
        settled = _UNSETTLED * evidence.fit_floor
        if candidate.ambiguity is not None and evidence.weak_units > settled:
            implies = "the final fit leaves no more than units do that are named as too weak to be told apart"
            settled = evidence.weak_units
        check = Check.below("fit residual", evidence.fit_history[-1], settled, implies)
        yield _Ground(check, f"{agreed}, but the final fit has not settled")
    if not told_first:
        yield objections


def _noise_grounds(pattern: Pattern, agreed: str) -> Iterator[_Ground]:
    """What the network leaves of noisy answers must look like noise."""
    implies = f"errors of {pattern.rows} rows are as large far out as nearby"
    check = Check.below("error growth", pattern.growth, LARGEST_GROWTH, implies)
    yield _Ground(check, f"{agreed}, but errors far out and nearby differ by a factor {pattern.growth:.2g}")
    implies = "errors of neighbouring rows are independent, in standard errors of their correlation"
    check = Check.below("error correlation", pattern.correlation, LARGEST_CORRELATION, implies)
    yield _Ground(check, f"{agreed}, but neighbouring rows err alike: something that noise hides is missing")


def _objections(candidate: Candidate, trial: Trial, findings: Findings, told_tolerance: bool) -> _Ground:
    """What the search says against a network that agrees.

    It is never overruled, unless the user said how good is good enough: a search that did not come to its
    end may have come that far.
    """
    problem = None
    if candidate.problem and not told_tolerance:
        problem = f"{candidate.problem}; {trial.agreement()}"
    said = [candidate.objection, problem, *_doubts(candidate, trial, findings)]
    told = [each for each in said if each]
    implies = "neither the search nor its measurements speak against the network"
    return _Ground(Check.below("objections", len(told), 0, implies), told[0] if told else "")


def _doubts(candidate: Candidate, trial: Trial, findings: Findings) -> list[str]:
    """Say why a network that agrees within the noise may still be another one."""
    ambiguity = _ambiguity(candidate, findings)
    if findings.is_noisy and ambiguity is not None:
        named = candidate.ambiguity is not None and candidate.evidence.from_exact_equations
        return [] if named else [ambiguity]  # other widths and activations may agree as well
    exact = not findings.is_noisy or candidate.evidence.from_exact_equations
    return [] if exact else [f"{trial.agreement()}; but {doubt}" for doubt in candidate.evidence.doubts()]


def _refused(trial: Trial, reason: str) -> tuple[Status, str]:
    """Fail what predicts no better than the mean of the answers, unless most rows agree."""
    useful = trial.error > trial.threshold and trial.agreeing >= _MOST  # and noise does not hide the rest
    if not trial.rows or trial.share < 1 or useful:
        return Status.APPROXIMATE, reason
    if trial.kind == "held-out":
        reason = f"no network was found that predicts held-out rows better than their mean does ({reason})"
    return Status.FAILED, reason


def _explained(candidate: Candidate, reason: str) -> str:
    """Add what the search has to say."""
    if candidate.problem:
        return f"{candidate.problem}; {reason}"
    return f"{reason}: {candidate.causes}" if candidate.causes else reason


def _ambiguity(candidate: Candidate, findings: Findings) -> str | None:
    """What else fits as well, or None."""
    if candidate.ambiguity is not None:
        return candidate.ambiguity
    evidence = candidate.evidence
    if not evidence.error_bars_decide:
        return None
    bar = evidence.parameter_error_bar
    if (bar is not None and bar > largest_error_bar(findings)) or evidence.condition == np.inf:
        return (
            "the function agrees, but answers from this region leave some parameters undetermined "
            f"(largest standard error {np.inf if bar is None else bar:.2g})"
        )
    return None
