"""Gradients and Hessians of all outputs by differences.

With S(q) = f(x + h q) + f(x - h q) - 2 f(x) = h^2 q^T H q + O(h^4),

    gradient     (f(x + h e_i) - f(x - h e_i)) / 2h                                     2d + 1 rows
    forward      (f(x + h e_i) - f(x)) / h                                              d + 1 rows
    compact      H_ii = S(e_i) / h^2,  H_ij = [S(e_i+e_j) - S(e_i) - S(e_j)] / 2h^2     d^2 + d + 1 rows
    four-point   H_ii = S(e_i) / h^2,  H_ij = [S(e_i+e_j) - S(e_i-e_j)] / 4h^2          2d^2 + 1 rows
    richardson   (4 H(h) - H(2h)) / 3 with compact H: error O(h^4)                      2d^2 + 2d + 1 rows

Compact and four-point Hessians err by the truncation h^2/12 times fourth derivatives plus the round-off
sigma/h^2; four-point halves the round-off's variance per entry.

Every Hessian stencil contains the value and the gradient at its site, which `Jets` keeps: they were
paid for, by the rules of `unweave.derivatives.gradient_rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.derivatives.gradient_rules import GradientRule, pair_gradient, pair_incidence
from unweave.errors import InvalidInput
from unweave.numerics.axis_moves import answers_along_axes, one_call_is_enough
from unweave.subspace.symmetric import symmetric_packing

Scheme = Literal["compact", "four-point", "richardson"]
Function = Callable[[Array], Array]
"""(n, d) points to (n, K) answers."""

STENCIL_ROWS_PER_CALL = 200_000
"""Stencil rows built at once: bounds memory and keeps the target's batches long."""


@dataclass(frozen=True, eq=False)
class Jets:
    """What differences found at a set of sites: values, gradients and, if taken, Hessians.

    ``gradients`` are differences of step ``step`` by ``rule``, short of the derivative by their truncation;
    or, with the rule "exact" and step 0, the derivative itself.
    """

    sites: Array
    """(n, d)"""
    values: Array
    """(n, K)"""
    gradients: Array
    """(n, K, d)"""
    step: float
    hessians: Array | None = None
    """(n, K, p) packed, or None."""
    rule: GradientRule = "axes"
    """Which differences the gradients were made of."""

    def __len__(self) -> int:
        return int(self.sites.shape[0])

    @property
    def gradient_noise(self) -> float:
        """Standard deviation of a gradient entry for answers with errors of standard deviation one.

        An exact gradient has gone through the same arithmetic as the answer, so it has the same rounding.
        """
        if self.rule == "exact":
            return 1.0
        if self.rule == "forward":
            return float(np.sqrt(2) / self.step)
        averaged = max(self.sites.shape[1] - 1, 1) if self.rule == "pairs" else 1
        return float(1 / (self.step * np.sqrt(2 * averaged)))

    def keep(self, chosen: BoolArray | slice) -> Jets:
        """Keep some of the sites."""
        hessians = None if self.hessians is None else self.hessians[chosen]
        return replace(
            self,
            sites=self.sites[chosen],
            values=self.values[chosen],
            gradients=self.gradients[chosen],
            hessians=hessians,
        )

    @staticmethod
    def concatenate(parts: list[Jets]) -> Jets:
        """The sites of several jets of equal step and rule as one."""
        if len({(part.step, part.rule) for part in parts}) != 1:
            raise InvalidInput("jets must have the same step and rule to be one. Keep them apart.")
        hessians = [part.hessians for part in parts if part.hessians is not None]
        first = parts[0]

        def joined(name: str) -> Array:
            return np.concatenate([getattr(part, name) for part in parts])

        sites, values, gradients = joined("sites"), joined("values"), joined("gradients")
        all_hessians = np.concatenate(hessians) if len(hessians) == len(parts) else None
        return Jets(sites, values, gradients, first.step, all_hessians, first.rule)


def gradient_jets(function: Function, sites: Array, step: float) -> Jets:
    """Values and central-difference gradients at ``sites`` (n, d): 2d + 1 rows per site."""
    d = sites.shape[1]
    if not one_call_is_enough(d):
        return _gradient_jets_in_pieces(function, sites, step)
    axes = step * np.eye(d)
    offsets = np.concatenate([np.zeros((1, d)), axes, -axes])
    answers = _on_stencil(function, sites, offsets)
    gradients = (answers[:, 1 : d + 1] - answers[:, d + 1 :]) / (2 * step)
    return Jets(sites, answers[:, 0], gradients.transpose(0, 2, 1), step)


