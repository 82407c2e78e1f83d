"""Undo sign flips of units that Hessians cannot distinguish.

softplus, gelu and swish satisfy g(-z) = g(z) + l z: Hessians cannot tell (w, b) from (-w, -b). Every unit
with the wrong sign leaves l w_k a_k^T in the skip matrix S. The flipped units solve

    S = sum_k chi_k l w_k a_k^T,        chi_k in {0, 1},

by least squares if there are no more units than equations, else as signs are found (`networks.signs`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.networks.activations import Activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.signs import solve_sign_system
from unweave.numerics.sign_search import WIDEST_ENUMERATION, SignOptions, meet_in_the_middle

_OFF_INTEGER_EXACT = 0.2  # distance of a fitted chi_k from 0 or 1 that is still read, for precise answers
_OFF_INTEGER_COARSE = 0.35  # the same for coarse answers, against which the turned network is checked
_SKIP_MISFIT_SIGMAS = 6.0  # misfit of S that noise explains, in standard errors
_SKIP_MISFIT_ROUNDING = 1e-9  # of |S|: misfit that rounding explains
_SEARCH = SignOptions(lattice_seconds=5.0)  # for more units than equations
_CLEARLY_BEST_RATIO = 3.0  # misfit of the second-best pattern over the best from which the choice is certain


def may_be_mirrored(activation: Activation) -> bool:
    """Whether g(-z) = g(z) + l z with l not zero."""
    rule = activation.reflection
    return rule is not None and rule.sign == 1 and rule.slope != 0


def mirror_back(model: NetworkParameters) -> NetworkParameters:
    """Turn the units that the skip shows to be mirrored, if it decides; else return ``model`` itself.

    The function stays the same, and what those units explain of the skip is taken out of it.
    """
    chosen = _mirrored(model, _OFF_INTEGER_EXACT, None)
    return model if chosen is None else _turned(model, chosen)


def unmirrored(model: NetworkParameters, skip_error: float) -> NetworkParameters | None:
    """Turn units so that no skip is needed and leave it out; None if that cannot be done.

    ``skip_error`` is the standard error of an entry of the skip.
    """
    chosen = _mirrored(model, _OFF_INTEGER_COARSE, skip_error)
    return None if chosen is None else replace(_turned(model, chosen), skip=None)


def with_least_skip(model: NetworkParameters) -> NetworkParameters:
    """Turn units so that little is left of the skip, where noise hides which ones are mirrored.

    The function stays the same. Rounded least squares begin; single units turn while that makes the skip
    shorter.
    """
    if model.skip is None or not may_be_mirrored(model.activation):
        return model
    matrix, right = _in_skip(model).reshape(-1, model.width), model.skip.reshape(-1)
    chosen = np.clip(np.round(np.linalg.lstsq(matrix, right, rcond=None)[0]), 0.0, 1.0)
    for _ in range(model.width):
        left = right - matrix @ chosen
        # |left - s column|^2 - |left|^2 for every unit that turns, s = 1 - 2 chi
        sign = 1 - 2 * chosen
        gains = np.einsum("ij,ij->j", matrix, matrix) - 2 * sign * (left @ matrix)
        unit = int(np.argmin(gains))
        if not gains[unit] < 0:
            break
        chosen[unit] = 1 - chosen[unit]
    return _turned(model, chosen)


def _turned(model: NetworkParameters, chosen: Array) -> NetworkParameters:
    """Turn the units of ``chosen`` (m,), zeros and ones; the function stays the same."""
    (incoming, outgoing), (biases, offset) = model.weights, model.biases
    sign = np.where(chosen == 1.0, -1.0, 1.0)
    shift = _slope(model) * (biases * chosen) @ outgoing
    assert model.skip is not None
    return replace(
        model,
        weights=(incoming * sign, outgoing),
        biases=(biases * sign, offset - shift),
        skip=model.skip - _in_skip(model) @ chosen,
    )


def _slope(model: NetworkParameters) -> float:
    """Return the l of g(-z) = g(z) + l z."""
    rule = model.activation.reflection
    assert rule is not None
    return rule.slope


def _in_skip(model: NetworkParameters) -> Array:
    """Return (D, K, m): l w_k a_k^T, what each unit leaves in the skip if it is mirrored."""
    incoming, outgoing = model.weights
    return np.asarray(_slope(model) * incoming[:, None, :] * outgoing.T[None, :, :])


def _mirrored(model: NetworkParameters, off_integer: float, skip_error: float | None) -> Array | None:
    """chi (m,); None if the skip does not decide. Without ``skip_error``, answers are precise."""
    if model.skip is None or not may_be_mirrored(model.activation):
        return None
    matrix, right = _in_skip(model).reshape(-1, model.width), model.skip.reshape(-1)
    equations, unknowns = matrix.shape
    if unknowns <= equations:
        fitted = np.linalg.lstsq(matrix, right, rcond=None)[0]
        rounded = np.round(fitted)
        if np.abs(fitted - rounded).max() > off_integer or not np.isin(rounded, (0.0, 1.0)).all():
            return None
        return np.asarray(rounded)
    # chi = (1 + xi)/2 with signs xi.
    half, centered = matrix / 2, right - matrix.sum(axis=1) / 2
    if skip_error is None:
        solution = solve_sign_system(half, centered, options=_SEARCH)
        certain = solution.solved and solution.unique and solution.beyond_chance
        return np.asarray((1 + solution.signs) / 2) if certain else None
    if unknowns > WIDEST_ENUMERATION:
        return None
    by_noise = _SKIP_MISFIT_SIGMAS * skip_error * float(np.sqrt(equations))
    allowed = max(by_noise, _SKIP_MISFIT_ROUNDING * float(np.linalg.norm(right)))
    found = meet_in_the_middle(half, centered, allowed)
    if found is None or len(found) == 0:
        return None
    misfit = np.linalg.norm(found @ half.T - centered, axis=1)
    order = np.argsort(misfit)
    if len(found) > 1 and misfit[order[1]] < _CLEARLY_BEST_RATIO * misfit[order[0]]:
        return None
    return np.asarray((1 + found[order[0]]) / 2)
