"""The directions along which samples curve: a quadratic form fitted to them by least squares.

    y_k ~ x^T M_k x + affine,        sum_k M_k M_k^T = U diag(.) U^T

Most of what a kinked unit adds to an affine function of near-Gaussian inputs is quadratic: for |w . x| seven
eighths of the variance. The leading eigenvectors U (d, m) thus hold most of the units' directions, however
many inputs there are. In the inputs x U a start has m (m+1) parameters instead of m (d+1), asks for as
many rows fewer, and goes through the long plateau before units part from each other at a fraction of the
cost.

Conjugate gradients in single precision find M: a start needs no more, and few steps suffice because
products of whitened inputs are nearly uncorrelated.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array, RealArray
from unweave.numerics.clock import check
from unweave.numerics.variable_projection.orthonormal import row_blocks
from unweave.numerics.variable_projection.problem import ProjectedProblem
from unweave.numerics.variable_projection.steps import SingleInputs

_STEPS = 6  # of conjugate gradients: each leaves a third of what there was
_ROWS_PER_COEFFICIENT = 2.0  # below, the form is mostly noise


def shows_curvature(problem: ProjectedProblem) -> bool:
    """Whether there are enough rows to fit a quadratic form, and it is not among the polynomials already."""
    inputs = problem.inputs.shape[1] - 1
    coefficients = inputs * (inputs + 1) / 2
    return problem.feature.degree < 2 and problem.rows >= _ROWS_PER_COEFFICIENT * coefficients


def curved_directions(problem: ProjectedProblem, count: int) -> Array:
    """Orthonormal directions (d, count) that hold the most of the quadratic part of the answers."""
    single = problem.single()
    forms = np.stack([_quadratic_part(single, rest) for rest in problem.rest.astype(np.float32).T])
    _, vectors = np.linalg.eigh(np.einsum("kij,kjl->il", forms, forms))
    return np.asarray(vectors[:, ::-1][:, :count])


def _quadratic_part(single: SingleInputs, rest: RealArray) -> Array:
    """M (d, d) whose form fits ``rest`` (n,), the residual of an affine fit."""
    form = np.zeros((single.inputs.shape[1] - 1,) * 2, np.float32)
    remainder = _adjoint(single, rest)
    direction, old = remainder, float(np.vdot(remainder, remainder))
    for _ in range(_STEPS):
        check()
        curved = _adjoint(single, _affine_removed(single, _values(single, direction)))
        curvature = float(np.vdot(direction, curved))
        if not curvature > 0:
            break
        form += old / curvature * direction
        remainder = remainder - old / curvature * curved
        new = float(np.vdot(remainder, remainder))
        direction, old = remainder + new / old * direction, new
    return form.astype(np.float64)


def _values(single: SingleInputs, form: RealArray) -> RealArray:
    """x^T M x, (n,)."""
    values = np.empty(len(single.inputs), np.float32)
    for rows in row_blocks(len(values)):
        x = single.inputs[rows, :-1]
        values[rows] = np.einsum("ni,ni->n", x @ form, x)
    return values


def _adjoint(single: SingleInputs, values: RealArray) -> RealArray:
    """sum_n v_n x_n x_n^T, (d, d)."""
    form = np.zeros((single.inputs.shape[1] - 1,) * 2, np.float32)
    for rows in row_blocks(len(values)):
        x = single.inputs[rows, :-1]
        form += x.T @ (x * values[rows, None])
    return form


def _affine_removed(single: SingleInputs, values: RealArray) -> RealArray:
    coefficients = single.metric @ (single.monomials.T @ values)
    return values - single.monomials @ coefficients.astype(np.float32)
