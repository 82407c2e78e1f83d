"""Boolean functions as ReLU networks: any table, threshold functions, parity, Andreev's function.

- any f on {-1, 1}^n: sum_v f(v) relu(<x, v> - (n - 1)), a gate per vertex where f is not 0
  ([mathematics] Lemma 2.5.1);
- a threshold function sign(<a, x> + b), sign(0) = 1: with z = <a, x> + b and any p > 0 such that no z lies in
  (-p, 0), it is -1 + (2/p) (relu(z + p) - relu(z)): two gates (Claim 4);
- parity on {0, 1}^k: s = sum_i x_i, relu(s) + 2 sum_{j=1}^{k-1} (-1)^j relu(s - j): k gates (the source takes
  k + 1);
- Andreev's function on {0, 1}^n: an address, each bit of it the parity of a row, into a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import lcm
from typing import Any, Literal

import numpy as np

from unweave.arrays import AnyArray, IntArray
from unweave.construct.algebra import IDENTITY, RELU, affine_network
from unweave.construct.exactness import array, is_exact, zeros
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.rationals import rational_array

Domain = Literal["signs", "bits"]
"""{-1, 1}^n or {0, 1}^n."""


def vertex_net(values: Any, exact: bool | None = None) -> Network:
    """The function on {-1, 1}^n with these 2^n ``values``, vertices in the order of
    itertools.product((-1, 1), repeat=n): the first input changes slowest.

    Example:
        >>> xor = vertex_net([0, 1, 1, 0])
        >>> xor.hidden, xor([[-1, -1], [-1, 1], [1, -1], [1, 1]]).ravel().tolist()
        ((2,), [0.0, 1.0, 1.0, 0.0])
    """
    exact = is_exact(exact, values)
    table = array(values, exact, "values")
    n = table.size.bit_length() - 1
    if table.ndim != 1 or n < 1 or table.size != 1 << n:
        raise InvalidInput(
            f"values must be a vector of 2^n numbers, n at least 1. Got shape {table.shape} instead. "
            f"Give one value per vertex of the cube."
        )
    used = [i for i in range(table.size) if table[i]]
    if not used:
        return affine_network(zeros((n, 1), exact), exact=exact)
    vertices = np.array(list(product((-1, 1), repeat=n)))[used]
    return Network(
        [array(vertices.T, exact), table[used][:, None]],
        [array([-(n - 1)] * len(used), exact), zeros(1, exact)],
        [RELU, IDENTITY],
    )


def ltf_gate(
    weights: Any, bias: Any = 0, domain: Domain = "signs", exact: bool | None = None, max_sums: int = 1 << 20
) -> Network:
    """sign(<weights, x> + bias) on {-1, 1}^n (or {0, 1}^n), sign(0) = 1: two gates, or none if constant 1.

    The gap p below zero is exact, also for floats, whose sums are rational numbers. With more than
    ``max_sums`` distinct values of <weights, x> + bias it is the step of their common grid.

    Example:
        >>> majority = ltf_gate([1, 1, 1])
        >>> majority.hidden, majority([[1, -1, 1], [-1, -1, 1]]).ravel().tolist()
        ((2,), [1.0, -1.0])
    """
    exact = is_exact(exact, weights, [bias])
    a, b = rational_array(weights, "weights"), rational_array([bias], "bias")[0]
    if a.ndim != 1 or not a.size or domain not in ("signs", "bits"):
        raise InvalidInput(
            f'weights must be a vector and domain "signs" or "bits". Got shape {a.shape} and {domain!r} '
            f"instead. Give one weight per input."
        )
    gap = _gap_below_zero(a, b, domain, max_sums)
    if gap is None:
        return affine_network(zeros((a.size, 1), exact), array([1], exact), exact)
    # Divided by p here: the gates are then relu(z/p + 1) and relu(z/p), and floats stay of order one.
    scaled, shift = a / gap, b / gap
    return Network(
        [array(np.stack([scaled, scaled], axis=1), exact), array([[2], [-2]], exact)],
        [array([shift + 1, shift], exact), array([-1], exact)],
        [RELU, IDENTITY],
    )


def parity_net(k: int, exact: bool = False) -> Network:
    """x in {0, 1}^k -> sum_i x_i mod 2, with k gates.

    Example:
        >>> parity_net(3)([[1, 1, 0], [1, 1, 1]]).ravel().tolist()
        [0.0, 1.0]
    """
    _require_count(k, 1, "k")
    inner, shifts, outer = parity_gates(k)
    return Network(
        [array(inner, exact), array(outer, exact)], [array(shifts, exact), zeros(1, exact)], [RELU, IDENTITY]
    )


@dataclass(frozen=True)
class AndreevLayout:
    """Layout of the n inputs of Andreev's function: ``table`` bits, then ``rows`` x ``columns`` bits."""

    n: int
    table: int
    """floor(n/2)"""
    rows: int
    """floor(log2(n/2)), bits of the address"""
    columns: int
    """floor(n / (2 rows)), bits per parity"""

    @classmethod
    def of(cls, n: int) -> AndreevLayout:
        """The layout for n bits, n at least 4."""
        _require_count(n, 4, "n")
        rows = (n // 2).bit_length() - 1
        return cls(n, n // 2, rows, n // (2 * rows))

    @property
    def used(self) -> int:
        """Inputs that matter; the rest is ignored."""
        return self.table + self.rows * self.columns


def andreev(bits: Any) -> IntArray:
    """Andreev's function of the rows of ``bits`` (N, n), entries 0 and 1: (N,) table[address].

    The first floor(n/2) bits are the table; the next ones, in rows, give the address by their parities, first
    row first ([mathematics] Def. 10).
    """
    rows = np.asarray(bits)
    if rows.ndim != 2 or not np.isin(rows, (0, 1)).all():
        raise InvalidInput(
            f"bits must be (N, n) with entries 0 and 1. Got shape {rows.shape} instead. One row each."
        )
    rows = rows.astype(np.int64)
    layout = AndreevLayout.of(rows.shape[1])
    words = rows[:, layout.table : layout.used].reshape(len(rows), layout.rows, layout.columns)
    parities = words.sum(axis=2) % 2
    address = parities @ (1 << np.arange(layout.rows)[::-1])
    return np.asarray(rows[np.arange(len(rows)), address])


def andreev_net(n: int, exact: bool = False) -> Network:
    """Andreev's function on {0, 1}^n with two hidden layers.

    The first holds ``rows`` parities of ``columns`` gates each and passes on 2^rows bits of the table; the
    second one gate per address, relu(table bit + sum of matching address bits - rows), which is 1 where all
    of them are one. 2 * 2^rows + rows * columns gates in all: at most 3 n / 2.
    """
    layout = AndreevLayout.of(n)
    addresses = 1 << layout.rows
    inner, shifts, parity = parity_gates(layout.columns)
    width = addresses + layout.rows * layout.columns
    first, first_bias = np.zeros((n, width), dtype=int), np.zeros(width, dtype=int)
    first[np.arange(addresses), np.arange(addresses)] = 1  # bits are not negative: relu passes them on
    second, second_bias = np.zeros((width, addresses), dtype=int), np.full(addresses, -layout.rows)
    second[np.arange(addresses), np.arange(addresses)] = 1
    for row in range(layout.rows):
        inputs = layout.table + row * layout.columns + np.arange(layout.columns)
        gates = addresses + row * layout.columns + np.arange(layout.columns)
        first[np.ix_(inputs, gates)] = inner
        first_bias[gates] = shifts
        wanted = np.arange(addresses) >> (layout.rows - 1 - row) & 1
        second[gates] = np.outer(parity[:, 0], np.where(wanted, 1, -1))  # a bit, or one minus it
        second_bias += 1 - wanted
    return Network(
        [array(first, exact), array(second, exact), array(np.ones((addresses, 1), dtype=int), exact)],
        [array(first_bias, exact), array(second_bias, exact), zeros(1, exact)],
        [RELU, RELU, IDENTITY],
    )


def parity_gates(k: int) -> tuple[IntArray, IntArray, IntArray]:
    """Weights (k, k), biases (k,) and output weights (k, 1) of parity on k bits."""
    outer = np.array([1] + [2 * (-1) ** j for j in range(1, k)])
    return np.ones((k, k), dtype=np.int64), -np.arange(k), outer[:, None]


def _gap_below_zero(a: AnyArray, b: Fraction, domain: Domain, max_sums: int) -> Fraction | None:
    """p > 0 with no value of <a, x> + b in (-p, 0), as large as is cheap to find; None if none is below 0."""
    grid = lcm(b.denominator, *(entry.denominator for entry in a))
    steps = [int(entry * grid) for entry in a]
    least = int(b * grid) - (
        sum(abs(s) for s in steps) if domain == "signs" else -sum(min(s, 0) for s in steps)
    )
    if least >= 0:
        return None
    sums = {int(b * grid)}
    for step in steps:
        sums = {
            total + move for total in sums for move in ((-step, step) if domain == "signs" else (0, step))
        }
        if len(sums) > max_sums:
            return Fraction(1, grid)  # all values are multiples of it
    return Fraction(-max(total for total in sums if total < 0), grid)


def _require_count(value: int, least: int, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInput(f"{name} must be an integer from {least} on. Got {value!r} instead. Count inputs.")
