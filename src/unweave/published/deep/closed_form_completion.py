"""Scales and shifts in closed form, from one Hessian and one gradient at x*: no training.

Let v be a unit entangled direction of hidden layer l, n its true length, H_k = sum s_kv v v^T the
least-squares expansion of the outputs' Hessians at x*, and p_kv the coordinate of grad f_k on v in V~^l. Then

    s_kv = n^2 (d f_k / d y) g''(z),    p_kv = n (d f_k / d y) g'(z),    so  s_kv / p_kv = n g''(z) / g'(z)

for every output k: the ratio gives z (tanh: g''/g' = -2 tanh z), hence the shift, layer by layer,

    L_{l+1} = 1 / g'(z^l),   R_l = n_l,   tau^l = z^l - (W^l)^T y^{l-1}(x*).

Hidden weights must have unit length (that fixes n_l); the output layer's lengths follow from the gradients,
n_k = |grad f_k| / g_L'(z_k), z^L = g_L^{-1}(f(x*)). Signs of directions come out as a network that is the
same function for activations with g(-z) = c - g(z).

Not part of the source. The error is that of the entangled weights, as for the trained completion;
hundredths of a second. A start for a fit of all parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations import Activation, get_activation
from unweave.published.deep.reparametrization import DiagonalParameters, Reparametrisation
from unweave.subspace.symmetric import symmetric_packing

_LARGEST_RATIO = 1 - 1e-12  # ratios and answers are clipped to it, inside the open ranges of the inverses

_RATIO_INVERSES: dict[str, Callable[[Array], Array]] = {
    "tanh": lambda ratio: -np.arctanh(np.clip(ratio / 2, -_LARGEST_RATIO, _LARGEST_RATIO)),
    "sigmoid": lambda ratio: -2 * np.arctanh(np.clip(ratio, -_LARGEST_RATIO, _LARGEST_RATIO)),
    "erf": lambda ratio: -ratio / 2,
}
"""z from g''(z) / g'(z), by activation."""

OUTPUT_RANGES = {
    "identity": (-np.inf, np.inf),
    "tanh": (-_LARGEST_RATIO, _LARGEST_RATIO),
    "sigmoid": (1 - _LARGEST_RATIO, _LARGEST_RATIO),
    "erf": (-_LARGEST_RATIO, _LARGEST_RATIO),
}
"""Answers that are inverted as they are, by output activation; others go to the nearer end."""


def complete_in_closed_form(
    model: Reparametrisation,
    layers: Sequence[Array],
    anchor: Array,
    values: Array,
    gradients: Array,
    hessians: Array,
) -> DiagonalParameters:
    """The free numbers of ``model`` from derivatives at ``anchor`` (D,).

    Parameters
    ----------
    layers
        Unit columns (D, m_l) per layer, those that ``model`` was made of.
    values, gradients, hessians
        (K,), (K, D) and packed (K, p) at the anchor.
    """
    _require_known_activations(model)
    coefficients = rank_one_coefficients(layers, hessians, get_activation(model.activations[-1]).name)
    left, right, shifts = [np.ones(len(anchor))], [], []
    state, previous_right = anchor, np.ones(len(anchor))
    last = len(layers) - 1
    for layer, (directions, matrix) in enumerate(zip(layers, model.matrices, strict=True)):
        activation = get_activation(model.activations[layer])
        incoming = (left[layer] / previous_right)[:, None] * matrix  # W^l up to the lengths of its columns
        if layer < last:
            lengths = 1 / np.linalg.norm(incoming, axis=0)
            sensitivities = scipy.linalg.lstsq(directions, gradients.T, check_finite=False)[0]  # (m_l, K)
            ratio = np.sum(coefficients[layer] * sensitivities, axis=1) / np.sum(sensitivities**2, axis=1)
            argument = _RATIO_INVERSES[activation.name](ratio / lengths)
        else:
            argument = _output_argument(activation, values)
            lengths = np.linalg.norm(gradients, axis=1) / activation.jet(argument, 1)[1]
        right.append(lengths)
        shifts.append(argument - state @ (incoming * lengths))
        state, slope = activation.jet(argument, 1)
        if layer < last:
            left.append(1 / slope)
        previous_right = lengths
    return DiagonalParameters(tuple(left), tuple(right), tuple(shifts))


def rank_one_coefficients(
    layers: Sequence[Array], hessians: Array, output_activation: str
) -> tuple[Array, ...]:
    """(m_l, K) least-squares coefficients of packed Hessians (K, p) on the squares of all curved units."""
    curved = layers[:-1] if output_activation == "identity" else layers
    packing = symmetric_packing(layers[0].shape[0])
    columns = np.concatenate([packing.outer(np.ascontiguousarray(layer.T)) for layer in curved]).T
    solution = scipy.linalg.lstsq(columns, hessians.T, check_finite=False)[0]
    return tuple(np.split(solution, np.cumsum([layer.shape[1] for layer in curved])[:-1]))


def _output_argument(activation: Activation, values: Array) -> Array:
    """z (K,) with g(z) = values."""
    assert activation.inverse is not None
    return activation.inverse(np.clip(values, *OUTPUT_RANGES[activation.name]))


def _require_known_activations(model: Reparametrisation) -> None:
    names = [get_activation(name).name for name in model.activations]
    if any(name not in _RATIO_INVERSES for name in names[:-1]) or names[-1] not in OUTPUT_RANGES:
        raise InvalidInput(
            f"hidden activations must be among {', '.join(_RATIO_INVERSES)} and the output's among "
            f"{', '.join(OUTPUT_RANGES)} for the closed form. Got {', '.join(names)} instead. "
            "Fit the completion instead."
        )
