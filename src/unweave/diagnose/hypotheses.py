"""Hypotheses of the identification theorems, checked on a given network, and the numbers that they yield.

**Activation** (SNM1, SNM2; DNM1, DNM2). kappa = max of |g'|, |g''|, |g'''|; g'' strictly monotone around the
shifts; g' of one sign there; a mean slope E g'(Z + tau) of one sign; g, g', g'' no polynomials of degree 3.

**Weights.** The largest sum of squares sum_{k != l} <w_k, w_l>^2 below 1 makes all w_k w_k^T independent
(Lemma 2.2). With the Babel function mu_1(p) = max_l sum of the p largest |<w_k, w_l>|, fewer than
min{k : mu_1(k-1) >= 1} weights are independent whichever they are (spark). If that exceeds ceil(m/2) + 1 and
m <= 2 D - 1, the span of the w_k w_k^T holds no other matrix of rank one (Lemma 2.4). mu_1(p - 1) also bounds
the isometry constant of p columns from above; subsets chosen greedily bound it from below.

**Numbers of samples.** By the matrix Chernoff inequality, N Hessians show at least half of alpha in all
directions but for D^2 exp(-N alpha / (8 K)), K = kappa^2 sum_{k,l} <w_k, w_l>^2 bounding the squared norm of
a Hessian ((3.27), whose K is bounded once more by coherence). N inputs condition the shifts to lambda/4 but
for m exp(-N lambda / (6 m kappa^2)) (3.128).

**Basin of the shifts.** If |grad J - grad J_*| <= L e^2 + Delta at distance e, L = 2 kappa^2 sqrt(m), descent
of step gamma <= 1/||A|| has e' <= (1 - gamma lambda) e + gamma (L e^2 + Delta). So it stays where
e <= lambda/(2 L), and ends at 2 Delta / lambda, as long as Delta <= lambda^2 / (4 L). (Lemma 3.14 compares
two iterations instead, and asks for more.)

**Spans.** ||P - P^|| <= 2 |M - M^|_F / sigma_m(M) for exact M (Prop. 1.1, after Wedin).

Citations are of [identification].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.diagnose.incoherence import checked_unit_columns
from unweave.errors import InvalidInput
from unweave.networks.activations import Activation

_GRID = np.linspace(-12.0, 12.0, 24_001)  # where derivatives are looked at: usual units are flat beyond
_FAR = np.array([-1e3, -1e2, 1e2, 1e3])
_UNBOUNDED = 1.5  # growth of a derivative from 100 to 1000 that no bounded one shows
_POLYNOMIAL_DEGREE = 3  # of the polynomials that SNM2 excludes
_VANISHING = 1e-9  # Hermite coefficient over the largest: smaller ones are rounding


@dataclass(frozen=True)
class ActivationHypotheses:
    """What a theorem asks of the activation, and whether it is so."""

    bounded: bool
    """Whether three derivatives exist and are bounded (SNM1, DNM1)."""
    kappa: float
    """Largest |g'|, |g''|, |g'''|; infinite if unbounded."""
    monotone_second: bool
    """Whether g'' is strictly monotone on an interval that holds all shifts (SNM1)."""
    one_sign: bool
    """Whether g' has one sign on that interval (SNM1)."""
    mean_slope_one_sign: bool
    """Whether E g'(Z + tau) has one sign for all shifts (SNM1)."""
    not_polynomial: bool
    """Whether g, g' and g'' are no polynomials of degree 3 (SNM2), and g'' does not vanish (DNM2)."""

    @property
    def shallow(self) -> bool:
        """Whether SNM1 and SNM2 hold."""
        return all(
            (self.bounded, self.monotone_second, self.one_sign, self.mean_slope_one_sign, self.not_polynomial)
        )

    @property
    def deep(self) -> bool:
        """Whether DNM1 and DNM2 hold."""
        return self.bounded and self.not_polynomial


