"""Neurons mirrored by mistake, put right.

softplus, gelu and swish satisfy g(-z) = g(z) + l z: Hessians cannot tell (w, b) from (-w, -b), and every
neuron that was taken the wrong way round leaves l a_k w_k in the skip matrix S. Which ones those are solves

    S = sum_k chi_k l a_k w_k^T,        chi_k in {0, 1},

by least squares if there are no more neurons than equations, else by going through all patterns.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.networks.layered_model import LayeredModel
from unweave.numerics.sign_search import WIDEST_ENUMERATION, meet_in_the_middle

_SIGMAS = 6.0  # of the misfit of S that noise explains
_ROUND = 0.35  # how far from 0 or 1 an indicator may be and still be read


def unmirrored(model: LayeredModel, skip_error: float) -> LayeredModel | None:
    """The model without its skip, neurons turned round so that none is needed; None if that cannot be done.

    ``skip_error`` is the standard error of an entry of the skip.
    """
    activation, skip = model.activations[0], model.skip
    reflection = None if activation is None else activation.reflection
    if skip is None or reflection is None or reflection.sign != 1 or reflection.slope == 0:
        return None
    incoming, outgoing = model.weights
    columns = reflection.slope * incoming[:, None, :] * outgoing.T[None, :, :]  # (D, K, m)
    matrix, right = columns.reshape(-1, columns.shape[2]), skip.reshape(-1)
    chosen = _pattern(matrix, right, skip_error)
    if chosen is None:
        return None
    sign = np.where(chosen, -1.0, 1.0)
    shift = reflection.slope * (model.biases[0] * chosen) @ outgoing
    return replace(
        model,
        weights=(incoming * sign, outgoing),
        biases=(model.biases[0] * sign, model.biases[1] - shift),
        skip=None,
    )


def _pattern(matrix: Array, right: Array, error: float) -> Array | None:
    """chi (m,) in {0, 1} with matrix chi = right up to the error, if there is just one; else None."""
    equations, unknowns = matrix.shape
    if unknowns <= equations:
        solution = np.linalg.lstsq(matrix, right, rcond=None)[0]
        rounded = np.round(solution)
        if np.abs(solution - rounded).max() > _ROUND or not np.isin(rounded, (0.0, 1.0)).all():
            return None
        return np.asarray(rounded)
    if unknowns > WIDEST_ENUMERATION:
        return None
    allowed = max(_SIGMAS * error * float(np.sqrt(equations)), 1e-9 * float(np.linalg.norm(right)))
    # chi = (1 + xi)/2 with signs xi.
    found = meet_in_the_middle(matrix / 2, right - matrix.sum(axis=1) / 2, allowed)
    if found is None or len(found) == 0:
        return None
    misfit = np.linalg.norm(found @ (matrix / 2).T - (right - matrix.sum(axis=1) / 2), axis=1)
    order = np.argsort(misfit)
    if len(found) > 1 and misfit[order[1]] < 3 * misfit[order[0]]:
        return None
    return np.asarray((1 + found[order[0]]) / 2)
