"""Standard errors of every parameter of a fitted network.

cov(theta) = (J^T J)^{-1} with J the Jacobian over the rows that were fitted, divided by the answers' standard
deviations.

A homogeneous unit may be stretched, (w, b, a) -> (c w, c b, a / c^p), without any change of the answers:
errors are those with |w| = 1 fixed. A heavy weight on the equation w . dw = 0 does that, and takes nothing
from the directions that change the answers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import lapack

from unweave.arrays import Array
from unweave.errors import OutOfMemory, OutOfTime
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.clock import check
from unweave.numerics.memory import require

LARGEST_INVERSE = 12_000
"""Parameters up to which J^T J is inverted: minutes beyond, and gigabytes."""
_MOST_ROWS_PER_PARAMETER = 16.0  # used to form J^T J; the result is scaled to all rows
_COPIES_OF_GRAM = 4  # J^T J, scaled, its factor and the inverse of that
_LENGTH_WEIGHT = 1e4  # of fixed lengths against the answers' equations: a hundredth of their error


def standard_errors(model: NetworkParameters, points: Array, weights: Array) -> Array | None:
    """Return the standard errors (P,) of ``model``; None if the rows do not determine all parameters.

    None, too, where there is no time or memory left for them, or there are more than `LARGEST_INVERSE`.

    ``points`` (n, D) are the rows of the fit, ``weights`` (n, K) one over the standard deviation of each
    answer, 0 where it was not used.
    """
    if model.size > LARGEST_INVERSE:
        return None
    rows = min(len(points), int(np.ceil(_MOST_ROWS_PER_PARAMETER * model.size)))
    try:
        require(_COPIES_OF_GRAM * model.size**2, "the matrices behind standard errors")
        gram = ValueJacobian(model, points[:rows], weights[:rows]).gram().astype(np.float64)
        check(model.size**3)
    except (OutOfTime, OutOfMemory):
        return None
    if is_homogeneous(model):
        _fix_lengths(gram, model)
    scale = np.sqrt(np.diag(gram))
    if not (scale > 0).all():
        return None
    gram = gram / (scale[:, None] * scale)
    # The upper triangle in C order is the lower one of the transpose, which LAPACK can overwrite.
    factor, failed = lapack.dpotrf(gram.T, lower=1, overwrite_a=1, clean=1)
    inverse, singular = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    if failed or singular:
        return None
    variances = np.einsum("ij,ij->j", inverse, inverse)
    return np.asarray(np.sqrt(variances * rows / len(points)) / scale)


def standard_error_network(model: NetworkParameters, points: Array, weights: Array) -> Network | None:
    """Return a network whose parameters are the `standard_errors` of ``model``'s, or None.

    For a softmax output errors are those of classes minus the last one, whose own are zero.
    """
    errors = standard_errors(model, points, weights)
    return None if errors is None else model.from_vector(errors).to_network_as_is()


def with_fixed_lengths(model: NetworkParameters) -> NetworkParameters:
    """Return the same function with incoming weights of length one, if the units are homogeneous."""
    power, (first, second) = model.activation.homogeneity, model.weights
    if power is None:
        return model
    lengths = np.linalg.norm(first, axis=0)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return replace(
        model,
        weights=(first / lengths, second * lengths[:, None] ** power),
        biases=(model.biases[0] / lengths, model.biases[1]),
    )


def is_homogeneous(model: NetworkParameters) -> bool:
    """Return whether the units of the first layer may be stretched without any change of the answers."""
    return model.depth > 1 and model.activation.homogeneity is not None


def has_own_error_bars(model: NetworkParameters) -> bool:
    """Return whether only `standard_errors` tell those of ``model``: least squares leaves lengths open."""
    return is_homogeneous(model) and model.size <= LARGEST_INVERSE


def _fix_lengths(gram: Array, model: NetworkParameters) -> None:
    """Add a heavy weight times (w_i . dw_i)^2 for every unit i to the sum of squares that ``gram`` is."""
    inputs, width = model.weights[0].shape
    for unit, weight in enumerate(model.weights[0].T):
        own = np.arange(inputs) * width + unit  # rows of [W; b] are in sequence
        block = np.ix_(own, own)
        gram[block] += (
            _LENGTH_WEIGHT
            * np.trace(gram[block])
            * np.outer(weight, weight)
            / max(weight @ weight, np.finfo(np.float64).tiny)
        )
