"""The subspace of input space in which a function varies nonlinearly.

The gradients of f(x) = A^T g(W^T x + b) + S^T x differ by members of span{w_k}: the span of centred
gradients has dimension min(m, D) and holds every weight. When it is smaller than D, Hessians need only be
taken inside it: d^2 rows instead of D^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.derivatives.stencils import Jets
from unweave.subspace.hessian_span import CLEAR_GAP

SPARE_GRADIENTS = 2
"""Gradients taken beyond the rank, so that the spectrum can be seen to end."""


@dataclass(frozen=True, eq=False)
class ActiveSubspace:
    """An orthonormal frame of the directions in which the gradient changes."""

    frame: Array
    """(D, d); the identity when nothing can be left out."""
    singular_values: Array
    """Of the centred gradients, descending."""
    complete: bool
    """Whether the spectrum was seen to end (or the frame is all of R^D)."""

    @property
    def dimension(self) -> int:
        """d"""
        return int(self.frame.shape[1])

    @property
    def reduces(self) -> bool:
        """Whether d < D."""
        return self.dimension < self.frame.shape[0]


def active_subspace(jets: Jets) -> ActiveSubspace:
    """The active subspace that the gradients of ``jets`` show."""
    n, _, inputs = jets.gradients.shape
    centred = (jets.gradients - jets.gradients.mean(axis=0)).reshape(-1, inputs)
    _, values, right = scipy.linalg.svd(centred, full_matrices=False, check_finite=False)
    floor = np.maximum(values, values[0] * np.finfo(np.float64).eps * np.sqrt(inputs))
    independent = min((n - 1) * jets.gradients.shape[1], len(values))  # centring costs one site
    ratios = floor[: independent - 1] / floor[1:independent]
    if values[0] > 0 and len(ratios):
        rank = int(np.argmax(ratios)) + 1
        if ratios[rank - 1] > CLEAR_GAP and rank + SPARE_GRADIENTS <= independent + 1 and rank < inputs:
            return ActiveSubspace(np.ascontiguousarray(right[:rank].T), values, complete=True)
    return ActiveSubspace(np.eye(inputs), values, complete=independent >= inputs)
