"""Sizes of exact networks in the mathematics of deep learning (sections 2.2 and 2.5).

A piecewise linear function of one variable with p pieces takes at most p gates and at least p - 1 (Theorem
2.2.2); the maximum of n numbers ceil(log2 n) hidden layers (Theorem 2.2.1) and at most 4 (2 n - 1) gates;
parity of k bits k gates (the source uses k + 1); a threshold function two. All in fractions, compared
exactly.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import ceil, log2
from typing import Any

import numpy as np

from unweave.construct import ltf_gate, max_net, parity_net, pieces_1d, pwl1d_to_relu, size
from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import at_least, at_most, equal

PIECES = (10, 50)
MAXIMA = (8, 33, 100)
BITS = (3, 8)
POINTS = 40


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """Random slopes, values and points."""
    rng = random.Random(seed)
    for count in PIECES:
        progress(f"{count} pieces")
        places = [Fraction(x, 7) for x in sorted(rng.sample(range(-1000, 1000), count - 1))]
        # A convex function's slopes differ, so that no two neighbouring pieces are one.
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
    for n in MAXIMA:
        progress(f"maximum of {n}")
        net = max_net(n, exact=True)
        points = [[Fraction(rng.randint(-999, 999), 13) for _ in range(n)] for _ in range(POINTS)]
        wrong = sum(a != max(p) for a, p in zip(net(as_rows(points))[:, 0].tolist(), points, strict=True))
        yield equal(f"maximum of {n}: wrong answers", 0, wrong)
        yield equal(f"maximum of {n}: hidden layers", ceil(log2(n)), len(net.hidden))
        yield at_most(f"maximum of {n}: gates", 4 * (2 * n - 1), size(net))
    for k in BITS:
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
