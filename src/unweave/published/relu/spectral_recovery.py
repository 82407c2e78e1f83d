"""From Hermite coefficients to a ReLU network: directions, scalars, signs ([hermite] Algs. 1, 4 and 6).

    directions    published (Jennrich on T_{2l+1}, T_{2l+2}), pencil (m <= d), or power (T_4, T_5; m > d)
    scalars       Alg. 2 on T_2, T_3 (l = 1) or T_l .. T_{l+3}
    signs         Alg. 3 on T_1 where the directions are independent, else a search

With exact coefficients and l = 1 this is Alg. 1; with noise levels its directions and thresholds are
those of Alg. 4, and followed by Alg. 3 it is Alg. 6.

The power method finds more units than inputs. T_4 flattened to Sym(d) x Sym(d) is
sum_i a_i He_2(b_i) phi(b_i) (w_i w_i^T) (x) (w_i w_i^T) and T_5 flattened to Sym(d) x Sym^3 has the same left
factors with He_3(b_i): the column space of

    T_4 T_4^T + s T_5 T_5^T      (packed, p x p with p = d (d + 1) / 2)

is span{w_i w_i^T} (no unit is missed by both), and its rank-one members are the units (`unweave.subspace`).
Compared with Jennrich on T_5 and T_6 ([hermite] Alg. 4 with l = 2) no sixth moment is needed, which is the
noisiest. Works for generic m < d (d - 1) / 2. Under noise the squares lie only near the subspace, so all
end points of many starts are kept and the best m distinct ones chosen, instead of those within rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.network import Network
from unweave.networks.signs import SIGN_TOLERANCE, solve_signs, to_network
from unweave.numerics.hermite.tensors import HermiteTensors
from unweave.published.relu.jennrich import pencil_directions, tensor_contraction
from unweave.published.relu.published_depth2 import SpectralOptions, count_units, published_directions
from unweave.published.relu.relu_units import ReLUUnits, relu_coefficient
from unweave.published.relu.unit_scalars import (
    UnitScalars,
    absolute_form,
    fix_signs,
    fix_signs_by_affine_rest,
    recover_scalars,
)
from unweave.subspace.collector import best_distinct
from unweave.subspace.power_method import newton_ascent, power_iterations, uniform_starts
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing

DirectionMethod = Literal["published", "pencil", "power"]

_FAINT_LEVELS = 3.0  # coefficient in T_2 in noise levels: units below it belong to the affine part


@dataclass(frozen=True, eq=False)
class SpectralRecovery:
    """Units, as far as the coefficients determine them."""

    form: AbsoluteForm
    """The function without signs: always defined."""
    signs: Array
    """xi, (m,)."""
    signs_known: bool
    """Whether one sign pattern explains the affine part, and no other does."""
    sign_values: Array
    """(m,) what the signs were read off: xi up to errors where directions are independent, else xi itself."""
    mean: float
    """T_0, which fixes the output's bias."""
    figures: dict[str, float]
    """Eigenvalue gaps, ranks and the like."""
    alternatives: tuple[Array, ...] = ()
    """Other patterns (m,) of signs that give the same function ([hermite] Claim 4.8)."""

    @property
    def units(self) -> ReLUUnits:
        """The units with these signs; the affine rest that they do not explain is left out."""
        weights, biases = self.form.weights * self.signs, self.form.biases * self.signs
        outer = 2 * self.form.heights[:, 0]
        return ReLUUnits(weights, biases, outer, self.mean - float(outer @ relu_coefficient(0, biases)))

    def to_network(self) -> Network:
        """A ReLU `Network`: with a skip matrix for the affine part if no signs explain it."""
        if self.signs_known:
            return self.units.to_network()
        solution = solve_signs(self.form)
        return to_network(self.form, solution)


