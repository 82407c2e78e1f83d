"""The shift problem: conditioning of gradient descent on shifts, and the floor that frozen weights set.

With the weights frozen, J(t) = 1/(2N) sum_i (fhat(X_i, t) - f(X_i))^2 has the Gauss-Newton matrix

    K = (1/N) F^T F,      F_ik = g'(w_k . X_i + t_k),

so gradient descent of step 1/||K|| contracts by 1 - lambda_min(K)/lambda_max(K), and the error of the
weights leaves a floor that no number of steps removes. Bounds that the source states up to a constant C are
given with C = 1: compare them with each other, not with measured errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.diagnose.incoherence import checked_unit_columns
from unweave.diagnose.learnability import derivative_gram
from unweave.errors import InvalidInput
from unweave.networks.activations import Activation

_SLOPE_ROWS = 4096  # rows of N x m slopes formed at once: limits memory


@dataclass(frozen=True)
class ShiftProblem:
    """Conditioning of the fit of the shifts."""

    smallest: float
    """lambda_min(K): zero means that some combination of shifts does not move the output."""
    largest: float
    """lambda_max(K) = ||K||."""
    step: float
    """1/||K||, the longest step for which descent is proved."""
    rate: float
    """1 - lambda_min/lambda_max, error per step of that length; 0.999 means thousands of steps."""
    condition: float
    """lambda_max/lambda_min, whose root conditions Gauss-Newton, which needs a handful of steps instead."""

    @property
    def steps_per_digit(self) -> float:
        """Gradient steps for one more decimal digit: log(10)/-log(rate)."""
        return float(np.log(10) / -np.log(self.rate)) if 0 < self.rate < 1 else (np.inf if self.rate else 1.0)


@dataclass(frozen=True)
class WeightErrorTerms:
    """Terms by which errors of estimated weights enter the shifts ([identification] sec. 3.4)."""

    largest: float
    """delta_max = max_k |w_k - what_k|."""
    frobenius: float
    """|W - What|_F."""
    accumulated: float
    """|sum_k (w_k - what_k)|: near sqrt(m) delta_max when errors are independent, m delta_max when they
    conspire."""
    cross: float
    """sum_{k != l} |<w_k - what_k, w_l - what_l>|."""
    floor: float
    """Delta_W1 = m^{1/2} log(m)^{3/4} D^{-1/4} (frobenius + (cross/D)^{1/2} + accumulated), C = 1: what the
    refinement cannot go below."""
    admissible: float
    """D^{1/2} / (m sqrt(log m)), C = 1: the largest delta_max for which
    [identification] (3.50) covers the initialization."""
    initial_second: float
    """m^{3/2} (log m / D)^{3/4} delta_max, C = 1: [identification] (3.51) for n = 2 and (3.62), error of the
    initial shifts without that of the differences."""
    initial_third: float
    """m^{3/2} (log m / D)^{5/4} delta_max, C = 1: [identification] (3.51) for n = 3, error of the
    coefficients that decide the signs."""

    @property
    def initialisation_covered(self) -> bool:
        """Whether delta_max is within [identification] (3.50) with C = 1.

        Signs and shifts then follow from derivatives at the origin.
        """
        return self.largest <= self.admissible


def shift_problem(
    weights: Array, shifts: Array, activation: Activation, inputs: Array | None = None
) -> ShiftProblem:
    """Conditioning of the shifts (m,) of unit columns ``weights`` (D, m) on ``inputs`` (N, D).

    Without inputs, in expectation over Gaussian ones (exact, through Hermite coefficients; unit columns
    needed).
    """
    if inputs is None:
        gram = derivative_gram(weights, shifts, activation, 1)
    else:
        gram = shift_gram(weights, shifts, activation, inputs)
    values = scipy.linalg.eigvalsh(gram)
    low, high = max(0.0, float(values[0])), float(values[-1])
    return ShiftProblem(
        smallest=low,
        largest=high,
        step=1 / high if high > 0 else np.inf,
        rate=1 - low / high if high > 0 else 1.0,
        condition=high / low if low > 0 else np.inf,
    )


def shift_gram(weights: Array, shifts: Array, activation: Activation, inputs: Array) -> Array:
    """K (m, m) on ``inputs`` (N, D), a block of rows at a time: 2 N m (D + m) flops."""
    total = np.zeros((weights.shape[1], weights.shape[1]))
    for start in range(0, len(inputs), _SLOPE_ROWS):
        slopes = activation.jet(inputs[start : start + _SLOPE_ROWS] @ weights + shifts, 1)[1]
        total += slopes.T @ slopes
    return total / len(inputs)


def weight_error_terms(weights: Array, estimate: Array) -> WeightErrorTerms:
    """Error terms of ``estimate`` (D, m) against ``weights`` (D, m), unit columns in the same order and
    sign."""
    checked_unit_columns(weights)
    if weights.shape != estimate.shape:
        raise InvalidInput(
            f"estimate must be of shape {weights.shape}, matched to the weights. "
            f"Got {estimate.shape} instead."
        )
    dimension, width = weights.shape
    errors = weights - estimate
    inner = errors.T @ errors
    largest = float(np.sqrt(np.diag(inner).max()))
    frobenius = float(np.linalg.norm(errors))
    accumulated = float(np.linalg.norm(errors.sum(axis=1)))
    cross = float(np.abs(inner).sum() - np.abs(np.diag(inner)).sum())
    log_width = float(np.log(width))
    inside = frobenius + float(np.sqrt(max(cross, 0.0) / dimension)) + accumulated
    return WeightErrorTerms(
        largest=largest,
        frobenius=frobenius,
        accumulated=accumulated,
        cross=max(cross, 0.0),
        floor=width**0.5 * log_width**0.75 * dimension**-0.25 * inside,
        admissible=dimension**0.5 / (width * log_width**0.5) if width > 1 else np.inf,
        initial_second=width**1.5 * (log_width / dimension) ** 0.75 * largest,
        initial_third=width**1.5 * (log_width / dimension) ** 1.25 * largest,
    )
