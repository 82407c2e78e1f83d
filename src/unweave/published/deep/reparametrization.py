"""A network in its entangled weights: 3 m - m_L + D numbers stay free ([identification] Def. 4.4).

From V~^l = V^l(x*) pi_l S_l, the entangled weights up to order pi_l and scale S_l (diagonal, of any signs for
odd activations; pi_L = I), fix

    W~^1 = V~^1,        W~^l = (V~^{l-1})^+ V~^l    (l >= 2)

and keep diagonal L_l, R_l and shifts tau_l free:

    y^0 = x,    y^l = N_l g_l( (L_l W~^l R_l)^T y^{l-1} + tau_l ),    N_l = R_l^{-1} (l < L),  N_L = I.

Because W~^{l+1} = S_l^{-1} pi_l^T D_l W^{l+1} pi_{l+1} S_{l+1} with D_l = diag(g_l'(z^l(x*))), the model is
the network itself (Prop. 4.3) at

    Opt2    L_1 = I,  L_{l+1} = pi_l^T D_l^{-1} pi_l,       R_l = S_l^{-1},  tau_l = pi_l^T tau_l,

and, with N_l = I instead,

    Opt1    L_1 = I,  L_{l+1} = pi_l^T D_l^{-1} pi_l S_l,   R_l = S_l^{-1},  tau_l = pi_l^T tau_l.

For odd hidden activations the signs of R_l, l < L, do not matter if those of tau_l follow (Prop.
4.4): Opt2 then has all of L, R positive, which is why the identity is a sensible start, and Opt1 is not used
for fitting. Assumption: D >= m_1 >= .. >= m_{L-1} and full column ranks.

Derivatives of the answers by the free numbers: with u_l = (W~^l)^T L_l y^{l-1}, a_l = R_l u_l + tau_l,
y^l = g(a_l) / R_l (hidden) or g(a_L), and E_l = d f / d y^l, Delta_l = d f / d a_l, back-propagation reads

    Delta_L = E_L g',       Delta_l = E_l g' / R_l,         E_{l-1} = L_l (W~^l R_l Delta_l),
    d f / d tau_l = Delta_l,        d f / d R_l = Delta_l u_l - [l < L] E_l g(a_l) / R_l^2,
    d f / d L_l = y^{l-1} (W~^l R_l Delta_l).

The matrices W~^l are held: a different problem from that of `unweave.networks.parameters`, where all weights
are free. Cost: as a pass through the plain network, per row and per output direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import scipy.linalg

from unweave.arrays import Array, IntArray
from unweave.derivatives.entangled import entangled_weights
from unweave.errors import InvalidInput
from unweave.networks.activations import get_activation
from unweave.networks.network import Network

Normalisation = Literal["inverse", "none"]
"""N_l of the hidden layers: R_l^{-1} (Opt2) or I (Opt1)."""


@dataclass(frozen=True, eq=False)
class DiagonalParameters:
    """The free parameters of the reparametrized network."""

    left: tuple[Array, ...]
    """L_l: (D,), (m_1,), .., (m_{L-1},)."""
    right: tuple[Array, ...]
    """R_l: (m_1,), .., (m_L,)."""
    shifts: tuple[Array, ...]
    """tau_l: (m_1,), .., (m_L,)."""

    def to_vector(self) -> Array:
        """(3 m - m_L + D,): L_1 .. L_L, R_1 .. R_L, tau_1 .. tau_L."""
        return np.concatenate([*self.left, *self.right, *self.shifts])


@dataclass(frozen=True, eq=False)
class Reparametrisation:
    """The fixed matrices W~^l and the activations."""

    matrices: tuple[Array, ...]
    """(D, m_1), (m_1, m_2), .., (m_{L-1}, m_L)."""
    activations: tuple[str, ...]
    """One name per layer, output layer included."""

    @property
    def widths(self) -> tuple[int, ...]:
        """(D, m_1, .., m_L)."""
        return (int(self.matrices[0].shape[0]), *(int(matrix.shape[1]) for matrix in self.matrices))

    @property
    def n_parameters(self) -> int:
        """3 m - m_L + D."""
        widths = self.widths
        return sum(widths[:-1]) + 2 * sum(widths[1:])

    def identity(self) -> DiagonalParameters:
        """L = R = I, tau = 0: the published start."""
        widths = self.widths
        return DiagonalParameters(
            tuple(np.ones(width) for width in widths[:-1]),
            tuple(np.ones(width) for width in widths[1:]),
            tuple(np.zeros(width) for width in widths[1:]),
        )

    def from_vector(self, vector: Array) -> DiagonalParameters:
        """The inverse of `DiagonalParameters.to_vector`."""
        widths = self.widths
        sizes = [*widths[:-1], *widths[1:], *widths[1:]]
        parts = tuple(np.split(vector, np.cumsum(sizes)[:-1]))
        depth = len(self.matrices)
        return DiagonalParameters(parts[:depth], parts[depth : 2 * depth], parts[2 * depth :])

    def to_network(self, parameters: DiagonalParameters, normalisation: Normalisation = "inverse") -> Network:
        """The plain network: W^l = N_{l-1} L_l W~^l R_l, with the same shifts."""
        weights = []
        scale = np.ones(self.widths[0])
        for matrix, left, right in zip(self.matrices, parameters.left, parameters.right, strict=True):
            weights.append((scale * left)[:, None] * matrix * right)
            scale = 1 / right if normalisation == "inverse" else np.ones_like(right)
        return Network(weights, parameters.shifts, self.activations)


def reparametrise(layers: Sequence[Array], activations: Sequence[str]) -> Reparametrisation:
    """Fixed matrices of entangled weights V~^l (D, m_l), output layer last."""
    widths = [layers[0].shape[0], *(layer.shape[1] for layer in layers)]
    if any(after > before for before, after in pairwise(widths[:-1])):
        raise InvalidInput(
            f"hidden widths must not increase, D >= m_1 >= .. >= m_L-1, for weights to follow from entangled "
            f"weights. Got {widths[:-1]} instead. Only the entangled weights can be recovered by this method."
        )
    matrices = [np.asarray(layers[0], dtype=np.float64)]
    for before, after in pairwise(layers):
        matrices.append(scipy.linalg.lstsq(before, after, check_finite=False)[0])
    return Reparametrisation(tuple(matrices), tuple(activations))


def exact_parameters(
    network: Network,
    anchor: Array,
    permutations: Sequence[IntArray],
    scales: Sequence[Array],
    normalisation: Normalisation = "inverse",
) -> DiagonalParameters:
    """Opt2 (or Opt1) of a known network whose entangled weights at ``anchor`` (D,) were disordered.

    Column k of V~^l is column permutations[l][k] of V^l times scales[l][k]; the last permutation must be the
    identity.
    """
    slopes = entangled_weights(network, anchor[None]).slopes
    left, right, shifts = [np.ones(network.n_inputs)], [], []
    for layer, (order, scale) in enumerate(zip(permutations, scales, strict=True)):
        right.append(1 / scale)
        shifts.append(network.biases[layer][order])
        if layer < len(network.weights) - 1:
            inverse_slope = 1 / slopes[layer][0][order]
            left.append(inverse_slope if normalisation == "inverse" else inverse_slope * scale)
    return DiagonalParameters(tuple(left), tuple(right), tuple(shifts))


def flip_signs(parameters: DiagonalParameters, signs: Sequence[Array]) -> DiagonalParameters:
    """R_l and tau_l of the hidden layers times ``signs`` (m_l,) of +-1: the same function if they are odd
    ([identification] Prop. 4.4)."""
    hidden = len(parameters.right) - 1
    if len(signs) != hidden:
        raise InvalidInput(f"signs must be given for {hidden} hidden layers. Got {len(signs)} instead.")
    flips = [*signs, np.ones_like(parameters.right[-1])]
    return DiagonalParameters(
        parameters.left,
        tuple(value * flip for value, flip in zip(parameters.right, flips, strict=True)),
        tuple(value * flip for value, flip in zip(parameters.shifts, flips, strict=True)),
    )


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
