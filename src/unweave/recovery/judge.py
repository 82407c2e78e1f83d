"""The judge: the only place that may say RECOVERED.

It hears a trial on rows that nothing was fitted to, and what the search itself says against its candidate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.probing.look import Findings
from unweave.recovery.result import Status
from unweave.recovery.trial import NO_TRIAL, Trial
from unweave.search import Candidate

UNDETERMINED_NOISY = 0.1
"""Standard error, in normalised inputs, above which noisy answers do not determine a parameter."""
UNDETERMINED = 1e-3
"""The same for float32 answers."""
UNDETERMINED_FLOAT64 = 1e-5
"""The same for float64 answers, of which more can be asked."""
NOTHING_HELD_OUT = "no sample could be held out, so that nothing verifies the fit"
_UNSETTLED = 300.0  # times its floor: a fit that stopped above has not come to its minimum


@dataclass(frozen=True)
class Verdict:
    """What the judge says, and on what grounds."""

    status: Status
    reason: str
    trial: Trial = NO_TRIAL


def judge(
    candidate: Candidate, trial: Trial | None, findings: Findings, *, told_tolerance: bool = False
) -> Verdict:
    """Judge ``candidate`` by its ``trial``, which is None where there is no network to try.

    ``told_tolerance`` says that the user set the error that counts as recovered.
    """
    if trial is None:
        return Verdict(Status.FAILED, candidate.problem or "no network was found")
    if candidate.objection is not None and (trial.rows or candidate.needs_no_rows):
        reason = candidate.objection
        return _hopeless(trial, reason) or Verdict(Status.APPROXIMATE, reason, trial)
    if not trial.rows and not candidate.needs_no_rows:
        problem = f"{candidate.problem}; " if candidate.problem else ""
        return Verdict(Status.APPROXIMATE, problem + NOTHING_HELD_OUT, trial)
    if trial.rows and not trial.precise:
        reason = _explained(candidate, trial.disagreement())
        return _hopeless(trial, reason) or Verdict(Status.APPROXIMATE, reason, trial)
    if trial.contradiction is not None:
        return Verdict(Status.APPROXIMATE, f"{trial.agreement()}, but {trial.contradiction}", trial)
    if not told_tolerance and not _settled(candidate):
        # Agreeing is not enough where the fit has not come to its minimum: parameters may be off by more.
        return Verdict(Status.APPROXIMATE, f"{trial.agreement()}, but the final fit has not settled", trial)
    ambiguity = _ambiguity(candidate, findings)
    if ambiguity is not None:
        if not trial.rows:
            ambiguity += "; no sample was left to verify that the network is of this kind"
        named = candidate.ambiguity is not None and candidate.evidence.from_exact_equations
        if trial.kind == "fresh" and findings.is_noisy and not named:
            # Other widths and activations may agree as well within the noise.
            return Verdict(Status.APPROXIMATE, ambiguity, trial)
        return Verdict(Status.RECOVERED_UP_TO_AMBIGUITY, ambiguity, trial)
    exact = not findings.is_noisy or candidate.evidence.from_exact_equations
    for doubt in () if exact else candidate.evidence.doubts():
        return Verdict(Status.APPROXIMATE, f"{trial.agreement()}; but {doubt}", trial)
    return Verdict(Status.RECOVERED, trial.agreement(), trial)


def largest_error_bar(findings: Findings) -> float:
    """Return the standard error above which answers of this precision do not determine a parameter."""
    if findings.is_noisy:
        return UNDETERMINED_NOISY
    return UNDETERMINED_FLOAT64 if findings.noise.kind == "float64" else UNDETERMINED


def _hopeless(trial: Trial, reason: str) -> Verdict | None:
    """Fail what predicts no better than the mean of the answers."""
    if trial.share < 1:
        return None
    if trial.kind == "held-out":
        reason = f"no network was found that predicts held-out rows better than their mean does ({reason})"
    return Verdict(Status.FAILED, reason, trial)


def _explained(candidate: Candidate, reason: str) -> str:
    """Add what the search has to say."""
    if candidate.problem:
        return f"{candidate.problem}; {reason}"
    return f"{reason}: {candidate.causes}" if candidate.causes else reason


def _settled(candidate: Candidate) -> bool:
    """Whether the final fit, if there was one, came down to what rounding or noise leaves."""
    evidence = candidate.evidence
    if not evidence.fit_history or not evidence.fit_floor:
        return True
    return evidence.fit_history[-1] <= _UNSETTLED * evidence.fit_floor


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
