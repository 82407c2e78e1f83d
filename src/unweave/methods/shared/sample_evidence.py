"""What a fit to samples shows, and what every kind of unit says about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unweave.arrays import Array
from unweave.networks.error_bars import is_homogeneous, standard_error_network, with_fixed_lengths
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
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


def information(residual: float, parameters: int, numbers: int) -> float:
    """Return the Bayesian information criterion of ``parameters`` fitted to so many ``numbers``.

    ``residual`` is the root mean square misfit over the answers' spread. The lower, the better.
    """
    residual = max(residual, float(np.finfo(np.float64).tiny))
    return float(2 * numbers * np.log(residual) + parameters * np.log(numbers))


def noise_standard_errors(network: Network, x: Array, y: Array) -> Network | None:
    """Return the standard errors of ``network`` if what it leaves of the samples fitted is noise.

    None where the samples do not determine all parameters. Those of homogeneous units are for incoming
    weights of length one.
    """
    if not network.hidden:
        return None
    model = with_fixed_lengths(NetworkParameters.from_network(network))
    free = model.size - (model.width if is_homogeneous(model) else 0)
    if free >= y.size:
        return None
    misfit = y - network(x)
    sigma = np.sqrt((misfit**2).sum(axis=0) / (len(x) - free / y.shape[1]))
    sigma = np.maximum(sigma, np.finfo(np.float64).eps * np.abs(y).max(axis=0) + np.finfo(np.float64).tiny)
    return standard_error_network(model, x, np.broadcast_to(1 / sigma, y.shape))


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
