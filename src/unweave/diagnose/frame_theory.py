"""Guarantees of the linear-regime theorems for nearly tight frames, with their hypotheses checked;
certificates.

Weights satisfy the frame condition with constant nu when (1 - nu)|x|^2 <= sum_k <w_k, x>^2 <= (1 + nu)|x|^2;
delta is the error of the subspace, the norm of the difference of the projections onto span{w_k w_k^T} and
its estimate. Each function returns whether the hypotheses hold, and the bounds: nan where they do not.
The constants are sharp only for tiny nu and delta; the algorithms work far beyond, so a failed hypothesis
is no verdict on the result.
What needs no hypothesis are the certificates of found directions and spans: alignment, rate, sensitivity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.subspace.rank_one_space import RankOneSpace


@dataclass(frozen=True)
class TwoLevels:
    """A dichotomy of maximizers: good ones lie at or above one level, spurious ones at or below another."""

    holds: bool
    """Whether the theorem's hypotheses hold; if not, both levels are nan."""
    good_at_least: float
    """Every maximizer above ``spurious_at_most`` reaches at least this: nearer to one is nearer to a
    weight."""
    spurious_at_most: float
    """No spurious maximizer exceeds this: a threshold anywhere between the two levels separates them."""


@dataclass(frozen=True)
class MaximiserNearWeight:
    """Existence of a maximizer near every weight ([identification] Prop. 2.1)."""

    holds: bool
    """Whether 4 nu + nu^2 + 6 delta < 1; if not, both bounds are nan."""
    objective_at_least: float
    """Phi of that maximizer: no weight is lost by a threshold below this."""
    squared_overlap_at_least: float
    """<u, w_k>^2 of that maximizer."""


@dataclass(frozen=True)
class CountOfMaximisers:
    """Exactly the weights above a threshold ([identification] Thm. 2.8)."""

    holds: bool
    """Whether 44 delta + 60 nu - 120 delta nu < 1; if not, both bounds are nan."""
    threshold: float
    """Above it Phi has exactly 2m critical points, one per signed weight: accepting by it finds all and
    only them."""
    distance_at_most: float
    """Distance sqrt(delta) of each of them to its weight."""


@dataclass(frozen=True)
class DistanceToWeight:
    """A posteriori distance of a leading eigenvector to a weight ([identification] Thm. 2.1, Cor. 2.2)."""

    holds: bool
    """Whether the spectral gap exceeds what nu and delta can hide; if not, the bound is infinite."""
    distance_at_most: float
    """min_s |u - s w|; above sqrt(2) it says nothing."""


@dataclass(frozen=True)
class FrameTheory:
    """All linear-regime theorems at one (nu, delta)."""

    frame_constant: float
    """nu; the theorems want it below a few hundredths."""
    subspace_error: float
    """delta; zero for the exact span."""
    spectral_ascent: TwoLevels
    """[identification] Thm. 2.2, levels of lambda_1^2: what Alg. 2.1 may converge to."""
    power_method: TwoLevels
    """[identification] Thm. 2.7, levels of Phi: what Alg. 2.2 may converge to."""
    maximiser: MaximiserNearWeight
    """[identification] Prop. 2.1: whether every weight can be found."""
    count: CountOfMaximisers
    """[identification] Thm. 2.8: whether the threshold is exact."""
    distance: DistanceToWeight
    """[identification] Thm. 2.6: how near good maximizers of Phi are to weights, before any is found."""


def frame_theory(frame_constant: float, subspace_error: float = 0.0) -> FrameTheory:
    """Every theorem of the linear regime at nu = ``frame_constant`` and delta = ``subspace_error``."""
    nu, delta = frame_constant, subspace_error
    return FrameTheory(
        frame_constant=nu,
        subspace_error=delta,
        spectral_ascent=spectral_ascent_guarantee(nu, delta),
        power_method=power_method_guarantee(nu, delta),
        maximiser=maximiser_guarantee(nu, delta),
        count=count_guarantee(nu, delta),
        distance=distance_guarantee(nu, delta),
    )


def spectral_ascent_guarantee(nu: float, delta: float) -> TwoLevels:
    """[identification] Thm. 2.2: lambda_1^2 >= 1 - s or <= s for s = 38 delta + 13 nu < 1/4."""
    _check(nu, delta)
    loss = 38 * delta + 13 * nu
    holds = loss < 1 / 4
    return TwoLevels(holds, 1 - loss if holds else np.nan, loss if holds else np.nan)


def power_method_guarantee(nu: float, delta: float) -> TwoLevels:
    """[identification] Thm. 2.7: Phi >= 1 - 6 nu/(1+nu) - 18 delta or <= 9 (1+nu)/(1-nu) delta at every
    local maximizer."""
    _check(nu, delta)
    c = 3 * nu / (1 + nu)
    holds = nu < 1 and c + 11 * delta < 1 and delta < (1 - c) ** 2 / 22
    if not holds:
        return TwoLevels(False, np.nan, np.nan)
    return TwoLevels(True, 1 - 2 * c - 18 * delta, 9 * (1 + nu) / (1 - nu) * delta)


def maximiser_guarantee(nu: float, delta: float) -> MaximiserNearWeight:
    """[identification] Prop. 2.1: near every weight a maximizer with Phi >= 1 - delta."""
    _check(nu, delta)
    if not 4 * nu + nu**2 + 6 * delta < 1:
        return MaximiserNearWeight(False, np.nan, np.nan)
    return MaximiserNearWeight(True, 1 - delta, (1 - 3 * delta) * (1 - nu) / (1 + nu))


