"""Exact fits of ReLU networks with 1 to 3 units: are they right, and how far do they reach?

- **planted**: noise-free labels of a planted network. Recovered: the list of all optima is complete and is
  the planted network alone. Ambiguous: the list is complete, holds the planted patterns, and more;
- **dichotomies**: counts for 1 to 5 inputs against Cover's number, CPU seconds of all of them;
- **brute force**: random labels against all 2^N patterns per unit, every sign, on recomputed losses;
- **certified**: noisy labels. Recovered: certified; never worse than the planted network. Programs, bounds
  and the tuples of patterns that exhaustive search would have to solve;
- **random labels**: nothing to find, the hardest case; **other losses**: absolute, Huber, hinge, logistic.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

import unweave
from harness import COMMON, Row, Run, parser, peak_rss_mb, say, search_seed, seeds_of, summarise, tell
from unweave.arrays import Array
from unweave.exact import ExactFit, cover_count, enumerate_optima, exact_erm, hyperplane_dichotomies
from unweave.exact.cone_program import cone_program, predictions
from unweave.exact.cone_projection import project_on_cone

PLANTED = ((2, 2, 20), (2, 2, 32), (1, 2, 20), (2, 2, 12))
"""Inputs, width, samples."""
COUNTS = ((1, 400), (2, 10), (2, 100), (2, 200), (3, 12), (3, 60), (4, 25), (5, 15))
BRUTE = ((1, 8, 1), (2, 8, 1), (3, 8, 1), (1, 8, 2), (2, 7, 2))
NOISY = (
    (1, 2, 400),
    (2, 2, 60),
    (2, 2, 100),
    (2, 2, 140),
    (2, 2, 200),
    (3, 1, 60),
    (3, 2, 20),
    (1, 3, 60),
    (2, 3, 25),
)
RANDOM = ((1, 2, 40), (2, 2, 20), (2, 2, 30))
LOSSES = (
    ("absolute", 2, 2, 20),
    ("huber", 2, 2, 20),
    ("hinge", 2, 2, 10),
    ("logistic", 2, 2, 10),
    ("logistic", 2, 1, 30),
)
NOISE = 0.1
EXACT = 1e-9  # parameter error of a recovered network
AGREES = 2e-9  # difference of losses over |y|^2: the certificate's gap, and brute force's rounding
GROUPS = ("planted", "dichotomies", "brute", "certified", "random", "losses")
COLUMNS = {
    "ambiguous": "ambiguous",
    "programs": "programs",
    "bounded": "bounds",
    "tuples": "tuples of patterns",
    "better": "better than local search",
}


def plant(
    inputs: int, width: int, samples: int, noise: float, seed: int
) -> tuple[unweave.Network, Array, Array]:
    """Network, x (N, d), y (N,): every unit acts on more than d + 1 points, and not on all but one."""
    rng = np.random.default_rng(seed)
    while True:
        x = rng.standard_normal((samples, inputs))
        weights, biases = rng.standard_normal((inputs, width)), 0.5 * rng.standard_normal(width)
        signs = rng.choice([-1.0, 1.0], width)
        active = np.sum(x @ weights + biases > 0, axis=0)
        if np.all((active > inputs + 1) & (active < samples - 1)):
            break
    network = unweave.Network([weights, signs[:, None]], [biases, [0.0]], ["relu", "identity"])
    return network, x, network(x)[:, 0] + noise * rng.standard_normal(samples)


def timed(seed: int, work: Callable[[], dict]) -> Run:
    """A run whose fields ``work`` returns, with its seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    fields = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    say(f"  seed {seed}: {'yes' if fields['recovered'] else 'no'}, {cpu:.2f} CPU s")
    return Run(seed=seed, seconds=wall, cpu_seconds=cpu, peak_rss_mb=peak_rss_mb(), **fields)


