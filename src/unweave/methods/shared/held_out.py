"""Samples in two parts, one to fit and one to judge by, and what the second says about a network.

A network is precise if it answers held-out rows to the precision of the answers themselves: to 1e-10 of the
largest one for float64 answers (wrong networks miss that by three orders of magnitude and more), to a small
multiple of the rounding of decimals or float32, or of the spread of repeated inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.comparison import relative_uniform_error
from unweave.networks.network import Network
from unweave.targets.samples import Precision

_EXACT = 1e-10  # error relative to the largest answer of a network recovered from float64 answers
_OVER_PRECISION = {"float32": 30.0, "decimals": 2.0, "replicates": 1.5}
# Root mean square error on held-out rows in units of the answers' own: float32 networks round inside too.
_NO_RECOVERY = 0.03  # error relative to the spread of the answers above which no precision excuses it
_ROUNDINGS = 1000.0  # of the largest answer: what sums of many terms may leave
_FIT_ROUNDINGS = 100.0  # in units of eps |y|: residual of a fit that is exact
_NOISE_LEFT = 1.2  # in units of the answers' known error: residual at which a search may stop


@dataclass(frozen=True)
class HeldOut:
    """Errors on held-out rows."""

    rows: int
    error: float
    threshold: float
    precise: bool
    """Whether the error is what the answers' precision allows; False without rows."""
    share: float
    """Root mean square error over spread, worst output."""


@dataclass(frozen=True, eq=False)
class SplitSamples:
    """Rows to fit and rows that no fit sees."""

    x: Array
    """(n, d)"""
    y: Array
    """(n, K)"""
    held_x: Array
    held_y: Array
    precision: Precision
    tolerance: float | None
    """Relative error on held-out rows that counts as precise, instead of the answers' own precision."""

    @property
    def count(self) -> int:
        """Of all rows."""
        return len(self.x) + len(self.held_x)

    def floor(self) -> tuple[float, bool]:
        """Relative residual of an exact fit, and whether it is noise."""
        spread = np.where(self.y.std(axis=0) > 0, self.y.std(axis=0), 1.0)
        eps, kind = np.finfo(np.float64).eps, self.precision.kind
        rounding = float((eps * np.abs(self.y).max(axis=0) / spread).max()) * _FIT_ROUNDINGS
        if kind == "float64":
            return max(_EXACT, rounding), False
        over = _OVER_PRECISION[kind] if kind == "float32" else _NOISE_LEFT
        share = float(np.sqrt(np.mean((self.precision.sigma / spread) ** 2))) * over
        if share > _NO_RECOVERY:
            return max(_EXACT, rounding), False  # whole numbers, say: not rounding that a fit could stop at
        return max(share, _EXACT, rounding), kind != "float32"

    def errors_of(self, network: Network) -> HeldOut:
        """Compare with the held-out rows."""
        x, y, precision = self.held_x, self.held_y, self.precision
        if not len(x):
            return HeldOut(0, np.nan, np.nan, False, 0.0)
        answers = network(x)
        rms = np.sqrt(np.mean((answers - y) ** 2, axis=0))
        error = relative_uniform_error(y, answers)
        spread = y.std(axis=0)
        spread = np.where(spread > 0, spread, np.maximum(np.abs(y).max(axis=0), np.finfo(np.float64).tiny))
        share = float((rms / spread).max())
        if self.tolerance is not None:
            precise = error <= self.tolerance and share < 1
            return HeldOut(len(x), error, self.tolerance, precise, share)
        if precision.kind == "float64":
            # Answers far from zero are known less well relative to their spread, but only by rounding.
            rounding = (
                _ROUNDINGS * float(np.finfo(np.float64).eps) * float((np.abs(y).max(axis=0) / spread).max())
            )
            return HeldOut(len(x), error, _EXACT, error <= _EXACT and share <= max(_EXACT, rounding), share)
        inflation = np.sqrt(1 + network.n_parameters / max(len(self.x) - network.n_parameters, 1))
        allowed = _OVER_PRECISION[precision.kind] * precision.sigma * inflation
        excess = float((rms / np.maximum(allowed, np.finfo(np.float64).tiny)).max())
        threshold = error / excess if excess > 0 else float(allowed.max())
        return HeldOut(len(x), error, threshold, excess <= 1 and share <= _NO_RECOVERY, share)

    def row_errors(self, network: Network) -> Array | None:
        """(n,) error of every held-out row relative to the largest answer; None if all answers are zero."""
        largest = float(np.abs(self.held_y).max(initial=0.0))
        if not largest:
            return None
        return np.asarray(np.abs(network(self.held_x) - self.held_y).max(axis=1) / largest)
