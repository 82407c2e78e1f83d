"""Certificates of found directions and spans: alignment, rate, sensitivity, distance of spans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.subspace.rank_one_space import RankOneSpace


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
