"""The affine pieces of a ReLU network, counted exactly.

Along a line x(t) = p + t v every unit is piecewise affine in t. Layer by layer, the intervals on which all
units so far are affine are cut where a unit changes sign; at the end neighbors with the same output are
merged. All of it is integer arithmetic: relu(c z) = c relu(z) for c > 0, so that each layer may be multiplied
by the common denominator of its parameters. Floats are rational numbers, so that the count is exact for a
network of floats as well: it is that of the real-valued function which its parameters define.

A number of pieces on a line is a lower bound for the number in R^n, and with `bounds.min_size` for the size
of any network that is the same function.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from unweave.arrays import AnyArray
from unweave.construct.algebra import IDENTITY, RELU
from unweave.construct.exactness import as_exact, identity, number, zeros
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.rationals import integers, rational_array, sparse_product

AffineMap = tuple[tuple[Fraction, ...], ...]
"""Columns of the matrix, one per input, then the offset; each a tuple over the outputs."""


@dataclass(frozen=True)
class Piece:
    """A maximal interval of the line on which all outputs are affine: slope t + intercept."""

    left: Fraction | None
    """None: from minus infinity."""
    right: Fraction | None
    """None: to infinity."""
    slopes: tuple[Fraction, ...]
    """One per output."""
    intercepts: tuple[Fraction, ...]
    """Values at t = 0, one per output."""

    @property
    def middle(self) -> Fraction:
        """A point inside."""
        return _inside(self.left, self.right)


def pieces_1d(network: Network) -> tuple[Piece, ...]:
    """The pieces of a network with one input, from left to right.

    Example:
        >>> from unweave.construct import hard
        >>> tent = hard.sawtooth([[Fraction(1, 2)]] * 3)
        >>> inside = [piece for piece in pieces_1d(tent) if piece.left is not None and 0 <= piece.left < 1]
        >>> len(inside), inside[0].right, int(inside[0].slopes[0])
        (8, Fraction(1, 8), 8)
    """
    if network.n_inputs != 1:
        raise InvalidInput(
            f"network must have one input. Got {network.n_inputs} instead. For the pieces along a line use "
            f"pieces_on_line."
        )
    return pieces_on_line(network, [0], [1])


def pieces_on_line(
    network: Network, point: Any, direction: Any, low: Any = None, high: Any = None
) -> tuple[Piece, ...]:
    """The pieces of t -> network(point + t direction) for t in (low, high), None being infinite.

    ``point`` and ``direction`` of shape (n_inputs,), any finite numbers. Cost: per piece, one product of
    integers for every weight behind the first layer; their length grows by some 60 bits per layer of floats.
    """
    require_relu(network)
    network = as_exact(network)
    start, step = (
        _checked_vector(v, network, name) for v, name in ((point, "point"), (direction, "direction"))
    )
    if not any(step):
        raise InvalidInput("direction must not be zero. Got zeros instead. Give a direction to walk along.")
    ends = _checked_ends(low, high)
    line, scale = integers(np.stack([step, start], axis=1))
    segments = [(*ends, line)]
    last = len(network.weights) - 1
    outputs: list[tuple[Fraction | None, Fraction | None, AnyArray]] = []
    unit = scale
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        parameters, factor = integers(np.concatenate([weight, bias[None]]))
        weight_integers, bias_integers = parameters[:-1].T, parameters[-1] * unit
        unit *= factor
        cut: list[tuple[Fraction | None, Fraction | None, AnyArray]] = []
        for left, right, units in segments:
            before = weight_integers @ units
            before[:, 1] += bias_integers
            if layer == last:
                outputs.append((left, right, before * Fraction(1, unit)))
            elif network.activations[layer] == IDENTITY:
                cut.append((left, right, before))
            else:
                cut.extend(_cut(left, right, before))
        segments = cut
    if network.skip is not None:
        bypass = sparse_product(network.skip.T, line * Fraction(1, scale))
        outputs = [(left, right, values + bypass) for left, right, values in outputs]
    return _merged(outputs)


def affine_map_at(network: Network, x: Any) -> tuple[AnyArray, AnyArray]:
    """Matrix (n_inputs, K) and offset (K,) of the affine piece around x, in fractions.

    At a kink, the piece where the units that are zero at x stay zero.
    """
    require_relu(network)
    network = as_exact(network)
    point = _checked_vector(x, network, "x")
    n = network.n_inputs
    maps = np.concatenate([identity(n, True), zeros((1, n), True)])  # rows: d/dx_i, then the offset
    for weight, bias, activation in zip(network.weights, network.biases, network.activations, strict=True):
        maps = sparse_product(maps, weight)
        maps[-1] = maps[-1] + bias
        if activation == RELU:
            values = point @ maps[:-1] + maps[-1]
            maps[:, [value <= 0 for value in values]] = Fraction(0)
    if network.skip is not None:
        maps[:-1] = maps[:-1] + network.skip
    return maps[:-1], maps[-1]


def distinct_maps(network: Network, points: Any) -> set[AffineMap]:
    """The affine maps that the network has at the rows of ``points``, exactly: pieces seen, a lower bound."""
    network = as_exact(network)
    return {_key(*affine_map_at(network, point)) for point in points}


def _key(matrix: AnyArray, offset: AnyArray) -> AffineMap:
    return (*(tuple(row) for row in matrix), tuple(offset))


def _cut(
    left: Fraction | None, right: Fraction | None, before: AnyArray
) -> list[tuple[Fraction | None, Fraction | None, AnyArray]]:
    """The interval cut at the zeros of units (n, 2) inside it, negative units set to zero on each part."""
    zeros_inside = set()
    for slope, intercept in before:
        if slope:
            zero = Fraction(-intercept, slope)
            if (left is None or zero > left) and (right is None or zero < right):
                zeros_inside.add(zero)
    cuts = [left, *sorted(zeros_inside), right]
    parts = []
    for start, end in pairwise(cuts):
        middle = _inside(start, end)
        values = before[:, 0] * middle.numerator + before[:, 1] * middle.denominator
        parts.append((start, end, np.where((values > 0)[:, None], before, 0)))
    return parts


def _merged(parts: list[tuple[Fraction | None, Fraction | None, AnyArray]]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for left, right, values in parts:
        slopes, intercepts = tuple(values[:, 0]), tuple(values[:, 1])
        if pieces and (pieces[-1].slopes, pieces[-1].intercepts) == (slopes, intercepts):
            left = pieces.pop().left
        pieces.append(Piece(left, right, slopes, intercepts))
    return tuple(pieces)


def _inside(left: Fraction | None, right: Fraction | None) -> Fraction:
    if left is None:
        return Fraction(0) if right is None else right - 1
    return left + 1 if right is None else (left + right) / 2


def _checked_vector(value: Any, network: Network, name: str) -> AnyArray:
    vector = rational_array(value, name)
    if vector.shape != (network.n_inputs,):
        raise InvalidInput(
            f"{name} must be of shape ({network.n_inputs},). Got {vector.shape} instead. Give one number per "
            f"input."
        )
    return vector


def _checked_ends(low: Any, high: Any) -> tuple[Fraction | None, Fraction | None]:
    left = None if low is None else number(low, True, "low")
    right = None if high is None else number(high, True, "high")
    if left is not None and right is not None and not left < right:
        raise InvalidInput(f"low must be below high. Got {low} and {high} instead. Exchange them.")
    return left, right


def require_relu(network: Network) -> None:
    """Raise `InvalidInput` unless the network is piecewise affine."""
    if set(network.activations) - {RELU, IDENTITY} or network.activations[-1] != IDENTITY:
        raise InvalidInput(
            f"network must have relu (or identity) units and an identity output. Got {network!r} instead. "
            f"Pieces are those of a piecewise affine function."
        )
