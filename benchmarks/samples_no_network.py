"""Coarse samples of functions that are no network of the class: none may be called recovered.

Functions with mean 0 and spread 1 on standard normal inputs, 1 to 5 of them, that are no hidden layer of one
kind of unit: peaks, polynomials of degree four, exponentials, rational functions, products and powers of
units, layers of two kinds, two layers, wave packets. Answers are rounded to 1, 2 or 3 decimals, or every
input comes three times with noise of 1 or 2 %. Nothing is told. Sample number i is function i mod 10 of
coarseness (i // 10) mod 5.

A line follows every 5 samples and counts all so far. Seconds are computing time: median and most. What is
called recovered is named on stderr.

    python benchmarks/samples_no_network.py [--first 0] [--seeds 500]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np

import unweave
from unweave import Status
from unweave.arrays import Array

ROWS = 300
COPIES = 3
"""Times that an input comes where answers are noisy."""
PROGRESS = 5
"""Samples after which a line is printed."""
COARSENESS = ("1 decimal", "2 decimals", "3 decimals", "1 % noise", "2 % noise")


def directions(rng: np.random.Generator, inputs: int) -> tuple[Array, Array]:
    """Return two directions of length one to two."""
    drawn = rng.standard_normal((2, inputs))
    drawn *= rng.uniform(1, 2, (2, 1)) / np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn[0], drawn[1]


def deep(x: Array, rng: np.random.Generator) -> Array:
    """Return answers of two hidden layers."""
    net = unweave.random_network([x.shape[1], 4, 3, 1], "tanh", seed=int(rng.integers(2**31)), norms=(1, 2))
    return np.asarray(net(x)[:, 0])


def two_kinds(x: Array, rng: np.random.Generator) -> Array:
    """Return a sum of units of two kinds."""
    u, v = directions(rng, x.shape[1])
    return np.tanh(x @ u + 0.5) + np.maximum(x @ v, 0) * rng.uniform(0.5, 1.5)


FUNCTIONS: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "bump": lambda x, rng: np.exp(-np.linalg.norm(x - rng.standard_normal(x.shape[1]), axis=1)),
    "power": lambda x, rng: (x @ directions(rng, x.shape[1])[0] + 0.5) ** 4,
    "exponential": lambda x, rng: np.exp(0.7 * x @ directions(rng, x.shape[1])[0]),
    "rational": lambda x, rng: 1 / (1 + (x @ directions(rng, x.shape[1])[0]) ** 2),
    "product": lambda x, rng: np.prod([np.tanh(x @ u + 0.3) for u in directions(rng, x.shape[1])], axis=0),
    "square": lambda x, rng: np.sum([np.tanh(x @ u) ** 2 for u in directions(rng, x.shape[1])], axis=0),
    "two kinds": two_kinds,
    "two layers": deep,
    "packet": lambda x, rng: np.sum(
        [(x @ u) * np.exp(-((x @ u) ** 2) / 2) for u in directions(rng, x.shape[1])], axis=0
    ),
    "logarithm": lambda x, rng: np.log(0.3 + np.sum((x - 0.5) ** 2, axis=1)),
}


def samples_of(number: int) -> tuple[str, Array, Array]:
    """Return what sample ``number`` is, its inputs and answers."""
    rng = np.random.default_rng([number, 18])
    name = list(FUNCTIONS)[number % len(FUNCTIONS)]
    coarse = COARSENESS[number // len(FUNCTIONS) % len(COARSENESS)]
    inputs, noisy = int(rng.integers(1, 6)), coarse.endswith("noise")
    x = rng.standard_normal((ROWS // COPIES if noisy else ROWS, inputs))
    y = FUNCTIONS[name](x, rng)
    y = (y - y.mean()) / y.std()
    if noisy:
        x, y = np.repeat(x, COPIES, axis=0), np.repeat(y, COPIES)
        y = y + float(coarse.split()[0]) / 100 * rng.standard_normal(len(y))
    else:
        y = np.round(y, int(coarse.split()[0]))
    return f"{name}, {inputs} inputs, {coarse}", x, y


def main() -> None:
    """Print what is called recovered, and the count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="first sample")
    parser.add_argument("--seeds", type=int, default=500, help="number of samples")
    arguments = parser.parse_args()
    wrong: list[Status] = []
    seconds: list[float] = []
    print("| samples | not called recovered | wrong | of these ambiguous | CPU s |\n|---|---|---|---|---|")
    for number in range(arguments.first, arguments.first + arguments.seeds):
        what, x, y = samples_of(number)
        began = time.process_time()
        result = unweave.recover(unweave.Samples(x, y))
        seconds.append(time.process_time() - began)
        if result.status.is_recovered:
            wrong.append(result.status)
            print(f"    {number}: {what}: {result.status.name} {result.network}", file=sys.stderr, flush=True)
        if len(seconds) % PROGRESS == 0 or len(seconds) == arguments.seeds:
            print(row(arguments.first, wrong, seconds), flush=True)


def row(first: int, wrong: list[Status], seconds: list[float]) -> str:
    """Return the line of the table after so many samples."""
    count = len(seconds)
    ambiguous = wrong.count(Status.RECOVERED_UP_TO_AMBIGUITY)
    cost = f"{np.median(seconds):.1f}, {max(seconds):.1f}"
    numbers = f"{first} to {first + count - 1}"
    return f"| {numbers} | {count - len(wrong)} of {count} | {len(wrong)} | {ambiguous} | {cost} |"


if __name__ == "__main__":
    main()
