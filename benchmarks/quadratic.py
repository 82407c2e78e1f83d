"""Quadratic networks f(x) = |W^T x|^2: the sample threshold d(d+1)/2, the energy barrier, descent.

Measured beside predicted, one row per claim (p = d(d+1)/2):

- **exact solve, N = p**: relative error of W W^T; measured and predicted rank of the packed x x^T;
- **one sample fewer**: never recovered; another network fits the labels (relative training risk in the
  column of errors), and its risk over s^4 is measured against the bound, 2, that theory gives;
- **random labels, N = p**: recovered must be 0;
- **barrier**: least risk of weights of deficient rank, by minimisation, against 2 (d+2)/(d+1) s^4;
- **start**: risk of W0 W0^T = m I over s^4, median, against 2 d (d+2) / (m (1 - sqrt(d/m))^4);
- **descent**: steps to a relative training risk of 1e-26 from that start; the error that the gradient
  certifies against the error measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from harness import Row, Run, parser, peak_rss_mb, say, search_seed, seeds_of, summarise, tell, unasked
from unweave.arrays import Array
from unweave.experiments.quadratic import least_risk
from unweave.quadratic import (
    counterexample,
    identity_start,
    population_barrier,
    population_risk,
    quadratic_descent,
    recover_quadratic,
    solve_quadratic_form,
    start_over_barrier,
    stationary_certificate,
)

INPUTS = (10, 20, 40)
BARRIER_INPUTS = (3, 5, 10)
STARTS = ((10, 200), (10, 400), (10, 800), (10, 1600))
DESCENTS = ((10, 20, 3), (10, 400, 3), (10, 400, 10))
"""Inputs, width, samples over d(d+1)/2."""
QUICK = 6
SAME = 1e-8  # relative error of W W^T up to which it is the planted one
AGREES = 1e-4  # relative difference up to which a minimum is the predicted one
COLUMNS = {"measured": "measured", "predicted": "predicted", "steps": "steps", "condition": "condition"}


def plant(inputs: int, width: int, samples: int, seed: int) -> tuple[Array, Array, Array]:
    """W W^T (d, d), samples (N, d) and labels (N,)."""
    weights = np.random.default_rng(seed).standard_normal((inputs, width))
    x = np.random.default_rng(search_seed(seed)).standard_normal((samples, inputs))
    return weights @ weights.T, x, np.sum((x @ weights) ** 2, axis=1)


def relative(found: Array, truth: Array) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def exact(inputs: int, seed: int) -> Run:
    """The exact solve at the threshold, with twice as many units as inputs."""
    needed = inputs * (inputs + 1) // 2
    matrix, x, y = plant(inputs, 2 * inputs, needed, seed)
    began = time.perf_counter()
    found = recover_quadratic(x, y, hidden=2 * inputs)
    seconds = time.perf_counter() - began
    assert found.network is not None
    inner = found.network.weights[0]
    error = relative(inner @ inner.T, matrix)
    extra = {"measured": solve_quadratic_form(x, y).span.rank, "condition": found.evidence.condition}
    return Run(
        seed,
        found.problem is None,
        error,
        seconds=seconds,
        same=error < SAME,
        extra={**extra, "predicted": needed},
    )


def one_fewer(inputs: int, seed: int) -> Run:
    """One sample below the threshold, and the network that the labels do not exclude."""
    matrix, x, y = plant(inputs, 2 * inputs, inputs * (inputs + 1) // 2 - 1, seed)
    began = time.perf_counter()
    found = recover_quadratic(x, y, hidden=2 * inputs)
    seconds = time.perf_counter() - began
    other = counterexample(x, matrix)
    extra = {"measured": other.population_risk / other.bound * 2, "predicted": 2.0}
    return Run(seed, found.problem is None, other.empirical_risk, seconds=seconds, same=False, extra=extra)


def random_labels(inputs: int, seed: int) -> Run:
    """Labels of no network at the threshold; as many units as inputs are allowed."""
    rng = np.random.default_rng([seed, inputs])
    x = rng.standard_normal((inputs * (inputs + 1) // 2, inputs))
    began = time.perf_counter()
    found = recover_quadratic(x, rng.standard_normal(len(x)) ** 2, hidden=inputs)
    return Run(seed, found.problem is None, seconds=time.perf_counter() - began, same=False)


def barrier(inputs: int, seed: int) -> Run:
    """The least population risk over weights of rank d - 1, from a few starts."""
    matrix, _, _ = plant(inputs, 2 * inputs, 1, seed)
    rng = np.random.default_rng(search_seed(seed))
    began = time.perf_counter()
    least = least_risk(matrix, rng)
    predicted = population_barrier(matrix)
    difference = abs(least - predicted) / predicted
    extra = {"measured": least, "predicted": predicted}
    return Run(
        seed, difference < AGREES, difference, seconds=time.perf_counter() - began, same=True, extra=extra
    )


def start(inputs: int, width: int, seed: int) -> Run:
    """Risk of the identity start against that of the barrier; recovered: whether it is below it."""
    began = time.perf_counter()
    matrix, _, _ = plant(inputs, width, 1, seed)
    risk = population_risk(width * np.eye(inputs) - matrix)
    least = float(np.linalg.eigvalsh(matrix)[0])
    extra = {"measured": risk / least**2, "predicted": start_over_barrier(inputs, width)}
    below = risk < population_barrier(matrix)
    return Run(seed, below, seconds=time.perf_counter() - began, extra=extra)


def descent(inputs: int, width: int, multiple: int, seed: int) -> Run:
    """Descent from W0 W0^T = m I; measured and certified error of W W^T."""
    matrix, x, y = plant(inputs, width, multiple * inputs * (inputs + 1) // 2, seed)
    began = time.perf_counter()
    found = quadratic_descent(x, y, identity_start(inputs, width))
    seconds = time.perf_counter() - began
    error = relative(found.weights @ found.weights.T, matrix)
    bound = stationary_certificate(x, y, found.weights).distance_bound / float(np.linalg.norm(matrix))
    extra = {"measured": error, "predicted": bound, "steps": len(found.history) - 1}
    return Run(seed, found.converged, error, seconds=seconds, same=error <= bound, extra=extra)


def measure(setting: str, run: Callable[[int], Run], seeds: range) -> Row:
    """The row of one claim: medians of its figures."""
    say(f"quadratic: {setting}")
    runs = [run(seed) for seed in seeds]
    keys = [key for key in COLUMNS if key in runs[0].extra]
    figures = {key: float(np.median([entry.extra[key] for entry in runs])) for key in keys}
    row = summarise(setting, runs, **figures)
    row["peak_rss_mb"] = peak_rss_mb()
    return row


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:10", f"{QUICK} inputs, 1 seed").parse_args(argv)
    quick, seeds = arguments.quick, seeds_of(arguments, 10, 1)
    inputs, few = ((QUICK,), (QUICK,)) if quick else (INPUTS, BARRIER_INPUTS)
    starts = STARTS[:1] if quick else STARTS
    descents = ((QUICK, 2 * QUICK, 5),) if quick else DESCENTS
    claims: list[tuple[str, Callable[[int], Run]]] = []
    claims += [(f"exact solve, d={d}, N={d * (d + 1) // 2}", partial(exact, d)) for d in inputs]
    claims += [(f"one sample fewer, d={d}", partial(one_fewer, d)) for d in inputs]
    claims += [(f"random labels, d={d}", partial(random_labels, d)) for d in inputs]
    claims += [(f"barrier, d={d}", partial(barrier, d)) for d in few]
    claims += [(f"start, d={d}, m={m}", partial(start, d, m)) for d, m in starts]
    for d, m, k in descents:
        claims.append((f"descent, d={d}, m={m}, N={k * d * (d + 1) // 2}", partial(descent, d, m, k)))
    rows = [measure(setting, run, seeds) for setting, run in claims]
    tell(rows, {**unasked("worst_fresh_error", "cpu_seconds"), **COLUMNS}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
