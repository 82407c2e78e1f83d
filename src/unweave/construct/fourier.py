"""Functions on {-1, 1}^n by their Fourier form, with a gate for every variable of every term.

    f(x) = sum_S c_S prod_{i in S} x_i,        c_S = 2^{-n} sum_x f(x) prod_{i in S} x_i.

A product of k signs is 1 - 2 (parity of the k bits (1 - x_i) / 2), and parity takes k gates. So f takes
sum |S| gates over the terms ([mathematics] Lemma 2.5.1): parity of 10 bits 10 of them, where a gate for each
vertex makes 1024.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from unweave.arrays import AnyArray
from unweave.construct.algebra import IDENTITY, RELU, affine_network
from unweave.construct.boolean import parity_gates, vertex_net
from unweave.construct.exactness import array, is_exact, size, zeros
from unweave.errors import InvalidInput
from unweave.networks.network import Network

_ROUNDING = 8 * float(np.finfo(np.float64).eps)  # of the largest value: smaller coefficients are rounding


def fourier_coefficients(values: Any, exact: bool | None = None) -> dict[tuple[int, ...], Any]:
    """Coefficients that are not zero of the function on {-1, 1}^n with these 2^n ``values``, by their S.

    Vertices are in the order of itertools.product((-1, 1), repeat=n), as in `vertex_net`.

    Example:
        >>> fourier_coefficients([1, -1, -1, 1])        # x_0 x_1
        {(0, 1): 1.0}
    """
    exact = is_exact(exact, values)
    table = array(values, exact, "values")
    n = table.size.bit_length() - 1
    if table.ndim != 1 or n < 1 or table.size != 1 << n:
        raise InvalidInput(
            f"values must be a vector of 2^n numbers, n at least 1. Got shape {table.shape} instead. "
            f"Give one value per vertex of the cube."
        )
    sums: AnyArray = table.reshape((2,) * n)
    for axis in range(n):
        low, high = np.moveaxis(sums, axis, 0)  # at x_i = -1 and x_i = 1
        sums = np.stack([high + low, high - low], axis=axis)
    flat = (sums.ravel() * (Fraction(1, 1 << n) if exact else 1.0 / (1 << n))).tolist()
    least = 0 if exact else _ROUNDING * float(np.abs(table).max())
    return {
        tuple(i for i in range(n) if code >> (n - 1 - i) & 1): flat[code]
        for code in range(1 << n)
        if abs(flat[code]) > least
    }


def fourier_net(values: Any, exact: bool | None = None) -> Network:
    """The function on {-1, 1}^n with these 2^n ``values``: sum of |S| gates over its Fourier terms.

    Example:
        >>> parity = [(-1) ** bin(k).count("1") for k in range(16)]
        >>> size(fourier_net(parity)), size(vertex_net(parity))
        (4, 16)
    """
    exact = is_exact(exact, values)
    terms = fourier_coefficients(values, exact)
    n = len(array(values, exact)).bit_length() - 1
    constant = sum(terms.values(), Fraction(0) if exact else 0.0)  # every product is 1 - 2 (parity)
    inner, shifts, outer = [], [], []
    for chosen, coefficient in terms.items():
        if not chosen:
            continue
        _, offsets, heights = parity_gates(len(chosen))
        for offset, height in zip(offsets, heights[:, 0], strict=True):
            weights = np.full(n, Fraction(0), dtype=object)
            weights[list(chosen)] = Fraction(-1, 2)  # a bit is (1 - x) / 2
            inner.append(weights)
            shifts.append(Fraction(len(chosen), 2) + int(offset))
            outer.append(-2 * int(height) * coefficient)
    if not inner:
        return affine_network(zeros((n, 1), exact), array([constant], exact), exact)
    return Network(
        [array(np.stack(inner, axis=1), exact), array([[c] for c in outer], exact)],
        [array(shifts, exact), array([constant], exact)],
        [RELU, IDENTITY],
    )


def boolean_net(values: Any, exact: bool | None = None) -> Network:
    """The smaller of `vertex_net` and `fourier_net`: at most min(2^n, sum |S|) gates."""
    one, other = vertex_net(values, exact), fourier_net(values, exact)
    return one if size(one) <= size(other) else other


def min_threshold_gates(values: Any) -> int:
    """Fewest threshold gates whose weighted sum has these ``values``: w of them have at most 2^w sums.

    A sum of ReLU gates may need far fewer: a linear function takes two ([mathematics] Prop. 2.5.3).

    Example:
        >>> min_threshold_gates(range(2**10))       # the number that ten bits write, against 2 ReLU gates
        10
    """
    return (len(set(np.asarray(values, dtype=object).ravel())) - 1).bit_length()
