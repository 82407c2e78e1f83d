"""Learning by regression from Gaussian samples (Algorithm 5): moments on one half, a fit on the other.

    1. T_0 .. T_{2l+2} from the first half of the samples, directions and biases up to signs (Algorithm 4);
    2. on the second half, least squares on |w~_i . x + b~_i|, x and 1 (`unweave.published.relu.regression`).

No signs are needed, units that the moments missed or that are affine on almost all inputs do no harm beyond
their own size, and the result is a ReLU network of m + 2 units that predicts well even where parameters are
not determined.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.numerics.hermite.estimated_coefficients import in_batches
from unweave.published.relu.gaussian_samples import GaussianSampleOptions, recover_from_gaussian_samples
from unweave.published.relu.regression import RegressionBounds, UnitRegression, regress_on_units
from unweave.published.relu.spectral_recovery import SpectralRecovery


@dataclass(frozen=True, eq=False)
class RegressionLearner:
    """The learned network and its two steps."""

    regression: UnitRegression
    recovery: SpectralRecovery

    @property
    def network(self) -> Network:
        """ReLU network of m + 2 units."""
        return self.regression.to_network()


def learn_by_regression(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    width: int | None = None,
    options: GaussianSampleOptions | None = None,
    bounds: RegressionBounds | None = None,
) -> RegressionLearner:
    """Learn y (n,) at standard Gaussian x (n, d): first half for moments, second half for the fit."""
    half = len(x) // 2
    recovery = recover_from_gaussian_samples(in_batches(x[:half], y[:half]), rng, width, options).recovery
    form = recovery.form
    regression = regress_on_units(x[half:], y[half:], form.weights, form.biases, bounds)
    return RegressionLearner(regression, recovery)
