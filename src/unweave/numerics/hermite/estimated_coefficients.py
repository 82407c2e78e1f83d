"""Hermite coefficients from Gaussian samples, with their noise, in two passes over batches.

Pass one fits a polynomial q of low degree (`LowDegreeSums`); pass two sums the raw moments of y - q
in two halves of every batch (`moments`). The estimate is T(q) plus the mean over
both halves, and half the difference of the halves,

    nu_k = | T_k^(A) - T_k^(B) |_op / 2        (flattened as it will be used),

has the size of the estimate's own error, without knowing the truth. Nothing but batches is ever in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.numerics.hermite.moments import LowDegreeSums, Moments
from unweave.numerics.hermite.tensors import HermiteTensors

Batches = Callable[[], Iterable[tuple[Array, Array]]]
"""Called once per pass: batches x (n, d), y (n,) of the same samples each time."""

_ROWS_PER_BATCH = 20_000  # 1.6 MB at ten inputs: far more than a call costs, far less than memory


@dataclass(frozen=True)
class EstimateOptions:
    """How the labels are prepared before moments are formed."""

    degree: int | None = 2
    """Degree of the polynomial taken off the labels; None takes nothing off."""
    fit_rows: int = 200_000
    """Rows that the polynomial is fitted to; more do not make the moments better."""


@dataclass(frozen=True, eq=False)
class EstimatedCoefficients:
    """Means over samples, and the two half-sample estimates they come from."""

    coefficients: HermiteTensors
    halves: tuple[HermiteTensors, HermiteTensors]
    rows: int
    low_degree: HermiteTensors | None
    """The polynomial that was taken off the labels."""

    def noise(self, *orders: int) -> float:
        """nu_k of the flattening into groups of these two orders (their sum is k): an operator norm."""
        difference = self.halves[0].plus(self.halves[1], -1.0)
        left, *rest = orders
        matrix = difference.flattened(left, sum(rest)) if rest else difference.isometric(left)[:, None]
        return float(np.linalg.norm(matrix, 2)) / 2

    def deviations(self, *orders: int) -> dict[int, float]:
        """Root mean square error of an (isometrically packed) entry of T_k, by k."""
        difference = self.halves[0].plus(self.halves[1], -1.0)
        sizes = {k: len(self.coefficients.at(k)) for k in orders}
        return {k: difference.norm(k) / (2 * np.sqrt(size)) for k, size in sizes.items()}

    def noise_levels(self, order: int = 1) -> dict[int, float]:
        """nu_k by k, for the flattenings (l, k - l) of an analysis of order l; k from l + 1 on."""
        return {k: self.noise(order, k - order) for k in range(order + 1, self.coefficients.order + 1)}


def in_batches(x: Array, y: Array, rows: int = _ROWS_PER_BATCH) -> Batches:
    """Batches of arrays x (n, d), y (n,) that are in memory."""

    def batches() -> Iterator[tuple[Array, Array]]:
        for start in range(0, len(x), rows):
            yield x[start : start + rows], y[start : start + rows]

    return batches


def estimate_coefficients(
    batches: Batches, order: int, options: EstimateOptions | None = None, basis: Array | None = None
) -> EstimatedCoefficients:
    """T_0 .. T_order from standard Gaussian inputs.

    Parameters
    ----------
    basis : (d, r)
        Orthonormal columns: estimate in the r variables basis^T x, which are standard Gaussian too. For a
        network whose weights lie in their span nothing is lost but the noise of the other directions.

    Cost per row: about p^2 flops of the polynomial on the first ``fit_rows`` rows, then those of `Moments`.
    """
    options = options or EstimateOptions()
    low_degree = None
    if options.degree is not None:
        low_degree = fit_low_degree(batches, options.degree, options.fit_rows, basis)
    halves: tuple[Moments, Moments] | None = None
    for x, y in _projected(batches, basis):
        if halves is None:
            halves = (Moments.empty(x.shape[1], order), Moments.empty(x.shape[1], order))
        labels = y if low_degree is None else y - low_degree(x)
        middle = len(x) // 2
        halves = (halves[0].add(x[:middle], labels[:middle]), halves[1].add(x[middle:], labels[middle:]))
    if halves is None or min(halves[0].rows, halves[1].rows) == 0:
        raise InvalidInput("batches must hold at least two samples. Got fewer instead. Check the source.")
    both = halves[0].merge(halves[1])
    estimates = [moments.coefficients() for moments in (both, *halves)]
    if low_degree is not None:
        estimates = [low_degree.plus(estimate) for estimate in estimates]
    return EstimatedCoefficients(estimates[0], (estimates[1], estimates[2]), both.rows, low_degree)


def fit_low_degree(batches: Batches, degree: int, rows: int, basis: Array | None = None) -> HermiteTensors:
    """The least-squares polynomial of this degree on the first ``rows`` samples (to the end of a batch)."""
    sums: LowDegreeSums | None = None
    for x, y in _projected(batches, basis):
        sums = (sums or LowDegreeSums.empty(x.shape[1], degree)).add(x, y)
        if sums.rows >= rows:
            break
    if sums is None:
        raise InvalidInput("batches must hold samples. They are empty. Check the source.")
    return sums.solve()


def _projected(batches: Batches, basis: Array | None) -> Iterator[tuple[Array, Array]]:
    for x, y in batches():
        yield (x if basis is None else x @ basis), y
