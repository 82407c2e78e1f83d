"""A fully connected network as a vector of parameters.

With y^0 = x, layer l = 1..L computes

    z^l = W^l^T y^{l-1} + b^l,      y^l = g_l(z^l),

and the sensitivities delta^l = d f / d z^l (K x m_l) follow from the last layer back to the first,

    delta^L = diag g_L'(z^L),       delta^{l-1} = delta^l W^l^T diag g_{l-1}'(z^{l-1}).

They hold the whole Jacobian (`unweave.networks.jacobian`): d f_o / d W^l_ir = y^{l-1}_i delta^l_or and
d f_o / d b^l_r = delta^l_or. A softmax output with K classes has K - 1 last units: z = 0 for the last class
fixes what softmax leaves open, and delta^L = diag(y) - y y^T without its last column. A skip S adds S^T x to
z^L: the last layer then reads (y^{L-1}, x).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from unweave.arrays import Array, BoolArray, RealArray
from unweave.errors import InvalidInput
from unweave.networks.activations import SOFTMAX, Activation, get_activation
from unweave.networks.evaluation import evaluate_layers, softmax_in_place
from unweave.networks.network import Network


@dataclass(frozen=True, eq=False)
class LayerStates:
    """What a forward pass at n points leaves behind."""

    inputs: tuple[Array, ...]
    """y^{l-1}, what layer l reads: (n, m_{l-1}) each, the points first."""
    slopes: tuple[Array, ...]
    """g_l'(z^l): (n, m_l) each, the output layer last; there delta^L (n, K, K - 1) for softmax."""
    outputs: Array
    """y^L (n, K)."""


