"""Random restrictions: fix most inputs of a circuit at random, and see which of its gates remain.

A restriction fixes all inputs but one of every part of a partition. A gate relu(<a, x> + b) is *removable*
where <a, x> + b has one sign for all values of the inputs that are left: it is then zero, or affine and
passed on directly. That is where a threshold gate becomes constant, so that both meet the same fate
([mathematics] Sec. 2.6). The probability that a gate stays is O(|parts| / sqrt(n)) (Lemma 2.6.1);
`kept_share` measures it for given gates.

`restricted` returns the circuit on the inputs that are left, without its removable gates: what Andreev's
function and a circuit for it both become.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, exp
from typing import Any

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray, real_numbers
from unweave.construct.algebra import RELU
from unweave.construct.boolean import AndreevLayout
from unweave.errors import InvalidInput
from unweave.networks.network import Network


@dataclass(frozen=True, eq=False)
class Restriction:
    """Which of n inputs in {0, 1} are free, and what the others are."""

    free: IntArray
    """Indices of free inputs, in order."""
    values: Array
    """(n,): 0 or 1; entries of free inputs do not matter."""

    def rows(self, bits: Any) -> Array:
        """Full rows (N, n) for values (N, f) of the free inputs."""
        given = np.asarray(bits, dtype=np.float64)
        full = np.repeat(self.values[None], len(given), axis=0)
        full[:, self.free] = given
        return full


def random_restriction(parts: list[IntArray], n: int, rng: np.random.Generator) -> Restriction:
    """Fix all of n inputs at random but one of every part, drawn from it."""
    free = np.sort([int(rng.choice(part)) for part in parts])
    return Restriction(free, rng.integers(0, 2, n).astype(np.float64))


def equal_parts(n: int, count: int) -> list[IntArray]:
    """Divide n inputs into ``count`` parts of equal size."""
    if count < 1 or n % count:
        raise InvalidInput(f"count must divide n. Got n={n} and count={count} instead. For example 64 and 8.")
    return list(np.arange(n).reshape(count, -1))


def andreev_restriction(n: int, table: Any, rng: np.random.Generator) -> Restriction:
    """Leave one bit of every row of the address of Andreev's function, with the given table.

    What is left is the function of those bits whose truth table, up to fixed flips of them, is ``table``.
    """
    layout = AndreevLayout.of(n)
    bits = np.asarray(table, dtype=np.float64)
    if bits.shape != (layout.table,) or not np.isin(bits, (0, 1)).all():
        raise InvalidInput(
            f"table must be {layout.table} bits. Got shape {bits.shape} instead. Give 0 and 1."
        )
    values = rng.integers(0, 2, n).astype(np.float64)
    values[: layout.table] = bits
    columns = rng.integers(0, layout.columns, layout.rows)
    return Restriction(layout.table + np.arange(layout.rows) * layout.columns + columns, values)


def removable(weights: Any, biases: Any, restriction: Restriction) -> BoolArray:
    """(w,): which gates relu(x @ weights + biases), weights (n, w), the free inputs do not need."""
    low, high = _range(real_numbers(weights, "weights"), real_numbers(biases, "biases"), restriction)
    return np.asarray((low >= 0) | (high <= 0))


def restricted(network: Network, restriction: Restriction) -> Network:
    """The same function of the free inputs, without removable gates; one hidden layer of ReLU units.

    Gates that are never below zero become part of a skip matrix, as the source's wires to the output do.
    """
    if len(network.hidden) != 1 or network.activations[0] != RELU:
        raise InvalidInput(
            f"network must have one hidden layer of relu units. Got {network!r} instead. Restrict layers one "
            f"by one."
        )
    weights, biases = (np.asarray(part[0], dtype=np.float64) for part in (network.weights, network.biases))
    low, high = _range(weights, biases, restriction)
    fixed = restriction.values.copy()
    fixed[restriction.free] = 0.0
    inner, shift = weights[restriction.free], biases + fixed @ weights
    outer = np.asarray(network.weights[1], dtype=np.float64)
    kept, straight = (low < 0) & (high > 0), (low >= 0) & (high > 0)
    skip = inner[:, straight] @ outer[straight]
    offset = network.biases[1] + shift[straight] @ outer[straight]
    if network.skip is not None:
        skip = skip + network.skip[restriction.free]
        offset = offset + fixed @ network.skip
    if not kept.any():
        return Network([skip], [offset], [network.activations[-1]])
    activations = [RELU, network.activations[-1]]
    return Network([inner[:, kept], outer[kept]], [shift[kept], offset], activations, skip)


def kept_share(weights: Any, biases: Any, parts: list[IntArray], trials: int, seed: int = 0) -> Array:
    """(w,): share of ``trials`` random restrictions that each gate survives.

    Example:
        >>> majority = np.ones((64, 1)), [-32.0]
        >>> share = kept_share(*majority, equal_parts(64, 4), trials=2000)
        >>> bool(0.05 < share[0] < 4 / np.sqrt(64))
        True
    """
    rng = np.random.default_rng(seed)
    matrix, offsets = real_numbers(weights, "weights"), real_numbers(biases, "biases")
    kept = np.zeros(matrix.shape[1])
    for _ in range(trials):
        kept += ~removable(matrix, offsets, random_restriction(parts, len(matrix), rng))
    return kept / trials


def agreement_probability(n: int, epsilon: float) -> tuple[float, float]:
    """Probability that a random function of n bits agrees with a given one on 1/2 + epsilon of all inputs.

    The exact binomial tail, and the bound exp(-2^{n+1} epsilon^2) of Claim 1.

    Example:
        >>> agreement_probability(4, 0.25)
        (0.0384063720703125, 0.1353352832366127)
    """
    points = 1 << n
    least = points / 2 + epsilon * points
    tail = sum(comb(points, k) for k in range(points + 1) if k >= least) / 2**points
    return float(tail), exp(-2 * points * epsilon**2)


def _range(weights: Array, biases: Array, restriction: Restriction) -> tuple[Array, Array]:
    """Least and largest value (w,) before every gate."""
    fixed = restriction.values.copy()
    fixed[restriction.free] = 0.0
    base, free = biases + fixed @ weights, weights[restriction.free]
    return base + np.minimum(free, 0).sum(axis=0), base + np.maximum(free, 0).sum(axis=0)
