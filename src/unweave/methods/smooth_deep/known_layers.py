"""The layers already found: evaluated, and undone (peeling).

Layer l is kept as W^l = Q B with an orthonormal frame Q (m_{l-1}, m_l) and a square mixing matrix B
(m_l, m_l); its pre-activation is z = B^T c + tau with c = Q^T y the coordinates it reads. With layers
1..l-1 known, the rest of the network is a function of c_l = Q_l^T y^{l-1} alone, and it can be asked:

    y^{l-1} = y_0 + Q_l dc,    z = g^{-1}(y^{l-1}),    dc_{l-1} = B_{l-1}^{-T} (z - z_0),  ...  down to x,

as long as no y leaves (-1, 1). The rest is then a black box with the rounding of the target itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.smooth_deep.options import PointOptions
from unweave.networks.network import Network
from unweave.networks.saturation import Saturating

Ask = Callable[[Array], Array]
"""(n, D) normalised inputs to (n, K) answers."""

_SMALLEST_SLOPE = 1e-150  # stands for zero: such a unit leaves no room anyway, and its inverse is finite
_LARGEST_MOVE = 1e100  # stands for infinity: products with weights stay finite
_SMALLEST_ROOM = 1e-12  # of an input in its bounds: rounding of the bounds themselves


@dataclass(frozen=True, eq=False)
class Layer:
    """z = B^T Q^T y + tau."""

    frame: Array
    """Q, (m_{l-1}, m_l) orthonormal."""
    mixing: Array
    """B, (m_l, m_l)."""
    biases: Array
    """tau, (m_l,)."""

    @property
    def width(self) -> int:
        """m_l"""
        return len(self.biases)

    @property
    def weights(self) -> Array:
        """W = Q B, (m_{l-1}, m_l)."""
        return np.asarray(self.frame @ self.mixing)

    @cached_property
    def unmixing(self) -> Array:
        """B^{-1}."""
        return np.asarray(np.linalg.inv(self.mixing), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class States:
    """What the known layers make of a set of base points."""

    inputs: Array
    """(n, D)"""
    pre: list[Array]
    """z^l, (n, m_l) each."""
    post: list[Array]
    """y^l = g(z^l), (n, m_l) each."""

    @property
    def last(self) -> Array:
        """What the first unknown layer reads."""
        return self.post[-1] if self.post else self.inputs

    def take(self, rows: Array) -> States:
        """Return the states of some of the points."""
        return States(self.inputs[rows], [z[rows] for z in self.pre], [y[rows] for y in self.post])


class KnownLayers:
    """Layers 1..l-1 of a network whose deeper layers are still unknown."""

    def __init__(self, layers: tuple[Layer, ...], g: Saturating) -> None:
        self.layers = layers
        self.g = g

    def with_layer(self, layer: Layer) -> KnownLayers:
        """Add one more layer."""
        return KnownLayers((*self.layers, layer), self.g)

    def states(self, inputs: Array) -> States:
        """Compute pre- and post-activations of every known layer at ``inputs`` (n, D)."""
        pre, post, y = [], [], inputs
        for layer in self.layers:
            z = (y @ layer.frame) @ layer.mixing + layer.biases
            y = self.g.values(z)
            pre.append(z)
            post.append(y)
        return States(inputs, pre, post)

    def lifted(self, base: States, sites: IntArray, frame: Array, displacement: Array) -> Array:
        """Return inputs (n, D) that move c = frame^T y by ``displacement`` (n, d) from ``sites`` (n,)."""
        step = displacement @ frame.T
        for depth in reversed(range(len(self.layers))):
            layer = self.layers[depth]
            moved = self.g.inverse(base.post[depth][sites] + step)
            step = ((moved - base.pre[depth][sites]) @ layer.unmixing) @ layer.frame.T
        return np.asarray(base.inputs[sites] + step)

    def safe_steps(
        self,
        base: States,
        frame: Array,
        longest: float,
        reach: float,
        bounds: tuple[Array, Array] | None = None,
        room_used: float = PointOptions.room_used,
    ) -> Array:
        """Return the largest steps (n,) with which stencils of ``reach`` steps stay inside every box.

        A stencil uses up ``room_used`` of the distance to a wall; no step is longer than ``longest``.
        ``bounds`` (low, high) of the inputs count as one more box.
        """
        n, d = len(base.inputs), frame.shape[1]
        moves = np.broadcast_to(frame.T, (n, d, len(frame)))
        most = np.full(n, np.finfo(np.float64).tiny)
        for depth in reversed(range(len(self.layers))):
            layer, y = self.layers[depth], base.post[depth]
            room = np.maximum(1 - np.abs(y), np.finfo(np.float64).eps)
            most = np.maximum(most, (np.abs(moves) / room[:, None, :]).max(axis=(1, 2)))
            slope = np.maximum(self.g.slopes(base.pre[depth])[0], _SMALLEST_SLOPE)
            with np.errstate(over="ignore", invalid="ignore"):  # then there is no room at all
                moves = ((moves / slope[:, None, :]) @ layer.unmixing) @ layer.frame.T
                moves = np.clip(np.nan_to_num(moves, nan=_LARGEST_MOVE), -_LARGEST_MOVE, _LARGEST_MOVE)
        if bounds is not None:
            room = np.minimum(base.inputs - bounds[0], bounds[1] - base.inputs)
            room = np.maximum(room, _SMALLEST_ROOM)
            most = np.maximum(most, (np.abs(moves) / room[:, None, :]).max(axis=(1, 2)))
        return np.minimum(longest, room_used / (reach * most))

    def inputs_with_first_states(self, states: Array) -> Array:
        """Return inputs (n, D) at which the first layer's units take the values ``states`` (n, m_1)."""
        first = self.layers[0]
        return np.asarray(((self.g.inverse(states) - first.biases) @ first.unmixing) @ first.frame.T)

    def as_network(self) -> Network | None:
        """Return the known layers as a network from the inputs to the last known states."""
        if not self.layers:
            return None
        weights = [layer.weights for layer in self.layers]
        biases = [layer.biases for layer in self.layers]
        return Network(weights, biases, [self.g.name] * len(weights))


class Peeled:
    """The unknown rest as a function of c = frame^T y^{l-1}, around base points."""

    def __init__(self, ask: Ask, known: KnownLayers, base: States, frame: Array) -> None:
        self._ask = ask
        self._known = known
        self._base = base
        self._frame = frame

    def __len__(self) -> int:
        return len(self._base.inputs)

    @property
    def dimension(self) -> int:
        """Number of coordinates c."""
        return int(self._frame.shape[1])

    @property
    def coordinates(self) -> Array:
        """c at the base points, (n, d)."""
        return np.asarray(self._base.last @ self._frame)

    def __call__(self, sites: IntArray, displacement: Array) -> Array:
        """Return answers (n, K) at base points ``sites`` (n,) moved by ``displacement`` (n, d) in c."""
        return self._ask(self._known.lifted(self._base, sites, self._frame, displacement))
