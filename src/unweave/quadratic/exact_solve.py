"""The exact solve: M from d(d+1)/2 samples by linear least squares, and its factor M = W W^T.

    pack(M) = argmin | R m - y |,      R = packed x x^T, (N, d(d+1)/2),
    M = U diag(lambda) U^T,            W = U_h diag(sqrt(lambda_h)),

no descent needed. Labels in error by e (rounding, noise) move M by at most |e| / sigma_min(R); eigenvalues
of M within that of zero count as zero.

**Span test.** A label y = x^T M x is one linear equation in the d(d+1)/2 free entries of the symmetric matrix
M, with the packed x x^T as its row. All of M is determined if and only if these rows have rank d(d+1)/2.
Continuous inputs satisfy this almost surely as soon as N >= d(d+1)/2, and never with fewer samples. Inputs
in {-1, 1}^d never do: x_i^2 = 1 hides how the diagonal of M is distributed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.numerics.clock import check, svd_flops
from unweave.numerics.memory import require
from unweave.subspace.symmetric import symmetric_packing

_COPIES_OF_SQUARES = 3  # of the rows x x^T: themselves, with the labels, and their factor
_LABEL_ROUNDING = 10.0  # rounding of a label, in eps times the size of its terms; measured, 1 to 3
_NOISE_DEVIATIONS = 5.0  # standard deviations of the noise that no eigenvalue exceeds by chance


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


@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """The symmetric matrix that the labels determine, or the smallest of those that fit."""

    matrix: Array
    """M, (d, d): f(x) = x^T M x."""
    scale: Array
    """(d,) S: rms of the inputs. Eigenvalues are taken of S M S, the form in scaled inputs."""
    span: SpanTest
    residual: float
    """Root mean square residual."""
    rounding: float
    """Residual that rounding alone may cause."""
    matrix_error: float
    """Error bar of the eigenvalues of S M S; inf if the samples do not span."""

    @property
    def eigenvalues(self) -> Array:
        """Of S M S, descending: signs and rank are those of M."""
        return np.asarray(np.linalg.eigvalsh(self.scaled)[::-1])

    @property
    def scaled(self) -> Array:
        """S M S, (d, d)."""
        return np.asarray(self.scale[:, None] * self.matrix * self.scale)

    @property
    def rank(self) -> int:
        """Eigenvalues that are not zero within the error bar."""
        return int(np.sum(np.abs(self.eigenvalues) > self.matrix_error))

    @property
    def positive(self) -> bool:
        """Whether no eigenvalue is negative beyond the error bar."""
        return bool(self.eigenvalues[-1] >= -self.matrix_error)


def solve_quadratic_form(x: Array, y: Array, label_noise: float = 0.0) -> QuadraticForm:
    """Solve for M from samples x (N, d), y (N,); the solution of least |M| if they do not determine it.

    ``label_noise`` is the rms error of the labels if it is known. With more samples than unknowns it
    is also estimated from the residual. Cost: 2 N p^2 flops, p = d(d+1)/2.
    """
    x = checked_inputs(x)
    y = checked_labels(x, y)
    scale = input_scale(x)
    packing = symmetric_packing(x.shape[1])
    n, p = len(x), packing.size
    require(_COPIES_OF_SQUARES * n * p, f"the products of {x.shape[1]} inputs at {n} samples")
    check(2 * n * p**2 + svd_flops(min(n, p), p))
    rows = packed_rows(x / scale)
    left, right = rows, y
    if n > p:
        # The labels ride along as the last column, so that Q is never formed.
        reduced = triangle(np.column_stack([rows, y]))
        left, right = reduced[:p, :p], reduced[:p, p]
    span = rank_of(left, x.shape)
    packed = np.linalg.solve(left, right) if span.spans else np.linalg.lstsq(rows, y, rcond=None)[0]
    scaled = np.asarray(packing.unpack(packed))
    residual = y - rows @ packed
    # Each label is a sum of p products of this size, whose roundings the solve passes on.
    terms = float(np.sqrt(np.mean((np.abs(rows) @ np.abs(packed)) ** 2)))
    rounding = _LABEL_ROUNDING * float(np.finfo(np.float64).eps) * terms
    rms = float(np.sqrt(np.mean(residual**2)))
    error = np.inf
    if span.spans:
        noise = max(label_noise, np.sqrt(n / (n - p)) * rms if n > p and rms > rounding else 0.0)
        error = (rounding * np.sqrt(n) + _NOISE_DEVIATIONS * noise * np.sqrt(x.shape[1])) / span.smallest
    return QuadraticForm(scaled / np.outer(scale, scale), scale, span, rms, rounding, float(error))


def factor(form: QuadraticForm, width: int) -> Array:
    """W (d, width) with W W^T nearest to M in scaled inputs: equal if M is positive of rank <= width.

    Units beyond the rank are zero.
    """
    values, vectors = np.linalg.eigh(form.scaled)
    kept = min(width, len(values))
    values, vectors = values[::-1][:kept], vectors[:, ::-1][:, :kept]
    if np.isfinite(form.matrix_error):
        values = np.where(values > form.matrix_error, values, 0.0)
    weights = np.zeros((len(form.scale), width))
    weights[:, :kept] = vectors * np.sqrt(np.maximum(values, 0.0)) / form.scale[:, None]
    return weights
