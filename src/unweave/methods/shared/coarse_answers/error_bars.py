"""Standard errors of every parameter, in the target's own inputs.

cov(theta) = (J^T J)^{-1} with J the Jacobian over the rows that were fitted, divided by the answers' standard
deviations. Taken in the target's inputs, because biases there mix with the weights' errors.

A homogeneous neuron may be stretched, (w, b, a) -> (c w, c b, a / c^p), without any change of the answers:
errors are those with |w| = 1 fixed. A heavy weight on the equation w . dw = 0 does that, and takes nothing
from the directions that change the answers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.targets.region import Region

_MOST_ROWS = 16.0  # per parameter: of more, so many are used, and the result scaled
_HEAVY = 1e4  # weight of a fixed length against the answers' equations: its error is a hundredth of theirs
_TINY = float(np.finfo(np.float64).tiny)


def standard_error_network(
    model: NetworkParameters, region: Region, points: Array, weights: Array
) -> Network | None:
    """A network whose parameters are the standard errors of ``model``'s (which reads the target's inputs).

    ``points`` (n, D) are the normalised rows of the fit, ``weights`` (n, K) one over the standard deviation
    of each answer, 0 where it was not used. None if the rows do not determine all parameters. For a softmax
    output errors are those of classes minus the last one, whose own are zero.
    """
    errors = standard_errors(model, region.to_inputs(points), weights)
    return None if errors is None else model.from_vector(errors).to_network_as_is()


def standard_errors(model: NetworkParameters, points: Array, weights: Array) -> Array | None:
    """(P,) the same as a vector, from ``points`` that the model reads itself."""
    rows = min(len(points), int(np.ceil(_MOST_ROWS * model.size)))
    gram = ValueJacobian(model, points[:rows], weights[:rows]).gram().astype(np.float64)
    if is_homogeneous(model):
        _fix_lengths(gram, model)
    scale = np.sqrt(np.diag(gram))
    if not (scale > 0).all():
        return None
    gram = gram / (scale[:, None] * scale)
    try:
        inverse = scipy.linalg.cholesky(gram, lower=False, check_finite=False)
        variances = np.square(
            scipy.linalg.solve_triangular(inverse, np.eye(len(gram)), check_finite=False)
        ).sum(1)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(np.sqrt(variances * rows / len(points)) / scale)


def with_fixed_lengths(model: NetworkParameters) -> NetworkParameters:
    """The same function with incoming weights of length one, if the neurons are homogeneous."""
    if not is_homogeneous(model):
        return model
    activation, (first, second) = model.activations[0], model.weights
    assert activation is not None
    assert activation.homogeneity is not None
    lengths = np.linalg.norm(first, axis=0)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return replace(
        model,
        weights=(first / lengths, second * lengths[:, None] ** activation.homogeneity),
        biases=(model.biases[0] / lengths, model.biases[1]),
    )


def is_homogeneous(model: NetworkParameters) -> bool:
    """Whether the neurons of the first layer may be stretched without any change of the answers."""
    first = model.activations[0]
    return first is not None and first.homogeneity is not None


def _fix_lengths(gram: Array, model: NetworkParameters) -> None:
    """Add a heavy weight times (w_i . dw_i)^2 for every neuron i to the sum of squares that ``gram`` is."""
    inputs, width = model.weights[0].shape
    for neuron, weight in enumerate(model.weights[0].T):
        own = np.arange(inputs) * width + neuron  # rows of [W; b] are in sequence
        block = np.ix_(own, own)
        gram[block] += _HEAVY * np.trace(gram[block]) * np.outer(weight, weight) / max(weight @ weight, _TINY)
