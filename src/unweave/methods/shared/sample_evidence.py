"""What a fit to samples shows, and what every kind of unit says about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unweave.search import Check, Evidence

SAMPLES_PER_PARAMETER = 2.0
"""Samples (times outputs) per parameter below which exact fits need not be unique."""
LARGEST_SAMPLE_CONDITION = 1e8
"""Condition of the scaled Jacobian beyond which the samples count as not determining all parameters."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleEvidence(Evidence):
    """What was measured on the way to a network from samples."""

    samples_per_parameter: float | None = None
    """Samples (times outputs) fitted, per parameter."""

    residual_over_floor: ClassVar[float] = 1.0
    """The floor of samples is what the answers' precision allows, no estimate of rounding."""
    checks_weights: ClassVar[bool] = False
    error_bars_decide: ClassVar[bool] = False
    """Standard errors assume that the residual is independent noise, which samples alone cannot show."""

    def checks(self) -> list[Check]:
        """Check the residual and the number of samples."""
        checks = []
        if self.fit_history and self.fit_floor is not None:
            residual, floor = self.fit_history[-1], self.fit_floor
            implies = "the fit leaves no more than the answers' own rounding"
            checks.append(Check.below("fit residual", residual, floor, implies))
        if self.samples_per_parameter is not None:
            implies = "exact fits with fewer samples need not be unique"
            checks.append(
                Check.above(
                    "samples per parameter", self.samples_per_parameter, SAMPLES_PER_PARAMETER, implies
                )
            )
        return checks

    def fit_checks(self, largest_error_bar: float) -> list[Check]:
        """Report the error bar, which decides nothing."""
        if self.parameter_error_bar is None:
            return []
        implies = "largest standard error of a parameter if the residual is independent noise"
        return [Check.figure("parameter error bar", self.parameter_error_bar, implies)]


def undetermined_weights(missing_directions: int) -> str:
    """Say what inputs that do not vary in some directions leave open."""
    return (
        f"the same answers on all inputs like these, which do not vary in {missing_directions} "
        "directions: weights along them are not determined"
    )


def fewer_units_note(units: int, told: int) -> str:
    """Say that fewer units than the caller gave fit exactly."""
    return f"{units} units explain the samples; {told} were asked for"


def missing_directions_note(missing_directions: int) -> str:
    """Say that the inputs do not vary in some directions."""
    return f"the inputs do not vary in {missing_directions} directions: no weight along them"
