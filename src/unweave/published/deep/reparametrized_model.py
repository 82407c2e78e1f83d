"""Answers of the reparametrized network and their derivatives by the 3 m - m_L + D free numbers.

With u_l = (W~^l)^T L_l y^{l-1}, a_l = R_l u_l + tau_l, y^l = g(a_l) / R_l (hidden) or g(a_L), and
E_l = d f / d y^l, Delta_l = d f / d a_l, back-propagation reads

    Delta_L = E_L g',       Delta_l = E_l g' / R_l,         E_{l-1} = L_l (W~^l R_l Delta_l),
    d f / d tau_l = Delta_l,        d f / d R_l = Delta_l u_l - [l < L] E_l g(a_l) / R_l^2,
    d f / d L_l = y^{l-1} (W~^l R_l Delta_l).

The matrices W~^l are held: a different problem from that of `unweave.networks.parameters`, where all weights
are free. Cost: as a pass through the plain network, per row and per output direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.activations import get_activation
from unweave.published.deep.reparametrization import DiagonalParameters, Reparametrisation


@dataclass(frozen=True, eq=False)
class ForwardPass:
    """Answers at n rows and what the way back needs."""

    answers: Array
    """(n, K)"""
    inputs: tuple[Array, ...]
    """(n, m_{l-1}) y^{l-1} per layer."""
    sums: tuple[Array, ...]
    """(n, m_l) u_l per layer."""
    values: tuple[Array, ...]
    """(n, m_l) g(a_l) per layer."""
    slopes: tuple[Array, ...]
    """(n, m_l) g'(a_l) per layer."""


def forward(model: Reparametrisation, parameters: DiagonalParameters, points: Array) -> ForwardPass:
    """Answers of the model at ``points`` (n, D)."""
    inputs, sums, values, slopes = [], [], [], []
    state = points
    last = len(model.matrices) - 1
    for layer, matrix in enumerate(model.matrices):
        right = parameters.right[layer]
        total = (state * parameters.left[layer]) @ matrix
        argument = total * right + parameters.shifts[layer]
        value, slope = get_activation(model.activations[layer]).jet(argument, 1)
        inputs.append(state)
        sums.append(total)
        values.append(value)
        slopes.append(slope)
        state = value if layer == last else value / right
    return ForwardPass(state, tuple(inputs), tuple(sums), tuple(values), tuple(slopes))


def jacobian(model: Reparametrisation, parameters: DiagonalParameters, passed: ForwardPass) -> Array:
    """(n, K, P) derivatives of all answers by the free numbers, in the order of `to_vector`."""
    n, outputs = passed.answers.shape
    return _backward(model, parameters, passed, np.broadcast_to(np.eye(outputs), (n, outputs, outputs)))


def gradient(
    model: Reparametrisation, parameters: DiagonalParameters, passed: ForwardPass, cotangent: Array
) -> Array:
    """(P,) derivatives of sum(cotangent * answers), ``cotangent`` (n, K) held fixed."""
    return np.asarray(_backward(model, parameters, passed, cotangent[:, None, :])[:, 0].sum(axis=0))


def _backward(
    model: Reparametrisation, parameters: DiagonalParameters, passed: ForwardPass, sensitivity: Array
) -> Array:
    """(n, q, P) from ``sensitivity`` (n, q, K), the derivatives of q quantities by the answers."""
    last = len(model.matrices) - 1
    left_parts: list[Array] = []
    right_parts: list[Array] = []
    shift_parts: list[Array] = []
    for layer in reversed(range(last + 1)):
        right = parameters.right[layer]
        by_argument = sensitivity * passed.slopes[layer][:, None, :]
        by_right: Array = np.zeros(())
        if layer < last:
            by_argument = by_argument / right
            by_right = -sensitivity * (passed.values[layer] / right**2)[:, None, :]
        by_right = by_right + by_argument * passed.sums[layer][:, None, :]
        by_scaled_input = (by_argument * right) @ model.matrices[layer].T
        left_parts.append(by_scaled_input * passed.inputs[layer][:, None, :])
        right_parts.append(by_right)
        shift_parts.append(by_argument)
        sensitivity = by_scaled_input * parameters.left[layer]
    return np.concatenate([*left_parts[::-1], *right_parts[::-1], *shift_parts[::-1]], axis=2)
