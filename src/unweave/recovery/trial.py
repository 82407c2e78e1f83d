"""A candidate on trial: its errors on rows that nothing was fitted to, and what the precision allows of them.

Fresh rows are placed where each unit acts. A network fitted to difference quotients of step h inherits their
noise sigma/h, so that

    floor^2 = sigma^2 + (sigma^2/2h^2) P/(n - P)        (n equations, P parameters)

is the squared scale of the error of a perfect recovery. Wrong networks miss it by four orders of magnitude or
more in float64. Held-out rows of samples are compared with the precision of the answers themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator

from unweave.arrays import Array
from unweave.networks.comparison import relative_uniform_error
from unweave.networks.network import Network
from unweave.probing.findings import Findings
from unweave.recovery.fresh_rows import NO_DEMANDS, Demands, RowsLeft, ask_elsewhere, fresh_rows
from unweave.recovery.hearing import Hearing, hear
from unweave.search import Candidate
from unweave.targets.held_out import EXACT, NO_RECOVERY, OVER_PRECISION, FittedRows, HeldOutRows
from unweave.targets.region import NormalisedQueries

LARGEST_OVER_FLOOR = 100.0
"""Largest error in units of the floor: leverage of the fit times the extreme of thousands of rows."""
RMS_OVER_FLOOR = 15.0
"""Root mean square error in units of the floor."""
FLOAT64_ALLOWANCE = 10.0
"""Both are this much wider for float64 answers: their round-off is no noise and only roughly estimated,
rows far out have a high leverage, and the smallest errors of wrong networks are 1e4 times larger still."""
NOISE_RMS = 1.15
"""Root mean square error over the floor for answers whose noise is known, as its estimate may be off ..."""
NOISE_SPREAD = 2.5
"""... and by this many standard errors of a root mean square over n rows, 1 / sqrt(2n) each."""
NOISE_LARGEST = 6.0
"""Largest of some thousand Gaussian errors, in standard deviations."""
ROUNDED_LARGEST = 2.0
"""Largest error of a rounded answer in units of half its last digit: leverage of the fit included."""
ROUNDING_EPS = 0.25
"""Least standard deviation of an answer's rounding, in eps of the answer: ulp / sqrt(12)."""
_LEVERAGE = 0.005  # of the largest error bar: with the factors above, errors of five such bars pass
_LARGEST_LEVERAGE = 1e-10  # standard errors that are larger are no excuse
_ROUNDING_SHARE = 1e-6  # of the largest answer: more is no rounding of a constant
_NO_RECOVERY = 0.1  # error relative to the spread of the answers above which no floor excuses it
_SUMMED_ROUNDINGS = 1000.0  # times eps |y|: what sums of many terms may leave of a float64 answer


@dataclass(frozen=True)
class Trial:
    """How a candidate did on rows that nothing was fitted to."""

    kind: str
    """"fresh" or "held-out"."""
    rows: int
    error: float
    """Largest error of an output relative to its largest answer; nan without rows."""
    threshold: float
    """What the answers' precision allows of that: largest and typical error must both be within it."""
    share: float = 0.0
    """Error over the spread of the answers, worst output."""
    largest_share: float = _NO_RECOVERY
    """Share above which no precision excuses it."""
    errors: Array | None = field(default=None, repr=False, compare=False)
    """(n,) error of every row, relative to the largest answer, of its worst output."""
    over_noise: float = np.inf
    """Root mean square error over what the answers' own error is said to be, worst output."""
    drawn: int = 0
    """Rows among them that were drawn at random from the region."""
    corners: int = 0
    """Corners of the declared box that were asked."""
    hearing: Hearing | None = None
    """What the target said elsewhere; None where the rows disagree, or nothing was asked."""

    @property
    def precise(self) -> bool:
        """Whether the errors are what the precision allows; False without rows."""
        return self.rows > 0 and self.error <= self.threshold and self.share <= self.largest_share

    @property
    def agreeing(self) -> float:
        """Share of the rows whose error is within the threshold; nan where single rows were not compared."""
        if self.errors is None or not len(self.errors):
            return np.nan
        return float(np.mean(self.errors <= self.threshold))

    def agreement(self) -> str:
        """Say that the rows agree."""
        return f"{self.kind} rows agree to {self.error:.2g}"

    def disagreement(self) -> str:
        """Say how far off the rows are."""
        rows, whose = ("fresh", "target's") if self.kind == "fresh" else (f"{self.rows} held-out", "answers'")
        if self.error <= self.threshold:
            return f"noise hides the answers: on {rows} rows the network predicts no better than their mean"
        return (
            f"the error on {rows} rows is {self.error:.2g}, the {whose} precision allows {self.threshold:.2g}"
        )


