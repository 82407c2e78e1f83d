"""Hard functions of the mathematics of deep learning (section 2.3): many pieces from few gates.

Sawtooth compositions of k layers of w gates have w^k pieces (Theorem 2.3.2), counted exactly in fractions; a
sawtooth of a zonotope's support function in R^n has 2 sum_{i<n} C(m-1, i) w^k pieces where that is below one
(the source's count lacks the factor two); and shallower networks need many more gates (Theorem 2.3.1).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction

from unweave.construct import hard, pieces_1d, size, zonotope_maps
from unweave.construct.bounds import min_size
from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import at_least, equal

SAWTEETH = ((2, 6), (3, 5), (5, 3))
"""Gates per layer w, layers k."""
ZONOTOPES = ((1, 1, 2, 2), (2, 4, 2, 2), (2, 7, 3, 2), (3, 4, 2, 2))
"""Inputs n, generators m, w, k."""
_TWICE = "corrected: the printed number of vertices lacks a factor two"


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """Random breaks and generators, all fractions."""
    rng = random.Random(seed)
    for w, k in SAWTEETH:
        cell = f"sawtooth, w = {w}, k = {k}"
        progress(cell)
        net = hard.sawtooth([breaks(w, rng) for _ in range(k)])
        inside = sum(piece.left is not None and 0 <= piece.left < 1 for piece in pieces_1d(net))
        yield equal(f"{cell}: pieces on (0, 1)", w**k, inside)
        yield equal(f"{cell}: gates", w * k, size(net))
        published = k // 2 * w ** (k / (k // 2)) / 2 - 1
        needed = min_size(w**k, k // 2 + 1)
        yield at_least(f"{cell}: least gates of {k // 2}-hidden-layer networks", published, needed)
    for n, m, w, k in ZONOTOPES:
        cell = f"zonotope, n = {n}, m = {m}, w = {w}, k = {k}"
        progress(cell)
        generators = [[Fraction(rng.randint(-999, 999), 100) for _ in range(n)] for _ in range(m)]
        net = hard.zonotope(generators, [breaks(w, rng) for _ in range(k)])
        counted = len(zonotope_maps(net, generators))
        yield equal(f"{cell}: pieces", hard.zonotope_pieces(n, m, [w] * k), counted, _TWICE)
        yield equal(f"{cell}: gates", 2 * m + w * k, size(net))


def breaks(width: int, rng: random.Random) -> list[Fraction]:
    """w - 1 breaks in (0, 1), ascending."""
    return [Fraction(i, 9973) for i in sorted(rng.sample(range(1, 9973), width - 1))]
