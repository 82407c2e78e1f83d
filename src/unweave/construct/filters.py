"""Networks that look through one filter at many places.

    f(x) = (1/k) sum_i g(w . A_i x),        A_i (r, n), w (r,),

the single-filter networks of [mathematics] Def. 16: one gate where k = 1 and A_1 is the identity, one
convolution where the A_i pick windows of x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.construct.algebra import IDENTITY, RELU
from unweave.construct.exactness import array, is_exact, zeros
from unweave.errors import InvalidInput
from unweave.networks.network import Network


def single_filter_net(
    matrices: Any, weights: Any, activation: str = RELU, exact: bool | None = None
) -> Network:
    """The mean over i of g(w . A_i x): ``matrices`` (k, r, n), ``weights`` (r,).

    Example:
        >>> edges = single_filter_net(windows(5, 2), [1, -1])
        >>> edges.hidden, float(edges([0.0, 0.0, 4.0, 0.0, 0.0])[0])     # one step down, out of four
        ((4,), 1.0)
    """
    exact = is_exact(exact, matrices, weights)
    stack, filter_ = array(matrices, exact, "matrices"), array(weights, exact, "weights")
    if stack.ndim != 3 or filter_.shape != stack.shape[1:2]:
        raise InvalidInput(
            f"matrices must be of shape (k, r, n) and weights (r,). Got {stack.shape} and {filter_.shape} "
            f"instead. windows(n, r) gives those of a convolution."
        )
    k = len(stack)
    inner = np.stack([filter_ @ matrix for matrix in stack], axis=1)
    outer = zeros((k, 1), exact) + array([1], exact)[0] / k
    return Network([inner, outer], [zeros(k, exact), zeros(1, exact)], [activation, IDENTITY])


def windows(inputs: int, width: int, step: int = 1) -> Array:
    """(k, width, inputs): matrices that pick ``width`` neighbors, every ``step`` places."""
    if not 1 <= width <= inputs or step < 1:
        raise InvalidInput(
            f"width must be 1 to {inputs} and step positive. Got {width} and {step} instead. Change those."
        )
    starts = range(0, inputs - width + 1, step)
    return np.array([np.eye(inputs)[start : start + width] for start in starts])