def recover_from_coefficients(
    coefficients: HermiteTensors,
    rng: np.random.Generator,
    *,
    width: int | None = None,
    order: int = 1,
    directions: DirectionMethod | None = None,
    noise: Mapping[int, float] | None = None,
    published_signs: bool = False,
    sign_tolerance: float = SIGN_TOLERANCE,
    options: SpectralOptions | None = None,
    overcomplete: OvercompleteOptions | None = None,
) -> SpectralRecovery:
    """Recover sum_i a_i relu(w_i . x + b_i) + c from T_0, T_1, ... (T_4 for order 1, T_6 or T_5 for order 2).

    Args:
        width: m; None counts the units by the rank of T_2 (order 1) or of T_4 and T_5 (order 2).
        order: l: 1 for linearly independent w_i, 2 for up to d (d + 1) / 2 units.
        directions: Default: the pencil for order 1, the power method for order 2, "published" for others,
            which is Jennrich for any order.
        noise: nu_k by order; None says that the coefficients are exact.
        published_signs: [hermite] Alg. 3 as published, without subtracting the even part.
        sign_tolerance: misfit up to which a pattern of signs explains the affine part, for order >= 2.

    Example:
        >>> from unweave.published.relu.relu_units import hermite_coefficients
        >>> units = ReLUUnits(np.eye(3)[:, :2], np.array([0.0, 1.0]), np.array([1.0, -2.0]))
        >>> found = recover_from_coefficients(hermite_coefficients(units, 4), np.random.default_rng(0))
        >>> bool(np.allclose(np.sort(found.units.outer), [-2, 1]))
        True
    """
    if width is None:
        width = count_units(coefficients, order, noise, options)
    if directions is None:
        directions = "pencil" if order == 1 else "power" if order == 2 else "published"
    weights, figures = _directions(coefficients, rng, width, order, directions, noise, options, overcomplete)
    scalars = recover_scalars(coefficients, weights, order)
    weights, scalars = _without_faint(weights, scalars, 0.0 if noise is None else noise.get(2, 0.0))
    figures = {**figures, "width": float(width), "found": float(len(scalars.outer))}
    return with_signs(
        coefficients,
        weights,
        scalars,
        figures,
        published_signs=published_signs,
        sign_tolerance=sign_tolerance,
    )


def with_signs(
    coefficients: HermiteTensors,
    weights: Array,
    scalars: UnitScalars,
    figures: dict[str, float],
    *,
    published_signs: bool = False,
    sign_tolerance: float = SIGN_TOLERANCE,
) -> SpectralRecovery:
    """The last step, from directions (d, m) and scalars that are right up to signs."""
    form = absolute_form(coefficients, weights, scalars)
    mean = float(coefficients.at(0)[0])
    if weights.shape[1] <= coefficients.dimension:
        rule = fix_signs if published_signs else fix_signs_by_affine_rest
        fixed = rule(coefficients.at(1), weights, scalars)
        figures["sign margin"] = fixed.margin
        return SpectralRecovery(form, fixed.signs, fixed.determined, fixed.values, mean, figures)
    solution = solve_signs(form, tolerance=sign_tolerance)
    figures["sign misfit"] = solution.residual
    known = solution.solved and solution.unique
    others = solution.alternatives
    return SpectralRecovery(form, solution.signs, known, solution.signs, mean, figures, others)


def _directions(
    coefficients: HermiteTensors,
    rng: np.random.Generator,
    width: int,
    order: int,
    method: DirectionMethod,
    noise: Mapping[int, float] | None,
    options: SpectralOptions | None,
    overcomplete: OvercompleteOptions | None,
) -> tuple[Array, dict[str, float]]:
    if method == "published":
        published = published_directions(coefficients, rng, order, width, noise, options)
        figures = {"gap of lower order": published.gaps[0], "gap of higher order": published.gaps[1]}
        return published.weights, figures
    if method == "power":
        powered = overcomplete_directions(coefficients, width, rng, overcomplete)
        return powered.weights, {"worst misalignment": float(powered.misalignment.max(initial=0.0))}
    if order != 1:
        raise InvalidInput(
            f"order must be 1 for the pencil, which needs at most d units. Got {order} instead. "
            f"Use 'power' or 'published'."
        )
    draws = (options or SpectralOptions()).draws
    pencil = pencil_directions(coefficients.dense(2), tensor_contraction(coefficients), width, rng, draws)
    return pencil.weights, {"pencil gap": pencil.gap, "real eigenvalues": float(pencil.real)}


def _without_faint(weights: Array, scalars: UnitScalars, level: float) -> tuple[Array, UnitScalars]:
    """Units that stand out of the noise; nu_2 / sqrt(m) is the noise of one coefficient."""
    keep = scalars.strengths > _FAINT_LEVELS * level / np.sqrt(max(len(scalars.outer), 1))
    kept = UnitScalars(scalars.outer[keep], scalars.biases[keep], scalars.strengths[keep])
    return weights[:, keep], kept


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
        [coefficients.flattened(2, 2), np.sqrt(options.fifth_weight) * coefficients.flattened(2, 3)], axis=1
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
