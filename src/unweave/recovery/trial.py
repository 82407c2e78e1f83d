"""A candidate on trial: its errors on rows that nothing was fitted to, and what the precision allows of them.

Fresh rows are placed where each unit acts. A network fitted to difference quotients of step h inherits their
noise sigma/h, so that

    floor^2 = sigma^2 + (sigma^2/2h^2) P/(n - P)        (n equations, P parameters)

is the squared scale of the error of a perfect recovery. Wrong networks miss it by four orders of magnitude or
more in float64. Held-out rows of samples are compared with the precision of the answers themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from unweave.arrays import Array
from unweave.networks.activations import get_activation
from unweave.networks.comparison import relative_uniform_error
from unweave.networks.network import Network
from unweave.probing.look import Findings
from unweave.search import Candidate
from unweave.targets.held_out import EXACT, NO_RECOVERY, OVER_PRECISION, FittedRows, HeldOutRows
from unweave.targets.placement import REACH, points_at_units
from unweave.targets.region import NormalisedQueries, Region

FEWEST_ROWS = 100
"""Fresh rows at least."""
ROWS_PER_PARAMETER = 1 / 20
"""Fresh rows per parameter of a large network."""
_MOST_NUMBERS = 50_000_000  # of fresh rows together (400 MB), beyond FEWEST_ROWS of very many inputs
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
WITNESS_REACH = 10.0
"""Largest normalised input of a row whose answer is heard again when a network is judged."""
WITNESS_ERROR = 1e-6
"""Error of such a row relative to the answers that no right network in float64 shows."""
WITNESS_ALLOWANCE = 10.0
"""The same over the threshold of fresh rows, for coarse answers: there are a hundred times as many rows."""
FARTHEST_KINK = 1e6
"""Typical radii of the region up to which rows are placed at units with a kink, where there is no box."""
_LEVERAGE = 0.005  # of the largest error bar: with the factors above, errors of five such bars pass
_LARGEST_LEVERAGE = 1e-10  # standard errors that are larger are no excuse
_CORNER = 0.05  # rows at the corners of a box lie within this part of its half-width
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
    precise: bool
    """Whether the errors are what the precision allows; False without rows."""
    share: float
    """Error over the spread of the answers, worst output."""
    errors: Array | None = field(default=None, repr=False, compare=False)
    """(n,) error of every row, relative to the largest answer, of its worst output."""
    contradiction: str | None = None
    """What the target said elsewhere that the network does not say, or None."""

    def agreement(self) -> str:
        """Say that the rows agree."""
        return f"{self.kind} rows agree to {self.error:.2g}"

    def disagreement(self) -> str:
        """Say how far off the rows are."""
        rows, whose = ("fresh", "target's") if self.kind == "fresh" else (f"{self.rows} held-out", "answers'")
        return (
            f"the error on {rows} rows is {self.error:.2g}, the {whose} precision allows {self.threshold:.2g}"
        )


NO_TRIAL = Trial("fresh", 0, np.nan, np.nan, False, 0.0)
"""Stands where no network was tried."""


def fresh_trial(
    candidate: Candidate, view: NormalisedQueries, findings: Findings, tolerance: float | None, rng: Generator
) -> Trial:
    """Ask fresh rows. ``tolerance``, if given, replaces the threshold on the relative error."""
    network = candidate.network
    assert network is not None
    points = verification_points(network, findings, rng)
    answers = view(points)
    errors = np.abs(answers - network(findings.region.to_inputs(points)))
    size = np.abs(answers).max(axis=0)
    size = np.where(size > 0, size, max(float(size.max()), np.finfo(np.float64).tiny))
    row_errors = (errors / size).max(axis=1)
    error = float(row_errors.max())
    floor = _floor(candidate, findings)
    if candidate.evidence.fitted_to_noise and findings.is_noisy:
        # The noise is known, and the network was fitted to answers alone: a wrong one shows by little more.
        excess = _noise_excess(errors, floor, findings)
    else:
        excess = _excess(errors / floor, float64=findings.noise.kind == "float64")
    threshold = error / excess if excess > 0 else float((LARGEST_OVER_FLOOR * floor / size).max())
    threshold = float(threshold if tolerance is None else tolerance)
    share = _share_of_spread(errors, answers, findings)
    precise = error <= threshold and share <= _NO_RECOVERY
    said = _contradiction(network, view, threshold, size) if precise else None
    return Trial("fresh", len(points), error, threshold, precise, share, row_errors, said)


def _contradiction(network: Network, view: NormalisedQueries, threshold: float, size: Array) -> str | None:
    """Compare the network with the answers kept: say how many near the region it gets wrong, None if none.

    Errors are relative to ``size`` (K,). Only near rows count: far out, an error of a parameter is multiplied
    by the distance.
    """
    x, y = view.ledger.witnesses.rows()
    near = (np.abs(view.region.to_normalised(x)) <= WITNESS_REACH).all(axis=1)
    off = (np.abs(network(x[near]) - y[near]) / np.maximum(size, np.abs(y[near]))).max(axis=1, initial=0.0)
    wrong = ~(off <= max(WITNESS_ERROR, WITNESS_ALLOWANCE * threshold))  # no number is wrong too
    if not wrong.any():
        return None
    count = int(wrong.sum())
    return f"{count} of {len(off)} answers given before contradict the network, by up to {off.max():.2g}"


def held_out_trial(
    candidate: Candidate, fitted: FittedRows, held: HeldOutRows, tolerance: float | None
) -> Trial:
    """Compare with the held-out rows. ``tolerance``, if given, replaces the answers' own precision."""
    network, precision, (x, y) = candidate.network, fitted.precision, (held.x, held.y)
    assert network is not None
    if not len(x):
        return Trial("held-out", 0, np.nan, np.nan, False, 0.0)
    answers = network(x)
    rms = np.sqrt(np.mean((answers - y) ** 2, axis=0))
    error = relative_uniform_error(y, answers)
    spread = y.std(axis=0)
    spread = np.where(spread > 0, spread, np.maximum(np.abs(y).max(axis=0), np.finfo(np.float64).tiny))
    share = float((rms / spread).max())
    if tolerance is not None:
        threshold, precise = tolerance, error <= tolerance and share < 1
    elif precision.kind == "float64":
        # Answers far from zero are known less well relative to their spread, but only by rounding.
        eps = float(np.finfo(np.float64).eps)
        rounding = _SUMMED_ROUNDINGS * eps * float((np.abs(y).max(axis=0) / spread).max())
        threshold, precise = EXACT, error <= EXACT and share <= max(EXACT, rounding)
    else:
        inflation = np.sqrt(1 + network.n_parameters / max(len(fitted.x) - network.n_parameters, 1))
        allowed = OVER_PRECISION[precision.kind] * precision.sigma * inflation
        excess = float((rms / np.maximum(allowed, np.finfo(np.float64).tiny)).max())
        threshold = error / excess if excess > 0 else float(allowed.max())
        precise = excess <= 1 and share <= NO_RECOVERY
    largest = float(np.abs(y).max(initial=0.0))
    errors = np.abs(answers - y).max(axis=1) / largest if largest else None
    return Trial("held-out", len(x), error, threshold, precise, share, errors)


