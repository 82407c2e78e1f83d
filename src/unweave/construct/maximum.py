"""The maximum of n numbers as a ReLU network: ceil(log2 n) hidden layers ([mathematics] Lemma 2.A.3).

One maximum of two takes three gates,

    max(x, y) = relu(x) - relu(-x) + relu(y - x),

where the source takes four, max(x, y) = (relu(x+y) - relu(-x-y) + relu(x-y) + relu(y-x)) / 2; a number
without a partner is passed on by two. Every pair removes one number, so that there are n - 1 pairs in all:
3 (n - 1) + 2 (numbers passed on) gates.
"""

from __future__ import annotations

from fractions import Fraction

from unweave.arrays import AnyArray
from unweave.construct.algebra import IDENTITY, RELU
from unweave.construct.exactness import identity, zeros
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.rationals import sparse_product

_PAIR: dict[int, tuple[tuple[tuple[int, int], Fraction | int], ...]] = {
    3: (((1, 0), 1), ((-1, 0), -1), ((-1, 1), 1)),
    4: (
        ((1, 1), Fraction(1, 2)),
        ((-1, -1), Fraction(-1, 2)),
        ((1, -1), Fraction(1, 2)),
        ((-1, 1), Fraction(1, 2)),
    ),
}
"""Gates of a pair (x, y): the weights of x and y, and the weight in the sum."""
_SINGLE = ((1, 1), (-1, -1))  # gates of a number passed on: its weight, and the weight in the sum


def max_net(n: int, gates: int = 3, exact: bool = False) -> Network:
    """x (n,) -> max_i x_i: `max_net_size` gates in ceil(log2 n) hidden layers, ``gates`` (3, 4) per pair.

    Four gates per pair are the source's. In floats the error is a few roundings of the largest |x_i|.

    Example:
        >>> net = max_net(5)
        >>> net, float(net([3.0, 1.0, 4.0, 1.0, 5.0])[0])
        (Network(5-8-5-3-1, relu, identity output, 115 parameters), 5.0)
    """
    _check(n, gates)
    weights, biases = [], []
    sums = identity(n, exact)  # what the numbers still in the race are, in terms of the last gates
    while sums.shape[1] > 1:
        into, out = _round_of_pairs(sums.shape[1], gates, exact)
        weights.append(sparse_product(sums, into) if exact else sums @ into)
        biases.append(zeros(into.shape[1], exact))
        sums = out
    weights.append(sums)
    biases.append(zeros(1, exact))
    return Network(weights, biases, [RELU] * (len(weights) - 1) + [IDENTITY])


def max_net_size(n: int, gates: int = 3) -> int:
    """Number of gates of `max_net`: gates (n - 1) + 2 (numbers passed on)."""
    _check(n, gates)
    total, left = gates * (n - 1), n
    while left > 1:
        total += 2 * (left % 2)
        left = (left + 1) // 2
    return total


def _round_of_pairs(count: int, gates: int, exact: bool) -> tuple[AnyArray, AnyArray]:
    """Weights (count, gates) into one layer of the tree, and (gates, ceil(count/2)) out of it."""
    pairs, left_over = divmod(count, 2)
    into = zeros((count, gates * pairs + 2 * left_over), exact)
    out = zeros((into.shape[1], pairs + left_over), exact)
    gate = 0
    for pair in range(pairs):
        for (first, second), weight in _PAIR[gates]:
            into[2 * pair, gate], into[2 * pair + 1, gate], out[gate, pair] = first, second, weight
            gate += 1
    if left_over:
        for sign, weight in _SINGLE:
            into[-1, gate], out[gate, -1] = sign, weight
            gate += 1
    if exact:  # small integers were written into arrays of fractions
        into, out = into + Fraction(0), out + Fraction(0)
    return into, out


def _check(n: int, gates: int) -> None:
    if not isinstance(n, int) or n < 1 or gates not in _PAIR:
        raise InvalidInput(
            f"n must be a positive integer and gates 3 or 4. Got n={n!r}, gates={gates!r} instead. "
            f"For example max_net(5)."
        )
