"""One neuron at a time from a handful of sites: scale, bias and outgoing weights from two derivatives.

Where both second and third derivatives of a sum of neurons are known, least squares on powers of the
directions u_k gives two samples per site and neuron of the same function of one variable,

    c2_k(t) = a_k s_k^2 g''(s_k t + b_k),        c3_k(t) = a_k s_k^3 g'''(s_k t + b_k),      t = u_k . x.

The amplitude a_k (one per output) is projected out; (s, b) comes from a grid and, from its best
point at every scale, a damped Gauss-Newton iteration on (log s, b), for all neurons and starts at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.shared.profiles.neuron_fits import rank_one_coefficients
from unweave.methods.shared.profiles.profiles import Profiles
from unweave.networks.activations import Activation

_SCALES = np.geomspace(0.05, 8.0, 24)  # of |w_k| in normalised inputs
_CENTRES_PER_WIDTH = 8.0  # grid points across 1/s: near an inflection the ratio of both derivatives is steep
_EXTENT = 6.0  # pre-activations from which on no site sees more than a neuron's far tail
_FIRST_STEPS, _CANDIDATES, _REFINEMENTS = 8, 6, 30  # steps for all, how many go on, and for how long
_DIFFERENCE = 1e-5  # step of the Jacobian's differences
_DAMPING = (1e-3, 0.2, 5.0)  # initial, factor after success, factor after failure
_LONGEST_STEP = np.array([0.5, 2.0])  # in (log s, b)


@dataclass(frozen=True, eq=False)
class JetSamples:
    """Samples of every neuron's profile and of its slope: projections (n, m), second and third (n, m, K)."""

    projections: Array
    second: Array
    third: Array

    def only(self, neurons: IntArray) -> JetSamples:
        """The samples of some of the neurons."""
        return JetSamples(self.projections[:, neurons], self.second[:, neurons], self.third[:, neurons])

    def stacked(self) -> Array:
        """(2n, m, K)"""
        return np.concatenate([self.second, self.third])


def jet_samples(directions: Array, sites: Array, hessians: Array, thirds: Array) -> JetSamples:
    """Samples for unit rows u (m, d), from Hessians (n, K, p) and thirds (n, K, d, p) at sites (n, d).

    T(., ., e_j) has the coefficient c3_k u_kj on u_k u_k^T; |u_k| = 1 gives c3_k back.
    """
    n, outputs, d, size = thirds.shape
    second = rank_one_coefficients(directions, hessians)
    slices = rank_one_coefficients(directions, thirds.reshape(n, outputs * d, size))
    third = np.einsum("nmkj,mj->nmk", slices.reshape(n, len(directions), outputs, d), directions)
    return JetSamples(sites @ directions.T, second, third)


def fit_jet_profiles(samples: JetSamples, activation: Activation) -> Profiles:
    """The best (s, b, a) of every neuron."""
    data = samples.stacked()
    scales, biases = _grid_search(samples.projections, data, activation)
    scales, biases, misfit = _refine(scales, biases, samples.projections, data, activation, _FIRST_STEPS)
    kept = np.argsort(misfit, axis=1)[:, :_CANDIDATES]
    scales, biases = np.take_along_axis(scales, kept, 1), np.take_along_axis(biases, kept, 1)
    scales, biases, misfit = _refine(scales, biases, samples.projections, data, activation, _REFINEMENTS)
    best = np.argmin(misfit, axis=1)[:, None]
    scales, biases = np.take_along_axis(scales, best, 1), np.take_along_axis(biases, best, 1)
    shape = _shape(scales, biases, samples.projections, activation)
    amplitude = _project(shape, data)[:, 0]
    size = np.maximum(np.einsum("nmk,nmk->m", data, data), np.finfo(np.float64).tiny)
    left = np.take_along_axis(misfit, best, 1)[:, 0]
    return Profiles(scales[:, 0], biases[:, 0], amplitude, np.sqrt(np.maximum(left, 0.0) / size))


def _shape(s: Array, b: Array, t: Array, activation: Activation) -> Array:
    """(2n, m, candidates): s^2 g'' and s^3 g''' for s, b (m, candidates), t (n, m)."""
    _, _, second, third = activation.jet(s * t[:, :, None] + b, 3)
    return np.concatenate([s**2 * second, s**3 * third])


