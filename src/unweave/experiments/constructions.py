"""Networks by construction: [mathematics] chapter 2."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import ceil, log2
from typing import Any

import numpy as np

from unweave.construct import (
    hard,
    ltf_gate,
    max_net,
    parity_net,
    pieces_1d,
    pwl1d_to_relu,
    size,
    zonotope_maps,
)
from unweave.construct.bounds import min_size
from unweave.experiments.experiment import Figure, Progress, at_least, at_most, equal


def run_piece_counts(seed: int, progress: Progress) -> Iterator[Figure]:
    """Hard functions ([mathematics] sec. 2.3): many pieces from few gates.

    Sawtooth compositions of k layers of w gates have w^k pieces (Thm. 2.3.2), counted exactly in
    fractions; a sawtooth of a zonotope's support function in R^n has 2 sum_{i<n} C(m-1, i) w^k pieces where
    that is below one (the source's count lacks the factor two); and shallower networks need many more gates
    (Thm. 2.3.1). Random breaks and generators, all fractions.
    """
    # Gates per layer w, layers k.
    sawteeth = ((2, 6), (3, 5), (5, 3))
    # Inputs n, generators m, w, k.
    zonotopes = ((1, 1, 2, 2), (2, 4, 2, 2), (2, 7, 3, 2), (3, 4, 2, 2))
    twice = "corrected: the printed number of vertices lacks a factor two"
    rng = random.Random(seed)
    for w, k in sawteeth:
        cell = f"sawtooth, w = {w}, k = {k}"
        progress(cell)
        net = hard.sawtooth([breaks(w, rng) for _ in range(k)])
        inside = sum(piece.left is not None and 0 <= piece.left < 1 for piece in pieces_1d(net))
        yield equal(f"{cell}: pieces on (0, 1)", w**k, inside)
        yield equal(f"{cell}: gates", w * k, size(net))
        published = k // 2 * w ** (k / (k // 2)) / 2 - 1
        needed = min_size(w**k, k // 2 + 1)
        yield at_least(f"{cell}: least gates of {k // 2}-hidden-layer networks", published, needed)
    for n, m, w, k in zonotopes:
        cell = f"zonotope, n = {n}, m = {m}, w = {w}, k = {k}"
        progress(cell)
        generators = [[Fraction(rng.randint(-999, 999), 100) for _ in range(n)] for _ in range(m)]
        net = hard.zonotope(generators, [breaks(w, rng) for _ in range(k)])
        counted = len(zonotope_maps(net, generators))
        yield equal(f"{cell}: pieces", hard.zonotope_pieces(n, m, [w] * k), counted, twice)
        yield equal(f"{cell}: gates", 2 * m + w * k, size(net))


def breaks(width: int, rng: random.Random) -> list[Fraction]:
    """w - 1 breaks in (0, 1), ascending."""
    return [Fraction(i, 9973) for i in sorted(rng.sample(range(1, 9973), width - 1))]


def run_network_sizes(seed: int, progress: Progress) -> Iterator[Figure]:
    """Sizes of exact networks ([mathematics] secs. 2.2 and 2.5).

    A piecewise linear function of one variable with p pieces takes at most p gates and at least p - 1
    (Thm. 2.2.2); the maximum of n numbers ceil(log2 n) hidden layers (Thm. 2.2.1) and at most 4 (2 n -
    1) gates; parity of k bits k gates (the source uses k + 1); a threshold function two. All in fractions,
    compared exactly. Random slopes, values and points.
    """
    piece_counts = (10, 50)
    maxima = (8, 33, 100)
    bit_counts = (3, 8)
    point_count = 40
    rng = random.Random(seed)
    for count in piece_counts:
        progress(f"{count} pieces")
        places = [Fraction(x, 7) for x in sorted(rng.sample(range(-1000, 1000), count - 1))]
        # A convex function's slopes differ, so that no two neighboring pieces are one.
        slopes = [Fraction(s, 5) for s in sorted(rng.sample(range(-400, 400), count))]
        values = [Fraction(0)]
        for i in range(1, count - 1):
            values.append(values[-1] + slopes[i] * (places[i] - places[i - 1]))
        net = pwl1d_to_relu(slopes[0], slopes[-1], places, values)
        exact = net(as_rows([[x] for x in places]))[:, 0].tolist() == values
        yield equal(
            f"p = {count}: pieces of the network, values exact", count, len(pieces_1d(net)) if exact else -1
        )
        yield at_most(f"p = {count}: gates", count, size(net))
        yield at_least(f"p = {count}: gates", count - 1, size(net))
    for n in maxima:
        progress(f"maximum of {n}")
        net = max_net(n, exact=True)
        points = [[Fraction(rng.randint(-999, 999), 13) for _ in range(n)] for _ in range(point_count)]
        wrong = sum(a != max(p) for a, p in zip(net(as_rows(points))[:, 0].tolist(), points, strict=True))
        yield equal(f"maximum of {n}: wrong answers", 0, wrong)
        yield equal(f"maximum of {n}: hidden layers", ceil(log2(n)), len(net.hidden))
        yield at_most(f"maximum of {n}: gates", 4 * (2 * n - 1), size(net))
    for k in bit_counts:
        progress(f"{k} bits")
        bits, signs = list(product((0, 1), repeat=k)), list(product((-1, 1), repeat=k))
        parity = parity_net(k, True)
        right = parity(bits)[:, 0].tolist() == [sum(x) % 2 for x in bits]
        note = "corrected: printed as k + 1"
        yield equal(f"parity of {k} bits: gates, answers exact", k, size(parity) if right else -1, note)
        weights, bias = [rng.randint(1, 5) * rng.choice((-1, 1)) for _ in range(k)], rng.choice((-1, 1))
        sums = [sum(a * x for a, x in zip(weights, point, strict=True)) + bias for point in signs]
        gate = ltf_gate(weights, bias, exact=True)
        right = gate(signs)[:, 0].tolist() == [1 if z >= 0 else -1 for z in sums]
        yield equal(f"threshold of {k} signs: gates, answers exact", 2, size(gate) if right else -1)


def as_rows(points: list[list[Fraction]]) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Fractions as an array, kept exact."""
    return np.array(points, dtype=object)
