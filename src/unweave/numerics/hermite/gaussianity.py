"""Are the inputs Gaussian at all? Mardia's test [mardia], as evidence for a warning.

On rows z_i standardised by their own mean and covariance (n rows, d columns), if x is Gaussian,

    n/6 |mean z (x) z (x) z|_F^2           -> chi^2 with d (d+1) (d+2) / 6 degrees of freedom,
    (mean |z|^4 - d (d+2)) sqrt(n / (8 d (d+2)))    -> N(0, 1).

The Hermite coefficients of a network are coefficients of the Gaussian measure: with other inputs the means
that estimate them converge to something else, and what is recovered from them is wrong without any sign of
it in the moments themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtr

from unweave.arrays import Array
from unweave.numerics.hermite.symmetric_tensors import tensor_packing
from unweave.numerics.hermite.tensors import monomial_features
from unweave.numerics.whitening import Whitening

_TESTED_ROWS = 20_000
"""Rows looked at: enough to see an excess kurtosis of 0.05 per input."""
_TESTED_COLUMNS = 25
"""Columns of the third moment; of more inputs as many random combinations are taken."""
SIGNIFICANCE = 1e-6
"""Probability under a Gaussian below which the inputs are called something else."""


@dataclass(frozen=True)
class GaussianityEvidence:
    """Mardia's two statistics and how likely values as extreme are for Gaussian inputs."""

    rows: int
    skewness_statistic: float
    skewness_probability: float
    kurtosis_statistic: float
    """Standard deviations by which mean |z|^4 differs from d (d + 2)."""
    kurtosis_probability: float

    @property
    def is_plausible(self) -> bool:
        """Whether the rows could have been drawn from a Gaussian."""
        return min(self.skewness_probability, self.kurtosis_probability) > SIGNIFICANCE

    def __str__(self) -> str:
        verdict = "could be Gaussian" if self.is_plausible else "are not Gaussian"
        return (
            f"inputs {verdict}: skewness p = {self.skewness_probability:.2g}, kurtosis off by "
            f"{self.kurtosis_statistic:+.1f} standard deviations ({self.rows} rows)"
        )


def gaussianity(x: Array, rng: np.random.Generator) -> GaussianityEvidence:
    """Mardia's test on at most 20 000 of the rows of x (n, d); ``rng`` chooses them."""
    if len(x) > _TESTED_ROWS:
        x = x[rng.choice(len(x), _TESTED_ROWS, replace=False)]
    z = Whitening.estimated(x)(x)
    rows, columns = z.shape
    fourth = float(np.mean(np.sum(z**2, axis=1) ** 2))
    kurtosis = (fourth - columns * (columns + 2)) * np.sqrt(rows / (8 * columns * (columns + 2)))
    if columns > _TESTED_COLUMNS:
        z = z @ np.linalg.qr(rng.standard_normal((columns, _TESTED_COLUMNS)))[0]
    packing = tensor_packing(z.shape[1], 3)
    third = monomial_features(z, 3)[3].mean(axis=1)
    skewness = rows / 6 * float(packing.multiplicity @ third**2)
    return GaussianityEvidence(
        rows=rows,
        skewness_statistic=skewness,
        skewness_probability=float(chdtrc(packing.size, skewness)),
        kurtosis_statistic=float(kurtosis),
        kurtosis_probability=float(2 * ndtr(-abs(kurtosis))),
    )
