"""Quadratic units from samples, of which never more than W W^T is known."""

from __future__ import annotations

import numpy as np

from unweave.errors import InvalidInput
from unweave.methods.shared.held_out import HeldOut, SplitSamples
from unweave.methods.shared.sample_verdict import SampledNetwork, SampleVerdict, held_out_checks
from unweave.quadratic import recover_quadratic
from unweave.recovery.result import Status
from unweave.search.candidate import Candidate
from unweave.search.journal import Journal


def fit_quadratic(samples: SplitSamples, width: int | None, journal: Journal) -> SampledNetwork:
    """Quadratic units with one output, by their exact solve."""
    if samples.y.shape[1] != 1:
        raise InvalidInput(
            f"samples must have one output for quadratic units. Got {samples.y.shape[1]} instead. "
            "Recover each output by itself."
        )
    with journal.stage("fit quadratic") as stage:
        candidate = recover_quadratic(samples.x, samples.y[:, 0], width)
        stage.figures.update(rows=len(samples.x))
    seen = None if candidate.network is None else samples.errors_of(candidate.network)
    verdict = _verdict(candidate, seen)
    checks = tuple(held_out_checks(verdict))
    return SampledNetwork(candidate.network, verdict, candidate.evidence, checks, candidate.notes)


def _verdict(candidate: Candidate, seen: HeldOut | None) -> SampleVerdict:
    if seen is None:
        return SampleVerdict(Status.FAILED, np.nan, np.nan, 0, candidate.problem or "no network was found")
    figures = seen.error, seen.threshold, seen.rows
    if candidate.problem or (seen.rows and not seen.precise):
        status = Status.FAILED if seen.share >= 1 else Status.APPROXIMATE
        reason = candidate.problem or f"the error on {seen.rows} held-out rows is {seen.error:.2g}"
        return SampleVerdict(status, *figures, reason)
    family = candidate.ambiguity or "only W W^T is determined by quadratic units"
    if not seen.rows:
        family += "; no sample was left to verify that the network is of this kind"
    return SampleVerdict(Status.RECOVERED_UP_TO_AMBIGUITY, *figures, family)
