"""A target on a slice of its inputs: fewer inputs, the same answers, the same ledger."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from unweave.arrays import Array, IntArray
from unweave.targets.region import NormalisedQueries


class SliceQueries:
    """A ledger of d inputs y: the target at the normalised inputs u = E y of a ``view`` of D inputs.

    The columns of E are orthogonal and of length sqrt(D / d), so that a unit varies as much in y as in all
    inputs. Rows, budget and deadline are those of the view's ledger.
    """

    def __init__(self, view: NormalisedQueries, dimension: int, rng: np.random.Generator) -> None:
        inputs = view.n_inputs
        frame = scipy.linalg.qr(rng.standard_normal((inputs, inputs)), check_finite=False)[0]
        self._view = view
        self.frame: Array = frame[:, :dimension] * np.sqrt(inputs / dimension)
        """E (D, d)."""
        self.outside: Array = frame[:, dimension:]
        """(D, D - d), orthonormal: the directions that the slice leaves out."""

    def __call__(self, y: Any, *, fresh: bool = False) -> Array:
        """Answer the points ``y`` (n, d): (n, m)."""
        return self._view(np.asarray(y, dtype=np.float64) @ self.frame.T, fresh=fresh)

    @property
    def n_inputs(self) -> int:
        """Number of inputs d."""
        return int(self.frame.shape[1])

    def ask_beside(self, point: Array, step: float, chosen: IntArray) -> Array:
        """Answer ``point`` (d,) moved by ``step`` along each ``chosen`` (k,) direction outside: (k, m)."""
        return self._view(self.frame @ point + step * self.outside.T[chosen])

    def __getattr__(self, name: str) -> Any:
        """Everything else is the ledger's own."""
        return getattr(self._view.ledger, name)