def _share_of_spread(errors: Array, answers: Array, findings: Findings) -> float:
    """Largest error relative to the spread of the answers, worst output; 0 for an exact constant."""
    if findings.constant and findings.noise.kind in ("float64", "float32"):
        return 0.0  # what spread there is, is rounding
    spread = answers.std(axis=0)
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


def verification_points(
    network: Network, findings: Findings, rng: Generator, fewest: int = FEWEST_ROWS
) -> Array:
    """Normalised rows: half or more placed at the units of the first layer, the rest from the region."""
    count = max(fewest, int(np.ceil(ROWS_PER_PARAMETER * network.n_parameters)), *network.hidden)
    region = findings.region
    count = min(count, max(fewest, _MOST_NUMBERS // region.n_inputs))
    points = region.sample(count, rng)
    bounds = region.normalised_bounds
    if bounds is not None:  # a unit may act in a corner of the box only, where uniform rows hardly come
        middle, half = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
        shape = (count // 4, points.shape[1])
        towards = rng.choice([-1.0, 1.0], shape) * (1 - _CORNER * rng.random(shape))
        points[-shape[0] :] = middle + half * towards
    if not network.hidden:
        return points
    ordinary = Region.standard(region.n_inputs)
    if findings.searched and bounds is None and _is_kinked(network) and region.covers(ordinary):
        # A unit that never switches in a region that was found may switch where inputs are by default.
        points[len(points) - count // 4 :] = region.to_normalised(ordinary.sample(count // 4, rng))
    weights = network.weights[0] * region.scale[:, None]  # in normalised inputs
    biases = network.biases[0] + region.location @ network.weights[0]
    width = network.hidden[0]
    placed = min(count, max(count // 2, width))  # every unit is looked at, if there are rows enough
    units = rng.permutation(max(width, placed))[:placed] % width
    # A kink far out is as sharp as one nearby, and an answer there as good.
    reach = FARTHEST_KINK if _is_kinked(network) and bounds is None else REACH
    points[:placed] = points_at_units(weights, biases, units, region, rng, reach=reach)
    return points


def _is_kinked(network: Network) -> bool:
    return not get_activation(network.activations[0]).smooth


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
