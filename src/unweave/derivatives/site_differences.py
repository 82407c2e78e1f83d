"""Gradients and Hessians of a function around base points, each point with a step of its own.

    gradient   (8 [f(h) - f(-h)] - [f(2h) - f(-2h)]) / 12h          4 d rows,            error h^4
    Hessian    the compact stencil of unweave.derivatives.stencils  d^2 + d + 1 rows,    error h^2

Peeled functions are only defined near their base points, and how near differs from point to point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.derivatives.gradient_rules import pair_incidence
from unweave.derivatives.stencils import STENCIL_ROWS_PER_CALL
from unweave.numerics.memory import require

Around = Callable[[IntArray, Array], Array]
"""(site numbers (n,), displacements (n, d)) to answers (n, K)."""

GRADIENT_REACH = 2.0
"""Largest 1-norm of a gradient stencil's offsets, in steps: +-2 h e_i."""
HESSIAN_REACH = 2.0
"""The same of the compact Hessian stencil: h (e_i + e_j)."""
_STENCIL_COPIES = 5  # offsets, times the step, moved to the site, in the target's inputs, as they are sent
_FIELDS = ("centre", "plus", "minus", "pairs_plus", "pairs_minus", "steps")


def gradients_around(
    function: Around, steps: Array, dimension: int, rows_per_call: int = STENCIL_ROWS_PER_CALL
) -> Array:
    """Take gradients (n, d, K) at n sites with steps (n,), at most ``rows_per_call`` rows at once."""
    require(_STENCIL_COPIES * 4 * dimension**2, f"a gradient stencil in {dimension} variables")
    n, eye = len(steps), np.eye(dimension)
    offsets = np.concatenate([eye, -eye, 2 * eye, -2 * eye])
    answers = _on_stencil(function, steps, offsets, rows_per_call)
    near = answers[:, :dimension] - answers[:, dimension : 2 * dimension]
    far = answers[:, 2 * dimension : 3 * dimension] - answers[:, 3 * dimension :]
    result = (8 * near - far) / 12
    return np.asarray(result / steps.reshape(n, 1, 1))


@dataclass(frozen=True, eq=False)
class HessianStencils:
    """Answers on compact Hessian stencils, before any output transformation."""

    centre: Array
    """(n, K)"""
    plus: Array
    """(n, d, K) at +h e_i"""
    minus: Array
    pairs_plus: Array
    """(n, d(d-1)/2, K) at +h (e_i + e_j)"""
    pairs_minus: Array
    steps: Array

    def derivatives(self, transform: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Return gradients (n, d, K) and Hessians (n, K, d, d) of the transformed answers."""
        parts = (self.centre, self.plus, self.minus, self.pairs_plus, self.pairs_minus)
        with np.errstate(invalid="ignore", divide="ignore"):  # an answer out of range shows as NaN
            centre, plus, minus, above, below = (transform(part) for part in parts)
        n, d, outputs = plus.shape
        h = self.steps.reshape(n, 1, 1)
        along = plus + minus - 2 * centre[:, None]
        rows, columns = np.triu_indices(d, 1)
        hessians = np.empty((n, outputs, d, d))
        hessians[:, :, np.arange(d), np.arange(d)] = (along / h**2).transpose(0, 2, 1)
        both = above + below - 2 * centre[:, None] - along[:, rows] - along[:, columns]
        mixed = (both / (2 * h**2)).transpose(0, 2, 1)
        hessians[:, :, rows, columns] = hessians[:, :, columns, rows] = mixed
        return np.asarray((plus - minus) / (2 * h)), hessians

    def take(self, sites: BoolArray) -> HessianStencils:
        """Return the stencils of some of the sites."""
        return HessianStencils(*(getattr(self, name)[sites] for name in _FIELDS))

    @staticmethod
    def concatenate(parts: list[HessianStencils]) -> HessianStencils:
        """Join the stencils of several sets of sites."""
        return HessianStencils(*(np.concatenate([getattr(p, name) for p in parts]) for name in _FIELDS))


def hessian_stencils(function: Around, steps: Array, dimension: int) -> HessianStencils:
    """Ask the compact Hessian stencil at n sites with steps (n,)."""
    d, eye, sums = dimension, np.eye(dimension), pair_incidence(dimension)
    offsets = np.concatenate([np.zeros((1, d)), eye, -eye, sums, -sums])
    answers = _on_stencil(function, steps, offsets, STENCIL_ROWS_PER_CALL)
    cuts = np.cumsum([1, d, d, len(sums)])
    centre, plus, minus, above, below = np.split(answers, cuts, axis=1)
    return HessianStencils(centre[:, 0], plus, minus, above, below, steps)


def _on_stencil(function: Around, steps: Array, offsets: Array, rows_per_call: int) -> Array:
    """Ask for answers (n, rows, K) at every site, displaced by its step times every offset."""
    n, rows = len(steps), len(offsets)
    per_call = max(1, rows_per_call // rows)
    parts = []
    for start in range(0, n, per_call):
        sites = np.arange(start, min(n, start + per_call))
        displacement = (steps[sites, None, None] * offsets).reshape(-1, offsets.shape[1])
        parts.append(function(np.repeat(sites, rows), displacement).reshape(len(sites), rows, -1))
    return np.concatenate(parts)
