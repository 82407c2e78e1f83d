"""A network that all but agrees with fresh rows, fitted once more to values from the whole region.

A method's own equations may determine some directions in parameter space only from short steps, so that
rounding is left there a few times above what is allowed: the network is right, and its last digits are not.
Values at rows spread over the region, and where each unit acts, are what predictions lean on; with one and
a half of them per parameter, Gauss-Newton on everything takes the rest to rounding. Whether that made it
right is for the judge to say, on rows that this fit has not seen either.

What stays above rounding then is a unit too weak for the method, or one that it found wrongly: it is sought
in what the others leave (`missing_unit`), without those that do no more than what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from unweave.arrays import Array
from unweave.errors import BudgetExhausted
from unweave.networks.activations import SOFTMAX, get_activation
from unweave.networks.mirrored_units import mirror_back
from unweave.networks.missing_unit import missing_unit
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFitResult, fit_values, points_to_fit
from unweave.numerics.threads import single_threaded_blas
from unweave.probing.findings import Findings
from unweave.recovery.breakdown import NUMERICAL_ERRORS, is_breakdown
from unweave.recovery.fresh_rows import fresh_rows
from unweave.recovery.judge import Verdict
from unweave.recovery.result import Status
from unweave.search import Candidate, Journal
from unweave.targets.change_of_inputs import in_normalised_inputs, in_own_inputs
from unweave.targets.region import NormalisedQueries

NEARLY = 1e-6
"""Relative error on fresh rows up to which a network is taken for right but for its last digits."""
_COARSER = 30.0  # error of a recovered network over that of the answers, from which on they can tell more
_MOST_PARAMETERS = 4000  # beyond, the fit takes minutes
NEARLY_ALL_UNITS = 1e-4
"""The same up to which one hidden layer is taken for right but for weak units."""
_REPAIRED_PARAMETERS = 1500  # beyond, the search for units takes a minute
_MOST_REPAIRS = 4  # units that are sought
_AT_FLOOR = 100.0  # residual over what rounding leaves, up to which nothing is missing
_IDLE = 30.0  # contribution of a unit over the residual, up to which it does nothing else than fill that up
_WEAK = 1e-5  # contribution of a unit over the largest one's, up to which it is sought anew
_UNDETERMINED = 1e-3  # standard error of a parameter from which units are tried to be left out
_BETTER = 0.5  # part of the residual to which one more unit must bring it down


def is_nearly_right(candidate: Candidate, verdict: Verdict, findings: Findings) -> bool:
    """Whether another fit may make the difference: most digits of the answers are there, and some are not.

    Of float64 answers that keeps the network from being recovered. Float32 answers may have been used by a
    method that takes differences of them, which leaves its network coarser than they are.
    """
    network, hearing = candidate.network, verdict.trial.hearing
    if not isinstance(network, Network):
        return False
    # Units that fill a gap together leave parameters open that the missing one would not.
    open_bars = verdict.status is Status.RECOVERED_UP_TO_AMBIGUITY and candidate.ambiguity is None
    single = findings.noise.kind == "float32"
    coarser = single and verdict.status.is_recovered and verdict.trial.over_noise > _COARSER
    gap_filled = open_bars and _may_miss_units(network)
    if verdict.status is not Status.APPROXIMATE and not gap_filled and not coarser:
        return False
    repairable = _may_miss_units(network) and bool(candidate.evidence.fit_history)
    if not coarser and not verdict.trial.error <= (NEARLY_ALL_UNITS if repairable else NEARLY):
        return False
    if hearing is not None and (hearing.contradicting or hearing.change > hearing.largest_change):
        return False  # no fit makes up for a target of another kind
    smooth = all(name == SOFTMAX or get_activation(name).smooth for name in network.activations)
    small = network.n_parameters <= _MOST_PARAMETERS
    return bool(network.hidden) and smooth and small and (coarser or findings.noise.kind == "float64")


def _may_miss_units(network: Network) -> bool:
    one_layer = len(network.hidden) == 1 and network.activations[-1] == "identity"
    return one_layer and network.n_parameters <= _REPAIRED_PARAMETERS


def polished_on_values(
    candidate: Candidate, view: NormalisedQueries, findings: Findings, journal: Journal, rng: Generator
) -> Candidate:
    """The candidate after least squares on new values; as it was where the budget does not reach.

    Cost: 1.5 P / K rows for P parameters and K outputs, more behind a bottleneck.
    """
    assert candidate.network is not None
    region = findings.region
    network = in_normalised_inputs(candidate.network, region)
    spread = float(findings.spread.max())
    try:
        with journal.stage("polish on values") as stage, single_threaded_blas():
            points, _ = fresh_rows(candidate.network, findings, rng, points_to_fit(network))
            noise = float(findings.noise.sigma_per_output.max())
            start = NetworkParameters.from_network(network)

            def tell(step: int, rms: float) -> None:
                journal.tell(step, None, f"steps, residual {rms:.1e}")

            answers = view(points)
            fit = fit_values(start, points, answers, noise, tell)
            if _may_miss_units(network):
                fit = _with_weak_units(fit, points, answers, noise, rng, tell)
            stage.figures.update(residual=fit.history[-1], floor=fit.floor, steps=len(fit.history) - 1)
    except BudgetExhausted:
        return candidate
    except NUMERICAL_ERRORS as error:
        if not is_breakdown(error):
            raise
        return candidate
    evidence = replace(
        candidate.evidence,
        fit_history=tuple(value / spread for value in fit.history),
        fit_floor=fit.floor / spread,
        prediction_floor=fit.prediction_floor / spread,
        condition=fit.condition,
        parameter_error_bar=fit.error_bar,
    )
    return replace(
        candidate,
        network=in_own_inputs(fit.model.to_network(), region),
        evidence=evidence,
        problem=None,
        standard_errors=None,
    )


def _with_weak_units(
    fit: ValueFitResult,
    points: Array,
    answers: Array,
    noise: float,
    rng: Generator,
    tell: Callable[[int, float], None],
) -> ValueFitResult:
    """Leave out idle units and add those that what is left shows, while that makes the fit much better."""
    if _is_settled(fit) and fit.error_bar is not None and fit.error_bar < _UNDETERMINED:
        return fit
    first, residual = fit, fit.history[-1]
    adds = fit.model.contributions(points)
    acts = adds > max(_IDLE * residual, _WEAK * float(adds.max()))
    if acts.any() and not acts.all():
        fit = fit_values(fit.model.keep(acts), points, answers, noise, tell)
    for _ in range(_MOST_REPAIRS):
        unit = missing_unit(fit.model, points, answers, rng)
        if unit is None:
            break
        again = fit_values(unit.added_to(fit.model), points, answers, noise, tell)
        if not again.history[-1] <= _BETTER * fit.history[-1]:
            break
        fit = again
        if _is_settled(fit):
            return _without_surplus(fit, points, answers, noise, tell)
    return min(first, fit, key=lambda each: each.history[-1])


def _without_surplus(
    fit: ValueFitResult, points: Array, answers: Array, noise: float, tell: Callable[[int, float], None]
) -> ValueFitResult:
    """Leave out the skip, which mirrored units may have left, and weak units that others stand in for."""
    model = fit.model
    smaller = [] if model.skip is None else [replace(mirror_back(model), skip=None)]
    if model.width > 1:
        weakest = np.argsort(model.contributions(points))[:_MOST_REPAIRS]
        smaller += [model.keep(np.arange(model.width) != unit) for unit in weakest]
    for each in smaller:
        again = fit_values(each, points, answers, noise, tell)
        if _is_settled(again):
            return _without_surplus(again, points, answers, noise, tell)
    return fit


def _is_settled(fit: ValueFitResult) -> bool:
    return fit.history[-1] <= _AT_FLOOR * fit.floor
