"""How well samples speak for a network of some kind and width: the marginal likelihood, by Laplace's method.

With normal noise of variance s_k^2 in output k, and a prior N(0, 1/a_c) on the parameters of class c
(incoming weights, biases, outgoing weights with the offset, skip), at the least-squares parameters theta,

    -2 log evidence  ~  sum_k n log s_k^2 + log det(1 + H / A) + theta^T A theta - 2 log N,

s_k^2 the mean squared residual, H = sum_k J_k^T J_k / s_k^2, J_k the Jacobian of output k, A the diagonal
matrix of the a_c, and N the number of parameters that are the same function ([evidence]). The a_c are the
likeliest:

    a_c = gamma_c / |theta_c|^2,      gamma_c = sum over c of (H (H + A)^{-1})_ii,

gamma_c the number of parameters of the class that the samples determine. A parameter that they determine well
costs much, one that they hardly see costs little: an information criterion, which counts parameters, leaves
that out.

The same function are all m! orders of the units, times 2^m where a unit may be turned, g(-z) = +-g(z) + c.
With g(-z) = g(z) + l z, a unit that is turned beside a skip changes the skip, and with it the prior: it does
not count. A homogeneous unit may be stretched: its incoming weights have length one here, and only their
direction costs. The slope of a leaky unit is one number more, at log(n K).
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.networks.error_bars import is_homogeneous, with_fixed_lengths
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.clock import check

MOST_WEIGHED = 1000
"""Parameters up to which determinants are taken: seconds beyond. Larger networks pay log(n K) for each."""
_MOST_ROWS = 4000  # that form H, if these are enough per parameter; the result is scaled to all rows
_ROWS_PER_PARAMETER = 16.0  # that are enough
_PRECISION_STEPS = 20  # of the fixed point for a, at most
_SAME_PRECISION = 1e-2  # relative change of every a_c that ends them: the cost is flat there
_LEAST_DETERMINED = 1e-3  # parameters of a class, so that its a stays finite
_CLASSES = 4  # of parameters, each with a precision of its own
_FACTOR_FLOPS = 3  # times P^3: a factor, its inverse, and the product of that


def marginal_likelihood(model: NetworkParameters, points: Array, answers: Array) -> float:
    """Return -2 log evidence of ``model``, fitted to ``answers`` (n, K) at ``points`` (n, D).

    The lower, the better; figures compare on the same rows only. ``model`` has one hidden layer. Inputs and
    answers are standardized, since one prior holds for all weights of a class.
    """
    squares = np.mean((model.values(points) - answers) ** 2, axis=0)
    if not np.isfinite(squares).all():
        return np.inf
    squares = np.maximum(squares, np.finfo(np.float64).eps ** 2)
    fit = len(points) * float(np.log(squares).sum()) - 2 * log_equivalents(model)
    fit += log(answers.size) if model.activation.name == "leaky_relu" else 0.0
    if model.size > MOST_WEIGHED:
        free = model.size - (model.width if is_homogeneous(model) else 0)
        return fit + free * log(answers.size)
    model = with_fixed_lengths(model)
    rows = min(len(points), max(_MOST_ROWS, int(np.ceil(_ROWS_PER_PARAMETER * model.size))))
    weights = np.broadcast_to(1 / np.sqrt(squares), answers.shape)[:rows]
    upper = ValueJacobian(model, points[:rows], weights).gram().astype(np.float64) * (len(points) / rows)
    if not np.isfinite(upper).all():
        return np.inf
    information = np.triu(upper) + np.triu(upper, 1).T
    vector, classes = model.to_vector(), _classes(model)
    prior = _likeliest(information, vector, classes)[classes]
    scale = 1 / np.sqrt(prior)
    determinant = np.linalg.slogdet(np.eye(vector.size) + scale[:, None] * information * scale)[1]
    return fit + float(determinant + vector @ (prior * vector))


def log_equivalents(model: NetworkParameters) -> float:
    """Return log N, N the number of orders and signs of the units that are one function."""
    rule = model.activation.reflection
    turned = rule is not None and rule.slope == 0
    return lgamma(model.width + 1) + (model.width * log(2) if turned else 0.0)


def _classes(model: NetworkParameters) -> IntArray:
    """Return the class of every parameter (P,)."""
    inputs, width = model.weights[0].shape
    outputs = model.weights[1].shape[1]
    skip = 0 if model.skip is None else model.skip.size
    sizes = [inputs * width, width, width * outputs, skip, outputs]
    return np.repeat([0, 1, 2, 3, 2], sizes)


def _likeliest(information: Array, vector: Array, classes: IntArray) -> Array:
    """Return the likeliest a_c (4,) at parameters ``vector`` (P,), for H ``information`` (P, P)."""
    groups = {each: group for each in range(_CLASSES) if vector[group := classes == each].any()}
    precisions = np.ones(_CLASSES)
    for _ in range(_PRECISION_STEPS):
        check(_FACTOR_FLOPS * vector.size**3)
        before, prior = precisions.copy(), precisions[classes]
        inverse = np.linalg.inv(information + np.diag(prior)).diagonal()
        for each, group in groups.items():
            determined = float((1 - prior[group] * inverse[group]).sum())
            precisions[each] = max(determined, _LEAST_DETERMINED) / float(vector[group] @ vector[group])
        if (np.abs(precisions - before) <= _SAME_PRECISION * before).all():
            break
    return precisions
