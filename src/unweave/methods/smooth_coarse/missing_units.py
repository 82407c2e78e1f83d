"""A unit that is missing shows in what the others leave: of the Hessians, and of the answers.

R(x) = Hess f(x) - sum_k a_k g''(w_k . x + b_k) w_k w_k^T is a_0 g''(..) w_0 w_0^T for the missing one: the
leading singular matrix of all R is w_0 w_0^T, its leading eigenvector the direction. A unit too weak for
that still shows in the average of what is left of many answers, r(x) = a_0 g(w_0 . x + b_0) + noise: for
Gaussian x

    E r(x) x = a_0 E g'(..) w_0,        E r(x) (x x^T - I) = a_0 E g''(..) w_0 w_0^T        (Stein).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.profiles.profiles import Profiles, fit_profiles
from unweave.methods.smooth_coarse.noisy_hessians import RotatedHessians, noisy_span
from unweave.methods.smooth_coarse.start import noisy_profiles
from unweave.networks.parameters import NetworkParameters
from unweave.subspace.symmetric import symmetric_packing


def with_missing_unit(
    model: NetworkParameters, taken: RotatedHessians, weights: Array, rng: np.random.Generator
) -> NetworkParameters | None:
    """Add the unit that residual Hessians show to ``model`` (one hidden layer), or return None.

    ``taken`` are Hessians behind the link, ``weights`` (K,) those of the outputs.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # of a fit that ran away
        left = residual_hessians(model, taken)
    if not np.isfinite(left.hessians).all():
        return None
    span = noisy_span(left, weights)
    if not span.singular_values[0] > span.noise_level:
        return None
    dimension = model.n_inputs
    direction = _leading(symmetric_packing(dimension).unpack(span.basis[:, 0]))[None, :]
    return _with_unit(model, direction, noisy_profiles(left, direction, model.activation, rng))


def with_averaged_units(
    model: NetworkParameters, points: Array, left: Array, rng: np.random.Generator
) -> list[NetworkParameters]:
    """Return ``model`` with a unit in each of the directions that averages of what is left show.

    ``left`` (n, K) is what the model leaves of the answers behind its link at ``points`` (n, D).
    """
    # One combination of the outputs: that in which most is left.
    combination = np.linalg.svd(left, full_matrices=False)[2][0]
    along = left @ combination
    centred = points - points.mean(axis=0)
    first = along @ centred
    second = (centred * along[:, None]).T @ centred - along.sum() * np.eye(points.shape[1])
    result = []
    for direction in (first, _leading(second)):
        unit = direction[None, :] / max(float(np.linalg.norm(direction)), float(np.finfo(np.float64).tiny))
        profile = fit_profiles(points @ unit.T, left[:, None, :], model.activation, 0, rng)
        result.append(_with_unit(model, unit, profile))
    return result


def _leading(matrix: Array) -> Array:
    """Return the eigenvector of the eigenvalue of largest modulus."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors[:, np.argmax(np.abs(values))])


def _with_unit(model: NetworkParameters, direction: Array, profile: Profiles) -> NetworkParameters:
    outgoing = profile.outgoing
    if model.is_softmax:
        outgoing = outgoing[:, :-1] - outgoing[:, -1:]
    incoming = direction.T * profile.scales
    return replace(
        model,
        weights=(np.hstack([model.weights[0], incoming]), np.vstack([model.weights[1], outgoing])),
        biases=(np.concatenate([model.biases[0], profile.biases]), model.biases[1]),
    )


def residual_hessians(model: NetworkParameters, taken: RotatedHessians) -> RotatedHessians:
    """Return what the model's units leave of the Hessians (behind the link)."""
    incoming = model.weights[0]
    second = model.activation.jet(taken.sites @ incoming + model.biases[0], 2)[2]  # (n, m)
    squares = symmetric_packing(model.n_inputs).outer(np.ascontiguousarray(incoming.T))  # (m, p)
    outgoing = model.weights[1]
    if model.is_softmax:
        outgoing = np.hstack([outgoing, np.zeros((len(outgoing), 1))])
        outgoing = outgoing - outgoing.mean(axis=1, keepdims=True)
    if taken.selectors is None:
        explained = np.einsum("nm,mk,mp->nkp", second, outgoing, squares, optimize=True)
    else:
        explained = ((second * (taken.selectors @ outgoing.T)) @ squares)[:, None]
    return replace(taken, hessians=taken.hessians - explained)
