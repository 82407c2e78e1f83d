"""Single ReLU gates: errors measured beside the errors that theory predicts.

One row per claim; every seed plants a gate |w*| = 1 and, where the claim is about an expectation, averages
over STREAMS independent streams.

- **least squares**: n active rows and no more; error against 0;
- **stream, theorem's / sharper step**: samples until the mean square error is 1e-4 of the first one, against
  the number that the bound promises; **largest ratio** is that of measured to promised mean square error
  over the whole run, which must not exceed one by more than four standard errors of the mean;
- **poisoned**: root mean square error at the end against the floor theta kappa/lambda; recovered: not above
  it. **offline** is least squares on the same gate, **seen bound** the bound that the data alone give it,
  **gate at 0** the error of a stream that updates wherever y > 0;
- **GLM-Tron**: effective loss of the best iterate against its bound; steps to the level of accuracy 1e-3
  against C^2 |w*|^2 / 1e-3;
- **noise-assisted**: largest distance to w* over all streams and steps against the radius; probability to
  leave, by Ville and by Azuma.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import get_args

import numpy as np

from harness import Row, Run, parser, peak_rss_mb, say, seeds_of, summarise, tell, unasked
from unweave.arrays import Array
from unweave.gates import (
    Attack,
    NoisyDescentOptions,
    ReluGateLearner,
    error_curve,
    error_floor,
    gate_constants,
    gate_update,
    glm_tron,
    noisy_gd_gate,
    poison,
    relu_gate_ols,
)

STREAMS = 200
MOMENT_ROWS = 200_000
LONGEST = 20_000  # samples per stream at most
RATIO = 1e-4  # of the mean square error
SETTINGS = tuple((law, n) for law in ("gauss", "exponential", "student", "shifted") for n in (5, 20))
THETAS = (0.01, 0.05, 0.1, 0.2, 0.4)
POISONED_INPUTS, POISONED_ROWS = 10, 4000
NOISY_STREAMS = 20
LAWS: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "gauss": lambda rng, rows, n: rng.standard_normal((rows, n)),
    "exponential": lambda rng, rows, n: rng.exponential(1.0, (rows, n)) - 0.5,
    "student": lambda rng, rows, n: rng.standard_t(6, (rows, n)),
    "shifted": lambda rng, rows, n: rng.standard_normal((rows, n)) - 1.5 / math.sqrt(n),
}
COLUMNS = {
    "measured": "measured",
    "predicted": "predicted",
    "ratio": "largest ratio",
    "offline": "offline",
    "seen": "seen bound",
    "ungated": "gate at 0",
    "ville": "P leave, Ville",
    "azuma": "P leave, Azuma",
}


def plant(seed: int, n: int) -> tuple[Array, np.random.Generator]:
    rng = np.random.default_rng([seed, n])
    truth = rng.standard_normal(n)
    return truth / np.linalg.norm(truth), rng


def offline(n: int, seed: int) -> Run:
    truth, rng = plant(seed, n)
    x = rng.standard_normal((4 * n, n))
    x = x[x @ truth > 0][:n]
    wall, cpu = time.perf_counter(), time.process_time()
    found = relu_gate_ols(x, np.maximum(x @ truth, 0), truth=truth)
    extra = {"measured": found.error, "predicted": 0.0, "seen": found.bound}
    return finished(seed, found.determined, found.error, wall, cpu, extra, found.error <= found.bound)


def stream(law: str, n: int, rule: str, seed: int) -> Run:
    """Mean square error of STREAMS streams beside the bound of the step's rule."""
    truth, rng = plant(seed, n)
    wall, cpu = time.perf_counter(), time.process_time()
    sample = LAWS[law](rng, MOMENT_ROWS, n)
    constants = gate_constants(sample, np.maximum(sample @ truth, 0))
    factor = constants.theorem_factor if rule == "theorem" else constants.sharper_factor
    promised = math.ceil(math.log(RATIO) / math.log(factor))
    squares = []
    for _ in range(STREAMS):
        x = LAWS[law](rng, min(promised, LONGEST), n)
        learner = ReluGateLearner(step=rule, constants=constants, truth=truth)
        found = learner.partial_fit(x, np.maximum(x @ truth, 0)).fit()
        squares.append(found.errors**2)
    runs, times = np.array(squares), found.times
    mean = runs.mean(axis=0)
    bound = mean[0] * factor**times
    slack = 4 * runs.std(axis=0, ddof=1) / math.sqrt(STREAMS)
    held = bool((mean <= bound + slack).all())
    hits = np.flatnonzero(mean <= RATIO * mean[0])
    extra = {
        "measured": float(times[hits[0]]) if len(hits) else math.nan,
        "predicted": promised,
        "ratio": float((mean / bound)[1:].max()),  # at the start both are equal
    }
    return finished(seed, held, math.sqrt(mean[-1]), wall, cpu, extra)


