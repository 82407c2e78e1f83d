"""Directions of more units than inputs, by the subspace power method on T_4 and T_5.

T_4 flattened to Sym(d) x Sym(d) is sum_i a_i He_2(b_i) phi(b_i) (w_i w_i^T) (x) (w_i w_i^T) and T_5
flattened to Sym(d) x Sym^3 has the same left factors with He_3(b_i): the column space of

    T_4 T_4^T + s T_5 T_5^T      (packed, p x p with p = d (d + 1) / 2)

is span{w_i w_i^T} (no unit is missed by both), and its rank-one members are the units (`unweave.subspace`).
Compared with Jennrich on T_5 and T_6 ([hermite] Alg. 4 with l = 2) no sixth moment is needed, which is the
noisiest. Works for generic m < d (d - 1) / 2. Under noise the squares lie only near the subspace, so all
end points of many starts are kept and the best m distinct ones chosen, instead of those within rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.numerics.hermite.tensors import HermiteTensors
from unweave.subspace.collector import best_distinct
from unweave.subspace.power_method import newton_ascent, power_iterations, uniform_starts
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing


@dataclass(frozen=True)
class OvercompleteOptions:
    """Starts, steps and the weight of T_5."""

    fifth_weight: float = 0.05
    """s: about the ratio of the squared relative errors of T_4 and T_5."""
    starts: int = 40
    """Per unit. Fewer miss units more often."""
    power_steps: int = 100
    newton_steps: int = 50
    tolerance: float = 1e-12
    radii: tuple[float, ...] = (0.5, 0.3, 0.2, 0.1, 0.03, 0.005)
    """Radians below which two directions are one, tried in turn until m remain."""


@dataclass(frozen=True, eq=False)
class OvercompleteDirections:
    """Directions up to sign and how close their squares lie to the subspace."""

    weights: Array
    """w~, (d, m') unit columns, m' <= m."""
    misalignment: Array
    """(m',) 1 - |P(w w^T)|^2: zero without noise."""
    singular_values: Array
    """(p,) of [T_4, sqrt(s) T_5]: m of them stand out."""


def overcomplete_directions(
    coefficients: HermiteTensors,
    width: int,
    rng: np.random.Generator,
    options: OvercompleteOptions | None = None,
) -> OvercompleteDirections:
    """Directions of ``width`` units from T_4 and T_5. Fewer come back if fewer maxima were found."""
    options = options or OvercompleteOptions()
    dimension = coefficients.dimension
    packing = symmetric_packing(dimension)
    if not 0 < width < packing.size:
        raise InvalidInput(
            f"width must be between 1 and {packing.size - 1} for {dimension} inputs. Got {width} instead. "
            f"Wider layers are not determined by moments of order 5."
        )
    stacked = np.concatenate(
        [
            coefficients.flattened(2, 2),
            np.sqrt(options.fifth_weight) * coefficients.flattened(2, 3),
        ],
        axis=1,
    )
    basis, values, _ = np.linalg.svd(stacked, full_matrices=False)
    space = RankOneSpace(np.ascontiguousarray(basis[:, :width]), packing)
    starts = uniform_starts(options.starts * width, dimension, rng)
    ends = power_iterations(space, starts, np.inf, options.power_steps, options.tolerance)
    ends = np.asarray(newton_ascent(space, ends, options.newton_steps, options.tolerance))
    misalignment = np.asarray(space.misalignment(ends))
    order = np.argsort(misalignment)
    chosen = order[best_distinct(ends[order], width, options.radii)]
    return OvercompleteDirections(np.ascontiguousarray(ends[chosen].T), misalignment[chosen], values)
