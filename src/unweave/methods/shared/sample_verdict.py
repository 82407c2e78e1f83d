"""The verdict on a network fitted to samples, and what every kind of unit says in its certificate."""

from __future__ import annotations

from dataclasses import dataclass

from unweave.methods.shared.held_out import HeldOut
from unweave.networks.network import Network
from unweave.recovery.result import Check, Status
from unweave.search.candidate import Evidence

PER_PARAMETER = 2.0
"""Samples per parameter below which exact fits need not be unique."""
LARGEST_CONDITION = 1e8
"""Condition of the scaled Jacobian beyond which the samples count as not determining all parameters."""
NOTHING_HELD_OUT = "no sample could be held out, so that nothing verifies the fit"


@dataclass(frozen=True)
class SampleVerdict:
    """What the held-out rows say."""

    status: Status
    error: float
    """Largest error relative to the largest answer; nan if no row was held out."""
    threshold: float
    rows: int
    message: str

    @property
    def solved(self) -> bool:
        """Whether the network is recovered, perhaps up to an ambiguity."""
        return self.status in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)


@dataclass(frozen=True, eq=False)
class SampledNetwork:
    """A network fitted to samples and all that is said about it."""

    network: Network | None
    verdict: SampleVerdict
    evidence: Evidence
    checks: tuple[Check, ...]
    notes: tuple[str, ...]


def verdict_of(seen: HeldOut, problem: str | None, ambiguity: str | None) -> SampleVerdict:
    """The verdict on a fit with these errors, a reason why it does not count, and what else fits as well."""
    status, message = Status.RECOVERED, f"held-out rows agree to {seen.error:.2g}"
    if seen.share >= 1:
        status = Status.FAILED
        message = f"no network was found that predicts held-out rows better than their mean does ({problem})"
    elif problem:
        status, message = Status.APPROXIMATE, problem
    elif ambiguity:
        status, message = Status.RECOVERED_UP_TO_AMBIGUITY, ambiguity
    return SampleVerdict(status, seen.error, seen.threshold, seen.rows, message)


def imprecise(seen: HeldOut) -> str:
    """How far off the held-out rows are."""
    return (
        f"the error on {seen.rows} held-out rows is {seen.error:.2g}, "
        f"the answers' precision allows {seen.threshold:.2g}"
    )


def undetermined_weights(missing_directions: int) -> str:
    """What inputs that do not vary in some directions leave open."""
    return (
        f"the same answers on all inputs like these, which do not vary in {missing_directions} "
        "directions: weights along them are not determined"
    )


def fewer_units_note(units: int, told: int) -> str:
    """An exact fit with fewer units than told."""
    return f"{units} units explain the samples; {told} were asked for"


def missing_directions_note(missing_directions: int) -> str:
    """Inputs that do not vary in some directions."""
    return f"the inputs do not vary in {missing_directions} directions: no weight along them"


def held_out_checks(verdict: SampleVerdict) -> list[Check]:
    """The verdict as a line of the certificate, if any row was held out."""
    if not verdict.rows:
        return []
    implies = f"on {verdict.rows} rows that no fit had seen, the network answers as the samples do"
    holds = verdict.error <= verdict.threshold
    return [Check("held-out error", verdict.error, verdict.threshold, holds, implies)]


def residual_check(residual: float, floor: float) -> Check:
    """Whether the fit is exact."""
    implies = "the fit leaves no more than the answers' own rounding"
    return Check("fit residual", residual, floor, residual <= floor, implies)


def rate_check(network: Network, rows: int) -> Check:
    """Whether ``rows`` samples were enough for an exact fit to be unique."""
    rate = rows * network.n_outputs / network.n_parameters
    implies = "exact fits with fewer samples need not be unique"
    return Check("samples per parameter", rate, PER_PARAMETER, rate >= PER_PARAMETER, implies)
