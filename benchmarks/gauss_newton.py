"""Gauss-Newton on all parameters of a deep network: what its normal equations cost, solved in four ways.

Tanh networks with incoming norms in [0.6, 1.6], 1.5 values per parameter, start = truth + 1e-4 N(0, 1). The
same Levenberg-Marquardt iteration, conditioning and error bars included, with

- **structured**: J^T J from the layers' structure, Cholesky as preconditioner (what the library does);
- **naive**: the same, but J is formed and multiplied with itself;
- **dense QR**: a QR factorisation of J in every step (up to `LARGEST_DENSE` parameters);
- **matrix-free**: conjugate gradients preconditioned layer by layer with Kronecker products.

**Lower bound.** The flops of the structured products at the float64 rate of one large matrix product,
measured in the same run. It leaves out forming the factors and putting the blocks in their places.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

import unweave
from harness import Row, Run, parser, peak_rss_mb, say, search_seed, seeds_of, summarise, tell, unasked
from unweave.arrays import Array, RealArray
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFit
from unweave.numerics.least_squares import LevenbergMarquardtOptions, levenberg_marquardt
from unweave.numerics.least_squares.khatri_rao_gram import gram_flops

SETTINGS: tuple[tuple[int, ...], ...] = (
    (20, 20, 15, 1),
    (30, 30, 20, 12, 6),
    (50, 50, 25, 10),
    (50, 50, 35, 25, 10),
)
QUICK: tuple[int, ...] = (15, 12, 8, 2)
START_ERROR = 1e-4
VALUES_PER_PARAMETER = 1.5
LARGEST_DENSE = 2000
"""Parameters up to which the dense QR is run: beyond, a single step takes tens of seconds."""
RECOVERED = 1e-10
"""Largest parameter error that counts as back at the truth: rounding times the condition number is 1e-12."""
COLUMNS = {
    "parameters": "parameters",
    "gram_seconds": "J^T J s",
    "gram_seconds_float32": "in float32 s",
    "gemm_seconds": "lower bound s",
    "gram_ratio": "J^T J / lower bound",
    "steps": "steps",
    "inner_iterations": "inner iterations",
    "slower": "CPU s / structured",
}
_REPETITIONS = 3
_ROUNDING = 2.0**-52  # of the answers' root mean square


class NaiveJacobian(ValueJacobian):
    """Forms J to square it."""

    def in_single_precision(self) -> NaiveJacobian:
        """The same in float32."""
        return NaiveJacobian(self._model, self._points, self._factors, np.float32)

    def gram(self) -> RealArray:
        """J^T J as one product."""
        matrix = self._matrix()
        return matrix.T @ matrix


@dataclass(frozen=True, eq=False)
class NaiveFit(ValueFit):
    """`ValueFit` with the J^T J of `NaiveJacobian`."""

    def linearise(self, vector: Array) -> NaiveJacobian:
        """The Jacobian at ``vector``."""
        return NaiveJacobian(self.template.from_vector(vector), self.points)


METHODS: dict[str, tuple[type[ValueFit], LevenbergMarquardtOptions]] = {
    "structured": (ValueFit, LevenbergMarquardtOptions(damping=1e-9, solver="gram")),
    "naive": (NaiveFit, LevenbergMarquardtOptions(damping=1e-9, solver="gram")),
    "dense QR": (ValueFit, LevenbergMarquardtOptions(damping=1e-9, solver="dense")),
    "matrix-free": (ValueFit, LevenbergMarquardtOptions(damping=1e-9, solver="conjugate gradients")),
}


def plant(layers: Sequence[int], seed: int) -> tuple[unweave.Network, Array, Array, NetworkParameters]:
    """A network, points (n, D), its answers (n, K) and the start."""
    truth = unweave.random_network(layers, seed=seed, outer="unit", norms=(0.6, 1.6))
    rng = np.random.default_rng(search_seed(seed))
    model = NetworkParameters.from_network(truth)
    n = int(np.ceil(VALUES_PER_PARAMETER * model.size / layers[-1])) + 20
    points = 1.5 * rng.standard_normal((n, layers[0]))
    start = model.from_vector(model.to_vector() + START_ERROR * rng.standard_normal(model.size))
    return truth, points, truth(points), start


def fit(layers: Sequence[int], method: str, seed: int) -> Run:
    """One fit by one method."""
    truth, points, answers, start = plant(layers, seed)
    kind, options = METHODS[method]
    problem = kind(start, points, answers)
    rounding = _ROUNDING * float(np.sqrt(np.mean(answers**2)))
    options = replace(options, rounding=rounding, acceleration=True)  # as `fit_values` does
    wall, cpu = time.perf_counter(), time.process_time()
    result = levenberg_marquardt(problem, start.to_vector(), options)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = peak_rss_mb()
    comparison = unweave.compare(truth, start.from_vector(result.vector).to_network())
    extra = {"steps": len(result.history) - 1, "inner_iterations": result.inner_iterations}
    if options.solver == "gram":
        extra.update(gram_figures(problem, start))
    say(f"  {method}, seed {seed}: {cpu:.2f} CPU s, parameter error {comparison.parameter_error:.1e}")
    return Run(
        seed,
        recovered=comparison.parameter_error < RECOVERED,
        parameter_error=comparison.parameter_error,
        seconds=wall,
        cpu_seconds=cpu,
        stages={"fit": wall},
        extra=extra,
        same=comparison.is_same,
        peak_rss_mb=peak,
    )


def gram_figures(problem: ValueFit, start: NetworkParameters) -> dict[str, float]:
    """Seconds of one J^T J, in both precisions, beside the lower bound."""
    linear = problem.linearise(start.to_vector())
    figures = {
        "gram_seconds": fastest(linear.gram),
        "gram_seconds_float32": fastest(linear.in_single_precision().gram),
    }
    flops = gram_flops(start.shapes, len(problem.points))
    figures["gemm_seconds"] = flops / gemm_rate(len(problem.points))
    figures["gram_ratio"] = figures["gram_seconds"] / figures["gemm_seconds"]
    return figures


def gemm_rate(inner: int, size: int = 1000) -> float:
    """Flops per CPU second of a float64 product (size, inner) x (inner, size)."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((size, inner)), rng.standard_normal((inner, size))
    return 2 * size * size * inner / fastest(lambda: left @ right)


