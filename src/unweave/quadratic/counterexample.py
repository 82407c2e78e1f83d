"""Below d(d+1)/2 samples: another network that fits every label and is far from the truth.

If the packed x x^T do not span, there is a symmetric A != 0 with x^T A x = 0 on every sample. Along M + t A
the labels stay what they are, and at t = -1/e, e < 0 the least eigenvalue of A relative to M (A or -A, that
with the lower e),

    B = M + t A >= 0   has rank d - 1,

so W = B^(1/2) interpolates, and by the energy barrier its risk is at least min{mu4 - mu2^2, 2 mu2^2} s^4,
s^2 the least eigenvalue of M: no small training error excludes it. B needs d - 1 units; narrower networks
need not have one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.quadratic.energy import GAUSSIAN, InputMoments, population_risk
from unweave.quadratic.exact_solve import checked_inputs, packed_rows
from unweave.quadratic.recovery import quadratic_network
from unweave.subspace.symmetric import symmetric_packing


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A second network with the same labels."""

    network: Network
    matrix: Array
    """B = W W^T, (d, d), rank d - 1."""
    empirical_risk: float
    """Mean squared difference of the labels, relative to their mean square: rounding squared."""
    population_risk: float
    """E (x^T (B - M) x)^2 for inputs with the given moments."""
    bound: float
    """min{mu4 - mu2^2, 2 mu2^2} s^4, which the population risk exceeds."""


def counterexample(
    x: Array, matrix: Array, width: int | None = None, moments: InputMoments = GAUSSIAN
) -> Counterexample:
    """Build one for samples x (N, d) that do not span, and M = ``matrix`` (d, d) positive definite.

    ``width`` is the number of units of the network, at least d - 1; default d. Where M is unknown, any
    positive definite form that fits the labels will do.
    """
    x = checked_inputs(x)
    d = x.shape[1]
    width = d if width is None else width
    if width < max(d - 1, 1):
        raise InvalidInput(
            f"width must be at least d - 1 = {d - 1}. Got {width} instead. Fewer units cannot represent "
            "the form."
        )
    packing = symmetric_packing(d)
    rows = packed_rows(x)
    basis = scipy.linalg.null_space(rows)
    if not basis.shape[1]:
        raise InvalidInput(
            f"x must not span the symmetric matrices. Got {len(x)} samples that do instead: every network "
            f"that fits the labels is the truth. Give fewer than {packing.size} samples."
        )
    try:
        lower = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError as error:
        raise InvalidInput(
            f"matrix must be positive definite. Got least eigenvalue {np.linalg.eigvalsh(matrix)[0]:.3g} "
            f"instead. The truth needs at least d units."
        ) from error
    direction = np.asarray(packing.unpack(basis[:, -1]))
    half = scipy.linalg.solve_triangular(lower, direction, lower=True)
    relative, frame = np.linalg.eigh(scipy.linalg.solve_triangular(lower, half.T, lower=True))
    if -relative[0] < relative[-1]:  # of A and -A, take the one with the larger negative side: smaller t
        relative, frame = -relative[::-1], frame[:, ::-1]
    # M + t A = L (I + t F) L^T: its factor without the square root of a singular matrix.
    kept = np.maximum(1 - relative / relative[0], 0.0)[1:]
    weights = np.zeros((d, width))
    weights[:, : d - 1] = lower @ (frame[:, 1:] * np.sqrt(kept))
    other = weights @ weights.T
    labels = np.einsum("ni,ij,nj->n", x, matrix, x)
    difference = np.sum((x @ weights) ** 2, axis=1) - labels
    return Counterexample(
        network=quadratic_network(weights),
        matrix=other,
        empirical_risk=float(np.mean(difference**2) / (np.mean(labels**2) or 1.0)),
        population_risk=population_risk(other - matrix, moments),
        bound=moments.curvature * float(np.linalg.eigvalsh(matrix)[0]) ** 2,
    )