def count_guarantee(nu: float, delta: float) -> CountOfMaximisers:
    """[identification] Thm. 2.8: exactly 2m critical points above (43 - 60 nu)/(1 - 60 nu) delta, each within
    sqrt(delta) of a weight."""
    _check(nu, delta)
    if not (60 * nu < 1 and 44 * delta + 60 * nu - 120 * delta * nu < 1):
        return CountOfMaximisers(False, np.nan, np.nan)
    return CountOfMaximisers(True, (43 - 60 * nu) / (1 - 60 * nu) * delta, float(np.sqrt(delta)))


def eigenvector_distance(
    leading: float, second: float, remaining: float, nu: float, delta: float
) -> DistanceToWeight:
    """[identification] Thm. 2.1: distance of the leading eigenvector u of M to a weight.

    For M = sum_k sigma_k P(w_k w_k^T), |M|_F <= 1,

        min_s |u - s w_1| <= sqrt(2) (sqrt(nu) |sigma_2..m| + 2 delta) / ((1 - nu) lambda_1 - lambda_2 - 2
        delta)

    ``leading`` and ``second`` are the two largest eigenvalues, ``remaining`` is |sigma_2..m|.
    """
    _check(nu, delta)
    gap = (1 - nu) * leading - second - 2 * delta
    if not gap > 0:
        return DistanceToWeight(False, np.inf)
    return DistanceToWeight(True, float(np.sqrt(2) * (np.sqrt(nu) * remaining + 2 * delta) / gap))


def direction_distance(
    objective: float, nu: float, delta: float, remaining: float | None = None
) -> DistanceToWeight:
    """[identification] Cor. 2.2: the same for a maximizer u of Phi.

    There lambda_1 = Phi(u) and lambda_2 <= sqrt(Phi (1 - Phi)).
    Without ``remaining`` it is bounded by |sigma| <= sqrt(Phi) / ((1 - delta) sqrt(1 - nu)), because
    lambda_min(G_2) >= 1 - nu under the frame condition and the projection shrinks by at most 1 - delta.
    """
    _check(nu, delta)
    if not (nu < 1 and delta < 1 and 0 <= objective <= 1):
        return DistanceToWeight(False, np.inf)
    if remaining is None:
        remaining = float(np.sqrt(objective / (1 - nu)) / (1 - delta))
    return eigenvector_distance(objective, float(np.sqrt(objective * (1 - objective))), remaining, nu, delta)


def distance_guarantee(nu: float, delta: float, remaining: float | None = None) -> DistanceToWeight:
    """[identification] Thm. 2.6, (2.33): distance to a weight of every maximizer of Phi above 9 (1+nu)/(1-nu)
    delta, before any is found.

        min_s |u - s w_1| <= sqrt(2) (sqrt(nu) |sigma_2..m| + 2 delta) / ((1 - nu) phi - sqrt(1 - phi) - 2
        delta)

    with phi = 1 - 6 nu/(1 + nu) - 18 delta, the level of Thm. 2.7. ``remaining`` is |sigma_2..m|, bounded as
    in `direction_distance` at Phi = 1 if it is not given.
    """
    levels = power_method_guarantee(nu, delta)
    if not levels.holds or not levels.good_at_least > 0:
        return DistanceToWeight(False, np.inf)
    phi = levels.good_at_least
    if remaining is None:
        remaining = float(np.sqrt(1 / (1 - nu)) / (1 - delta))
    return eigenvector_distance(phi, float(np.sqrt(1 - phi)), remaining, nu, delta)


def _check(nu: float, delta: float) -> None:
    if not (nu >= 0 and delta >= 0):
        raise InvalidInput(
            f"frame constant and subspace error must be non-negative. Got {nu} and {delta} instead."
        )


@dataclass(frozen=True, eq=False)
class DirectionCertificates:
    """One entry per direction."""

    misalignment: Array
    """(n,) 1 - Phi(u), the squared distance of u u^T to the span: of the order of the span's squared error
    for a true weight, of order one for anything else."""
    stationarity: Array
    """(n,) |P(u u^T) u - Phi(u) u|: zero at a maximizer; above the convergence tolerance the search stopped
    early."""
    rate: Array
    """(n,) rho, contraction of the power step at u: one or more means that u is no isolated maximizer."""
    sensitivity: Array
    """(n,) 1/(1 - rho): how much an error of the span is magnified in u; inf when rho >= 1."""


def direction_certificates(space: RankOneSpace, directions: Array) -> DirectionCertificates:
    """Certificates of unit rows ``directions`` (n, D) in ``space``.

    rho = max over unit v orthogonal to u of (2 |P(u v^T)|_F^2 + v^T P(u u^T) v) / Phi(u); with a finite
    gamma the power method contracts by (1 + 2 gamma Phi rho)/(1 + 2 gamma Phi). Cost: O(m D^2 + D^3) flops
    per direction.
    """
    misalignment = np.asarray(space.misalignment(directions), dtype=np.float64)
    objective, image = space.objective_and_image(directions)
    stationarity = np.linalg.norm(image - objective[:, None] * directions, axis=1)
    rate = np.asarray(space.contraction_rates(directions), dtype=np.float64)
    sensitivity = np.where(rate < 1, 1 / np.where(rate < 1, 1 - rate, 1.0), np.inf)
    return DirectionCertificates(misalignment, stationarity, rate, sensitivity)


def subspace_error(first: Array, second: Array) -> float:
    """delta = ||P_1 - P_2||, the sine of the largest principal angle, of two orthonormal bases (p, m) of
    one rank.

    From the part of one basis that lies outside the other, so that small angles keep their digits.
    """
    outside = first - second @ (second.T @ first)
    return float(min(1.0, scipy.linalg.svdvals(outside)[0]))
