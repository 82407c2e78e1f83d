"""Networks by construction: are they exact, and are sizes and numbers of pieces those of the formulas.

One row per family, all in exact fractions. **recovered** counts the seeds at which every answer equals the
function's own value and both numbers equal their formulas; **gates** and **pieces** are measured on the
network, the latter by exact counting (along all cones for the zonotopes). The column of errors holds the
largest relative error of the same network rounded to float64.

- **pwl**: one variable, m pieces, random slopes and values: m gates (m - 1 is accepted up to 28 pieces, where
  a subset of the jumps may save one);
- **maximum** of n numbers: three gates per pair, ceil(log2 n) hidden layers; no pieces counted;
- **sawtooth**: w^k pieces on (0, 1) with w k gates;
- **zonotope**: 2 sum_{i<n} C(m-1, i) w^k pieces where the support function is below 1, 2 m + w k gates;
- **boolean**: every vertex of a random table, a random threshold function, parity, Andreev's function.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from math import ceil, log2

import numpy as np

from harness import Row, Run, parser, say, search_seed, seeds_of, summarise, tell, timed, unasked
from unweave import Network
from unweave.construct import (
    andreev,
    andreev_net,
    as_float,
    hard,
    ltf_gate,
    max_net,
    max_net_size,
    parity_net,
    pieces_1d,
    pwl1d_to_relu,
    size,
    vertex_net,
    zonotope_maps,
)

PWL = (10, 50, 200)
MAXIMA = (8, 33, 100)
SAWTEETH = ((2, 6), (3, 5), (5, 4), (2, 10), (10, 4))
ZONOTOPES = ((1, 1, 2, 2), (2, 4, 2, 2), (2, 7, 3, 2), (3, 6, 2, 3), (4, 6, 2, 2))
BOOLEAN = (4, 8)
POINTS = 60
COLUMNS = {
    "gates": "gates",
    "gates_predicted": "by formula",
    "pieces": "pieces",
    "pieces_predicted": "by formula ",
    "layers": "hidden layers",
}


def outcome(
    seed: int, net: Network, points: Sequence[Sequence[Fraction]], values: Sequence[Fraction], **extra: int
) -> Run:
    """Compare answers with values, counts with formulas."""
    answers = net(points)[:, 0].tolist()
    rounded = as_float(net)(np.array(points, dtype=np.float64))[:, 0]
    truth = np.array(values, dtype=np.float64)
    error = float(np.abs(rounded - truth).max() / max(np.abs(truth).max(), 1e-300))
    counted = size(net) == extra["gates_predicted"] and extra.get("pieces") == extra.get("pieces_predicted")
    exact = answers == list(values) and counted and extra["layers"] == len(net.hidden)
    return Run(seed, exact, error, same=exact, extra={"gates": size(net), **extra})


def fraction(rng: random.Random, low: int, high: int, below: int) -> Fraction:
    return Fraction(rng.randint(low, high), below)


def pwl(pieces: int, seed: int) -> Run:
    rng = random.Random(seed)
    a = [Fraction(x, 7) for x in sorted(rng.sample(range(-1000, 1000), pieces - 1))]
    b = [fraction(rng, -500, 500, 11) for _ in a]
    left, right = (Fraction(rng.choice((-1, 1)) * rng.randint(1, 9), 5) for _ in range(2))
    net = pwl1d_to_relu(left, right, a, b)

    def value(x: Fraction) -> Fraction:
        if x <= a[0]:
            return b[0] + left * (x - a[0])
        if x >= a[-1]:
            return b[-1] + right * (x - a[-1])
        i = max(j for j in range(len(a)) if a[j] <= x)
        return b[i] + (b[i + 1] - b[i]) * (x - a[i]) / (a[i + 1] - a[i])

    points = [fraction(rng, -20000, 20000, 97) for _ in range(POINTS)] + a
    found = len(pieces_1d(net))
    slopes = [
        left,
        *((d - c) / (q - p) for (p, q), (c, d) in zip(pairwise(a), pairwise(b), strict=True)),
        right,
    ]
    pieces = 1 + sum(s != t for s, t in pairwise(slopes))  # three random points may lie on a line
    # Up to 28 kinks a subset of the jumps may save one gate; then m - 1 is the formula.
    gates = size(net) if size(net) in (pieces - 1, pieces) and pieces <= 28 else pieces
    counts = {"gates_predicted": gates, "pieces": found, "pieces_predicted": pieces, "layers": 1}
    return outcome(seed, net, [[x] for x in points], [value(x) for x in points], **counts)


def maximum(n: int, seed: int) -> Run:
    rng = random.Random(seed)
    net = max_net(n, exact=True)
    points = [[fraction(rng, -999, 999, 13) for _ in range(n)] for _ in range(POINTS)]
    counts = {"gates_predicted": max_net_size(n), "layers": ceil(log2(n))}
    return outcome(seed, net, points, [max(point) for point in points], **counts)


def teeth(width: int, rng: random.Random) -> list[Fraction]:
    return [Fraction(i, 9973) for i in sorted(rng.sample(range(1, 9973), width - 1))]


def sawtooth_value(breaks: Sequence[Sequence[Fraction]], x: Fraction) -> Fraction:
    """The composition by its definition."""
    for one in breaks:
        if x <= 0:
            return Fraction(0)
        ends = [Fraction(0), *one, Fraction(1)]
        i = min(max(j for j in range(len(ends)) if ends[j] <= x), len(ends) - 2)
        part = (x - ends[i]) / (ends[i + 1] - ends[i])
        x = part if i % 2 == 0 else 1 - part
    return x


def sawtooth(w: int, k: int, seed: int) -> Run:
    rng = random.Random(seed)
    breaks = [teeth(w, rng) for _ in range(k)]
    net = hard.sawtooth(breaks)
    points = [fraction(rng, -100, 1100, 1000) for _ in range(POINTS)]
    inside = sum(p.left is not None and 0 <= p.left < 1 for p in pieces_1d(net))
    counts = {"gates_predicted": w * k, "pieces": inside, "pieces_predicted": w**k, "layers": k}
    return outcome(seed, net, [[x] for x in points], [sawtooth_value(breaks, x) for x in points], **counts)


def zonotope(n: int, m: int, w: int, k: int, seed: int) -> Run:
    rng = random.Random(seed)
    generators = [[fraction(rng, -999, 999, 100) for _ in range(n)] for _ in range(m)]
    breaks = [teeth(w, rng) for _ in range(k)]
    net = hard.zonotope(generators, breaks)
    points = [[fraction(rng, -50, 50, 1000) for _ in range(n)] for _ in range(POINTS)]
    gammas = [sum(abs(sum(p * q for p, q in zip(b, x, strict=True))) for b in generators) for x in points]
    counts = {
        "gates_predicted": 2 * m + w * k,
        "pieces": len(zonotope_maps(net, generators)),
        "pieces_predicted": hard.zonotope_pieces(n, m, [w] * k),
        "layers": k + 1,
    }
    return outcome(seed, net, points, [sawtooth_value(breaks, Fraction(g)) for g in gammas], **counts)


def boolean(n: int, seed: int) -> Run:
    rng = random.Random(seed)
    signs, bits = (list(product(values, repeat=n)) for values in ((-1, 1), (0, 1)))
    table = [fraction(rng, 1, 99, 7) for _ in signs]
    weights, bias = [rng.randint(-5, 5) for _ in range(n)], rng.randint(-5, 5)
    sums = [sum(a * x for a, x in zip(weights, point, strict=True)) + bias for point in signs]
    nets = [vertex_net(table), ltf_gate(weights, bias, exact=True), parity_net(n, True), andreev_net(n, True)]
    right = [
        nets[0](signs)[:, 0].tolist() == table,
        nets[1](signs)[:, 0].tolist() == [1 if z >= 0 else -1 for z in sums],
        nets[2](bits)[:, 0].tolist() == [sum(x) % 2 for x in bits],
        nets[3](bits)[:, 0].tolist() == andreev(bits).tolist(),
    ]
    constant = all(z >= 0 for z in sums)
    predicted = 2**n + (0 if constant else 2) + n + size(andreev_net(n))
    gates = sum(map(size, nets))
    exact = all(right) and gates == predicted
    return Run(seed, exact, 0.0, same=exact, extra={"gates": gates, "gates_predicted": predicted})


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:10", "the smallest of each family, 1 seed").parse_args(argv)
    keep = slice(0, 1) if arguments.quick else slice(None)
    seeds = seeds_of(arguments, 10, 1)
    families: list[tuple[str, Callable[[int], Run]]] = []
    families += [(f"pwl, {m} pieces", partial(pwl, m)) for m in PWL[keep]]
    families += [(f"maximum of {n}", partial(maximum, n)) for n in MAXIMA[keep]]
    families += [(f"sawtooth, w={w}, k={k}", partial(sawtooth, w, k)) for w, k in SAWTEETH[keep]]
    for n, m, w, k in ZONOTOPES[keep]:
        families.append((f"zonotope, n={n}, m={m}, w={w}, k={k}", partial(zonotope, n, m, w, k)))
    families += [(f"boolean, n={n}", partial(boolean, n)) for n in BOOLEAN[keep]]
    rows = []
    for setting, run in families:
        say(f"constructions: {setting}")
        runs = [timed(run, search_seed(seed)) for seed in seeds]
        figures = {key: runs[0].extra[key] for key in COLUMNS if key in runs[0].extra}
        rows.append(summarise(setting, runs, **figures))
    tell(rows, {**unasked("worst_fresh_error", "seconds"), **COLUMNS}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
