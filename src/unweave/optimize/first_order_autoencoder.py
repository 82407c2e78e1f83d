"""The weight-tied ReLU autoencoder of the experiments with first-order methods.

l matrices W_1 (h, d), W_2 ... W_l (h, h) go up and down again, 2 l - 1 hidden layers:

    u_0 = y,   u_i = relu(W_i u_{i-1} + b_i),  i = 1 ... l,
    d_l = u_l, d_{i-1} = relu(W_i^T d_i + c_i),  i = l ... 2,      yhat = W_1^T d_1 + c_1,

loss = mean over images of |yhat - y|^2. Parameters are one vector: W_1 ... W_l, b_1 ... b_l, c_l ... c_1.
Gradients by hand; products with the Hessian by differentiating the gradient's own computation along a
direction (exact away from kinks, where the second derivative of a ReLU is zero). Start: Glorot-uniform
weights, zero biases.

Parameters may be a stack (k, P) of k autoencoders on the same images: losses, gradients and products come as
stacks, in the precision of the images and parameters.

Cost: 12 N (h d + (l-1) h^2) flops per gradient, twice that per product with the Hessian.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.errors import InvalidInput
from unweave.networks.network import Network


@dataclass(frozen=True, eq=False)
class TiedAutoencoder:
    """The loss over images (N, d), with ``depth`` = l matrices of ``width`` = h units each."""

    images: Array
    width: int
    depth: int = 1

    def __post_init__(self) -> None:
        if self.images.ndim != 2 or not self.images.size or not np.isfinite(self.images).all():
            raise InvalidInput(
                f"images must be finite and of shape (N, d). Got shape {self.images.shape} instead. Flatten "
                f"every image to a row."
            )
        if self.width < 1 or self.depth < 1:
            raise InvalidInput(
                f"width and depth must be at least 1. Got {self.width} and {self.depth} instead. Give both."
            )

    @property
    def n_parameters(self) -> int:
        """Length of the parameter vector."""
        return sum(int(np.prod(shape)) for shape in self._shapes())

    def start(self, rng: np.random.Generator) -> Array:
        """Glorot-uniform weights and zero biases."""
        parts = []
        for shape in self._shapes():
            limit = np.sqrt(6 / sum(shape)) if len(shape) == 2 else 0.0
            parts.append(rng.uniform(-limit, limit, shape).reshape(-1))
        return np.concatenate(parts)

    def loss(self, x: Array, images: Array | None = None) -> float:
        """Mean of |yhat - y|^2 over ``images``, by default the ones to be learned."""
        return float(self.losses(x, images))

    def losses(self, x: Array, images: Array | None = None) -> Array:
        """The loss of every member of a stack x (..., P): (...)."""
        images = self.images if images is None else images
        output = self._forward(self._unpack(x), images)[0][-1]
        return np.asarray(np.sum((output - images) ** 2, axis=(-2, -1)) / len(images))

    def gradient(self, x: Array, images: Array | None = None) -> Array:
        """(..., P) of the loss over ``images`` at x (..., P)."""
        parameters = self._unpack(x)
        values, open_units = self._forward(parameters, self.images if images is None else images)
        return self._backward(parameters, values, open_units)

    def hessian_product(self, x: Array, v: Array) -> Array:
        """H(x) v (P,): every line of `_forward` and `_backward`, differentiated along v."""
        parameters = self._unpack(x)
        values, open_units = self._forward(parameters, self.images)
        pairs = list(zip(self._layers(parameters), self._layers(self._unpack(v)), strict=True))
        rates = [np.zeros_like(values[0])]
        for ((matrix, _), (turn, shift)), value, is_open in zip(pairs, values, open_units, strict=False):
            rates.append((rates[-1] @ matrix + value @ turn + shift) * is_open)
        count = len(values[0])
        signal, change = 2 * (values[-1] - values[0]) / count, 2 * rates[-1] / count
        slopes = []
        for index, ((matrix, _), (turn, _)) in reversed(list(enumerate(pairs))):
            signal, change = signal * open_units[index], change * open_units[index]
            slopes.append((rates[index].mT @ signal + values[index].mT @ change, change.sum(axis=-2)))
            signal, change = signal @ matrix.mT, change @ matrix.mT + signal @ turn.mT
        return self._packed(slopes[::-1])

    def network(self, x: Array) -> Network:
        """The autoencoder as a network."""
        layers = self._layers(self._unpack(x))
        names = ["relu"] * (len(layers) - 1) + ["identity"]
        return Network([matrix for matrix, _ in layers], [bias[0] for _, bias in layers], names)

    def _shapes(self) -> list[tuple[int, ...]]:
        d, h = int(self.images.shape[1]), self.width
        shapes: list[tuple[int, ...]] = [(h, d)]
        shapes += [(h, h)] * (self.depth - 1)
        shapes += [(h,)] * (2 * self.depth - 1)
        return [*shapes, (d,)]

    def _unpack(self, x: Array) -> list[Array]:
        if x.shape[-1:] != (self.n_parameters,):
            raise InvalidInput(
                f"x must be of shape ({self.n_parameters},) or a stack of such. Got {x.shape} instead. "
                "start() gives one."
            )
        parts, place = [], 0
        for shape in self._shapes():
            size = math.prod(shape)
            parts.append(x[..., place : place + size].reshape(*x.shape[:-1], *shape))
            place += size
        return parts

    def _layers(self, parameters: list[Array]) -> list[tuple[Array, Array]]:
        """(..., n_in, n_out) matrices and (..., 1, n_out) biases, in the order of the signal."""
        matrices, biases = parameters[: self.depth], parameters[self.depth :]
        ways = [matrix.mT for matrix in matrices] + matrices[::-1]
        return [(way, bias[..., None, :]) for way, bias in zip(ways, biases, strict=True)]

    def _forward(self, parameters: list[Array], images: Array) -> tuple[list[Array], list[BoolArray]]:
        """Values of all layers, the images first, and which units are open."""
        values, open_units = [images], []
        layers = self._layers(parameters)
        for matrix, bias in layers:
            before = values[-1] @ matrix
            before += bias
            if len(values) < len(layers):
                open_units.append(before > 0)
                before *= open_units[-1]
            values.append(before)
        return values, [*open_units, np.ones((), dtype=bool)]

    def _backward(self, parameters: list[Array], values: list[Array], open_units: list[BoolArray]) -> Array:
        signal = values[-1] - values[0]
        signal *= 2 / len(values[0])
        ones = np.ones((1, len(values[0])), dtype=signal.dtype)
        slopes = []
        for index, (matrix, _) in reversed(list(enumerate(self._layers(parameters)))):
            bias = (ones @ signal)[..., 0, :]  # several times as fast as a sum over a middle axis
            slopes.append((values[index].mT @ signal, bias))
            if index:
                signal = signal @ matrix.mT
                signal *= open_units[index - 1]
        return self._packed(slopes[::-1])

    def _packed(self, slopes: list[tuple[Array, Array]]) -> Array:
        """One vector; a tied matrix adds its way up, transposed, and its way down."""
        up, down = slopes[: self.depth], slopes[self.depth :][::-1]
        matrices = [a.mT + b for (a, _), (b, _) in zip(up, down, strict=True)]
        lead = slopes[0][1].shape[:-1]
        return np.concatenate(
            [part.reshape(*lead, -1) for part in (*matrices, *(bias for _, bias in slopes))], axis=-1
        )
