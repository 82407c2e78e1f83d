"""A network that all but agrees with fresh rows, fitted once more to values from the whole region.

A method's own equations may determine some directions in parameter space only from short steps, so that
rounding is left there a few times above what is allowed: the network is right, and its last digits are not.
Values at rows spread over the region, and where each unit acts, are what predictions lean on; with one and
a half of them per parameter, Gauss-Newton on everything takes the rest to rounding. Whether that made it
right is for the judge to say, on rows that this fit has not seen either.
"""

from __future__ import annotations

from dataclasses import replace

from numpy.random import Generator

from unweave.errors import BudgetExhausted
from unweave.networks.activations import SOFTMAX, get_activation
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import fit_values, points_to_fit
from unweave.numerics.threads import single_threaded_blas
from unweave.probing.look import Findings
from unweave.recovery.breakdown import NUMERICAL_ERRORS, is_breakdown
from unweave.recovery.fresh_rows import fresh_rows
from unweave.recovery.judge import Verdict
from unweave.recovery.result import Status
from unweave.search import Candidate, Journal
from unweave.targets.change_of_inputs import in_normalised_inputs, in_own_inputs
from unweave.targets.region import NormalisedQueries

NEARLY = 1e-6
"""Relative error on fresh rows up to which a network is taken for right but for its last digits."""
_MOST_PARAMETERS = 4000  # beyond, the fit takes minutes


def is_nearly_right(candidate: Candidate, verdict: Verdict, findings: Findings) -> bool:
    """Whether another fit may make the difference: float64 answers, and most of their digits are there."""
    network, hearing = candidate.network, verdict.trial.hearing
    if verdict.status is not Status.APPROXIMATE or not verdict.trial.error <= NEARLY:
        return False
    if not isinstance(network, Network):
        return False
    if hearing is not None and (hearing.contradicting or hearing.change > hearing.largest_change):
        return False  # no fit makes up for a target of another kind
    smooth = all(name == SOFTMAX or get_activation(name).smooth for name in network.activations)
    small = network.n_parameters <= _MOST_PARAMETERS
    return bool(network.hidden) and smooth and small and findings.noise.kind == "float64"


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

            fit = fit_values(start, points, view(points), noise, tell)
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