def fastest(work: Callable[[], object]) -> float:
    """Fewest CPU seconds of a few repetitions."""
    seconds = []
    for _ in range(_REPETITIONS):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds)


def measure(layers: Sequence[int], seeds: range) -> list[Row]:
    """One row per method; the first is the library's own."""
    name = f"{layers[0]} [{', '.join(map(str, layers[1:]))}]"
    size = sum((n_in + 1) * n_out for n_in, n_out in pairwise(layers))
    say(f"gauss_newton: {name}, {size} parameters")
    rows: list[Row] = []
    for method in METHODS:
        if method == "dense QR" and size > LARGEST_DENSE:
            continue
        runs = [fit(layers, method, seed) for seed in seeds]
        keys = [key for key in COLUMNS if key in runs[0].extra]
        figures = {key: float(np.median([run.extra[key] for run in runs])) for key in keys}
        row = summarise(f"{name}, {method}", runs, parameters=size, **figures)
        row["slower"] = row["cpu_seconds"] / (rows[0]["cpu_seconds"] if rows else row["cpu_seconds"])
        rows.append(row)
    return rows


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:3", f"layers {QUICK}, 1 seed").parse_args(argv)
    settings = (QUICK,) if arguments.quick else SETTINGS
    rows = [row for layers in settings for row in measure(layers, seeds_of(arguments, 3, 1))]
    tell(rows, {**unasked("worst_fresh_error", "wrong"), **COLUMNS}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
