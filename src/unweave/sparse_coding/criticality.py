"""How small the gradient of the autoencoder is near the dictionary.

[mathematics] Thm. 4.3.2: for k = h^p, mu = h^-zeta and columns within delta = h^(-p - nu^2) of the atoms, p <
1/2, p < nu^2 and p + nu^2 < zeta,

    |E dL/dW_i| = o( max(m1^2, m2) h^(p-1) ),

so near-critical, in units of max(m1^2, m2) k/h. Measured here: the mean over hidden units of |grad_i| in
these units, the gradient averaged over signals and over points at a given distance from the dictionary;
beside it the exact expectation of the proxy, which has no sampling error. What is small is the coherence:
at spikes and waves themselves, k = 2 and the bias of training, the proxy is 0.73, 0.43 and 0.23 for 64, 256
and 1024 inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.sparse_coding.autoencoder import autoencoder_gradient, autoencoder_loss, proxy_gradient
from unweave.sparse_coding.generative import SparseModel, gaussian_dictionary, near_dictionary


@dataclass(frozen=True)
class Criticality:
    """Norms of the gradient per unit, mean over units, in units of max(m1^2, m2) k/h."""

    distance: float
    bias: float
    gradient: float
    """Averaged over the signals and over all points, then taken per unit."""
    each: float
    """Averaged over the signals; the mean over points of the norm."""
    proxy: float
    """Like ``each``, for the exact expectation of the proxy."""
    gap: float
    """Of the gradient to the proxy: sampling, and supports that are not recovered."""
    scale: float
    """max(m1^2, m2) k/h, by which all of these are divided."""


def measure_criticality(
    model: SparseModel, distance: float, bias: float, signals: Array, points: int, rng: np.random.Generator
) -> Criticality:
    """Measure at ``points`` random encoders, every row ``distance`` away from its atom, on signals (N, n)."""
    if points < 1 or not np.isfinite(distance) or distance < 0:
        raise InvalidInput(
            f"points must be at least 1 and distance at least 0. Got {points} and {distance!r} instead. "
            f"The rows of the encoder are that far from the atoms."
        )
    scale = max(model.mean**2, model.mean_square) * model.sparsity / model.n_atoms
    total = np.zeros((model.n_atoms, model.n_inputs))
    each, proxies, gaps = [], [], []
    for _ in range(points):
        encoder = near_dictionary(model.dictionary, distance, rng).T
        gradient = autoencoder_gradient(encoder, signals, bias)
        proxy = proxy_gradient(encoder, model, bias).gradient
        total += gradient
        each.append(_mean_norm(gradient))
        proxies.append(_mean_norm(proxy))
        gaps.append(_mean_norm(gradient - proxy))
    return Criticality(
        distance=distance,
        bias=bias,
        gradient=_mean_norm(total / points) / scale,
        each=float(np.mean(each)) / scale,
        proxy=float(np.mean(proxies)) / scale,
        gap=float(np.mean(gaps)) / scale,
        scale=scale,
    )


def loss_slice(
    model: SparseModel, bias: float, signals: Array, distances: Array, rng: np.random.Generator
) -> Array:
    """Losses at A + t D for every t of ``distances`` (T,), D a random direction with unit columns."""
    direction = gaussian_dictionary(model.n_inputs, model.n_atoms, rng)
    return np.array(
        [autoencoder_loss((model.dictionary + t * direction).T, signals, bias) for t in distances]
    )


def _mean_norm(gradient: Array) -> float:
    return float(np.linalg.norm(gradient, axis=1).mean())
