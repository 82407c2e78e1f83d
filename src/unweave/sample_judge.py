"""The verdict on a network fitted to samples, from rows that no fit has seen.

A network is recovered if it answers held-out rows to the precision of the answers themselves: to 1e-10 of the
largest one for float64 answers (wrong networks miss that by three orders of magnitude and more), to a small
multiple of the rounding of decimals or float32, or of the spread of repeated inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.access.samples import Precision
from unweave.arrays import Array
from unweave.candidate import Candidate, Evidence
from unweave.comparison import relative_uniform_error
from unweave.network import Network
from unweave.relu.sample_errors import LARGEST, StandardErrors
from unweave.relu.sample_route import SampleFit
from unweave.result import Check, Status

EXACT = 1e-10
"""Error relative to the largest answer of a network recovered from float64 answers."""
OVER_PRECISION = {"float32": 30.0, "decimals": 2.0, "replicates": 1.5}
"""Root mean square error on held-out rows in units of the answers' own: float32 networks round inside too."""
PER_PARAMETER = 2.0
"""Samples per parameter below which exact fits need not be unique."""
LARGEST_CONDITION = 1e8
"""Condition of the scaled Jacobian beyond which the samples count as not determining all parameters."""
NO_RECOVERY = 0.03
"""Error relative to the spread of the answers above which no precision excuses it."""
_ROUNDINGS = 1000.0  # of the largest answer: what sums of many terms may leave


@dataclass(frozen=True)
class SampleVerdict:
    """What the held-out rows say."""

    status: Status
    error: float
    """Largest error relative to the largest answer; nan if no row was held out."""
    threshold: float
    rows: int
    message: str


@dataclass(frozen=True)
class HeldOut:
    """Errors on held-out rows."""

    rows: int
    error: float
    threshold: float
    precise: bool
    """Whether the error is what the answers' precision allows; False without rows."""
    share: float
    """Root mean square error over spread, worst output."""


def held_out_errors(
    network: Network, x: Array, y: Array, precision: Precision, tolerance: float | None, fitted: int
) -> HeldOut:
    """Compare on rows x (n, d), y (n, K) of a network that was fitted to ``fitted`` others."""
    if not len(x):
        return HeldOut(0, np.nan, np.nan, False, 0.0)
    answers = network(x)
    rms = np.sqrt(np.mean((answers - y) ** 2, axis=0))
    error = relative_uniform_error(y, answers)
    spread = y.std(axis=0)
    spread = np.where(spread > 0, spread, np.maximum(np.abs(y).max(axis=0), np.finfo(np.float64).tiny))
    share = float((rms / spread).max())
    if tolerance is not None:
        return HeldOut(len(x), error, tolerance, error <= tolerance and share < 1, share)
    if precision.kind == "float64":
        # Answers far from zero are known less well relative to their spread, but only by rounding.
        rounding = (
            _ROUNDINGS * float(np.finfo(np.float64).eps) * float((np.abs(y).max(axis=0) / spread).max())
        )
        return HeldOut(len(x), error, EXACT, error <= EXACT and share <= max(EXACT, rounding), share)
    inflation = np.sqrt(1 + network.n_parameters / max(fitted - network.n_parameters, 1))
    allowed = OVER_PRECISION[precision.kind] * precision.sigma * inflation
    excess = float((rms / np.maximum(allowed, np.finfo(np.float64).tiny)).max())
    threshold = error / excess if excess > 0 else float(allowed.max())
    return HeldOut(len(x), error, threshold, excess <= 1 and share <= NO_RECOVERY, share)


def ambiguity(fit: SampleFit, errors: StandardErrors | None) -> str | None:
    """What else fits, if anything."""
    if fit.missing_directions:
        return (
            f"the same answers on all inputs like these, which do not vary in {fit.missing_directions} "
            "directions: weights along them are not determined"
        )
    if not fit.network.hidden:
        return None
    needed = fit.network.n_inputs + 1
    if fit.fewest_beyond < needed:
        return (
            f"the answers agree, but a unit has only {fit.fewest_beyond} samples on one side of its kink, "
            f"and {needed} would determine it"
        )
    small = fit.network.n_parameters <= LARGEST
    if small and (errors is None or errors.condition > LARGEST_CONDITION):
        return (
            "the answers agree, but the samples leave some parameters undetermined: too few lie between "
            "the kinks of the units"
        )
    if not fit.signs_solved:
        return (
            "the same function, but its affine part is not explained by the units' signs: a skip connection, "
            "or units that never switch on the samples"
        )
    if fit.alternatives:
        listed = "; ".join(
            "{" + ", ".join(str(unit) for unit in np.flatnonzero(pattern < 0)) + "}"
            for pattern in fit.alternatives
        )
        return (
            f"the same function with the signs of other units turned; sets of units that may turn: {listed}"
        )
    if not fit.signs_unique:
        return "the same function, but other signs of the units could not be excluded"
    return None


def held_out_check(verdict: SampleVerdict) -> Check:
    """The verdict as a line of the certificate."""
    implies = f"on {verdict.rows} rows that no fit had seen, the network answers as the samples do"
    holds = verdict.error <= verdict.threshold
    return Check("held-out error", verdict.error, verdict.threshold, holds, implies)


def judge_quadratic(candidate: Candidate, seen: HeldOut | None) -> SampleVerdict:
    """The verdict on quadratic units, of which never more than W W^T is known."""
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


def evidence_of(
    verdict: SampleVerdict, fit: SampleFit, errors: StandardErrors | None, floor: float, rows: int
) -> tuple[Evidence, tuple[Check, ...]]:
    """What was measured about a fit to ``rows`` samples, and the certificate's checks on it."""
    network, search = fit.network, fit.search
    bar = None if errors is None else errors.largest
    evidence = Evidence(
        width=search.fit.units.shape[1],
        found=search.fit.units.shape[1],
        restarts=search.starts,
        fit_history=(*search.history, fit.residual),
        fit_floor=floor,
        condition=None if errors is None else errors.condition,
        parameter_error_bar=bar,
    )
    checks = [held_out_check(verdict)] if verdict.rows else []
    implies = "the fit leaves no more than the answers' own rounding"
    checks.append(Check("fit residual", fit.residual, floor, fit.residual <= floor, implies))
    if network.hidden:
        seen, needed = float(fit.fewest_beyond), float(network.n_inputs + 1)
        implies = "every unit switches between enough samples to be determined"
        checks.append(Check("samples beyond a kink", seen, needed, seen >= needed, implies))
        rate = rows * network.n_outputs / network.n_parameters
        implies = "exact fits with fewer samples need not be unique"
        checks.append(Check("samples per parameter", rate, PER_PARAMETER, rate >= PER_PARAMETER, implies))
    if bar is not None:
        implies = "largest standard error of a parameter if the residual is independent noise"
        checks.append(Check("parameter error bar", bar, None, None, implies))
    return evidence, tuple(checks)