def planted(inputs: int, width: int, samples: int, seed: int) -> Run:
    truth, x, y = plant(inputs, width, samples, 0.0, seed)

    def work() -> dict:
        found = enumerate_optima(x, y, width, seed=search_seed(seed))
        active = {tuple(row) for row in (x @ truth.weights[0] + truth.biases[0] > 0).T}
        listed = any({tuple(row) for row in one.patterns} == active for one in found.optima)
        error = unweave.compare(truth, found.optima[0].network).parameter_error
        return {
            "recovered": found.decided,
            "parameter_error": error if found.decided else math.nan,
            "same": error <= EXACT,
            "extra": {
                "ambiguous": found.complete and not found.decided and listed,
                "programs": found.n_programs,
            },
        }

    return timed(seed, work)


def planted_row(inputs: int, width: int, samples: int, seeds: Sequence[int]) -> Row:
    runs = [planted(inputs, width, samples, seed) for seed in seeds]
    errors = [run.parameter_error for run in runs if run.recovered]
    return row(
        f"planted d={inputs} w={width} N={samples}",
        runs,
        worst_parameter_error=max(errors, default=None),
        median_parameter_error=float(np.median(errors)) if errors else None,
        ambiguous=sum(run.extra["ambiguous"] for run in runs),
    )


def dichotomies_row(counts: Sequence[tuple[int, int]], seeds: Sequence[int]) -> Row:
    def one(seed: int) -> dict:
        rng = np.random.default_rng(seed)
        points = [rng.standard_normal((n, d)) for d, n in counts]
        found = [len(hyperplane_dichotomies(x)) for x in points]
        return {"recovered": found == [cover_count(n, d) for d, n in counts]}

    runs = [timed(seed, lambda seed=seed: one(seed)) for seed in seeds]
    return row("dichotomies " + ", ".join(f"({d},{n})" for d, n in counts), runs)


def brute_row(cases: Sequence[tuple[int, int, int]], seeds: Sequence[int]) -> Row:
    """One case per seed, the settings in turn."""

    def one(seed: int) -> dict:
        inputs, samples, width = cases[seed % len(cases)]
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((samples, inputs)), rng.standard_normal(samples)
        fit = exact_erm(x, y, width, seed=search_seed(seed))
        recomputed = float(np.sum((fit.network(x)[:, 0] - y) ** 2))
        difference = abs(recomputed - brute_force(x, y, width)) / float(y @ y)
        agrees = difference <= AGREES
        return {
            "recovered": fit.certified and agrees,
            "same": agrees,
            "parameter_error": difference,
            "extra": figures(fit),
        }

    runs = [timed(seed, lambda seed=seed: one(seed)) for seed in seeds]
    return row("brute force " + ", ".join(f"d={d} N={n} w={w}" for d, n, w in cases), runs)


def brute_force(x: Array, y: Array, width: int) -> float:
    """Least squared loss over all 2^N patterns per unit and all signs, recomputed from the networks.

    Nothing is pruned but tuples whose unconstrained least squares value is no better than the best so far.
    """
    z = np.column_stack([x, np.ones(len(y))])
    patterns = np.array(list(itertools.product((False, True), repeat=len(y))))
    tuples = np.array(list(itertools.combinations_with_replacement(range(len(patterns)), width)))
    designs = [np.hstack([patterns[i][:, None] * z for i in units]) for units in tuples]
    values = [np.sum((y - a @ np.linalg.lstsq(a, y, rcond=1e-12)[0]) ** 2) for a in designs]
    best = float(y @ y)
    for k in np.argsort(values, kind="stable"):
        if values[k] >= best:
            break
        for signs in itertools.product((1.0, -1.0), repeat=width):
            program = cone_program(patterns[tuples[k]], np.array(signs), z, y)
            answer = project_on_cone(program.design, y, program.conditions)
            if answer is not None:
                units = program.signs[:, None] * answer[0].reshape(width, -1)
                best = min(best, float(np.sum((predictions(units, program.signs, z) - y) ** 2)))
    return best