def activation_hypotheses(activation: Activation, shifts: Array) -> ActivationHypotheses:
    """Check SNM1 and SNM2 for units of this activation with these ``shifts`` (m,).

    Example:
        >>> from unweave.networks.activations import get_activation
        >>> found = activation_hypotheses(get_activation("tanh"), np.array([-0.3, 0.5]))
        >>> found.shallow, round(found.kappa, 3)
        (True, 2.0)
    """
    if not activation.smooth:
        return ActivationHypotheses(False, np.inf, False, False, False, False)
    derivatives = activation.jet(_GRID, 3)[1:]
    far = activation.jet(_FAR, 3)[1:]
    grows = any(
        abs(d[end]) > _UNBOUNDED * max(abs(d[start]), np.finfo(np.float64).tiny) and abs(d[end]) > 1
        for d in far
        for end, start in ((0, 1), (3, 2))
    )
    kappa = float(max(np.abs(d).max() for d in (*derivatives, *far)))
    reach = float(np.abs(shifts).max(initial=0.0))
    inside = np.abs(_GRID) <= max(reach, 1e-3)
    slopes = derivatives[0][inside]
    means = activation.hermite_coefficients(1, np.linspace(-reach, reach, 41), derivative=1)[:, 0]
    # g is a polynomial of degree 3 + n where all coefficients of g^(n) from the fourth on vanish.
    tails = [
        np.abs(activation.hermite_coefficients(12, 0.3, derivative=n)) for n in range(3)
    ]  # at a shift, so that no symmetry hides them
    free = all(tail[_POLYNOMIAL_DEGREE + 1 :].max() > _VANISHING * tail.max() for tail in tails)
    width = activation.monotone_second
    return ActivationHypotheses(
        bounded=not grows,
        kappa=np.inf if grows else kappa,
        monotone_second=width is not None and reach <= width,
        one_sign=bool(np.all(slopes > 0) or np.all(slopes < 0)),
        mean_slope_one_sign=bool(np.all(means > 0) or np.all(means < 0)),
        not_polynomial=bool(free),
    )


@dataclass(frozen=True, eq=False)
class Independence:
    """How many of the weights are independent, and whether the span holds other rank-one matrices."""

    row_sum: float
    """max_l sum_{k != l} <w_k, w_l>^2; below 1 all w_k w_k^T are independent (Lemma 2.2)."""
    babel: Array
    """(m,): mu_1(0), mu_1(1), ..., mu_1(m - 1)."""
    spark_at_least: int
    """Any fewer weights are independent; at most D + 1."""
    only_rank_ones: bool
    """Whether Lemma 2.4 applies: the span of the w_k w_k^T holds no other rank-one matrix."""

    def isometry(self, columns: int) -> float:
        """An upper bound of the isometry constant of any ``columns`` weights: mu_1(columns - 1)."""
        if not 1 <= columns <= len(self.babel):
            raise InvalidInput(
                f"columns must be 1 to {len(self.babel)}. Got {columns} instead. Count weights."
            )
        return float(self.babel[columns - 1])


