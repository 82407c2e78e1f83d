"""The span test: do the samples determine a quadratic form?

A label y = x^T M x is one linear equation in the d(d+1)/2 free entries of the symmetric matrix M, with the
packed x x^T as its row. All of M is determined if and only if

    rank { x_1 x_1^T, ..., x_N x_N^T } = d(d+1)/2.

Continuous inputs satisfy this almost surely as soon as N >= d(d+1)/2, and never with fewer samples. Inputs
in {-1, 1}^d never do: x_i^2 = 1 hides how the diagonal of M is distributed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.subspace.symmetric import symmetric_packing


@dataclass(frozen=True, eq=False)
class SpanTest:
    """Rank and spectrum of the packed x x^T, inputs scaled to root mean square one."""

    dimension: int
    samples: int
    rank: int
    spectrum: Array
    """Singular values of the rows, descending, min(N, d(d+1)/2) of them."""

    @property
    def needed(self) -> int:
        """d(d+1)/2."""
        return self.dimension * (self.dimension + 1) // 2

    @property
    def spans(self) -> bool:
        """Whether every quadratic form that fits the labels is the same one."""
        return self.rank == self.needed

    @property
    def condition(self) -> float:
        """Ratio of the extreme singular values; inf if they do not span."""
        return float(self.spectrum[0] / self.spectrum[self.needed - 1]) if self.spans else np.inf

    @property
    def smallest(self) -> float:
        """The least singular value, by which errors of the labels are divided; 0 if they do not span."""
        return float(self.spectrum[self.needed - 1]) if self.spans else 0.0


def input_scale(x: Array) -> Array:
    """(d,) root mean square of every column, 1 for columns of zeros: M is solved for in x / scale."""
    scale = np.sqrt(np.mean(x**2, axis=0))
    return np.where(scale > 0, scale, 1.0)


def packed_rows(x: Array) -> Array:
    """(N, d(d+1)/2) packed x x^T: y = rows @ pack(M)."""
    return np.asarray(symmetric_packing(x.shape[1]).outer(x))


def span_test(x: Array) -> SpanTest:
    """Test samples x (N, d). Cost: a QR factorization and the singular values of min(N, d(d+1)/2) rows.

    The rank counts singular values above max(N, d(d+1)/2) eps times the largest, which is the size of
    the rounding errors.

    Example:
        >>> rng = np.random.default_rng(1000)
        >>> span_test(rng.standard_normal((10, 4))).spans, span_test(rng.standard_normal((9, 4))).spans
        (True, False)
    """
    x = checked_inputs(x)
    rows = packed_rows(x / input_scale(x))
    return rank_of(rows if len(rows) <= rows.shape[1] else triangle(rows), x.shape)


def triangle(rows: Array) -> Array:
    """R of the QR factorization of more rows than columns."""
    return np.asarray(scipy.linalg.qr(rows, mode="r", check_finite=False)[0][: rows.shape[1]])


def rank_of(matrix: Array, shape: tuple[int, ...]) -> SpanTest:
    """The result, from a matrix with the singular values of the rows, for samples of ``shape`` (N, d)."""
    samples, dimension = shape
    spectrum = scipy.linalg.svdvals(matrix, check_finite=False)
    largest = max(samples, dimension * (dimension + 1) // 2)
    rank = int(np.sum(spectrum > largest * np.finfo(np.float64).eps * spectrum[0]))
    return SpanTest(dimension, samples, rank, spectrum)


def checked_inputs(x: Array) -> Array:
    """x as a finite float64 matrix (N, d)."""
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or not x.size or not np.isfinite(x).all():
        raise InvalidInput(
            f"x must be finite and of shape (N, d), N and d at least 1. Got shape {x.shape} instead. "
            f"Give one row per sample."
        )
    return x


def checked_labels(x: Array, y: Array) -> Array:
    """y as a finite float64 vector (N,)."""
    y = np.asarray(y, dtype=np.float64)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.shape != (len(x),) or not np.isfinite(y).all():
        raise InvalidInput(
            f"y must be finite and of shape ({len(x)},), one label per row of x. Got shape {y.shape} "
            f"instead. A quadratic network has one output; treat several one by one."
        )
    return y
