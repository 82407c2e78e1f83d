"""A fully connected network of any depth as a point of parameter space.

With y^0 = x, layer l = 1..L computes

    z^l = W^l^T y^{l-1} + b^l,      y^l = g_l(z^l),

and the sensitivities delta^l = d f / d z^l (K x m_l) follow from the last layer back to the first,

    delta^L = diag g_L'(z^L),       delta^{l-1} = delta^l W^l^T diag g_{l-1}'(z^{l-1}).

They hold the whole Jacobian: d f_o / d W^l_ir = y^{l-1}_i delta^l_or and d f_o / d b^l_r = delta^l_or.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from unweave.activations import SOFTMAX, Activation, get_activation
from unweave.arrays import Array, RealArray
from unweave.errors import InvalidInput
from unweave.evaluation import evaluate_layers
from unweave.network import Network


@dataclass(frozen=True, eq=False)
class LayerStates:
    """What a forward pass leaves behind at n points."""

    inputs: tuple[Array, ...]
    """y^{l-1}, what layer l reads: (n, m_{l-1}) each, the points first"""
    slopes: tuple[Array, ...]
    """g_l'(z^l): (n, m_l) each, the output layer last"""
    outputs: Array
    """y^L (n, K)"""


@dataclass(frozen=True, eq=False)
class LayeredModel:
    """Parameters of a fully connected network; as a vector, layer by layer [W^l; b^l] row by row."""

    activations: tuple[Activation, ...]
    """g_1 .. g_L, the output's last"""
    weights: tuple[Array, ...]
    """W^l (m_{l-1}, m_l)"""
    biases: tuple[Array, ...]
    """b^l (m_l,)"""

    @classmethod
    def from_network(cls, network: Network) -> LayeredModel:
        """The parameters of ``network``, which must act elementwise and have no skip."""
        if network.activations[-1] == SOFTMAX:
            raise InvalidInput(
                "network must act elementwise in every layer. Got a softmax output instead. "
                "Fit its logits: the same network with an identity output."
            )
        if network.skip is not None:
            raise InvalidInput(
                "network must be without skip. Got a skip matrix instead. "
                "Subtract its contribution from the answers first."
            )
        functions = tuple(get_activation(name) for name in network.activations)
        return cls(functions, network.weights, network.biases)

    def to_network(self) -> Network:
        """The same function as a `Network`."""
        return Network(self.weights, self.biases, [function.name for function in self.activations])

    @property
    def depth(self) -> int:
        """Number L of layers, the output layer included."""
        return len(self.weights)

    @property
    def n_inputs(self) -> int:
        """Number of inputs D."""
        return int(self.weights[0].shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of outputs K."""
        return int(self.weights[-1].shape[1])

    @property
    def size(self) -> int:
        """Number of parameters P."""
        return int(self.ends[-1])

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """(m_{l-1} + 1, m_l): each layer's part of the vector, the bias as last row."""
        return tuple((int(w.shape[0]) + 1, int(w.shape[1])) for w in self.weights)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Where each layer's part of the vector ends."""
        return tuple(int(end) for end in np.cumsum([rows * columns for rows, columns in self.shapes]))

    def to_vector(self) -> Array:
        """All parameters in one vector (P,)."""
        parts = [np.vstack([w, b]).reshape(-1) for w, b in zip(self.weights, self.biases, strict=True)]
        return np.concatenate(parts)

    def split(self, vector: RealArray) -> list[RealArray]:
        """Views (m_{l-1} + 1, m_l) of a vector (P,), layer by layer."""
        if vector.shape != (self.size,):
            raise InvalidInput(
                f"vector must be of shape ({self.size},). Got shape {vector.shape} instead. "
                f"Give one number per parameter, as to_vector does."
            )
        parts = np.split(vector, self.ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def from_vector(self, vector: RealArray) -> LayeredModel:
        """The model of the same shape with these parameters (P,)."""
        parts = cast(list[Array], self.split(vector))
        weights = tuple(np.ascontiguousarray(part[:-1]) for part in parts)
        return replace(self, weights=weights, biases=tuple(part[-1].copy() for part in parts))

    def values(self, points: Array) -> Array:
        """f at points (n, D): (n, K)."""
        return evaluate_layers(points, self.weights, self.biases, self.activations, None)

    def forward(self, points: Array) -> LayerStates:
        """States and slopes of all layers at points (n, D)."""
        inputs, slopes, state = [], [], points
        for function, weight, bias in zip(self.activations, self.weights, self.biases, strict=True):
            inputs.append(state)
            state, slope = function.jet(state @ weight + bias, 1)
            slopes.append(slope)
        return LayerStates(tuple(inputs), tuple(slopes), state)

    def sensitivities(self, slopes: Sequence[RealArray]) -> tuple[RealArray, ...]:
        """delta^l = d f / d z^l (n, K, m_l) of every layer, from the slopes of `forward`.

        Factors on the last slopes (weights of the equations) scale all of them.
        """
        last = slopes[-1]
        result: list[RealArray] = [last[:, :, None] * np.eye(last.shape[1], dtype=last.dtype)]
        for weight, slope in zip(self.weights[:0:-1], slopes[-2::-1], strict=True):
            # One product for all points and outputs: far faster than one per point.
            n, outputs, width = result[-1].shape
            back = result[-1].reshape(n * outputs, width) @ weight.T.astype(last.dtype, copy=False)
            back = back.reshape(n, outputs, -1)
            back *= slope[:, None, :]
            result.append(back)
        return tuple(result[::-1])
