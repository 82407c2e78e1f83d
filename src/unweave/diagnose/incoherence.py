"""How far weights are from orthonormal: coherence, conditioning of their Gram matrices, frame constant.

For unit columns w_1..w_m of W (D, m) the matrices w_k w_k^T are independent exactly when G_2 = (W^T
W)^{elementwise 2} is regular, and every step of a recovery from Hessians (learnability, the power method's
rate, signs and shifts) loses digits in proportion to the condition of G_2 or G_3. Random weights on the
sphere are incoherent in this sense with high probability up to m log^2 m = O(D^2) ([identification] Prop.
2.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput


@dataclass(frozen=True)
class Incoherence:
    """Figures of a unit-norm weight matrix (D, m). Eigenvalues are exact up to rounding."""

    dimension: int
    """D, the number of inputs."""
    width: int
    """m, the number of units; recovery from Hessians needs m < D(D+1)/2, and generically m <= D(D-1)/2."""
    coherence: float
    """mu_2 = max_{k != l} <w_k, w_l>^2: one means that two units share a direction and cannot be
    separated."""
    coherence_constant: float
    """c_2 = mu_2 D / log m: bounded in the theory; a few for random weights. nan for m < 2."""
    welch_bound: float
    """(m - D) / (D (m - 1)) or 0, below which mu_2 of m vectors cannot fall: as incoherent as possible."""
    gram2_smallest: float
    """lambda_min(G_2) = 1/c_3: positive exactly when the squares w_k w_k^T are independent; learnability
    is proportional to it."""
    gram2_largest: float
    """lambda_max(G_2), at least m/D when m > D."""
    gram2_condition: float
    """cond(G_2): the error of second derivatives grows by up to this factor in the shifts. inf: dependent."""
    gram3_smallest: float
    """lambda_min(G_3), never below that of G_2."""
    gram3_largest: float
    """lambda_max(G_3)."""
    gram3_condition: float
    """cond(G_3): the same factor for the third derivatives that decide the signs."""
    gershgorin2: float
    """1 + (m - 1) mu_2, the bound on ||G_2|| that coherence alone gives ([identification] Lemma 2.23)."""
    gershgorin3: float
    """1 + (m - 1) mu_2^{3/2}, the same for ||G_3||."""
    frame_lower: float
    """lambda_min(W W^T): zero means that some input direction does not reach the network at all."""
    frame_upper: float
    """lambda_max(W W^T)."""
    frame_constant: float
    """nu = max(frame_upper - 1, 1 - frame_lower): below one the linear-regime theorems apply, which implies
    m < 2 D."""

    @property
    def independent(self) -> bool:
        """Whether the squares are independent in floating point: the span of Hessians shows all m units."""
        return bool(np.isfinite(self.gram2_condition))


def incoherence(weights: Array) -> Incoherence:
    """Coherence, Gram conditioning and frame constant of unit columns ``weights`` (D, m).

    Cost: three symmetric eigenproblems, O(m^3 + D m^2) flops.

    Example
    -------
    >>> incoherence(np.eye(3)).frame_constant
    0.0
    """
    checked_unit_columns(weights)
    dimension, width = weights.shape
    gram = weights.T @ weights
    off = np.abs(gram - np.diag(np.diag(gram)))
    coherence = float(off.max(initial=0.0)) ** 2
    low2, high2, condition2 = _extremes(gram**2)
    low3, high3, condition3 = _extremes(gram**3)
    # W W^T and W^T W have the same eigenvalues but for zeros: of the larger one, all that are missing.
    frame = scipy.linalg.eigvalsh(gram if width < dimension else weights @ weights.T)
    lower, upper = 0.0 if width < dimension else float(frame[0]), float(frame[-1])
    spread = max(upper - 1, 1 - lower)
    return Incoherence(
        dimension=dimension,
        width=width,
        coherence=coherence,
        coherence_constant=coherence * dimension / float(np.log(width)) if width > 1 else np.nan,
        welch_bound=welch_bound(dimension, width),
        gram2_smallest=low2,
        gram2_largest=high2,
        gram2_condition=condition2,
        gram3_smallest=low3,
        gram3_largest=high3,
        gram3_condition=condition3,
        gershgorin2=1 + (width - 1) * coherence,
        gershgorin3=1 + (width - 1) * coherence**1.5,
        frame_lower=lower,
        frame_upper=upper,
        frame_constant=spread,
    )


def hadamard_gram(weights: Array, order: int) -> Array:
    """G_n = (W^T W)^{elementwise n}, (m, m), of ``weights`` (D, m): the Gram matrix of the n-fold tensors."""
    gram: Array = (weights.T @ weights) ** order
    return gram


def welch_bound(dimension: int, width: int) -> float:
    """Least possible max_{k != l} <w_k, w_l>^2 of ``width`` unit vectors in R^dimension."""
    return max(0.0, (width - dimension) / (dimension * (width - 1))) if width > 1 else 0.0


def unit_columns(weights: Array) -> tuple[Array, Array]:
    """Columns of ``weights`` (D, m) scaled to unit norm, and their norms (m,)."""
    norms = np.linalg.norm(weights, axis=0)
    if not (norms > 0).all():
        raise InvalidInput(
            f"weights must have nonzero columns. Got {int((norms == 0).sum())} zero columns instead. "
            "Drop units that do not depend on the input."
        )
    return weights / norms, norms


def checked_unit_columns(weights: Array) -> None:
    """Raise `InvalidInput` unless ``weights`` is a (D, m) matrix of unit columns."""
    if weights.ndim != 2 or weights.shape[1] < 1:
        raise InvalidInput(f"weights must be a (D, m) matrix. Got shape {weights.shape} instead.")
    error = float(np.abs(np.linalg.norm(weights, axis=0) - 1).max())
    if not error <= np.sqrt(np.finfo(np.float64).eps):
        raise InvalidInput(
            f"weights must have unit columns. Got a norm that is off by {error:.2g} instead. "
            "Divide by the norms, see unit_columns."
        )


def _extremes(gram: Array) -> tuple[float, float, float]:
    """Extreme eigenvalues of a semidefinite matrix and its condition, infinite at the rounding level."""
    values = scipy.linalg.eigvalsh(gram)
    low, high = float(values[0]), float(values[-1])
    singular = low <= len(values) * np.finfo(np.float64).eps * high
    return low, high, np.inf if singular else high / low