def _grid_search(t: Array, data: Array, activation: Activation) -> tuple[Array, Array]:
    """For every scale of the grid the best b: (m, scales) each.

    The misfit has a valley for every way in which a few samples can be met; they differ in scale.
    """
    reach = float(np.abs(t).max(initial=1.0))
    m = t.shape[1]
    best_b = np.zeros((m, len(_SCALES)))
    for i, scale in enumerate(_SCALES):
        extent = reach + _EXTENT / scale
        count = int(np.ceil(2 * extent * scale * _CENTRES_PER_WIDTH)) | 1
        grid = scale * np.linspace(-extent, extent, count)
        shape = _shape(np.full((m, count), scale), np.broadcast_to(grid, (m, count)), t, activation)
        norm = np.einsum("nmg,nmg->mg", shape, shape)
        overlap = np.einsum("nmg,nmk->mgk", shape, data)
        explained = np.einsum("mgk,mgk->mg", overlap, overlap)
        explained = np.divide(explained, norm, out=np.zeros_like(norm), where=norm > 0)
        best_b[:, i] = grid[np.argmax(explained, axis=1)]
    return np.broadcast_to(_SCALES, best_b.shape).copy(), best_b


def _project(shape: Array, data: Array) -> Array:
    """Best amplitudes (m, candidates, K) of shape (2n, m, candidates) for data (2n, m, K)."""
    norm = np.einsum("nmc,nmc->mc", shape, shape)[:, :, None]
    overlap = np.einsum("nmc,nmk->mck", shape, data)
    return np.asarray(np.divide(overlap, norm, out=np.zeros_like(overlap), where=norm > 0))


def _remainder(s: Array, b: Array, t: Array, data: Array, activation: Activation) -> Array:
    """data minus its best fit, (2n, m, candidates, K)."""
    shape = _shape(s, b, t, activation)
    return np.asarray(data[:, :, None, :] - shape[..., None] * _project(shape, data))


def _refine(
    s: Array, b: Array, t: Array, data: Array, activation: Activation, steps: int
) -> tuple[Array, Array, Array]:
    """Levenberg-Marquardt on (log s, b) with the amplitudes projected out, each candidate by itself."""
    log_s, b, damping = np.log(s), b.copy(), np.full(s.shape, _DAMPING[0])
    left = _remainder(np.exp(log_s), b, t, data, activation)
    misfit = np.einsum("nmck,nmck->mc", left, left)
    reach = float(np.abs(t).max(initial=1.0))
    for _ in range(steps):
        step = _step(log_s, b, t, data, activation, left, damping)
        new_log_s = np.clip(log_s + step[..., 0], np.log(_SCALES[0] / 10), np.log(_SCALES[-1] * 10))
        farthest = np.exp(new_log_s) * reach + _EXTENT
        new_b = np.clip(b + step[..., 1], -farthest, farthest)
        new_left = _remainder(np.exp(new_log_s), new_b, t, data, activation)
        new_misfit = np.einsum("nmck,nmck->mc", new_left, new_left)
        better = new_misfit < misfit
        log_s, b = np.where(better, new_log_s, log_s), np.where(better, new_b, b)
        misfit, left = np.where(better, new_misfit, misfit), np.where(better[..., None], new_left, left)
        damping = np.clip(np.where(better, damping * _DAMPING[1], damping * _DAMPING[2]), 1e-12, 1e12)
        if not better.any() and (damping > 1.0).all():
            break
    return np.exp(log_s), b, misfit


def _step(
    log_s: Array, b: Array, t: Array, data: Array, activation: Activation, left: Array, damping: Array
) -> Array:
    """(m, candidates, 2) damped Gauss-Newton steps, the Jacobian by differences."""
    by_s = (_remainder(np.exp(log_s + _DIFFERENCE), b, t, data, activation) - left) / _DIFFERENCE
    by_b = (_remainder(np.exp(log_s), b + _DIFFERENCE, t, data, activation) - left) / _DIFFERENCE
    jacobian = np.stack([by_s, by_b], axis=-1)
    normal = np.einsum("nmcki,nmckj->mcij", jacobian, jacobian)
    gradient = np.einsum("nmcki,nmck->mci", jacobian, left)
    axes = np.arange(2)
    tiny = np.finfo(np.float64).tiny
    normal[..., axes, axes] = normal[..., axes, axes] * (1 + damping[..., None]) + tiny
    determinant = normal[..., 0, 0] * normal[..., 1, 1] - normal[..., 0, 1] ** 2
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        first = (normal[..., 1, 1] * gradient[..., 0] - normal[..., 0, 1] * gradient[..., 1]) / determinant
        second = (normal[..., 0, 0] * gradient[..., 1] - normal[..., 0, 1] * gradient[..., 0]) / determinant
    step = -np.stack([first, second], axis=-1)
    # Neurons that hardly act have a degenerate fit; they stay where they are.
    step = np.where(np.isfinite(step) & (determinant > 0)[..., None], step, 0.0)
    return np.asarray(np.clip(step, -_LONGEST_STEP, _LONGEST_STEP))
