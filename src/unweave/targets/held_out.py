"""Samples in two parts: rows to fit, and rows that no fit sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.targets.budget import Budget
from unweave.targets.samples import Precision, Samples

EXACT = 1e-10
"""Error relative to the largest answer up to which a network fits float64 answers exactly: wrong networks
miss it by three orders of magnitude and more."""
NO_RECOVERY = 0.03
"""Error relative to the spread of the answers above which no precision excuses it."""
OVER_PRECISION = {"float32": 30.0, "decimals": 2.0, "replicates": 1.5}
"""Root mean square error on held-out rows in units of the answers' own: float32 networks round inside too."""
_FIT_ROUNDINGS = 100.0  # in units of eps |y|: residual of a fit that is exact
_NOISE_LEFT = 1.2  # in units of the answers' known error: residual at which a search may stop


@dataclass(frozen=True, eq=False)
class FittedRows:
    """What a search may use of samples."""

    x: Array
    """(n, d)"""
    y: Array
    """(n, K)"""
    precision: Precision
    count: int
    """Number of all rows, those that are held out included."""
    budget: Budget

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline; None when there is none."""
        return self.budget.seconds_left

    def floor(self) -> tuple[float, bool]:
        """Return the relative residual of an exact fit, and whether it is noise."""
        spread = np.where(self.y.std(axis=0) > 0, self.y.std(axis=0), 1.0)
        eps, kind = np.finfo(np.float64).eps, self.precision.kind
        rounding = float((eps * np.abs(self.y).max(axis=0) / spread).max()) * _FIT_ROUNDINGS
        if kind == "float64":
            return max(EXACT, rounding), False
        over = OVER_PRECISION[kind] if kind == "float32" else _NOISE_LEFT
        share = float(np.sqrt(np.mean((self.precision.sigma / spread) ** 2))) * over
        if share > NO_RECOVERY:
            return max(EXACT, rounding), False  # whole numbers, say: not rounding that a fit could stop at
        return max(share, EXACT, rounding), kind != "float32"


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Rows that nothing is fitted to."""

    x: Array
    y: Array


def split(
    samples: Samples, held_out: int, budget: Budget, rng: np.random.Generator
) -> tuple[FittedRows, HeldOutRows]:
    """Hold out about ``held_out`` rows."""
    fitted, held = samples.split(held_out, rng)
    x, y = samples.x, samples.y
    return (
        FittedRows(x[fitted], y[fitted], samples.precision(), len(samples), budget),
        HeldOutRows(x[held], y[held]),
    )