NO_TRIAL = Trial("fresh", 0, np.nan, np.nan)
"""Stands where no network was tried."""


def fresh_trial(
    candidate: Candidate,
    view: NormalisedQueries,
    findings: Findings,
    tolerance: float | None,
    rng: Generator,
    wanted: Demands = NO_DEMANDS,
) -> Trial:
    """Ask fresh rows; where they agree, ask what else is ``wanted`` and hear what the target said elsewhere.

    ``tolerance``, if given, replaces the threshold on the relative error.
    """
    network = candidate.network
    assert network is not None
    points, drawn = fresh_rows(
        network,
        findings,
        rng,
        further=wanted.further,
        rows_left=RowsLeft(view.ledger.remaining, wanted.sparing),
    )
    answers = view(points) - candidate.evidence.answer_offset
    errors = np.abs(answers - network(findings.region.to_inputs(points)))
    size = np.abs(answers).max(axis=0)
    size = np.where(size > 0, size, max(float(size.max()), np.finfo(np.float64).tiny))
    row_errors = (errors / size).max(axis=1)
    error = float(row_errors.max())
    floor = _floor(candidate, findings)
    number = findings.noise.number_format
    if number is not None:  # no answer is more precise than its own rounding, however large it is
        rounding = ROUNDING_EPS * float(number.eps) * np.abs(answers)
        if (
            isinstance(network, Network) and network.activations[-1] == "exp"
        ):  # which multiplies what it is given, rounded, by its answer
            rounding *= 1 + np.abs(np.log(np.maximum(np.abs(answers), np.finfo(np.float64).tiny)))
        floor = np.maximum(floor, rounding)
    if candidate.evidence.fitted_to_noise and findings.is_noisy:
        # The noise is known, and the network was fitted to answers alone: a wrong one shows by little more.
        excess = _noise_excess(errors, floor, findings)
    else:
        excess = _excess(errors / floor, float64=findings.noise.kind == "float64")
    threshold = error / excess if excess > 0 else float((LARGEST_OVER_FLOOR * floor / size).max())
    threshold = float(threshold if tolerance is None else tolerance)
    share = _share_of_spread(errors, answers, findings)
    over_noise = float((np.sqrt(np.mean(errors**2, axis=0)) / findings.noise.sigma_per_output).max())
    trial = Trial(
        "fresh", len(points), error, threshold, share, errors=row_errors, over_noise=over_noise, drawn=drawn
    )
    if not trial.precise:
        return trial
    elsewhere = ask_elsewhere(network, view, wanted)
    hearing = hear(candidate, view, findings.noise, elsewhere, threshold, size)
    return replace(trial, corners=elsewhere.corners, hearing=hearing)