def forward_jets(function: Function, sites: Array, step: float) -> Jets:
    """Values and forward-difference gradients at ``sites`` (n, d): d + 1 rows per site."""
    d = sites.shape[1]
    offsets = np.concatenate([np.zeros((1, d)), step * np.eye(d)])
    per_call = max(1, STENCIL_ROWS_PER_CALL // len(offsets))
    parts = [
        _on_stencil(function, sites[start : start + per_call], offsets)
        for start in range(0, len(sites), per_call)
    ]
    answers = np.concatenate(parts)
    gradients = (answers[:, 1:] - answers[:, :1]) / step
    return Jets(sites, answers[:, 0], gradients.transpose(0, 2, 1), step, rule="forward")


def _gradient_jets_in_pieces(function: Function, sites: Array, step: float) -> Jets:
    """The same where the rows of one site are too many for one call."""
    steps = np.full(sites.shape[1], step)
    sides = [[answers_along_axes(function, site, way * steps)[0] for way in (1, -1)] for site in sites]
    gradients = np.stack([(plus - minus).T / (2 * step) for plus, minus in sides])
    return Jets(sites, function(sites), gradients, step)


def hessian_jets(
    function: Function,
    sites: Array,
    step: float,
    scheme: Scheme = "compact",
    rows_per_call: int = STENCIL_ROWS_PER_CALL,
) -> Jets:
    """Values, gradients and packed Hessians at ``sites`` (n, d); see the module for rows and errors.

    ``function`` is asked for ``rows_per_call`` rows at a time, or for one whole stencil if that is more.
    """
    if scheme == "richardson":
        fine = hessian_jets(function, sites, step, "compact", rows_per_call)
        coarse = hessian_jets(function, sites, 2 * step, "compact", rows_per_call)
        assert fine.hessians is not None
        assert coarse.hessians is not None
        hessians = (4 * fine.hessians - coarse.hessians) / 3
        return Jets(sites, fine.values, fine.gradients, step, hessians, fine.rule)
    if scheme not in ("compact", "four-point"):
        raise InvalidInput(f"scheme must be 'compact', 'four-point' or 'richardson'. Got {scheme!r} instead.")
    offsets = _hessian_offsets(sites.shape[1], scheme) * step
    per_call = max(1, rows_per_call // len(offsets))
    parts = [
        _hessians_from_answers(sites[start : start + per_call], function, offsets, step, scheme)
        for start in range(0, len(sites), per_call)
    ]
    return Jets.concatenate(parts)


def _hessian_offsets(d: int, scheme: Scheme) -> Array:
    """(rows, d) stencil in units of the step: center, +-e_i, +-(e_i+e_j), and +-(e_i-e_j) if four-point."""
    axes, sums = np.eye(d), pair_incidence(d)
    blocks = [np.zeros((1, d)), axes, -axes, sums, -sums]
    if scheme == "four-point":
        packing = symmetric_packing(d)
        off = packing.rows != packing.columns
        differences = axes[packing.rows[off]] - axes[packing.columns[off]]
        blocks += [differences, -differences]
    return np.concatenate(blocks)


def _hessians_from_answers(
    sites: Array, function: Function, offsets: Array, step: float, scheme: Scheme
) -> Jets:
    n, d = sites.shape
    packing = symmetric_packing(d)
    off = packing.rows != packing.columns
    answers = _on_stencil(function, sites, offsets)  # (n, rows, K)
    center, plus, minus = answers[:, :1], answers[:, 1 : d + 1], answers[:, d + 1 : 2 * d + 1]
    along_axes = plus + minus - 2 * center
    pairs = off.sum()
    outer = answers[:, 2 * d + 1 :]
    along_sums = outer[:, :pairs] + outer[:, pairs : 2 * pairs] - 2 * center
    hessians = np.empty((n, packing.size, answers.shape[2]))
    hessians[:, ~off] = along_axes / step**2
    if scheme == "compact":
        both = along_axes[:, packing.rows[off]] + along_axes[:, packing.columns[off]]
        hessians[:, off] = (along_sums - both) / (2 * step**2)
    else:
        along_differences = outer[:, 2 * pairs : 3 * pairs] + outer[:, 3 * pairs :] - 2 * center
        hessians[:, off] = (along_sums - along_differences) / (4 * step**2)
    hessians *= packing.scale[:, None]
    gradients = (plus - minus) / (2 * step)
    rule: GradientRule = "axes"
    if scheme == "compact" and d > 1:
        along_pairs = (outer[:, :pairs] - outer[:, pairs : 2 * pairs]) / (2 * step)
        gradients, rule = pair_gradient(gradients, along_pairs, axis=1), "pairs"
    packed = np.ascontiguousarray(hessians.transpose(0, 2, 1))
    return Jets(sites, answers[:, 0], gradients.transpose(0, 2, 1), step, packed, rule)


def directional_derivatives(
    function: Function,
    directions: Array,
    point: Array | None = None,
    second_step: float = 1e-2,
    third_step: float = 1e-2,
) -> tuple[Array, Array]:
    """Second and third derivatives (n, K) each, along the rows of ``directions`` (n, d) at ``point`` (d,).

        second   (f(+h) - 2 f(0) + f(-h)) / h^2                          error h^2/12 f''''
        third    (f(2h) - 2 f(h) + 2 f(-h) - f(-2h)) / 2h^3              error h^2/4 f'''''

    with f(t) = f(x + t q) and the origin as default ``point``. Cost: 4 rows per direction and one for the
    point if both steps are equal.
    """
    origin = np.zeros(directions.shape[1]) if point is None else point
    offsets = [0.0, second_step, -second_step, third_step, -third_step, 2 * third_step, -2 * third_step]
    distinct = sorted(set(offsets) - {0.0})
    points = [origin[None, :], *(origin + offset * directions for offset in distinct)]
    answers = function(np.concatenate(points))
    n = len(directions)
    at = {offset: answers[1 + i * n : 1 + (i + 1) * n] for i, offset in enumerate(distinct)}
    h, k = second_step, third_step
    second = (at[h] - 2 * answers[:1] + at[-h]) / h**2
    third = (at[2 * k] - 2 * at[k] + 2 * at[-k] - at[-2 * k]) / (2 * k**3)
    return second, third


def _on_stencil(function: Function, sites: Array, offsets: Array) -> Array:
    """Answers (n, rows, K) at every site plus every offset."""
    n, d = sites.shape
    points = (sites[:, None, :] + offsets[None, :, :]).reshape(-1, d)
    return function(points).reshape(n, len(offsets), -1)
