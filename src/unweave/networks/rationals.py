"""Exact numbers: object arrays of `fractions.Fraction`, and layers evaluated in them.

A network whose parameters are fractions is evaluated without rounding wherever its activations keep rational
numbers rational. Every float64 is a rational number too (a multiple of a power of two), so floats that meet
fractions keep their exact value: 0.5 is 1/2, and 0.1 is 3602879701896397/36028797018963968.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import lcm
from numbers import Rational
from typing import Any

import numpy as np

from unweave.arrays import AnyArray
from unweave.errors import InvalidInput

ZERO = Fraction(0)

EXACT_ACTIVATIONS: dict[str, tuple[Callable[[AnyArray], AnyArray], int]] = {
    "identity": (lambda z: z, 1),
    "relu": (lambda z: np.maximum(z, 0), 1),
    "squared_relu": (lambda z: np.maximum(z, 0) ** 2, 2),
    "quadratic": (lambda z: z**2, 2),
    "cubic": (lambda z: z**3, 3),
}
"""Activations that map rational numbers to rational numbers. All of them are homogeneous: g on integers, and
p with g(c z) = c^p g(z) for c > 0."""


def holds_fractions(value: Any) -> bool:
    """Whether ``value`` (an array, or lists in lists) contains a Fraction; False for what is no array."""
    if isinstance(value, list | tuple):
        try:
            value = np.asarray(value)
        except ValueError:  # ragged: whoever converts it will say so
            return False
    if isinstance(value, np.ndarray):
        return value.dtype == object and any(isinstance(entry, Fraction) for entry in value.flat)
    return isinstance(value, Fraction)


def rational_array(value: Any, name: str) -> AnyArray:
    """``value`` as a new C-ordered object array of Fractions, floats by their exact value.

    Example:
        >>> rational_array([[1, 0.5]], "x")
        array([[Fraction(1, 1), Fraction(1, 2)]], dtype=object)
    """
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise InvalidInput(
            f"{name} must be a rectangular array. Got {type(value).__name__} instead ({error}). "
            f"Give rows of one length."
        ) from error
    result = np.empty(raw.shape, dtype=object)
    for index in np.ndindex(raw.shape):
        result[index] = fraction(raw[index], name)
    return result


def fraction(value: Any, name: str) -> Fraction:
    """One real finite number as a Fraction of the same value."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Rational):  # NumPy's integers too, whose parts must not stay of 64 bits
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, np.bool_):
        return Fraction(int(value))
    if isinstance(value, float | np.floating) and np.isfinite(value):
        return Fraction(*value.as_integer_ratio())
    problem = "must be finite" if isinstance(value, float | np.floating) else "must be real numbers"
    raise InvalidInput(
        f"{name} {problem}. Got {value!r} instead. Give fractions, integers or finite floats (a float counts "
        f"as the rational number it is)."
    )


def evaluate_exact(
    x: AnyArray,
    weights: Sequence[AnyArray],
    biases: Sequence[AnyArray],
    activations: Sequence[str],
    skip: AnyArray | None = None,
) -> AnyArray:
    """The outputs (n, K) at x (n, D), all of them object arrays of Fractions; nothing is rounded.

    Sums of fractions spend their time on common divisors. So each row is a row of integers over one positive
    denominator, each layer is multiplied by the common denominator of its parameters, and fractions are
    formed at the end. Cost: two operations on (long) integers per row and weight.
    """
    rows = [integers(row) for row in x]
    start = np.array([row for row, _ in rows], dtype=object).reshape(x.shape)
    below = start_below = np.array([factor for _, factor in rows], dtype=object)
    values = start
    last = len(weights) - 1
    for layer, (weight, bias, name) in enumerate(zip(weights, biases, activations, strict=True)):
        parameters, factor = integers(np.concatenate([weight, bias[None]]))
        values = values @ parameters[:-1] + below[:, None] * parameters[-1]
        below = below * factor
        if layer == last and skip is not None:
            bypass, factor = integers(skip)
            values = values * (start_below * factor)[:, None] + (start @ bypass) * below[:, None]
            below = below * start_below * factor
        activation, power = EXACT_ACTIVATIONS[name]
        values, below = activation(values), below**power
    result: AnyArray = np.empty(values.shape, dtype=object)
    for row, denominator in enumerate(below.tolist()):
        result[row] = [Fraction(numerator, denominator) for numerator in values[row].tolist()]
    return result


def integers(values: AnyArray) -> tuple[AnyArray, int]:
    """Integers of the shape of ``values`` and the positive factor by which they are larger than these."""
    factor = lcm(*(value.denominator for value in values.flat))
    result = np.empty(values.shape, dtype=object)
    for index in np.ndindex(values.shape):
        result[index] = values[index].numerator * (factor // values[index].denominator)
    return result, factor


def sparse_product(x: AnyArray, weight: AnyArray) -> AnyArray:
    """x @ weight for object arrays (n, D) and (D, K) of Fractions, skipping the zeros of ``weight``."""
    result = np.full((x.shape[0], weight.shape[1]), ZERO, dtype=object)
    for column in range(weight.shape[1]):
        used = [row for row in range(weight.shape[0]) if weight[row, column]]
        if used:
            result[:, column] = x[:, used] @ weight[used, column]
    return result
