"""Rank-one members of a subspace of Sym(D) by ascent on the spectral norm ([identification] Alg. 2.1).

The program is to maximize ||M|| over M in V with ||M||_F <= 1, whose value is one exactly at the rank-one
members of V. From a random unit member of V repeat

    u = leading eigenvector of M,       M <- normalise_F( P(M + gamma u u^T) ).

The largest eigenvalue of M grows strictly until M is stationary, which is M = P(u u^T) / lambda_1, and
there lambda_1^2 = ||P(u u^T)||_F^2 = Phi(u): its stationary points are those of the subspace power method.
A step costs an eigendecomposition besides the projection, so that method is the faster of the two
(`unweave.subspace.power_method`); this one is kept as the published reference and as a cross-check.

Departures from the published algorithm: many starts at once, converged ones retired; matrices are kept as
m coefficients in an orthonormal basis, so that the projection of M itself costs nothing; and starts are
drawn until every direction is found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from array_api_compat import array_namespace

from unweave.arrays import AnyArray
from unweave.errors import InvalidInput
from unweave.numerics.clock import check
from unweave.subspace.collector import Collector, CollectorOptions, RankOneDirections
from unweave.subspace.power_method import ROUNDING_MISALIGNMENT, unit_rows
from unweave.subspace.rank_one_space import RankOneSpace


@dataclass(frozen=True)
class SpectralAscentOptions(CollectorOptions):
    """Options of [identification] Alg. 2.1."""

    gamma: float = 2.0
    """Step; every positive one ascends, longer ones in fewer steps."""
    steps: int = 3000
    """Steps after which a start is taken as it stands."""
    tolerance: float = 1e-8
    """A start is retired once a step of gamma = inf would move M by less than this (Frobenius norm)."""
    angle: float = field(default=1e-3, kw_only=True)

    def __post_init__(self) -> None:
        if not 0 < self.gamma < np.inf:
            raise InvalidInput(
                f"gamma must be positive and finite. Got {self.gamma} instead. The source uses values near 2."
            )


def spectral_ascent(
    space: RankOneSpace,
    rng: np.random.Generator,
    acceptance: float = ROUNDING_MISALIGNMENT,
    options: SpectralAscentOptions | None = None,
    on_round: Callable[[int, int, int], None] | None = None,
) -> RankOneDirections:
    """Find all u with u u^T in the subspace, up to ``space.rank`` of them, by [identification] Alg. 2.1.

    Parameters
    ----------
    space
        The subspace, of dimension m.
    acceptance
        Largest 1 - Phi of an accepted direction; about 10 (sigma_{m+1}/sigma_m)^2 for a sampled span.
    on_round
        Called after every batch of starts with (found, m, starts so far).

    Guarantee: Thm. 2.2 where the weights are nearly a tight frame
    (`unweave.diagnose.spectral_ascent_guarantee`). Cost per start and step: 4 p m flops and one D x D
    symmetric eigenproblem.
    """
    options = options or SpectralAscentOptions()
    dimension, wanted = space.packing.dimension, space.rank
    accepted_level = acceptance if options.min_objective is None else 1 - options.min_objective
    collector = Collector(wanted, np.zeros((0, dimension)), np.zeros(0), options, on_round)
    while collector.goes_on:
        check()
        members = space.asarray(rng.standard_normal((wanted, wanted)))
        ends = ascend_spectral_norm(space, members, options)
        directions = np.asarray(ends, dtype=np.float64)
        misalignment = np.asarray(space.misalignment(ends), dtype=np.float64)
        collector.add(directions, misalignment, misalignment <= accepted_level)
    return collector.result()


def ascend_spectral_norm(
    space: RankOneSpace, coefficients: AnyArray, options: SpectralAscentOptions
) -> AnyArray:
    """Leading eigenvectors (n, D) of where the ascent ends from sum_k c_k B_k, rows c of ``coefficients``
    (n, m).

    The rows need not be normalized; B is ``space.basis``. Runs in the array library of the basis.
    """
    xp = array_namespace(coefficients)
    current = unit_rows(coefficients)
    # Start from the sign whose largest eigenvalue is the spectral norm.
    values, _ = xp.linalg.eigh(_matrices(space, current))
    sign = xp.where(values[:, -1] + values[:, 0] < 0, -1.0, 1.0)
    current = current * xp.astype(sign, current.dtype)[:, None]
    active = xp.arange(current.shape[0], device=current.device)
    # M moves by gamma / (lambda_1 + gamma) of what an infinitely long step would.
    tolerance = options.tolerance * options.gamma / (1 + options.gamma)
    for _ in range(options.steps):
        check()
        members = xp.take(current, active, axis=0)
        _, vectors = xp.linalg.eigh(_matrices(space, members))
        gradient = space.packing.outer(vectors[:, :, -1]) @ space.basis
        moved = unit_rows(members + options.gamma * gradient)
        current[active] = moved
        active = active[xp.linalg.vector_norm(moved - members, axis=1) >= tolerance]
        if active.shape[0] == 0:
            break
    return xp.linalg.eigh(_matrices(space, current))[1][:, :, -1]


def _matrices(space: RankOneSpace, coefficients: AnyArray) -> AnyArray:
    """(n, D, D) members of the subspace with these coefficients (n, m)."""
    return space.packing.unpack(coefficients @ space.basis.T)
