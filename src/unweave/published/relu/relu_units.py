"""One hidden layer of ReLU units in normal form: unit weights, any biases, one output.

    f(x) = sum_i a_i relu(w_i . x + b_i) + c,        |w_i| = 1.

A ReLU is homogeneous, (a, w, b) and (a t, w / t, b / t) are the same unit for t > 0, so the length of w is
free and is taken to be one. The offset c is the output's own bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.numerics.hermite.whitening import Whitening


@dataclass(frozen=True, eq=False)
class ReLUUnits:
    """m units on d inputs with one output."""

    weights: Array
    """w, (d, m); columns of length one."""
    biases: Array
    """b, (m,)."""
    outer: Array
    """a, (m,)."""
    offset: float = 0.0
    """c"""

    def __call__(self, x: Array) -> Array:
        """Values (n,) at x (n, d)."""
        return np.asarray(np.maximum(x @ self.weights + self.biases, 0) @ self.outer + self.offset)

    @property
    def width(self) -> int:
        """m"""
        return len(self.biases)

    @property
    def dimension(self) -> int:
        """d"""
        return len(self.weights)

    def lifted(self, basis: Array) -> ReLUUnits:
        """The units on x whose inputs are basis^T x, for orthonormal columns of ``basis`` (D, d)."""
        return ReLUUnits(basis @ self.weights, self.biases, self.outer, self.offset)

    def unwhitened(self, whitening: Whitening) -> ReLUUnits:
        """The units on x whose inputs are whitening(x), renormalized."""
        return ReLUUnits.normalised(*whitening.undo(self.weights, self.biases), self.outer, self.offset)

    def to_network(self) -> Network:
        """The same function as a `Network` with one hidden layer."""
        return Network(
            [self.weights, self.outer[:, None]],
            [self.biases, np.array([self.offset])],
            ["relu", "identity"],
        )

    @staticmethod
    def normalised(weights: Array, biases: Array, outer: Array, offset: float = 0.0) -> ReLUUnits:
        """Units with weights (d, m) of any length; those without weights only move the offset."""
        lengths = np.linalg.norm(weights, axis=0)
        alive = lengths > 0
        constant = float(np.maximum(biases[~alive], 0) @ outer[~alive])
        lengths = lengths[alive]
        return ReLUUnits(
            weights[:, alive] / lengths, biases[alive] / lengths, outer[alive] * lengths, offset + constant
        )

    @staticmethod
    def of_network(network: Network) -> ReLUUnits:
        """The units of a network with one hidden ReLU layer, one output and no skip."""
        if network.activations != ("relu", "identity") or network.n_outputs != 1 or network.skip is not None:
            raise InvalidInput(
                f"network must have one hidden relu layer, one identity output and no skip. "
                f"Got {network!r} instead. Take one output at a time, and fit the affine part away first."
            )
        (inner, outer), (biases, offset) = network.weights, network.biases
        return ReLUUnits.normalised(inner, biases, outer[:, 0], float(offset[0]))
