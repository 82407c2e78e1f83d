"""Training on the same samples with ten times the time: Adam beside the exact route, ReLU from samples.

The target has m ReLU units; 20 Gaussian samples per parameter are given. The recovery runs first; Adam
(torch, float64, mini-batches of 64 of the same samples, a student of the target's own width started at
random) then gets ten times its wall time **for each of four learning rates**, and the one with the
smallest error on fresh points is kept, which a user could not choose so well. Needs torch.
"""

from __future__ import annotations

import time

import numpy as np

import unweave
from harness import (
    COMMON,
    Row,
    Run,
    fresh_error,
    parser,
    peak_rss_mb,
    say,
    search_seed,
    seeds_of,
    summarise,
    tell,
)
from unweave.arrays import Array

SETTINGS = ((10, 20), (20, 20))
SAMPLES_PER_PARAMETER = 20
TIMES = 10.0
BATCH = 64
RATES = (1e-3, 3e-3, 1e-2, 3e-2)
COLUMNS = {**COMMON, "rate": "learning rates kept"}


def recover_first(truth: unweave.Network, x: Array, y: Array, seed: int) -> Run:
    """The exact route, whose time is the measure of the budget."""
    wall, cpu = time.perf_counter(), time.process_time()
    samples = unweave.Samples(x, y)
    result = unweave.recover(samples, hidden=list(truth.hidden), activation="relu", seed=search_seed(seed))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return measured(truth, result.network, seed, result.status is unweave.Status.RECOVERED, wall, cpu)


def train(truth: unweave.Network, x: Array, y: Array, rate: float, budget: float, seed: int) -> Run:
    """Adam on the same samples for ``budget`` seconds."""
    import torch

    generator = torch.Generator().manual_seed(search_seed(seed))
    inputs, width = truth.n_inputs, truth.hidden[0]
    start = unweave.random_network(
        [inputs, width, 1], activation="relu", seed=search_seed(seed), outer="normal", bias=1.0
    )
    parameters = [
        torch.tensor(np.array(p), requires_grad=True)
        for p in (start.weights[0], start.biases[0], start.weights[1], start.biases[1])
    ]
    stepper = torch.optim.Adam(parameters, lr=rate)
    points, answers = torch.from_numpy(x), torch.from_numpy(y)
    wall, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < budget:
        rows = torch.randint(len(points), (BATCH,), generator=generator)
        w, b, a, c = parameters
        stepper.zero_grad()
        torch.mean((torch.relu(points[rows] @ w + b) @ a + c - answers[rows]) ** 2).backward()
        stepper.step()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    w, b, a, c = (p.detach().numpy() for p in parameters)
    student = unweave.Network([w, a], [b, c], ["relu", "identity"])
    run = measured(truth, student, seed, False, wall, cpu)
    run.extra["rate"] = rate
    say(f"  seed {seed}: Adam {rate:g}: fresh error {run.fresh_error:.2g} after {wall:.1f} s")
    return run


def measured(
    truth: unweave.Network,
    network: unweave.Network | None,
    seed: int,
    recovered: bool,
    wall: float,
    cpu: float,
) -> Run:
    """A network against the truth."""
    comparison = None if network is None else unweave.compare(truth, network)
    return Run(
        seed,
        recovered,
        parameter_error=np.inf if comparison is None else comparison.parameter_error,
        fresh_error=np.inf if network is None else fresh_error(truth, network, seed),
        seconds=wall,
        cpu_seconds=cpu,
        same=comparison is not None and comparison.is_same,
        peak_rss_mb=peak_rss_mb(),
    )


def measure(inputs: int, width: int, seeds: range) -> list[Row]:
    """One row for the recovery and one for Adam."""
    say(f"relu_baseline: {inputs}-{width}-1")
    ours, adam = [], []
    for seed in seeds:
        truth = unweave.random_network(
            [inputs, width, 1], activation="relu", seed=seed, outer="signed", bias=1.0
        )
        rng = np.random.default_rng([seed, BATCH])
        x = rng.standard_normal((SAMPLES_PER_PARAMETER * truth.n_parameters, inputs))
        y = truth(x)
        ours.append(recover_first(truth, x, y, seed))
        say(f"  seed {seed}: recovery {ours[-1].parameter_error:.2g} in {ours[-1].seconds:.2f} s")
        tries = [train(truth, x, y, rate, TIMES * ours[-1].seconds, seed) for rate in RATES]
        adam.append(min(tries, key=lambda run: run.fresh_error))
    name = f"{inputs}-{width}-1"
    rates = [run.extra["rate"] for run in adam]
    return [summarise(f"recover {name}", ours), summarise(f"Adam, 10 x the time, {name}", adam, rate=rates)]


def main(argv: list[str] | None = None) -> list[Row]:
    """Run from the command line."""
    options = parser(__doc__, "0:3", "10-20-1 only, 1 seed")
    arguments = options.parse_args(argv)
    seeds = seeds_of(arguments, full=3, quick=1)
    settings = SETTINGS[:1] if arguments.quick else SETTINGS
    rows = [row for setting in settings for row in measure(*setting, seeds)]
    tell(rows, COLUMNS, arguments.json)
    return rows


if __name__ == "__main__":
    main()