def certified(x: Array, y: Array, width: int, seed: int, truth: unweave.Network | None, loss: str) -> dict:
    fit = exact_erm(x, y, width, loss=loss, seed=search_seed(seed))
    no_worse = truth is None or fit.loss <= np.sum((truth(x)[:, 0] - y) ** 2)
    return {"recovered": fit.certified, "same": bool(no_worse), "extra": figures(fit)}


def figures(fit: ExactFit) -> dict:
    better = fit.loss < fit.local_loss * (1 - 1e-6)
    return {"programs": fit.n_programs, "bounded": fit.n_bounded, "tuples": fit.n_tuples, "better": better}


def noisy_row(inputs: int, width: int, samples: int, seeds: Sequence[int]) -> Row:
    def one(seed: int) -> Run:
        truth, x, y = plant(inputs, width, samples, NOISE, seed)
        return timed(seed, lambda: certified(x, y, width, seed, truth, "squared"))

    return row(f"certified d={inputs} w={width} N={samples}", [one(seed) for seed in seeds])


def random_row(inputs: int, width: int, samples: int, seeds: Sequence[int]) -> Row:
    def one(seed: int) -> Run:
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((samples, inputs)), rng.standard_normal(samples)
        return timed(seed, lambda: certified(x, y, width, seed, None, "squared"))

    return row(f"random labels d={inputs} w={width} N={samples}", [one(seed) for seed in seeds])


def loss_row(loss: str, inputs: int, width: int, samples: int, seeds: Sequence[int]) -> Row:
    def one(seed: int) -> Run:
        _, x, y = plant(inputs, width, samples, NOISE, seed)
        if loss in ("hinge", "logistic"):
            chance = np.random.default_rng(search_seed(seed)).random(samples)
            y = np.where(chance < 1 / (1 + np.exp(-2 * y)), 1.0, -1.0)
        return timed(seed, lambda: certified(x, y, width, seed, None, loss))

    return row(f"{loss} d={inputs} w={width} N={samples}", [one(seed) for seed in seeds])


def row(setting: str, runs: Sequence[Run], **more: object) -> Row:
    """A row with the medians of the extra figures."""
    extra: dict[str, object] = {}
    for key in ("programs", "bounded", "tuples"):
        values = [run.extra[key] for run in runs if key in run.extra]
        if values:
            extra[key] = int(np.median(values))
    if any("better" in run.extra for run in runs):
        extra["better"] = sum(run.extra["better"] for run in runs)
    return summarise(setting, runs, **{**extra, **more})


def named_rows(text: str) -> list[str]:
    """Names of groups of rows, separated by commas."""
    names = text.split(",")
    if not set(names) <= set(GROUPS):
        raise argparse.ArgumentTypeError(f"rows must be among {', '.join(GROUPS)}. Got {text!r} instead.")
    return names


def main(argv: Sequence[str] | None = None) -> list[Row]:
    options = parser(__doc__, "0:10, 0:20 for brute force", "smallest settings, one seed")
    options.add_argument("--rows", type=named_rows, default=None, help=f"groups, of {', '.join(GROUPS)}")
    arguments = options.parse_args(argv)
    seeds, quick = seeds_of(arguments, 10, 1), arguments.quick
    groups = {
        "planted": [partial(planted_row, *setting) for setting in (PLANTED[:1] if quick else PLANTED)],
        "dichotomies": [partial(dichotomies_row, COUNTS[1:2] if quick else COUNTS)],
        "brute": [partial(brute_row, BRUTE[:1] if quick else BRUTE)],
        "certified": [partial(noisy_row, *setting) for setting in (((2, 2, 20),) if quick else NOISY)],
        "random": [] if quick else [partial(random_row, *setting) for setting in RANDOM],
        "losses": [] if quick else [partial(loss_row, *setting) for setting in LOSSES],
    }
    rows = []
    for group in arguments.rows or GROUPS:
        chosen = seeds_of(arguments, 20, 1) if group == "brute" else seeds
        rows += [measure(chosen) for measure in groups[group]]
    tell(rows, {**COMMON, **COLUMNS}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
