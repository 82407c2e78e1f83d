"""A ReLU gate by least squares on the rows where it is open, in one pass and n^2 numbers of memory.

Rows with y > theta have w* . x > 0 for certain; there y = w* . x + xi. With X the N such rows,

    w = argmin |X w - y|,    w - w* = X^+ xi,    |w - w*| <= theta sqrt(N) / sigma_min(X):

exact for clean labels from n independent rows, and for poisoned ones a bound that holds for every choice of
the errors, needs no law of x and is read off the data. Blocks are folded into the triangular factor R of
[X y], (n+1, n+1), so that nothing is squared: accuracy is that of a QR factorization of all rows at once.

Cost: 2 n^2 flops per open row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.gates.common import GateResult, checked_rows, checked_theta, checked_vector

_ROWS_PER_FACTORIZATION = 4096  # rows folded into R at once: limits memory


@dataclass(frozen=True, eq=False)
class GateLeastSquares(GateResult):
    """The gate, and how well the rows determine it."""

    weights: Array
    """(n,); the shortest of all that fit if the rows do not determine it."""
    rows: int
    used: int
    """Rows with y > theta."""
    rank: int
    smallest: float
    """sigma_min(X); zero if the rank is below n."""
    residual: float
    """Root mean square of X w - y: rounding if clean labels come from one gate."""
    bound: float
    """theta sqrt(N)/sigma_min(X) plus rounding; inf if the rank is below n."""
    error: float | None
    """|w - w*|; None if w* is not known."""

    @property
    def determined(self) -> bool:
        """Whether no other gate fits the open rows as well."""
        return self.rank == len(self.weights)


class ReluGateLeastSquares:
    """Least squares over blocks of samples, none of which is kept. ``truth`` only serves to measure."""

    def __init__(self, theta: float = 0.0, truth: Any = None) -> None:
        self._theta = checked_theta(theta)
        self._truth = None if truth is None else checked_vector(truth, None, "truth")
        self._inputs = None if self._truth is None else len(self._truth)
        self._triangle = np.zeros((0, 0))
        self._rows = self._used = 0

    def partial_fit(self, x: Any, y: Any) -> ReluGateLeastSquares:
        """Add samples x (N, n), y (N,)."""
        x, y = checked_rows(x, y, self._inputs)
        self._inputs = x.shape[1]
        if not self._triangle.size:
            self._triangle = np.zeros((0, x.shape[1] + 1))
        open_rows = y > self._theta
        system = np.column_stack([x[open_rows], y[open_rows]])
        for begin in range(0, len(system), _ROWS_PER_FACTORIZATION):
            stacked = np.vstack([self._triangle, system[begin : begin + _ROWS_PER_FACTORIZATION]])
            self._triangle = scipy.linalg.qr(stacked, mode="r", check_finite=False)[0][: stacked.shape[1]]
        self._rows += len(x)
        self._used += len(system)
        return self

    def fit(self) -> GateLeastSquares:
        """The gate of all samples so far."""
        if self._inputs is None or not self._used:
            raise InvalidInput(
                f"y must have labels above theta = {self._theta:g}. None of {self._rows} rows has one. "
                f"Give samples where the gate is open."
            )
        n = self._inputs
        left, values, right = scipy.linalg.svd(self._triangle[:, :n], full_matrices=False)
        rounding = max(self._used, n) * float(np.finfo(np.float64).eps) * values[0]
        rank = int(np.sum(values > rounding))
        target = self._triangle[:, n]
        weights = right[:rank].T @ ((left[:, :rank].T @ target) / values[:rank])
        residual = float(np.linalg.norm(self._triangle[:, :n] @ weights - target))
        smallest = float(values[n - 1]) if rank == n else 0.0
        # Errors of the factorization act like errors of the labels of relative size eps.
        noise = self._theta * math.sqrt(self._used) + rounding * float(np.linalg.norm(weights))
        return GateLeastSquares(
            weights=weights,
            rows=self._rows,
            used=self._used,
            rank=rank,
            smallest=smallest,
            residual=residual / math.sqrt(self._used),
            bound=noise / smallest if smallest else math.inf,
            error=None if self._truth is None else float(np.linalg.norm(weights - self._truth)),
        )


def relu_gate_ols(x: Any, y: Any, theta: float = 0.0, truth: Any = None) -> GateLeastSquares:
    """The gate of samples x (N, n), y (N,), labels off by at most ``theta``.

    Example:
        >>> rng = np.random.default_rng(1000)
        >>> x = rng.standard_normal((40, 3))
        >>> found = relu_gate_ols(x, np.maximum(x @ [1, 2, 3], 0), truth=[1, 2, 3])
        >>> found.determined, bool(found.error <= found.bound < 1e-12)
        (True, True)
    """
    return ReluGateLeastSquares(theta, truth).partial_fit(x, y).fit()
