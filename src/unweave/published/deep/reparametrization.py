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
