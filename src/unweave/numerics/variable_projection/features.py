"""What a unit contributes, and the polynomial part beside it.

A kinked unit contributes, once its sign is forgotten:

    relu(z)        = ( |z|  + z  ) / 2        leaky: ((1-p) |z| + (1+p) z) / 2
    relu(z)^2      = (z |z| + z^2) / 2

With z = w . x + b the second terms add up to an affine function (quadratic for the squared ReLU) that is
fitted freely, so that one feature g(z) = |z| or z |z| per unit suffices, whatever the unit's sign:
g(-z) = +-g(z) changes no span. A smooth unit contributes g(z) itself, beside a constant, or an affine
function where g(-z) = g(z) + m z makes mirrored units differ by one. The derivative by (w, b) is
g'(z) (x, 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput


@dataclass(frozen=True)
class UnitFeature:
    """A feature g of one unit and the degree of the polynomial fitted beside it."""

    name: str
    degree: int
    """Of the polynomial: 1 for |z|, 2 for z |z|, also the homogeneity of g there; 0 or 1 for smooth g."""
    homogeneous: bool = True
    """Whether the length of (w, b) is but a factor of the height, and may be one."""

    def value(self, z: Array) -> Array:
        """g(z), elementwise."""
        size = np.abs(z)
        return size if self.degree == 1 else np.asarray(z * size)

    def slope(self, z: Array) -> Array:
        """g'(z), elementwise."""
        return np.sign(z) if self.degree == 1 else np.asarray(2 * np.abs(z))

    def polynomial(self, x: Array) -> Array:
        """Monomials (n, q) of x (n, d) up to the degree: products x_i x_j (i <= j) if 2, then x, then 1."""
        columns = [x, np.ones((len(x), 1))] if self.degree else [np.ones((len(x), 1))]
        if self.degree == 2:
            first, second = np.triu_indices(x.shape[1])
            columns.insert(0, x[:, first] * x[:, second])
        return np.hstack(columns)

    def count(self, inputs: int) -> int:
        """q, the number of monomials."""
        return (1, inputs + 1, (inputs + 1) * (inputs + 2) // 2)[self.degree]


class SmoothFunction(Protocol):
    """An elementwise g with its derivatives."""

    @property
    def jet(self) -> Callable[[Array, int], tuple[Array, ...]]:
        """(g, g', ..., g^(order)) at z, as a function of (z, order)."""

    def __call__(self, z: Array) -> Array:
        """g(z)."""


@dataclass(frozen=True)
class SmoothFeature(UnitFeature):
    """A smooth g itself."""

    function: SmoothFunction = field(kw_only=True)

    def value(self, z: Array) -> Array:
        """g(z), elementwise."""
        return self.function(z)

    def slope(self, z: Array) -> Array:
        """g'(z), elementwise."""
        return self.function.jet(z, 1)[1]


KINK = UnitFeature("kink", 1)
"""|z|: ReLU and leaky ReLU."""
SQUARED_KINK = UnitFeature("squared kink", 2)
"""z |z|: squared ReLU."""

_FEATURES = {"relu": KINK, "leaky_relu": KINK, "squared_relu": SQUARED_KINK}
SAMPLED = tuple(_FEATURES)
"""Activations that can be recovered from samples by these features."""


def feature_of(activation: str) -> UnitFeature:
    """The feature of an activation."""
    if activation not in _FEATURES:
        raise InvalidInput(
            f"activation must be one of {', '.join(SAMPLED)} for samples. Got {activation!r} instead."
        )
    return _FEATURES[activation]
