"""The judge: fresh rows, placed where each neuron acts. The only place that may say RECOVERED.

A candidate's error on rows that no method has seen is compared with what the target's own precision
would leave: a network fitted to difference quotients of step h inherits their noise sigma/h, so that

    floor^2 = sigma^2 + (sigma^2/2h^2) P/(n - P)        (n equations, P parameters)

is the squared scale of the error of a perfect recovery. Wrong networks miss it by four orders of
magnitude or more in float64. Whatever the floor, an error that is a fair part of the answers
themselves is no recovery.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.networks.activations import get_activation
from unweave.networks.network import Network
from unweave.probing.look import Findings
from unweave.recovery.result import Status
from unweave.search.candidate import Candidate
from unweave.targets.placement import REACH, points_at_units
from unweave.targets.region import NormalisedQueries, Region

FEWEST_ROWS = 100
ROWS_PER_PARAMETER = 1 / 20
LARGEST_OVER_FLOOR = 100.0
"""Largest error in units of the floor: leverage of the fit times the extreme of thousands of rows."""
RMS_OVER_FLOOR = 15.0
FLOAT64_ALLOWANCE = 10.0
"""Both are this much wider for float64 answers: their round-off is no noise and only roughly estimated,
rows far out have a high leverage, and the smallest errors of wrong networks are 1e4 times larger still."""
NOISE_RMS = 1.15
"""Root mean square error over the floor for answers whose noise is known, as its estimate may be off ..."""
NOISE_SPREAD = 2.5
"""... and by so many standard errors of a root mean square over n rows, 1 / sqrt(2n) each."""
NOISE_LARGEST = 6.0
"""Largest of some thousand Gaussian errors, in standard deviations."""
ROUNDED_LARGEST = 2.0
"""Largest error of a rounded answer in units of half its last digit: leverage of the fit included."""
CLEAR_OF_HIDING = 10.0
"""Strength of the weakest neuron over that of one that noise could hide: beyond, none is thought hidden."""
UNDETERMINED_NOISY = 0.1
"""Standard error of a parameter, in normalised inputs, from which on noisy answers do not determine it."""
UNDETERMINED = 1e-3
"""Standard error of a parameter, in normalised inputs, above which the answers do not determine it."""
UNDETERMINED_FLOAT64 = 1e-5
"""The same for float64 answers, of which more can be asked."""
FARTHEST_KINK = 1e6
"""Typical radii of the region up to which rows are placed at units with a kink, where there is no box."""
_LEVERAGE = 0.005  # of the largest error bar: with the factors above, errors of five such bars pass
_LARGEST_LEVERAGE = 1e-10  # error bars that are larger are no excuse
_CORNER = 0.05  # rows at the corners of a box lie within this part of its half-width
_UNSETTLED = 300.0  # times its floor: a fit that stopped above has not come to its minimum
_NO_RECOVERY = 0.1  # error relative to the spread of the answers above which no floor excuses it


@dataclass(frozen=True)
class Verdict:
    """What the judge says, and on what grounds."""

    status: Status
    error: float
    """Largest error of an output relative to its largest answer."""
    threshold: float
    """What the target's precision allows of that: largest and typical error must both be within it."""
    rows: int
    reason: str
    errors: Array | None = field(default=None, repr=False, compare=False)
    """(n,) error of every row, relative to the largest answer, of its worst output."""


def judge(
    candidate: Candidate,
    view: NormalisedQueries,
    findings: Findings,
    tolerance: float | None,
    rng: np.random.Generator,
) -> Verdict:
    """Ask fresh rows and compare. ``tolerance``, if given, replaces the threshold on the relative error."""
    network = candidate.network
    if network is None:
        return Verdict(Status.FAILED, np.nan, np.nan, 0, candidate.problem or "no network was found")
    points = verification_points(network, findings, rng)
    answers = view(points)
    errors = np.abs(answers - network(findings.region.to_inputs(points)))
    size = np.abs(answers).max(axis=0)
    size = np.where(size > 0, size, max(float(size.max()), np.finfo(np.float64).tiny))
    row_errors = (errors / size).max(axis=1)
    error = float(row_errors.max())
    floor = _floor(candidate, findings)
    if candidate.evidence.misfit is not None and _is_noisy(findings):
        # The noise is known, and the network was fitted to answers alone: a wrong one shows by little more.
        excess = _noise_excess(errors, floor, findings)
    else:
        excess = _excess(errors / floor, float64=findings.noise.kind == "float64")
    threshold = error / excess if excess > 0 else float((LARGEST_OVER_FLOOR * floor / size).max())
    threshold = float(threshold if tolerance is None else tolerance)
    share = _share_of_spread(errors, answers, findings)
    precise = error <= threshold and share <= _NO_RECOVERY
    settled = tolerance is not None or _settled(candidate)
    if precise and not settled:
        # Agreeing is not enough where the fit has not come to its minimum: parameters may be off by more.
        reason = f"fresh rows agree to {error:.2g}, but the final fit has not settled"
        return Verdict(Status.APPROXIMATE, error, threshold, len(points), reason, row_errors)
    status, reason = _decide(candidate, precise, error, threshold, share, largest_error_bar(findings))
    named = candidate.ambiguity is not None and candidate.evidence.flips > 0
    if status is Status.RECOVERED_UP_TO_AMBIGUITY and _is_noisy(findings) and not named:
        status = Status.APPROXIMATE  # other widths and activations may agree as well within the noise
    if status is Status.RECOVERED and _leaves_more_than_noise(candidate, findings):
        # The rows of the fit are many more than the fresh ones, which a network that lacks a neuron may pass.
        status = Status.APPROXIMATE
        reason += (
            f"; but the fit leaves {candidate.evidence.misfit:.2g} standard deviations where noise leaves "
            f"{candidate.evidence.acceptable_misfit:.2g} at most"
        )
    if status is Status.RECOVERED and _may_hide_neurons(candidate, findings):
        status = Status.APPROXIMATE
        reason += (
            f"; but the weakest neuron is only {candidate.evidence.weakest_neuron:.2g} times as strong as "
            "one that noise could hide: others may be missing"
        )
    return Verdict(status, error, threshold, len(points), reason, row_errors)


