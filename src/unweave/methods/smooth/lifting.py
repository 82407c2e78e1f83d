"""From a network in the coordinates of an active subspace back to all inputs.

In a frame E_0 (D, d) that holds the weights only approximately, the network v -> f(E_0 v) has weights
E_0^T w_k and is recovered exactly. What is missing is where in R^D the subspace really lies: the centred
gradients span it up to the truncation of their differences, which the network found so far predicts.
With it removed, their leading singular vectors E are exact up to rounding, and

    w_k = E (E_0^T E)^{-1} (E_0^T w_k).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.stencils import Jets
from unweave.derivatives.truncation import difference_gradients
from unweave.networks.parameters import NetworkParameters

_ROUNDS = 3
_SKIP_SEEN = 1e-6  # skip outside the subspace relative to the gradients: far above what rounding leaves


def lift(model: NetworkParameters, frame: Array, gradients: Jets) -> NetworkParameters:
    """The model in all D inputs, from ``gradients`` (in all inputs) that were taken anyway."""
    d = frame.shape[1]
    weights = frame @ model.weights[0]
    for _ in range(_ROUNDS):
        lifted = replace(model, weights=(weights, model.weights[1]), skip=None)
        exact = gradients.gradients - _truncation(lifted, gradients)
        centred = (exact - exact.mean(axis=0)).reshape(-1, len(frame))
        basis = np.linalg.svd(centred, full_matrices=False)[2][:d].T
        weights = basis @ np.linalg.solve(frame.T @ basis, model.weights[0])
    lifted = replace(model, weights=(weights, model.weights[1]), skip=None)
    return replace(lifted, skip=_skip(lifted, model, frame, gradients))


def _truncation(model: NetworkParameters, jets: Jets) -> Array:
    """What the differences of ``jets`` add to the gradients of ``model``: (n, K, D)."""
    differences = difference_gradients(model, jets.sites, jets.step, jets.rule)
    return differences - difference_gradients(model, jets.sites, 0.0, jets.rule)


def _skip(lifted: NetworkParameters, reduced: NetworkParameters, frame: Array, jets: Jets) -> Array | None:
    """The skip found inside the subspace and what the gradients show of it outside, or None."""
    unexplained = jets.gradients - difference_gradients(lifted, jets.sites, jets.step, jets.rule)
    mean = unexplained.mean(axis=0).T  # (D, K)
    outside: Array = mean - frame @ (frame.T @ mean)
    size = float(np.sqrt(np.mean(jets.gradients**2)))
    if np.abs(outside).max() <= _SKIP_SEEN * size:
        outside = np.zeros_like(outside)
    if reduced.skip is not None:
        return np.asarray(outside + frame @ reduced.skip)
    return outside if outside.any() else None
