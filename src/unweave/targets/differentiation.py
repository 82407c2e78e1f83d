"""Derivatives of a target by its own backward passes: what is asked, what comes back, what it counts.

A target that can be differentiated is asked at a row x for its K values, for the K gradients, and for
products of the K Hessians with d directions: one forward pass, one backward pass per gradient, and one more
per product. A pass costs the target about what an answer costs, so each counts as one query:

    counted   1 + K             for values and gradients
              1 + K + K d       with Hessian products                            per row

Parameters stay out of reach: of a module only answers and these derivatives with respect to inputs are seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.entangled import network_gradients, network_hessians
from unweave.errors import InvalidInput
from unweave.networks.network import Network

_HESSIAN_POINTS_AT_ONCE = 32  # K full D x D Hessians each are formed at once


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Values, gradients and Hessian products of all K outputs at n rows of D inputs."""

    values: Array
    """(n, K)"""
    gradients: Array
    """(n, K, D)"""
    products: Array | None = None
    """(n, K, d, D): Hessian times each of the d directions; None if there were none."""

    @staticmethod
    def concatenate(parts: list[Derivatives]) -> Derivatives:
        """Stack the rows of several; all have products, or none."""
        products = [part.products for part in parts if part.products is not None]
        return Derivatives(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.gradients for part in parts]),
            np.concatenate(products) if products else None,
        )

    @property
    def is_finite(self) -> bool:
        """Whether no number is NaN or infinite."""
        arrays = (self.values, self.gradients, *(() if self.products is None else (self.products,)))
        return all(bool(np.isfinite(array).all()) for array in arrays)


Differentiate = Callable[[Array, Array | None], Derivatives]
"""Rows (n, D), and directions (D, d) or None, to `Derivatives`: the method ``differentiate`` of a target."""


def passes(outputs: int, directions: int = 0) -> int:
    """Return the queries counted per row: forward pass, gradients, Hessian products.

    >>> passes(1), passes(2, directions=20)
    (2, 43)
    """
    return 1 + outputs * (1 + directions)


def differentiator(source: Any) -> Differentiate | None:
    """Return what differentiates ``source``: its method ``differentiate``, a network's formulas, or None."""
    if isinstance(source, Network):
        return NetworkDerivatives(source)
    return getattr(source, "differentiate", None)


class NetworkDerivatives:
    """What backward passes through ``network`` would give; counted by the ledger as if they were."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def __call__(self, x: Array, directions: Array | None) -> Derivatives:
        """Return derivatives at rows ``x`` (n, D), with products along ``directions`` (D, d) if given."""
        values, gradients = self._network(x), network_gradients(self._network, x)
        if directions is None:
            return Derivatives(values, gradients)
        products = np.empty((*values.shape, directions.shape[1], x.shape[1]))
        for start in range(0, len(x), _HESSIAN_POINTS_AT_ONCE):
            block = slice(start, start + _HESSIAN_POINTS_AT_ONCE)
            products[block] = directions.T @ network_hessians(self._network, x[block])
        return Derivatives(values, gradients, products)


def not_differentiable(what: str) -> InvalidInput:
    """Return the error of a target without derivatives, described in a few words."""
    return InvalidInput(
        "target must be a torch module, a bound method of one, or an unweave.Network for "
        f'derivatives="autodiff", because only these run backwards. Got {what} instead. Pass the module '
        'itself, or leave derivatives at "queries", which needs answers only.'
    )
