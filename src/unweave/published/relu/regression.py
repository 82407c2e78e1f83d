"""Linear regression on known directions and biases ([hermite] Alg. 5), and its network of m + 2 units.

Given (w~_i, b~_i), i = 1 .. m, right up to a common sign, f is linear in |w~_i . x + b~_i|, x and 1:

    f(x) = sum_i h_i |w~_i . x + b~_i| + v . x + c.

(The source takes relu(+-(w~ . x + b~)) for all sign patterns; with x and 1 among the features one absolute
value per unit spans the same functions.) Strongly biased units that no direction was found for are affine
on almost all inputs and end up in v and c. As ReLU units only (Claim D.14), with beta w0 = v - sum_i h_i
w~_i, |w0| = 1, and beta b0 = c - sum_i h_i b~_i,

    f(x) = sum_i 2 h_i relu(w~_i . x + b~_i) + beta relu(w0 . x + b0) - beta relu(-w0 . x - b0).

`learn_by_regression` takes directions and biases from the moments of one half of the samples (Alg. 4)
and regresses on the other half. No signs are needed, and units that the moments missed do no harm beyond
their own size: the network predicts well even where parameters are not determined.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.network import Network
from unweave.numerics.hermite.estimated_coefficients import in_batches
from unweave.published.relu.gaussian_samples import GaussianSampleOptions, recover_from_gaussian_samples
from unweave.published.relu.spectral_recovery import SpectralRecovery


@dataclass(frozen=True, eq=False)
class UnitRegression:
    """The fit and its residual."""

    form: AbsoluteForm
    residual: float
    """Norm of y - f(x) relative to that of y, on the rows that were fitted."""
    rows: int
    """Rows used: those whose features are shorter than the truncation."""

    def to_network(self) -> Network:
        """The m + 2 unit network of [hermite] Claim D.14, without skip and without output bias."""
        return without_affine_part(self.form)


@dataclass(frozen=True)
class RegressionBounds:
    """Truncation of the features and radius of the coefficients, as the analysis requires."""

    truncation: float
    """tau: rows with longer features are left out."""
    radius: float
    """Largest |beta|."""

    @staticmethod
    def published(width: int, dimension: int, found: int, bound: float, accuracy: float) -> RegressionBounds:
        """tau = 20 m (8 |S| + d) B sqrt(log(m d B |S| / eps)), |beta| <= sqrt(8 |S|) + m (1 + B)."""
        logarithm = np.log(width * dimension * bound * max(found, 1) / accuracy)
        truncation = 20 * width * (8 * found + dimension) * bound * np.sqrt(max(logarithm, 1.0))
        return RegressionBounds(float(truncation), float(np.sqrt(8 * found) + width * (1 + bound)))


def regress_on_units(
    x: Array, y: Array, weights: Array, biases: Array, bounds: RegressionBounds | None = None
) -> UnitRegression:
    """Fit y (n,) at x (n, d) by units with directions (d, m) and biases (m,).

    Plain least squares unless ``bounds`` are given; these only matter for the analysis of heavy tails.
    Cost: one orthogonal factorization of (n, m + d + 1).
    """
    width, dimension = len(biases), x.shape[1]
    features = np.concatenate([np.abs(x @ weights + biases), x, np.ones((len(x), 1))], axis=1)
    labels = y
    if bounds is not None:
        short = np.linalg.norm(features, axis=1) < bounds.truncation
        features, labels = features[short], y[short]
    if len(features) < features.shape[1]:
        raise InvalidInput(
            f"x must have at least {features.shape[1]} usable rows. Got {len(features)} instead. Add samples."
        )
    beta = _least_squares(features, labels, None if bounds is None else bounds.radius)
    size = float(np.linalg.norm(labels))
    residual = float(np.linalg.norm(labels - features @ beta)) / size if size > 0 else 0.0
    heights, slope, offset = np.split(beta, [width, width + dimension])
    form = AbsoluteForm(weights, biases, heights[:, None], slope[:, None], offset)
    return UnitRegression(form, residual, len(labels))


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


def without_affine_part(form: AbsoluteForm) -> Network:
    """The ReLU network of m + 2 units that equals ``form`` with one output ([hermite] Claim D.14)."""
    heights = form.heights[:, 0]
    slope = form.slope[:, 0] - form.weights @ heights
    offset = float(form.offset[0] - form.biases @ heights)
    size = float(np.linalg.norm(slope))
    direction = slope / size if size > 0 else np.zeros_like(slope)
    # Without a slope the pair is a constant: relu(b0) - relu(-b0) = b0 for weights zero and beta one.
    beta = size if size > 0 else 1.0
    weights = np.concatenate([form.weights, direction[:, None], -direction[:, None]], axis=1)
    biases = np.concatenate([form.biases, [offset / beta, -offset / beta]])
    outer = np.concatenate([2 * heights, [beta, -beta]])
    return Network([weights, outer[:, None]], [biases, np.zeros(1)], ["relu", "identity"])


def _least_squares(features: Array, labels: Array, radius: float | None) -> Array:
    """argmin |features beta - labels| over |beta| <= radius (None: everywhere)."""
    left, values, right = np.linalg.svd(features, full_matrices=False)
    coordinates = left.T @ labels
    usable = values > values[0] * max(features.shape) * np.finfo(np.float64).eps

    def solution(ridge: float) -> Array:
        filtered = np.where(usable, values / np.where(usable, values**2 + ridge, 1.0), 0.0)
        return np.asarray(filtered * coordinates)

    if radius is None or np.linalg.norm(solution(0.0)) <= radius:
        return np.asarray(right.T @ solution(0.0))
    # |beta(ridge)| falls, and is below |features^T labels| / ridge: the root is bracketed.
    highest = float(np.linalg.norm(values * coordinates)) / radius
    ridge = brentq(lambda r: float(np.linalg.norm(solution(r))) - radius, 0.0, highest)
    return np.asarray(right.T @ solution(ridge))
