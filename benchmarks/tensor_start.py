"""Tensor start and descent for bias-free networks y = sum_i v_i g(w_i . x), Gaussian x, v_i = +-1.

Measured beside predicted, one row per setting:

- **recovery**: from N samples by tensor start and Gauss-Newton; worst unit of the start, relative (median
  over the seeds), and the steps of the fit;
- **rate**: the share of |W - W*|^2 that a step of gradient descent of length 1/M0 removes, late in the
  descent, against 1 - (1 - m0/M0)^2 from the extreme eigenvalues of the empirical Hessian at W* (the source
  states m0/M0, half of it); m0 and M0 over their predictions rho(sigma_k)/(kappa^2 lambda) and
  k sigma_1^(2p); recovered: whether descent reached a residual of 1e-12;
- **rho**: at sigma = 0.1, 1 and 10, against the published table with two entries corrected (squared ReLU
  printed as 0.27 sigma, quadratic as 0); recovered: whether all digits agree.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product

import numpy as np
from scipy.optimize import linear_sum_assignment

import unweave
from harness import Row, Run, parser, peak_rss_mb, say, search_seed, seeds_of, summarise, tell, unasked
from unweave.arrays import Array, IntArray
from unweave.tensor_start import (
    DescentOptions,
    gradient_descent,
    local_convexity,
    recover_from_tensors,
    rho,
    tensor_start,
)

SIZES = ((10, 5), (20, 5), (10, 10))
SAMPLES = (3_000, 30_000, 300_000)
QUICK = (5, 3)
QUICK_SAMPLES = 4_000
ACTIVATIONS = ("squared_relu", "relu")
SIGMAS = (0.1, 1.0, 10.0)
TABLE: dict[str, tuple[float, ...]] = {
    "relu": (0.091, 0.091, 0.091),
    "leaky_relu": (0.089, 0.089, 0.089),
    "squared_relu": (0.0027, 0.27, 27),
    "tanh": (1.8e-4, 4.9e-2, 5.1e-5),
    "erf": (1.9e-4, 5.2e-2, 2.5e-5),
    "identity": (0, 0, 0),
    "quadratic": (-0.04, -4, -400),
}
"""Published values of rho, corrected ones for squared ReLU and quadratic."""
ERF_SCALE = np.pi / 4  # the table's erf has the derivative exp(-z^2), ours 2/sqrt(pi) times that
DIGITS = 0.03  # half a unit of the second digit printed, at worst
ROWS_PER_PARAMETER = 20
LATE = (1e-6, 1e-10)  # errors between which the rate is measured
COLUMNS = {
    "start_error": "worst unit of the start",
    "steps": "steps",
    "measured": "measured",
    "predicted": "predicted",
    "stated": "stated by the source",
    "smallest_over": "m0 / prediction",
    "largest_over": "M0 / prediction",
}


def plant(
    inputs: int, width: int, activation: str, samples: int, seed: int
) -> tuple[unweave.Network, Array, Array]:
    """Nearly orthogonal units of lengths 0.8 to 1.3, samples (N, d) and labels (N,)."""
    rng = np.random.default_rng(seed)
    weights = np.linalg.qr(rng.standard_normal((inputs, width)))[0]
    weights = (weights + 0.15 * rng.standard_normal((inputs, width))) * rng.uniform(0.8, 1.3, width)
    outer = rng.choice([-1.0, 1.0], (width, 1))
    truth = unweave.Network([weights, outer], [np.zeros(width), np.zeros(1)], [activation, "identity"])
    x = np.random.default_rng(search_seed(seed)).standard_normal((samples, inputs))
    return truth, x, truth(x)[:, 0]


def matching(truth: unweave.Network, found: unweave.Network) -> tuple[IntArray, float]:
    """Order of the found units, and the largest relative error of one."""
    a, b = truth.weights[0], found.weights[0]
    distances = np.linalg.norm(a[:, :, None] - b[:, None, :], axis=0) / np.linalg.norm(a, axis=0)[:, None]
    rows, order = linear_sum_assignment(distances)
    return order, float(distances[rows, order].max())


def recovery(inputs: int, width: int, activation: str, samples: int, seed: int) -> Run:
    """Tensor start and Gauss-Newton."""
    truth, x, y = plant(inputs, width, activation, samples, seed)
    wall, cpu = time.perf_counter(), time.process_time()
    found = recover_from_tensors(x, y, width, activation)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    comparison = unweave.compare(truth, found.network)
    extra = {"start_error": matching(truth, found.start.network)[1], "steps": len(found.fit.history) - 1}
    say(f"  seed {seed}: start {extra['start_error']:.2g}, parameter error {comparison.parameter_error:.1e}")
    return Run(
        seed,
        recovered=found.held_out_error < 1e-12,
        parameter_error=comparison.parameter_error,
        fresh_error=found.held_out_error,
        seconds=wall,
        cpu_seconds=cpu,
        extra=extra,
        same=comparison.is_same,
        peak_rss_mb=peak_rss_mb(),
    )


def rate(inputs: int, width: int, activation: str, samples: int, seed: int) -> Run:
    """Gradient descent from the tensor start."""
    truth, x, y = plant(inputs, width, activation, samples, seed)
    start = tensor_start(x, y, width, activation).network
    order, start_error = matching(truth, start)
    rows = slice(0, ROWS_PER_PARAMETER * inputs * width)
    errors: list[float] = []
    wall, cpu = time.perf_counter(), time.process_time()
    descent = gradient_descent(
        start,
        x[rows],
        y[rows],
        DescentOptions(steps=30_000, tolerance=1e-12),
        on_step=lambda _, weights: errors.append(float(np.linalg.norm(weights[:, order] - truth.weights[0]))),
    )
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    expected = local_convexity(truth, x[rows])
    assert expected.predicted_smallest is not None
    assert expected.predicted_largest is not None
    reached = np.array(errors)
    late = [int(np.argmax(reached < level)) if reached.min() < level else len(errors) - 1 for level in LATE]
    span = max(late[1] - late[0], 1)
    extra = {
        "start_error": start_error,
        "steps": len(errors) - 1,
        "measured": 1 - float((reached[late[1]] / reached[late[0]]) ** (2 / span)),
        "predicted": 1 - expected.rate,
        "stated": expected.smallest / expected.largest,
        "smallest_over": expected.smallest / expected.predicted_smallest,
        "largest_over": expected.largest / expected.predicted_largest,
    }
    figures = f"{extra['measured']:.5f} a step against {extra['predicted']:.5f}"
    say(f"  seed {seed}: {extra['steps']} steps, {figures}")
    error = unweave.compare(truth, descent.network).parameter_error
    return Run(
        seed,
        recovered=descent.converged,
        parameter_error=error,
        seconds=wall,
        cpu_seconds=cpu,
        extra=extra,
        same=error < 1e-8,
        peak_rss_mb=peak_rss_mb(),
    )


def rho_row(name: str, seeds: range) -> Row:
    """Constants of one activation; nothing is random, so all seeds give the same."""
    began = time.perf_counter()
    scale = ERF_SCALE if name == "erf" else 1.0
    measured = [scale * rho(name, sigma).value for sigma in SIGMAS]
    published = np.array(TABLE[name])
    difference = float(np.max(np.abs(measured - published) / np.where(published == 0, 1, np.abs(published))))
    seconds = time.perf_counter() - began
    run = Run(seeds[0], difference < DIGITS, difference, seconds=seconds, peak_rss_mb=peak_rss_mb())
    row = summarise(f"rho, {name}", [run] * len(seeds))
    return {**row, "measured": measured, "predicted": list(TABLE[name])}


def measured_row(setting: str, runs: Sequence[Run]) -> Row:
    """The row of one setting: medians of its figures."""
    keys = [key for key in COLUMNS if key in runs[0].extra]
    medians = {key: float(np.median([run.extra[key] for run in runs])) for key in keys}
    return summarise(setting, runs, **medians)


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:5", f"d, k = {QUICK}, 1 seed").parse_args(argv)
    seeds = seeds_of(arguments, 5, 1)
    sizes, samples = ((QUICK,), (QUICK_SAMPLES,)) if arguments.quick else (SIZES, SAMPLES)
    middle = samples[len(samples) // 2]
    rows: list[Row] = []
    for name, (d, k), n in product(ACTIVATIONS, sizes, samples):
        setting = f"recovery, {name}, d={d}, k={k}, N={n}"
        say(f"tensor_start: {setting}")
        rows.append(measured_row(setting, [recovery(d, k, name, n, seed) for seed in seeds]))
    for name, (d, k) in product(ACTIVATIONS, sizes):
        setting = f"rate, {name}, d={d}, k={k}"
        say(f"tensor_start: {setting}")
        rows.append(measured_row(setting, [rate(d, k, name, middle, seed) for seed in seeds]))
    rows += [rho_row(name, seeds) for name in TABLE]
    tell(rows, {**unasked("seconds"), **COLUMNS}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