def poisoned(theta: float, attack: Attack, seed: int) -> Run:
    """Error at the end of a poisoned stream, beside the floor and a gate that lets everything in."""
    n = POISONED_INPUTS
    truth, rng = plant(seed, n)
    wall, cpu = time.perf_counter(), time.process_time()
    sample = rng.standard_normal((MOMENT_ROWS, n))
    constants = gate_constants(sample, np.maximum(sample @ truth, 0), theta, truth)
    step = constants.robust_step
    gated = ungated = np.zeros((STREAMS, n))
    late = []
    for now in range(POISONED_ROWS):
        x = rng.standard_normal((STREAMS, n))
        clean = np.maximum(x @ truth, 0)
        gated = gate_update(gated, x, clean + poison(attack, theta, x, gated, truth, rng), step, theta)
        ungated = gate_update(ungated, x, clean + poison(attack, theta, x, ungated, truth, rng), step)
        if now >= 7 * POISONED_ROWS // 8:
            late.append(np.mean(np.sum((gated - truth) ** 2, axis=1)))
    error, floor = math.sqrt(np.mean(late)), error_floor(constants)
    curve = error_curve(constants, step, 1.0, np.array([POISONED_ROWS]))
    x = rng.standard_normal((POISONED_ROWS, n))
    labels = np.maximum(x @ truth, 0) + poison(attack, theta, x, np.zeros(n), truth, rng)
    batch = relu_gate_ols(x, labels, theta, truth)
    extra = {
        "measured": error,
        "predicted": floor,
        "ratio": error / float(curve[0]),
        "offline": batch.error,
        "seen": batch.bound,
        "ungated": math.sqrt(np.mean(np.sum((ungated - truth) ** 2, axis=1))),
    }
    return finished(seed, error <= floor and batch.error <= batch.bound, error, wall, cpu, extra)


def tron(theta: float, seed: int) -> Run:
    """GLM-Tron on 500 samples; the level that theory promises after |w*|^2/1e-3 passes."""
    rng = np.random.default_rng([seed, 1])
    x = rng.standard_normal((500, 10))
    x /= np.linalg.norm(x, axis=1).max()
    truth = 3 * rng.standard_normal(10)
    y = np.maximum(x @ truth, 0) + theta * rng.choice([-1.0, 1.0], len(x))
    wall, cpu = time.perf_counter(), time.process_time()
    found = glm_tron(x, y, passes=2000, theta=theta, truth=truth)
    level = 1e-3 + theta**2 + 4 * theta * float(np.linalg.norm(truth))
    extra = {
        "measured": int(np.argmax(found.effective_losses < level)),
        "predicted": float(truth @ truth) / 1e-3,
        "ratio": found.effective_loss / found.bound,
    }
    held = bool(found.effective_losses.min() < level) and found.effective_loss <= found.bound
    return finished(seed, held, float(found.errors[found.losses.argmin()]), wall, cpu, extra)


def noisy(seed: int) -> Run:
    rng = np.random.default_rng([seed, 2])
    x = rng.standard_normal((100, 5))
    x /= np.linalg.norm(x, axis=1).max()
    truth, start = rng.standard_normal(5), rng.standard_normal(5)
    wall, cpu = time.perf_counter(), time.process_time()
    y = np.maximum(x @ truth, 0)
    options = NoisyDescentOptions(steps=1000, diffusion=0.1)
    runs = [noisy_gd_gate(x, y, start, rng, options, truth) for _ in range(NOISY_STREAMS)]
    farthest = max(float(run.distances.max()) for run in runs)
    ball = runs[0].confinement
    extra = {"measured": farthest, "predicted": ball.radius, "ville": ball.maximal, "azuma": ball.azuma}
    return finished(seed, farthest <= ball.radius, math.nan, wall, cpu, extra)


def finished(
    seed: int, held: bool, error: float, wall: float, cpu: float, extra: dict[str, object], same: bool = True
) -> Run:
    return Run(
        seed,
        bool(held),
        error,
        seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        extra=extra,
        same=bool(same),
    )


def measure(setting: str, run: Callable[[int], Run], seeds: range) -> Row:
    """The row of one claim: medians of its figures, the worst of the ratio."""
    say(f"gates: {setting}")
    runs = [run(seed) for seed in seeds]
    figures: dict[str, float | None] = {}
    for key in COLUMNS:
        values = [entry.extra[key] for entry in runs if key in entry.extra]
        take = max if key == "ratio" else np.median
        # A level that some seed did not reach has no median.
        figures[key] = float(take(values)) if values and np.isfinite(values).all() else None
    row = summarise(setting, runs, **figures)
    row["peak_rss_mb"] = peak_rss_mb()
    return row


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:3", "few inputs, one theta, 1 seed").parse_args(argv)
    quick, seeds = arguments.quick, seeds_of(arguments, 3, 1)
    settings = SETTINGS[:1] if quick else SETTINGS
    claims: list[tuple[str, Callable[[int], Run]]] = []
    claims += [(f"least squares, n={n}", partial(offline, n)) for n in ((5,) if quick else (5, 20, 100))]
    for rule in ("theorem", "sharper"):
        claims += [(f"{law}, n={n}, {rule} step", partial(stream, law, n, rule)) for law, n in settings]
    for theta in THETAS[2:3] if quick else THETAS:
        claims += [
            (f"poisoned, theta={theta}, {attack}", partial(poisoned, theta, attack))
            for attack in get_args(Attack)
        ]
    claims += [(f"GLM-Tron, theta={theta}", partial(tron, theta)) for theta in (0.0, 0.05, 0.2)]
    claims += [("noise-assisted, n=5, 1000 steps", noisy)]
    rows = [measure(setting, run, seeds) for setting, run in claims]
    tell(rows, {**unasked("worst_fresh_error", "seconds"), **COLUMNS}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
