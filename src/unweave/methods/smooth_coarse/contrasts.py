"""Probabilities of several classes, rounded or noisy: what can be seen of their logits.

An error sigma of p_k is one of sigma / p_k in log p_k, so behind a softmax only the likely classes are seen,
and of them only differences: at each site the contrast

    log p_i - log p_j = sum_m (a_mi - a_mj) g(w_m . x + b_m) + const        (i, j its two likeliest classes).

Its Hessian is a sum of the neurons' squares with coefficients s^2 g''(s t + b) a . sigma_n, sigma_n = e_i -
e_j: for given (s, b) the outgoing weights a enter linearly, with another selector at every site.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.profiles.profiles import Profiles, profile_grid
from unweave.methods.smooth_coarse.rotated_hessians import RotatedHessians
from unweave.networks.activations import Activation

_RIDGE = 1e-3  # of the mean diagonal: classes that hardly occur, and the common part that no contrast sees
_GRID_AT_ONCE = 512


def likeliest_contrasts(taken: RotatedHessians, probabilities: Array) -> RotatedHessians:
    """Hessians (n, 1, p) of the contrast of each site's two likeliest classes, with its selector.

    ``taken`` holds those of the logs of all classes (any multiple of one added), ``probabilities`` (n, K) the
    answers at the sites.
    """
    order = np.argsort(probabilities, axis=1)
    rows = np.arange(len(order))
    selectors = np.zeros_like(probabilities)
    selectors[rows, order[:, -1]] = 1.0
    selectors[rows, order[:, -2]] = -1.0
    return replace(
        taken,
        hessians=np.einsum("nk,nkp->np", selectors, taken.hessians)[:, None],
        errors=np.einsum("nk,nkp->np", selectors, taken.errors)[:, None],
        selectors=selectors,
    )


def contrast_profiles(
    projections: Array, samples: Array, selectors: Array, activation: Activation
) -> Profiles:
    """Scale, bias and outgoing weights (m, K) of neurons from one contrast per site.

    ``projections`` (n, m), ``samples`` (n, m), ``selectors`` (n, K). The best point of a grid over (s, b);
    later fits refine it.
    """
    scales, biases = profile_grid(float(np.abs(projections).max(initial=1.0)))
    m, classes = projections.shape[1], selectors.shape[1]
    squares = (selectors[:, :, None] * selectors[:, None, :]).reshape(len(selectors), -1)
    best_scale, best_bias = np.ones(m), np.zeros(m)
    outgoing, left = np.zeros((m, classes)), np.full(m, np.inf)
    for neuron in range(m):
        own = samples[:, neuron]
        size = float(own @ own)
        for start in range(0, len(scales), _GRID_AT_ONCE):
            s, b = scales[start : start + _GRID_AT_ONCE], biases[start : start + _GRID_AT_ONCE]
            shape = s**2 * activation.jet(projections[:, neuron, None] * s + b, 2)[2]  # (n, grid)
            gram = ((shape**2).T @ squares).reshape(-1, classes, classes)
            ridge = _RIDGE * np.einsum("gkk->g", gram) / classes + np.finfo(np.float64).tiny
            gram = gram + ridge[:, None, None] * np.eye(classes)
            right = (shape * own[:, None]).T @ selectors  # (grid, K)
            amplitude = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
            misfit = size - 2 * np.einsum("gk,gk->g", amplitude, right)
            misfit += np.einsum("gk,gkl,gl->g", amplitude, gram, amplitude)
            at = int(np.argmin(misfit))
            if misfit[at] < left[neuron]:
                best_scale[neuron], best_bias[neuron] = s[at], b[at]
                outgoing[neuron], left[neuron] = amplitude[at], misfit[at]
    size = np.maximum(np.einsum("nm,nm->m", samples, samples), np.finfo(np.float64).tiny)
    return Profiles(best_scale, best_bias, outgoing, np.sqrt(np.maximum(left, 0.0) / size))
