"""The exact solve: M from d(d+1)/2 samples by linear least squares, and its factor M = W W^T.

    pack(M) = argmin | R m - y |,      R = packed x x^T, (N, d(d+1)/2),
    M = U diag(lambda) U^T,            W = U_h diag(sqrt(lambda_h)),

no descent needed. Labels in error by e (rounding, noise) move M by at most |e| / sigma_min(R); eigenvalues
of M within that of zero count as zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.quadratic.span_test import (
    SpanTest,
    checked_inputs,
    checked_labels,
    input_scale,
    packed_rows,
    rank_of,
    triangle,
)
from unweave.subspace.symmetric import symmetric_packing

_LABEL_ROUNDING = 10.0  # rounding of a label, in eps times the size of its terms; measured, 1 to 3
_NOISE_DEVIATIONS = 5.0  # standard deviations of the noise that no eigenvalue exceeds by chance


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
    rows = packed_rows(x / scale)
    n, p = rows.shape
    packing = symmetric_packing(x.shape[1])
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
