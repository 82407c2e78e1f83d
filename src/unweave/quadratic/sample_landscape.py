"""The landscape on the samples at hand, whatever law they come from.

With A = W W^T - M and G the mean of pack(x x^T) pack(x x^T)^T, Lhat(W) = pack(A)^T G pack(A). So a small loss
bounds the distance, and the distance bounds the loss on new rows,

    |A|_F <= sqrt(Lhat / lambda_min(G)),
    L(W) <= (d mu2^2 + max{2 mu2^2, mu4 - mu2^2}) |A|_F^2,

since (tr A)^2 <= d |A|_F^2. **Barrier.** A W of rank below d has W W^T u = 0 for some unit u. For each u the
least loss over all symmetric matrices B with B u = 0 is a linear least squares problem, and a lower bound of
the loss over those W W^T. Its least value over u is the barrier of the samples, up to B that are indefinite;
it is found by descent from several starts and is sharper than lambda_min(G) s^4, which `empirical_barrier`
gives with certainty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.quadratic.energy import GAUSSIAN, InputMoments, smallest_curvature
from unweave.quadratic.exact_solve import checked_inputs, packed_rows, triangle
from unweave.subspace.symmetric import symmetric_packing


@dataclass(frozen=True)
class LossCertificate:
    """What a small loss on samples says about all inputs."""

    distance_bound: float
    """Bound of |W W^T - M|_F; infinite if the samples do not span."""
    risk_bound: float
    """Bound of L(W) for inputs with these moments."""


def loss_certificate(x: Array, loss: float, moments: InputMoments = GAUSSIAN) -> LossCertificate:
    """Bound distance and risk of any W whose mean squared error on samples x (N, d) is ``loss``.

    Labels must be exact: y = x^T M x.

    Example:
        >>> x = np.random.default_rng(0).standard_normal((500, 3))
        >>> found = loss_certificate(x, 1e-10)
        >>> bool(found.distance_bound < 2e-5), loss_certificate(x[:5], 1e-10).distance_bound
        (True, inf)
    """
    x = checked_inputs(x)
    if not loss >= 0:
        raise InvalidInput(f"loss must be at least 0. Got {loss!r} instead. It is a mean of squares.")
    curvature = smallest_curvature(x)
    squared = loss / curvature if curvature > 0 else np.inf
    steepest = max(2 * moments.second**2, moments.fourth - moments.second**2)
    growth = x.shape[1] * moments.second**2 + steepest
    return LossCertificate(float(np.sqrt(squared)), growth * squared)


@dataclass(frozen=True, eq=False)
class SampleBarrier:
    """The lowest pass found to matrices of lower rank."""

    loss: float
    """Least loss on the samples."""
    direction: Array
    """(d,): the unit vector u that the matrix maps to zero."""
    matrix: Array
    """(d, d): B with B u = 0."""
    attained: bool
    """Whether B is positive semidefinite, so that some W has this loss; else it is a lower bound at u."""


def sample_barrier(x: Array, matrix: Array, starts: int = 20, seed: int = 0) -> SampleBarrier:
    """The barrier of samples x (N, d) around M = ``matrix`` (d, d), by descent over u from ``starts`` starts.

    The first starts are the eigenvectors of M. Not certified: a start more may find a lower pass.
    """
    x = checked_inputs(x)
    d = x.shape[1]
    if d < 2:
        raise InvalidInput(
            "x must have two columns or more. Got one instead. One input has no direction to lose."
        )
    packing = symmetric_packing(d)
    rows = packed_rows(x)
    factor = triangle(rows) if len(rows) > rows.shape[1] else rows  # |factor a| = |rows a| for all a

    def nearest(u: Array) -> tuple[float, Array]:
        """Loss and B for the direction u, which need not have length one."""
        basis = np.linalg.qr(np.column_stack([u, np.eye(d)]))[0][:, 1:]
        inner = symmetric_packing(d - 1)
        units = inner.unpack(np.eye(inner.size))
        columns = packing.pack(basis @ units @ basis.T)
        wanted = packing.pack(matrix)
        coefficients = np.linalg.lstsq(factor @ columns.T, factor @ wanted, rcond=None)[0]
        miss = factor @ (wanted - coefficients @ columns)
        return float(miss @ miss) / len(x), packing.unpack(coefficients @ columns)

    rng = np.random.default_rng(seed)
    begin = np.vstack([np.linalg.eigh(matrix)[1].T, rng.standard_normal((max(0, starts - d), d))])[:starts]
    ends = [minimize(lambda u: nearest(u / np.linalg.norm(u))[0], u, method="BFGS").x for u in begin]
    best = min((u / np.linalg.norm(u) for u in ends), key=lambda u: nearest(u)[0])
    loss, found = nearest(best)
    least = float(np.linalg.eigvalsh(found)[0])
    return SampleBarrier(loss, best, found, least >= -1e-9 * float(np.abs(found).max(initial=1.0)))
