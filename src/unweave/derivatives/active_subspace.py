"""The subspace of input space in which a function varies nonlinearly.

The gradients of f(x) = A^T g(W^T x + b) + S^T x differ by members of span{w_k}: the span of centered
gradients has dimension min(m, D) and holds every weight. When it is smaller than D, Hessians need only be
taken inside it: d^2 rows instead of D^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.derivatives.stencils import Jets

SPARE_GRADIENTS = 4
"""Gradients beyond the rank that show the spectrum to end, whatever its shape."""

_CLEAR_END = 100.0  # ratio of singular values that is the end of the spectrum with a single one to spare
_ABOVE_ERROR = 5.0  # times the error of the differences: a direction that is really there


@dataclass(frozen=True, eq=False)
class ActiveSubspace:
    """An orthonormal frame of the directions in which the gradient changes."""

    frame: Array | None
    """(D, d); None when nothing can be left out."""
    singular_values: Array
    """Of the centered gradients, descending."""
    inputs: int
    """D"""
    complete: bool
    """Whether the spectrum was seen to end (or the frame is all of R^D)."""

    @property
    def dimension(self) -> int:
        """d"""
        return self.inputs if self.frame is None else int(self.frame.shape[1])

    @property
    def reduces(self) -> bool:
        """Whether d < D."""
        return self.frame is not None


def active_subspace(jets: Jets, relative_noise: float) -> ActiveSubspace:
    """The active subspace that the gradients of ``jets`` show.

    Counts the singular values above the error of the differences: truncation, which is h^2/D of the
    gradients in normalised inputs and has structure of its own, and noise. Directions counted in excess
    only cost queries later; directions missed would be lost.
    """
    n, outputs, inputs = jets.gradients.shape
    centered = (jets.gradients - jets.gradients.mean(axis=0)).reshape(-1, inputs)
    _, values, right = scipy.linalg.svd(centered, full_matrices=False, check_finite=False)
    truncation = float(values[0]) * jets.step**2 / inputs
    spread = np.sqrt(n * outputs) + np.sqrt(inputs)
    noise = relative_noise * jets.gradient_noise * spread
    rounding = float(values[0]) * float(np.finfo(np.float64).eps) * spread  # all that exact gradients have
    rank = int(np.sum(values > _ABOVE_ERROR * max(truncation, noise, rounding)))
    independent = min((n - 1) * outputs, inputs)  # centering costs one site
    spare = independent - rank
    # A direction can also be missing because few gradients happen to lie along it: unless some are to spare,
    # the spectrum must end in a step.
    ends = spare >= SPARE_GRADIENTS or (spare >= 1 and values[rank - 1] >= _CLEAR_END * values[rank])
    if 0 < rank < inputs and ends:
        return ActiveSubspace(np.ascontiguousarray(right[:rank].T), values, inputs, complete=True)
    return ActiveSubspace(None, values, inputs, complete=independent >= inputs)
