"""Networks by construction: [mathematics] chapter 2."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import ceil, log2
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.construct import (
    affine_network,
    hard,
    interpolant,
    lq_distance,
    ltf_gate,
    max_net,
    mean_distance,
    parity_net,
    pieces_1d,
    pwl1d_to_relu,
    sawtooth_distance,
    size,
    zonotope_maps,
)
from unweave.construct.bounds import approximation_pieces, min_size, montufar_pieces, zonotope_sizes
from unweave.experiments.experiment import DERIVED, Figure, Progress, at_least, at_most, close, equal, shown


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


def run_approximations(seed: int, progress: Progress) -> Iterator[Figure]:
    """Functions that few pieces approximate, and some that they cannot ([mathematics] secs. 2.2 and 2.3).

    Interpolants come near a function that jumps in L^q for finite q, by a known error; in the maximum none
    does, although Thm. 2.2.3 includes q = infinity. Functions with fewer pieces stay 1/4 - (2 p - 1)/(4 w^k)
    from the even sawtooth (Thm. 2.3.6), tried on the best of random ones with breaks and values on a lattice.
    Zonotope functions have more pieces than Montufar's networks of the same width and depth for
    n <= w < 2 n (Def. 6), and fewer for w = 4 n. A jump at a random place; random pieces.
    """
    rng = np.random.default_rng(seed)
    place = float(rng.uniform(0.3, 0.7))

    def step(x: Array) -> Array:
        return (x[:, 0] > place).astype(np.float64)

    for q in (1.0, 2.0):
        progress(f"a jump in L^{q:g}")
        errors = []
        for cells in (8, 32):
            net = interpolant(step, [place - 0.25], [place + 0.25], cells - 1)
            errors.append(lq_distance(step, net, [place - 0.25], [place + 0.25], q, 2 * (cells - 1)))
        # In a cell of width h the ramp misses the jump by 2 int_0^(h/2) (t/h)^q dt.
        wanted = (0.5 ** (q + 1) / (q + 1) / 31) ** (1 / q)
        yield close(f"a jump, 31 cells: L^{q:g} error", wanted, errors[1], 1e-6, origin="formula, L488")
        yield at_most(f"a jump, L^{q:g}: error of 31 cells over that of 7", 1.0, errors[1] / errors[0])
    near = place + np.linspace(-1e-6, 1e-6, 8)[:, None]
    worst = float(np.abs(step(near) - net(near)[:, 0]).max())
    corrected = "corrected: printed for q = infinity too, but next to a jump one side is missed by half of it"
    yield at_least("a jump, 31 cells: largest error", 0.499, worst, note=corrected, origin=DERIVED)
    for w, k, pieces in ((2, 3, 1), (2, 4, 3), (3, 2, 2)):
        progress(f"{pieces} pieces for a sawtooth of {w**k}")
        saw, bound = hard.even_sawtooth(w, k), float(sawtooth_distance(w**k, pieces))
        nearest = min(float(mean_distance(saw, net)) for net in few_pieces(w**k, pieces, rng))
        cell = f"sawtooth w^k = {w}^{k}, p = {pieces}"
        yield at_least(f"{cell}: least distance", bound, nearest, origin="formula, L577")
        yield at_most(f"{cell}: least distance over its bound", 1.5, nearest / bound, origin=DERIVED)
        yield equal(f"{cell}: pieces that the distance asks for", pieces, approximation_pieces(w**k, bound))
    for n in (4, 8, 16):
        progress(f"Montufar's networks, n = {n}")
        w = 2 * n - 1
        overtaken = next(k for k in range(2, 99) if same_shape(n, k, w) > montufar_pieces(n, k, w))
        most = 2 + (w - w // 2) / log2(w)
        yield at_most(f"n = {n}, w = {w}: layers from which zonotopes have more pieces", most, overtaken)
        never = all(same_shape(n, k, 4 * n) < montufar_pieces(n, k, 4 * n) for k in range(1, 20))
        yield equal(f"n = {n}, w = {4 * n}: zonotopes have fewer", True, never, origin=DERIVED)
    proved = "a line crosses 2 w^k + m - 1 pieces; the lemma that is cited is on functions of one variable"
    for n, m, w, k, fewer in ((2, 4, 3, 4, 2), (3, 50, 3, 4, 2)):
        needed = min_size(hard.zonotope_pieces_on_line(m, [w] * k), fewer + 1)
        first, second = zonotope_sizes(n, m, w, k, fewer)
        cell = f"n = {n}, m = {m}, w = {w}, k = {k}, k' = {fewer}"
        yield at_least(f"{cell}: gates, second form", second, needed)
        yield shown(f"{cell}: gates, first form", first, needed, proved)


def few_pieces(sides: int, pieces: int, rng: np.random.Generator) -> Iterator[Any]:
    """The constant 1/2; first sides of the sawtooth and then 1/2; random ones in 48ths and quarters."""
    yield affine_network([[0]], [Fraction(1, 2)])
    if pieces == 1:
        return
    tops = [Fraction(i % 2) for i in range(pieces - 1)]
    followed = [*(Fraction(i, sides) for i in range(pieces - 1)), Fraction(2 * pieces - 3, 2 * sides)]
    yield pwl1d_to_relu(sides, 0, followed, [*tops, Fraction(1, 2)])
    for _ in range(20):
        inner = sorted(rng.choice(np.arange(1, 48), pieces - 1, replace=False).tolist())
        breaks = [Fraction(0), *(Fraction(i, 48) for i in inner), Fraction(1)]
        values = [Fraction(int(v), 4) for v in rng.integers(0, 5, pieces + 1)]
        yield pwl1d_to_relu(0, 0, breaks, values)


def same_shape(n: int, layers: int, width: int) -> int:
    """Pieces of a zonotope function in ``layers`` hidden layers of at most ``width`` gates."""
    return hard.zonotope_pieces(n, width // 2, [width] * (layers - 1))


def as_rows(points: list[list[Fraction]]) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Fractions as an array, kept exact."""
    return np.array(points, dtype=object)
