"""What rounded and noisy answers of a trained network give away, beside the prototype's figures.

scikit-learn's ``MLPRegressor`` with 20 tanh units on breast cancer (standardised inputs, target 0 or 1), 641
parameters P. First row: `unweave.audit` through ``predict`` alone, with three budgets; the queries it sent to
the target beside those of one recovery with the same seed, and its CPU seconds. Further rows, one per level:
the weight error |(w, b)^ - (w, b)| / |(w, b)| per neuron, median and worst, after averaging 8 P and 128 P
rows (those of the start not counted), and what bisection costs from nothing to all parameters, in queries
per parameter. "Prototype" columns are of another network trained on the same data, so that factors of up to
two mean nothing. The seed is that of the training. Needs scikit-learn.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import unweave
from deep_trained import standardised, train_sklearn
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
from unweave.audits import Attack, Level, OwnPrecision, StandIn, attack

DATA, WIDTH = "cancer", 20
DECIMALS, BUDGETS = (6, 4, 3, 2), (1_000, 10_000, 100_000)
ROWS = (8, 128)
MOST_QUERIES = 2_000_000
PROTOTYPE: dict[Level, tuple[str, str, float | None]] = {
    Level(decimals=6): ("2.4e-7 (9e-7)", "5.9e-8", None),
    Level(decimals=4): ("3.1e-5 (9e-5)", "6.9e-6", None),
    Level(decimals=3): ("2.6e-4 (7e-4)", "5.8e-5", 151),
    Level(decimals=2): ("2.6e-3 (1.1e-2)", "6.3e-4", 179),
    Level(noise=1e-2): ("9.3e-3 (4e-2)", "2.1e-3", None),
}
"""Level -> weight error, median (worst), after 8 P and 128 P rows; queries per parameter of bisection."""
QUICK = (Level(decimals=3),)
COLUMNS = {
    "setting": "setting",
    "seeds": "seeds",
    "recovered": "recovered",
    "wrong": "recovered but wrong",
    "worst_parameter_error": "worst parameter error",
    "queries": "queries",
    "target_queries": "sent by the audit",
    "same_queries": "the same as one recovery's",
    "averaged_8": "8 P: weights, median (worst)",
    "prototype_8": "prototype",
    "averaged_128": "128 P",
    "prototype_128": "prototype",
    "queries_per_parameter": "queries per parameter",
    "prototype_queries": "prototype",
    "cpu_seconds": "CPU s",
}


@dataclass(frozen=True)
class Trained:
    """One trained network: what is attacked, and what answers."""

    seed: int
    truth: unweave.Network
    predict: object

    @classmethod
    def of(cls, seed: int) -> Trained:
        x, y = standardised(DATA)
        return cls(seed, *train_sklearn(x, y, (WIDTH,), "tanh", seed))

    def stand_in(self) -> StandIn:
        rng = np.random.default_rng([self.seed, 7])
        rows = rng.standard_normal((2000, self.truth.n_inputs))
        return StandIn(self.truth, OwnPrecision(), rows, search_seed(self.seed))


def audited(trained: Trained, decimals: Sequence[int]) -> Run:
    """The whole audit through ``predict``, and one recovery beside it."""
    seed, inputs = search_seed(trained.seed), trained.truth.n_inputs
    wall, cpu = time.perf_counter(), time.process_time()
    found = unweave.audit(trained.predict, decimals, budgets=BUDGETS, seed=seed, input_dim=inputs)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    alone = unweave.recover(trained.predict, seed=seed, input_dim=inputs)
    network = found.recovery.network
    assert network is not None
    for line in (found.verdict, found.recommendation, *found.details):
        say(f"    {line}")
    comparison = unweave.compare(trained.truth, network)
    sent = f"audit {found.target_queries} queries, recovery {alone.queries}"
    say(f"  seed {trained.seed}: {sent}, {cpu:.0f} CPU s")
    return Run(
        trained.seed,
        found.recovery.status is unweave.Status.RECOVERED and found.is_complete,
        comparison.parameter_error,
        fresh_error(trained.truth, network, trained.seed),
        found.recovery.queries_per_parameter,
        found.recovery.queries,
        wall,
        cpu,
        extra={"target": found.target_queries, "same": found.target_queries == alone.queries},
        same=comparison.is_same,
        peak_rss_mb=peak_rss_mb(),
    )


def attacked(trained: Trained, level: Level) -> Run:
    """Averaging with both numbers of rows, and bisection where answers are rounded."""
    stand_in = trained.stand_in()
    wall, cpu = time.perf_counter(), time.process_time()
    averaged = {rows: attack(stand_in, level, MOST_QUERIES, averaging=rows) for rows in ROWS}
    best = attack(stand_in, level, MOST_QUERIES) if level.is_rounded else averaged[ROWS[-1]]
    recovery = best.recovery
    errors = {rows: made.knowledge.median_weight_error for rows, made in averaged.items()}
    say(f"  seed {trained.seed}: {level.label}, {best.way} {recovery.status.name}, medians {errors}")
    return Run(
        trained.seed,
        recovery.status is unweave.Status.RECOVERED,
        best.knowledge.parameter_error,
        best.knowledge.fresh_error,
        recovery.queries_per_parameter,
        recovery.queries,
        time.perf_counter() - wall,
        time.process_time() - cpu,
        extra={"averaged": averaged},
        same=best.knowledge.parameter_error <= (1e-6 if level.is_rounded else 1.0),  # inf: other widths
        peak_rss_mb=peak_rss_mb(),
    )


def weights_known(attacks: Sequence[Attack]) -> str:
    """``2.6e-4 (7e-4)``: median over the seeds of the median, and worst of the worst, weight error."""
    median = np.median([made.knowledge.median_weight_error for made in attacks])
    worst = max(made.knowledge.worst_weight_error for made in attacks)
    return f"{median:.1e} ({worst:.0e})"


def measure(levels: Sequence[Level], networks: Sequence[Trained], decimals: Sequence[int]) -> list[Row]:
    """The row of the audit, then one per level."""
    say("audit: whole audits")
    runs = [audited(trained, decimals) for trained in networks]
    rows = [
        summarise(
            f"audit, {','.join(map(str, decimals))} decimals",
            runs,
            target_queries=float(np.median([run.extra["target"] for run in runs])),
            same_queries=f"{sum(run.extra['same'] for run in runs)} of {len(runs)}",
        )
    ]
    for level in levels:
        say(f"audit: {level.label}")
        runs = [attacked(trained, level) for trained in networks]
        known = {rows: weights_known([run.extra["averaged"][rows] for run in runs]) for rows in ROWS}
        first, second, queries = PROTOTYPE[level]
        rows.append(
            summarise(
                level.label,
                runs,
                averaged_8=known[ROWS[0]],
                averaged_128=known[ROWS[1]],
                prototype_8=first,
                prototype_128=second,
                prototype_queries=queries,
            )
        )
    return rows


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:3", "3 decimals only, 1 seed").parse_args(argv)
    levels = QUICK if arguments.quick else tuple(PROTOTYPE)
    decimals = tuple(level.decimals for level in QUICK) if arguments.quick else DECIMALS
    networks = [Trained.of(seed) for seed in seeds_of(arguments, 3, 1)]
    rows = measure(levels, networks, decimals)
    assert all(COMMON.keys() <= row.keys() for row in rows)
    tell(rows, COLUMNS, arguments.json)
    return rows


if __name__ == "__main__":
    main()