@dataclass(frozen=True, eq=False)
class NetworkParameters:
    """Parameters of a fully connected network.

    The vector holds layer after layer [W^l; b^l], row by row. With a skip, the last layer's part is
    [W^L; S; b^L].
    """

    activations: tuple[Activation | None, ...]
    """g_1 .. g_L, the output's last; None there stands for softmax."""
    weights: tuple[Array, ...]
    """W^l (m_{l-1}, m_l)."""
    biases: tuple[Array, ...]
    """b^l (m_l,)."""
    skip: Array | None = None
    """S (D, K), or None."""

    @classmethod
    def from_network(cls, network: Network) -> NetworkParameters:
        """Take the parameters of ``network``."""
        functions = tuple(None if name == SOFTMAX else get_activation(name) for name in network.activations)
        model = cls(functions, network.weights, network.biases, network.skip)
        return model._with_last_layer(_against_last) if functions[-1] is None else model

    @classmethod
    def shallow(
        cls,
        activation: Activation,
        weights: Array,
        biases: Array,
        outgoing: Array,
        offset: Array,
        skip: Array | None = None,
    ) -> NetworkParameters:
        """Make one hidden layer: f(x) = A^T g(W^T x + b) + c (+ S^T x).

        W (D, m), b (m,), A (m, K), c (K,) and S (D, K), in this order.
        """
        return cls((activation, get_activation("identity")), (weights, outgoing), (biases, offset), skip)

    def to_network(self) -> Network:
        """Return the same function as a `Network`; classes of a softmax output are centered."""
        return self._as_network(_centered)

    def to_network_as_is(self) -> Network:
        """Return the numbers in the shapes of `to_network`, the last class of a softmax at zero."""
        return self._as_network(_with_last)

    def _as_network(self, classes: Callable[[Array], Array]) -> Network:
        names = [SOFTMAX if function is None else function.name for function in self.activations]
        full = self._with_last_layer(classes) if self.is_softmax else self
        return Network(full.weights, full.biases, names, full.skip)

    def _with_last_layer(self, change: Callable[[Array], Array]) -> NetworkParameters:
        """Apply ``change`` to what feeds the outputs: W^L, b^L and S."""
        return replace(
            self,
            weights=(*self.weights[:-1], change(self.weights[-1])),
            biases=(*self.biases[:-1], change(self.biases[-1])),
            skip=None if self.skip is None else change(self.skip),
        )

    @property
    def activation(self) -> Activation:
        """The first layer's activation g_1."""
        first = self.activations[0]
        assert first is not None  # softmax is an output only
        return first

    @property
    def is_softmax(self) -> bool:
        """Whether the outputs are classes of a softmax."""
        return self.activations[-1] is None

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
        return int(self.weights[-1].shape[1]) + int(self.is_softmax)

    @property
    def width(self) -> int:
        """Number of units m_1 of the first layer."""
        return int(self.weights[0].shape[1])

    @property
    def size(self) -> int:
        """Number of parameters P."""
        return int(self.ends[-1])

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """(m_{l-1} + 1, m_l): each layer's part of the vector, the bias as last row; D more for a skip."""
        read = [int(w.shape[0]) + 1 for w in self.weights]
        read[-1] += 0 if self.skip is None else self.n_inputs
        return tuple((rows, int(w.shape[1])) for rows, w in zip(read, self.weights, strict=True))

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Where each layer's part of the vector ends."""
        return tuple(int(end) for end in np.cumsum([rows * columns for rows, columns in self.shapes]))

    def to_vector(self) -> Array:
        """All parameters in one vector (P,)."""
        last = self.weights[-1] if self.skip is None else np.vstack([self.weights[-1], self.skip])
        weights = (*self.weights[:-1], last)
        return np.concatenate(
            [np.vstack([w, b]).reshape(-1) for w, b in zip(weights, self.biases, strict=True)]
        )

    def split(self, vector: RealArray) -> list[RealArray]:
        """Views (m_{l-1} + 1, m_l) of a vector (P,), layer by layer."""
        if vector.shape != (self.size,):
            raise InvalidInput(
                f"vector must be of shape ({self.size},). Got shape {vector.shape} instead. "
                f"Give one number per parameter, as to_vector does."
            )
        begins = (0, *self.ends[:-1])
        return [
            vector[begin:end].reshape(shape)
            for begin, end, shape in zip(begins, self.ends, self.shapes, strict=True)
        ]

    def from_vector(self, vector: RealArray) -> NetworkParameters:
        """The model of the same shape with these parameters (P,)."""
        parts = cast(list[Array], self.split(vector))
        rows = [len(weight) for weight in self.weights]
        weights = tuple(np.ascontiguousarray(part[:n]) for part, n in zip(parts, rows, strict=True))
        skip = None if self.skip is None else np.ascontiguousarray(parts[-1][rows[-1] : -1])
        return replace(self, weights=weights, biases=tuple(part[-1].copy() for part in parts), skip=skip)

    def keep(self, units: BoolArray) -> NetworkParameters:
        """Drop all units of the first layer but those of the mask ``units`` (m_1,)."""
        first, second, *rest = self.weights
        return replace(
            self,
            weights=(np.ascontiguousarray(first[:, units]), second[units], *rest),
            biases=(self.biases[0][units], *self.biases[1:]),
        )

    def contributions(self, points: Array) -> Array:
        """Return (m,) the standard deviation over ``points`` of what each unit of one hidden layer adds."""
        states = self.activation(points @ self.weights[0] + self.biases[0])
        with np.errstate(over="ignore", invalid="ignore"):  # a fit that ran away
            return np.asarray(np.linalg.norm(self.weights[1], axis=1) * states.std(axis=0))

    def values(self, points: Array) -> Array:
        """f at points (n, D): (n, K)."""
        full = self._with_last_layer(_with_last) if self.is_softmax else self
        return evaluate_layers(points, full.weights, full.biases, full.activations, full.skip)

    def forward(self, points: Array) -> LayerStates:
        """States and slopes of all layers at points (n, D)."""
        inputs, slopes, state = [], [], points
        for layer, function in enumerate(self.activations):
            inputs.append(state)
            z = state @ self.weights[layer] + self.biases[layer]
            if self.skip is not None and layer == self.depth - 1:
                z += points @ self.skip
            state, slope = _softmax_with_slope(z) if function is None else function.jet(z, 1)
            slopes.append(slope)
        return LayerStates(tuple(inputs), tuple(slopes), state)

    def sensitivities(self, slopes: Sequence[RealArray]) -> tuple[RealArray, ...]:
        """delta^l = d f / d z^l (n, K, m_l) of every layer, from the slopes of `forward`.

        Factors on the last slopes (weights of the equations) scale all of them.
        """
        last = slopes[-1]
        result = [last if last.ndim == 3 else last[:, :, None] * np.eye(last.shape[1], dtype=last.dtype)]
        for weight, slope in zip(self.weights[:0:-1], slopes[-2::-1], strict=True):
            # One product for all points and outputs: far faster than one per point.
            n, outputs, width = result[-1].shape
            back = result[-1].reshape(n * outputs, width) @ weight.T.astype(last.dtype, copy=False)
            back = back.reshape(n, outputs, -1)
            back *= slope[:, None, :]
            result.append(back)
        return tuple(result[::-1])


def _softmax_with_slope(z: Array) -> tuple[Array, Array]:
    """y = softmax((z, 0)) (n, K) for z (n, K - 1), and d y / d z = (diag(y) - y y^T) less a column."""
    y = _with_last(z)
    softmax_in_place(y)
    return y, y[:, :, None] * (np.eye(y.shape[1])[:, :-1] - y[:, None, :-1])


def _with_last(columns: Array) -> Array:
    """(..., K - 1) -> (..., K) with the last class at zero."""
    return np.concatenate([columns, np.zeros_like(columns[..., :1])], axis=-1)


def _against_last(columns: Array) -> Array:
    """(..., K) -> (..., K - 1): every class minus the last."""
    return np.ascontiguousarray(columns[..., :-1] - columns[..., -1:])


def _centered(columns: Array) -> Array:
    """(..., K - 1) -> (..., K) with mean zero over the classes."""
    classes = _with_last(columns)
    return np.asarray(classes - classes.mean(axis=-1, keepdims=True))