def independence(weights: Array) -> Independence:
    """Row sum, Babel function and spark of unit columns ``weights`` (D, m).

    Example:
        >>> found = independence(np.eye(4)[:, :3])
        >>> found.spark_at_least, found.only_rank_ones
        (4, True)
    """
    checked_unit_columns(weights)
    dimension, width = weights.shape
    overlap = np.abs(weights.T @ weights)
    np.fill_diagonal(overlap, 0.0)
    largest_first = -np.sort(-overlap, axis=1)
    babel = np.append(0.0, np.cumsum(largest_first, axis=1)[:, : width - 1].max(axis=0))
    reached = np.flatnonzero(babel >= 1)
    spark = int(reached[0]) + 1 if len(reached) else width + 1
    spark = min(spark, dimension + 1)
    return Independence(
        row_sum=float((overlap**2).sum(axis=1).max()),
        babel=babel,
        spark_at_least=spark,
        only_rank_ones=width <= 2 * dimension - 1 and spark > -(-width // 2) + 1,
    )


def isometry_bracket(weights: Array, columns: int, starts: int = 20, seed: int = 0) -> tuple[float, float]:
    """Bounds of max over ``columns`` weights of ||W_p^T W_p - 1||: a greedy subset below, Babel's above.

    The constant itself takes all subsets. Unit columns ``weights`` (D, m).
    """
    upper = independence(weights).isometry(columns)
    width = weights.shape[1]
    excess = weights.T @ weights - np.eye(width)
    rng = np.random.default_rng(seed)
    best = 0.0
    for first in rng.permutation(width)[:starts]:
        chosen = [int(first)]
        while len(chosen) < columns:
            # The next weight is the one that the leading direction of the subset so far overlaps most.
            values, vectors = np.linalg.eigh(excess[np.ix_(chosen, chosen)])
            leading = vectors[:, np.argmax(np.abs(values))]
            pull = np.abs(excess[:, chosen] @ leading)
            pull[chosen] = -1.0
            chosen.append(int(np.argmax(pull)))
        best = max(best, float(np.linalg.norm(excess[np.ix_(chosen, chosen)], 2)))
    return best, upper


def span_error_bound(perturbation: float, smallest: float) -> float:
    """Bound of ||P - P^|| for matrices off by ``perturbation`` in all (Frobenius), of m-th singular value.

    ``smallest`` is sigma_m of the exact ones (Prop. 1.1); with that of the measured ones half of it holds.
    """
    return 2 * perturbation / smallest if smallest > 0 else np.inf


def hessians_needed(weights: Array, kappa: float, learnability: float, failure: float = 0.01) -> int:
    """Number of Gaussian Hessians whose sum shows half of the expected alpha, but for ``failure`` (3.27).

    Example:
        >>> from unweave.diagnose import unit_columns
        >>> w = unit_columns(np.random.default_rng(0).standard_normal((20, 10)))[0]
        >>> bool(hessians_needed(w, 2.0, 0.1) < hessians_needed(w, 2.0, 0.01))
        True
    """
    checked_unit_columns(weights)
    _check_probability(failure)
    if not learnability > 0:
        raise InvalidInput(f"learnability must be positive. Got {learnability} instead. No number will do.")
    largest = kappa**2 * float(np.sum((weights.T @ weights) ** 2))
    return int(np.ceil(8 * largest / learnability * np.log(len(weights) ** 2 / failure)))


def inputs_needed(width: int, kappa: float, smallest: float, failure: float = 0.01) -> int:
    """Number of Gaussian inputs that condition the shifts to a quarter of ``smallest`` (3.128)."""
    _check_probability(failure)
    if not smallest > 0:
        raise InvalidInput(f"smallest must be positive. Got {smallest} instead. No number will do.")
    return int(np.ceil(6 * width * kappa**2 / smallest * np.log(width / failure)))


@dataclass(frozen=True)
class ShiftBasin:
    """From where gradient descent on shifts arrives."""

    radius: float
    """lambda / (2 L): Euclidean distance of the start from the shifts."""
    largest_error: float
    """lambda^2 / (4 L): error Delta of the gradient that is borne."""
    floor_per_error: float
    """2 / lambda: distance left per Delta."""


def shift_basin(width: int, kappa: float, smallest: float) -> ShiftBasin:
    """Basin for m = ``width`` shifts with lambda_min(A) = ``smallest``, L = 2 kappa^2 sqrt(m)."""
    curvature = 2 * kappa**2 * float(np.sqrt(width))
    return ShiftBasin(smallest / (2 * curvature), smallest**2 / (4 * curvature), 2 / smallest)


def _check_probability(failure: float) -> None:
    if not 0 < failure < 1:
        raise InvalidInput(f"failure must be between 0 and 1. Got {failure!r} instead. For example 0.01.")