def held_out_trial(
    candidate: Candidate, fitted: FittedRows, held: HeldOutRows, tolerance: float | None
) -> Trial:
    """Compare with the held-out rows. ``tolerance``, if given, replaces the answers' own precision."""
    network, precision, (x, y) = candidate.network, fitted.precision, (held.x, held.y)
    assert network is not None
    if not len(x):
        return Trial("held-out", 0, np.nan, np.nan)
    answers = network(x)
    rms = np.sqrt(np.mean((answers - y) ** 2, axis=0))
    error = relative_uniform_error(y, answers)
    spread = y.std(axis=0)
    spread = np.where(spread > 0, spread, np.maximum(np.abs(y).max(axis=0), np.finfo(np.float64).tiny))
    share = float((rms / spread).max())
    if tolerance is not None:
        threshold, largest_share = tolerance, float(np.nextafter(1.0, 0.0))
    elif precision.kind == "float64":
        # Answers far from zero are known less well relative to their spread, but only by rounding.
        eps = float(np.finfo(np.float64).eps)
        rounding = _SUMMED_ROUNDINGS * eps * float((np.abs(y).max(axis=0) / spread).max())
        threshold, largest_share = EXACT, max(EXACT, rounding)
    else:
        inflation = np.sqrt(1 + network.n_parameters / max(len(fitted.x) - network.n_parameters, 1))
        allowed = OVER_PRECISION[precision.kind] * precision.sigma * inflation
        excess = float((rms / np.maximum(allowed, np.finfo(np.float64).tiny)).max())
        threshold = error / excess if excess > 0 else float(allowed.max())
        largest_share = NO_RECOVERY
    largest = float(np.abs(y).max(initial=0.0))
    errors = np.abs(answers - y).max(axis=1) / largest if largest else None
    return Trial("held-out", len(x), error, threshold, share, largest_share, errors, drawn=len(x))


def _share_of_spread(errors: Array, answers: Array, findings: Findings) -> float:
    """Largest error relative to the spread of the answers, worst output; 0 for an exact constant."""
    size = np.abs(answers).max(axis=0)
    size = np.where(size > 0, size, 1.0)
    rounding = findings.constant and findings.noise.kind in ("float64", "float32")
    if rounding and (errors <= _ROUNDING_SHARE * size).all():
        return 0.0  # what spread there is, is rounding
    spread = size * (answers / size).std(axis=0)  # the squares of tiny answers would vanish
    moving = spread > 0
    return float((errors.max(axis=0)[moving] / spread[moving]).max(initial=0.0))


def _excess(over_floor: Array, float64: bool) -> float:
    """Errors (n, K) in units of the floor, in units of what is allowed: up to one is precise."""
    largest = float(over_floor.max()) / LARGEST_OVER_FLOOR
    typical = float(np.sqrt(np.mean(over_floor**2, axis=0)).max()) / RMS_OVER_FLOOR
    return max(largest, typical) / (FLOAT64_ALLOWANCE if float64 else 1.0)


def _noise_excess(errors: Array, floor: Array, findings: Findings) -> float:
    """The same where the answers' noise is known: root mean square and largest as noise would have it."""
    over = errors / floor
    typical = float(np.sqrt(np.mean(over**2, axis=0)).max()) / (
        NOISE_RMS * (1 + NOISE_SPREAD / np.sqrt(len(errors)))
    )
    largest = float(over.max())
    if findings.noise.kind == "rounded" and findings.noise.decimals is not None:
        # Never more than half a unit of the last digit, but for what the parameters' errors add.
        return float(max(typical, largest / (np.sqrt(3.0) * ROUNDED_LARGEST)))
    return float(max(typical, largest / NOISE_LARGEST))


def _floor(candidate: Candidate, findings: Findings) -> Array:
    """(K,) error that a perfect recovery would still show, per output."""
    measured = candidate.evidence.answer_sigma
    sigma = findings.noise.sigma_per_output if measured is None else measured
    spread = findings.spread
    result: Array = np.hypot(sigma, (candidate.evidence.prediction_floor or 0.0) * spread)
    # Where a parameter is poorly determined, predictions lean on it: the floor above is only their average.
    bar = candidate.evidence.parameter_error_bar
    if bar is not None:
        result = np.maximum(result, _LEVERAGE * min(bar, _LARGEST_LEVERAGE) * spread)
    return np.maximum(result, np.finfo(np.float64).tiny)
