"""First-order training given the same time: SGD and Adam beside the recovery, on D = 25, m = 156.

The target is a tanh network with unit outer weights. The recovery runs first, and its wall time is the
budget of every baseline run. A student of the target's own shape, started at random from the law of the
target, is trained in float64 on mini-batches of Gaussian inputs that the target answers on the fly (no
input is used twice). Each optimiser tries several learning rates, **each with the full budget**, and the
one with the smallest error on fresh points is kept, which a user could not choose so well. The student
is also told that the outer weights are one and trains only weights and biases; the recovery is not told.

Only the kept learning rate's time and queries are in the row; "learning rates tried" says how many there
were. Weight error: |w_k - v_k| of the hidden weight vectors (unit length in the target) after the one to
one matching of units that makes the sum of the squares least; worst and median over the units. The
parameter error beside it also counts biases and outer weights, and signs that do not fit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

import unweave
from harness import (
    COMMON,
    Row,
    Run,
    fresh_error,
    parser,
    peak_rss_mb,
    run_recovery,
    say,
    search_seed,
    seeds_of,
    summarise,
    tell,
)
from unweave.arrays import Array

SETTING = (25, 156)
QUICK = (10, 20)
BATCH = 64
RATES = {"SGD": (1e-3, 3e-3, 1e-2, 3e-2), "Adam": (1e-3, 3e-3, 1e-2, 3e-2)}
COLUMNS = {
    "worst_weight_error": "worst weight error",
    "median_weight_error": "median weight error",
    "rate": "learning rates kept",
    "tried": "rates tried",
}


def weight_errors(truth: unweave.Network, network: unweave.Network | None) -> Array:
    """(m,) distances of the matched hidden weight vectors; inf when there are not as many units."""
    planted = truth.weights[0].T
    if network is None or network.hidden != truth.hidden:
        return np.full(len(planted), np.inf)
    found = unweave.canonical(network).weights[0].T  # there the outer weights are positive, as planted
    distances = np.linalg.norm(planted[:, None, :] - found[None, :, :], axis=2)
    matched = linear_sum_assignment(distances**2)
    return np.asarray(distances[matched])


def train(truth: unweave.Network, optimiser: str, rate: float, budget: float, seed: int) -> Run:
    """Train one student for ``budget`` seconds and measure it as a recovery is measured."""
    import torch

    inputs, width = truth.n_inputs, truth.hidden[0]
    start = unweave.random_network([inputs, width, 1], seed=search_seed(seed), outer="ones", bias=0.5)
    weights = torch.tensor(np.array(start.weights[0]), requires_grad=True)
    biases = torch.tensor(np.array(start.biases[0]), requires_grad=True)
    kind = {"SGD": torch.optim.SGD, "Adam": torch.optim.Adam}[optimiser]
    stepper = kind([weights, biases], lr=rate)
    rng = np.random.default_rng([seed, BATCH])
    torch.tanh(weights).sum().backward()  # the libraries' own start-up is not the optimiser's time
    wall, cpu, asked = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - wall < budget:
        x = rng.standard_normal((BATCH, inputs))
        expected = torch.from_numpy(truth(x)[:, 0])
        stepper.zero_grad()
        answers = torch.tanh(torch.from_numpy(x) @ weights + biases).sum(dim=1)
        torch.mean((answers - expected) ** 2).backward()
        stepper.step()
        asked += BATCH
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    trained = [weights.detach().numpy(), biases.detach().numpy()]
    if not all(np.isfinite(values).all() for values in trained):
        return Run(seed, False, np.inf, np.inf, extra={"rate": rate}, same=False)
    student = unweave.Network(
        [trained[0], start.weights[1]], [trained[1], start.biases[1]], start.activations
    )
    comparison = unweave.compare(truth, student)
    error = fresh_error(truth, student, seed)
    say(f"  seed {seed}: {optimiser} {rate:g}: {asked // BATCH} steps, fresh error {error:.2g}")
    return Run(
        seed,
        recovered=comparison.is_same,
        parameter_error=comparison.parameter_error,
        fresh_error=error,
        queries_per_parameter=asked / student.n_parameters,
        queries=asked,
        seconds=wall,
        cpu_seconds=cpu,
        stages={"training": wall},
        extra={"weight_errors": weight_errors(truth, student), "rate": rate},
        same=comparison.is_same,
        peak_rss_mb=peak_rss_mb(),
    )


def recover_first(truth: unweave.Network, width: int, seed: int) -> Run:
    """Our own run, which sets the budget."""
    return run_recovery(
        truth,
        seed,
        hidden=[width],
        activation="tanh",
        extra=lambda result: {"weight_errors": weight_errors(truth, result.network)},
    )


def measure(inputs: int, width: int, seeds: range) -> list[Row]:
    """One row for the recovery and one for each optimiser."""
    say(f"baseline: D = {inputs}, m = {width}")
    runs: dict[str, list[Run]] = {"recover": [], **{name: [] for name in RATES}}
    for seed in seeds:
        truth = unweave.random_network([inputs, width, 1], seed=seed, outer="ones", bias=0.5)
        ours = recover_first(truth, width, seed)
        runs["recover"].append(ours)
        for name, rates in RATES.items():
            tries = [train(truth, name, rate, ours.seconds, seed) for rate in rates]
            runs[name].append(min(tries, key=lambda run: run.fresh_error))
    return [row_of(f"{name}, D={inputs}, m={width}", name, kept) for name, kept in runs.items()]


def row_of(setting: str, name: str, runs: Sequence[Run]) -> Row:
    """The row of one contestant."""
    errors = np.concatenate([np.atleast_1d(run.extra.get("weight_errors", np.inf)) for run in runs])
    finite = bool(np.isfinite(errors).all())
    return summarise(
        setting,
        runs,
        worst_weight_error=float(errors.max()) if finite else None,
        median_weight_error=float(np.median(errors)) if finite else None,
        rate=sorted({run.extra["rate"] for run in runs if "rate" in run.extra}),
        tried=len(RATES.get(name, ())),
    )


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:3", f"D, m = {QUICK}, 1 seed").parse_args(argv)
    rows = measure(*(QUICK if arguments.quick else SETTING), seeds_of(arguments, 3, 1))
    tell(rows, {**COMMON, **COLUMNS}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
