"""One neuron to look at: what was sampled of its profile, and the curve that was fitted to it.

    c(t) = a s^p g^(p)(s t + b)  (+ an affine function of t, for p = 0),        t = u . x

of the neuron whose relative misfit is the median one: neither the best nor the worst of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.profiles.neuron_fits import rank_one_coefficients
from unweave.methods.shared.profiles.profiles import Profiles
from unweave.networks.activations import Activation

CURVE_POINTS = 200
MOST_SAMPLES = 200
"""Samples kept: a picture shows no more."""
_MARGIN = 0.05  # of the samples' range, that the curve goes beyond them


def typical_profile(
    projections: Array, samples: Array, profiles: Profiles, activation: Activation, order: int
) -> dict[str, Any]:
    """The fields of `unweave.search.Evidence` that show one neuron; empty if there is none.

    Parameters
    ----------
    projections : (n, m)
        t of every neuron at every site.
    samples : (n, m, K)
        What was sampled there; the output with the largest outgoing weight is shown.
    order
        Order p of the derivative that was sampled, 0 or 2.
    """
    if not len(profiles.scales) or not len(projections):
        return {}
    neuron = int(np.argsort(profiles.residuals)[len(profiles.residuals) // 2])
    output = int(np.argmax(np.abs(profiles.outgoing[neuron])))
    ascending = np.argsort(projections[:, neuron])
    if len(ascending) > MOST_SAMPLES:
        ascending = ascending[np.linspace(0, len(ascending) - 1, MOST_SAMPLES).astype(np.int64)]
    t, c = projections[ascending, neuron], samples[ascending, neuron, output]
    scale, bias = float(profiles.scales[neuron]), float(profiles.biases[neuron])
    amplitude = float(profiles.outgoing[neuron, output])

    def profile(at: Array) -> Array:
        return np.asarray(amplitude * scale**order * activation.jet(scale * at + bias, order)[order])

    margin = _MARGIN * float(np.ptp(t))
    grid = np.linspace(t[0] - margin, t[-1] + margin, CURVE_POINTS)
    curve = profile(grid)
    if order == 0:
        design = np.stack([t, np.ones_like(t)], axis=1)
        slope, constant = np.linalg.lstsq(design, c - profile(t), rcond=None)[0]
        curve = curve + slope * grid + constant
    return {
        "profile_samples": np.stack([t, c]),
        "profile_curve": np.stack([grid, curve]),
        "profile_order": order,
    }


def hessian_profile(
    sites: Array, hessians: Array, directions: Array, profiles: Profiles, activation: Activation
) -> dict[str, Any]:
    """The same from Hessians (n, K, p) at sites (n, d), for unit directions (m, d)."""
    samples = rank_one_coefficients(directions, hessians)
    return typical_profile(sites @ directions.T, samples, profiles, activation, 2)