def _leaves_more_than_noise(candidate: Candidate, findings: Findings) -> bool:
    """Whether the rows of the fit itself, to noisy answers, say that something is missing."""
    left, allowed = candidate.evidence.misfit, candidate.evidence.acceptable_misfit
    if left is None or allowed is None or _is_exact(candidate, findings):
        return False
    return left > allowed


def _may_hide_neurons(candidate: Candidate, findings: Findings) -> bool:
    """Whether noise may hide a neuron: likely where the weakest one found is near what noise hides."""
    weakest = candidate.evidence.weakest_neuron
    return not _is_exact(candidate, findings) and weakest is not None and weakest < CLEAR_OF_HIDING


def _is_exact(candidate: Candidate, findings: Findings) -> bool:
    """Whether the network was fitted to equations without noise."""
    return not _is_noisy(findings) or candidate.evidence.flips > 0


def _is_noisy(findings: Findings) -> bool:
    """Whether the answers' error is known as a number, and is no rounding of floating-point arithmetic."""
    return findings.noise.kind in ("rounded", "noisy")


def largest_error_bar(findings: Findings) -> float:
    """Standard error above which a parameter counts as undetermined by answers of this precision."""
    if _is_noisy(findings):
        return UNDETERMINED_NOISY
    return UNDETERMINED_FLOAT64 if findings.noise.kind == "float64" else UNDETERMINED


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
    network: Network, findings: Findings, rng: np.random.Generator, fewest: int = FEWEST_ROWS
) -> Array:
    """Normalised rows: half or more placed at the neurons of the first layer, the rest from the region."""
    count = max(fewest, int(np.ceil(ROWS_PER_PARAMETER * network.n_parameters)), *network.hidden)
    region = findings.region
    points = region.sample(count, rng)
    bounds = region.normalised_bounds
    if bounds is not None:  # a neuron may act in a corner of the box only, where uniform rows hardly come
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
    placed = min(count, max(count // 2, width))  # every neuron is looked at, if there are rows enough
    neurons = rng.permutation(max(width, placed))[:placed] % width
    # A kink far out is as sharp as one nearby, and an answer there as good.
    reach = FARTHEST_KINK if _is_kinked(network) and bounds is None else REACH
    points[:placed] = points_at_units(weights, biases, neurons, region, rng, reach=reach)
    return points


def _is_kinked(network: Network) -> bool:
    return not get_activation(network.activations[0]).smooth


def _floor(candidate: Candidate, findings: Findings) -> Array:
    """(K,) error that a perfect recovery would still show, per output."""
    measured = candidate.evidence.answer_sigma
    sigma = findings.noise.sigma_per_output if measured is None else measured
    spread = np.where(findings.output_scale > 0, findings.output_scale, 1.0)
    result: Array = np.hypot(sigma, (candidate.evidence.prediction_floor or 0.0) * spread)
    # Where a parameter is poorly determined, predictions lean on it: the floor above is only their average.
    bar = candidate.evidence.parameter_error_bar
    if bar is not None:
        result = np.maximum(result, _LEVERAGE * min(bar, _LARGEST_LEVERAGE) * spread)
    return np.maximum(result, np.finfo(np.float64).tiny)


def _settled(candidate: Candidate) -> bool:
    """Whether the final fit, if there was one, came down to what rounding or noise leaves."""
    evidence = candidate.evidence
    if not evidence.fit_history or not evidence.fit_floor:
        return True
    return evidence.fit_history[-1] <= _UNSETTLED * evidence.fit_floor


def _decide(
    candidate: Candidate, precise: bool, error: float, threshold: float, share: float, undetermined: float
) -> tuple[Status, str]:
    if not precise:
        reason = f"the error on fresh rows is {error:.2g}, the target's precision allows {threshold:.2g}"
        if candidate.problem:
            reason = f"{candidate.problem}; {reason}"
        return (Status.APPROXIMATE if share < 1 else Status.FAILED), reason
    bar = candidate.evidence.parameter_error_bar
    if candidate.ambiguity:
        return Status.RECOVERED_UP_TO_AMBIGUITY, candidate.ambiguity
    if (bar is not None and bar > undetermined) or candidate.evidence.condition == np.inf:
        return (
            Status.RECOVERED_UP_TO_AMBIGUITY,
            "the function agrees, but answers from this region leave some parameters undetermined "
            f"(largest standard error {np.inf if bar is None else bar:.2g})",
        )
    return Status.RECOVERED, f"fresh rows agree to {error:.2g}"
