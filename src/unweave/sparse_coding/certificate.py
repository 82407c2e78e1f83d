"""Does one layer relu(W y - eps) find the support of every sparse code?

Rows W_i (h, n) stand for atoms A_i; codes have at most k entries, in [a, b]. With B = W A (h, h), unit i sees
W_i . y = sum_j B_ij x_j. The largest value off the support and the smallest on it are

    off_i = b (sum of the k largest positive B_ij, j != i),
    on_i  = a B_ii + b (sum of the k - 1 most negative B_ij, j != i)

(b B_ii if B_ii < 0). Every support is recovered exactly by the bias eps if and only if
max_i off_i <= eps < min_i on_i. That is `SupportCertificate.interval`: no probability, no slack.

The coherence certificate needs only the numbers delta = max_i |W_i - A_i| and mu: it holds for

    b k (delta + mu) <= eps < (1 - delta) a - b k (delta + mu),

which lies inside the exact interval up to rounding. [mathematics] Thm. 4.3.1 takes eps = 2 m1 k (delta + mu),
m1 the mean of the values, and needs a >= (b + 2 m1)(delta + mu) k/(1 - delta) for the support; each unit off
it stays silent with probability at least 1 - exp(-2 k m1^2/(b - a)^2), so all h - k of them with a union
bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.sparse_coding.generative import check_codes, checked_matrix, coherence


@dataclass(frozen=True, eq=False)
class SupportCertificate:
    """Biases with which every support is recovered."""

    off_support: Array
    """(h,) largest W_i . y over signals without atom i."""
    on_support: Array
    """(h,) smallest W_i . y over signals with it."""
    distance: float
    """delta, the largest |W_i - A_i|."""
    coherence: float
    """mu."""
    coherence_interval: tuple[float, float]
    """Biases certified by delta and mu alone; empty if the first is not below the second."""
    theorem_bias: float
    """2 m1 k (delta + mu)."""
    theorem_needs: float
    """The least a that [mathematics] Thm. 4.3.1 allows."""
    theorem_holds: bool
    theorem_failure: float
    """Bound on the probability that some unit off the support fires, one at most."""

    @property
    def interval(self) -> tuple[float, float]:
        """[low, high): exactly the biases that recover every support; empty if low >= high."""
        return float(self.off_support.max()), float(self.on_support.min())

    @property
    def certified(self) -> bool:
        """Whether some bias recovers every support."""
        low, high = self.interval
        return max(low, 0.0) < high

    @property
    def bias(self) -> float | None:
        """The middle of the interval, farthest from both kinds of error; None if it is empty."""
        low, high = self.interval
        return (max(low, 0.0) + high) / 2 if self.certified else None

    def allows(self, bias: float) -> bool:
        """Whether this bias recovers every support."""
        low, high = self.interval
        return low <= bias < high


def certify_support_recovery(
    encoder: Any, dictionary: Any, sparsity: int, low: float, high: float, mean: float | None = None
) -> SupportCertificate:
    """Certify rows ``encoder`` W (h, n) for codes of at most ``sparsity`` entries in [low, high].

    ``dictionary`` A is (n, h); ``mean`` is m1 of the theorem, that of uniform values unless given. Cost: a
    product (h, n, h) and a partial sort of its rows.

    Example:
        >>> from unweave.sparse_coding import spikes_and_waves
        >>> atoms = spikes_and_waves(64)
        >>> found = certify_support_recovery(atoms.T, atoms, 2, 8.0, 10.0)
        >>> found.interval, found.coherence_interval
        ((2.5, 6.75), (2.5, 5.5))
    """
    dictionary = checked_matrix(dictionary, "dictionary")
    n, h = dictionary.shape
    encoder = checked_matrix(encoder, "encoder", (h, n))
    check_codes(h, sparsity, low, high)
    products = encoder @ dictionary
    own = np.diag(products).copy()
    np.fill_diagonal(products, 0.0)
    off = high * _largest(products, min(sparsity, h - 1))
    on = np.where(own >= 0, low, high) * own - high * _largest(-products, sparsity - 1)
    distance = float(np.linalg.norm(encoder.T - dictionary, axis=0).max())
    mu, mean = coherence(dictionary), (low + high) / 2 if mean is None else mean
    if not low <= mean <= high:
        raise InvalidInput(
            f"mean must be within [{low:g}, {high:g}]. Got {mean!r} instead. It is that of x_i."
        )
    blur = sparsity * (distance + mu)
    needs = (high + 2 * mean) * blur / (1 - distance) if distance < 1 else math.inf
    spread = math.exp(-2 * sparsity * mean**2 / (high - low) ** 2) if high > low else 0.0
    return SupportCertificate(
        off_support=off,
        on_support=on,
        distance=distance,
        coherence=mu,
        coherence_interval=(high * blur, (1 - distance) * low - high * blur),
        theorem_bias=2 * mean * blur,
        theorem_needs=needs,
        theorem_holds=low >= needs,
        theorem_failure=min(1.0, (h - sparsity) * spread),
    )


def _largest(values: Array, count: int) -> Array:
    """(h,) sum of the ``count`` largest positive entries of every row."""
    if count < 1:
        return np.zeros(len(values))
    top = np.partition(values, values.shape[1] - count, axis=1)[:, values.shape[1] - count :]
    return np.asarray(np.maximum(top, 0.0).sum(axis=1))


@dataclass(frozen=True)
class SupportRates:
    """How often supports were recovered."""

    exact: float
    """Share of codes whose support is exactly that of the units that fire."""
    missed: float
    """Share of support entries whose unit is silent."""
    false: float
    """Share of other entries whose unit fires."""


def support_rates(encoder: Any, signals: Array, codes: Array, bias: float) -> SupportRates:
    """Measure supports of relu(W y - bias) for signals (N, n) of codes (N, h)."""
    encoder = checked_matrix(encoder, "encoder", (codes.shape[1], signals.shape[1]))
    if len(signals) != len(codes):
        raise InvalidInput(
            f"signals must be one per code, {len(codes)}. Got {len(signals)} instead. Pass "
            f"model.signals(codes)."
        )
    fires, support = signals @ encoder.T > bias, codes > 0
    return SupportRates(
        exact=float((fires == support).all(axis=1).mean()),
        missed=float((support & ~fires).sum() / max(1, support.sum())),
        false=float((fires & ~support).sum() / max(1, (~support).sum())),
    )
