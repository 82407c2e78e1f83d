"""Three and more hidden layers of ReLU units from queries, with nothing told; two that are wide or narrow.

Networks are planted or trained as in deep_relu.py, dead units taken out of the truth. "exact" counts the runs
whose function agrees with the truth on 20,000 N(0, I) and 5,000 N(0, 9 I) points to 1e-9 of the answers'
standard deviation, "parameters" those that `unweave.compare` calls the same to 1e-8. Every run is told on
stderr as it ends; where there is no network, with the layers that were completed. ``--deadline`` is what a
run may take.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import unweave
from deep_relu import Setting, figures, without_dead
from harness import COMMON, Row, parser, run_recovery, say, seeds_of, summarise, tell
from named_rows import measure_all, read_rows

COLUMNS = {
    **COMMON,
    "exact": "exact functions",
    "parameters": "parameters to 1e-8",
    "all_rows_per_parameter": "all rows per parameter",
    "max_seconds": "most CPU s",
    "statuses": "status, widths or completed layers, and function error of what was not recovered",
}
POINTS = ((1.0, 20_000), (3.0, 5_000))
"""Standard deviation and number of the points on which functions are compared."""
EXACT = 1e-9
SAME = 1e-8

SETTINGS = (
    *(Setting(shape) for shape in ((10, 10, 10, 10, 1), (20, 20, 20, 20, 1), (40, 20, 10, 10, 1))),
    Setting((10, 12, 12, 12, 3)),
    *(Setting(shape, data="diabetes") for shape in ((10, 12, 12, 8, 1), (10, 16, 16, 16, 1))),
    Setting((61, 32, 16, 16, 10), data="digits"),
    Setting((10, *(4 * [10]), 1)),
    Setting((10, *(6 * [8]), 1)),
    *(Setting((10, *(8 * [8]), 1)), Setting((784, *(8 * [8]), 1)), Setting((5, *(6 * [50]), 5))),
    *(Setting(shape) for shape in ((8, 64, 64, 1), (10, 32, 32, 1), (80, 40, 20, 1), (784, 32, 32, 10))),
    *(Setting((inputs, 2, 2, 1)) for inputs in (32, 512, 1024)),
    *(Setting(shape, data="policy") for shape in ((3, 32, 32, 3), (4, 64, 64, 2), (8, 64, 64, 4))),
    *(Setting(shape, data="policy") for shape in ((14, 32, 32, 14), (5, 64, 64, 64, 5))),
)
QUICK = ("diabetes:10-12-12-8-1",)


def function_error(truth: unweave.Network, network: unweave.Network | None) -> float:
    """Largest difference on the points, over the standard deviation of the answers."""
    if network is None:
        return float("inf")
    rng = np.random.default_rng(5)
    shapes = [(spread, (count, truth.n_inputs)) for spread, count in POINTS]
    points = np.concatenate([spread * rng.standard_normal(shape) for spread, shape in shapes])
    answers = truth(points)
    return float(np.abs(network(points) - answers).max() / answers.std())


def completed(result: unweave.Recovery) -> str:
    """Widths of the layers that a run without a network has completed."""
    known = result.known_layers
    widths = [] if known is None else [weights.shape[1] for weights in known.weights]
    return f"layers {'-'.join(map(str, widths))}" if widths else "no layer"


def measure(setting: Setting, seeds: range, deadline: float | None = None) -> Row:
    """The row of one setting."""
    say(f"relu_any_depth: {setting.name}")
    runs = []
    for seed in seeds:
        planted, target = setting.plant(seed)
        truth, _ = without_dead(planted)
        runs.append(
            run_recovery(
                truth,
                seed,
                target=target,
                input_dim=truth.n_inputs,
                deadline=deadline,
                extra=lambda result, truth=truth: {
                    **figures(result),
                    "known": completed(result),
                    "function": function_error(truth, result.network),
                    "rows": result.queries / truth.n_parameters,
                },
            )
        )
        say(f"    {runs[-1].extra}, {runs[-1].cpu_seconds:.1f} CPU s")
    missed = [run for run in runs if not run.recovered]
    return summarise(
        setting.name,
        runs,
        exact=sum(run.extra.get("function", np.inf) <= EXACT for run in runs),
        parameters=sum(run.parameter_error <= SAME for run in runs),
        all_rows_per_parameter=float(np.median([run.extra.get("rows", np.inf) for run in runs])),
        max_seconds=float(np.max([run.cpu_seconds for run in runs])),
        statuses=[
            f"{run.seed} {run.extra['status']} {run.extra['widths'] or run.extra['known']} "
            f"{run.extra['function']:.0e}"
            for run in missed
            if run.extra
        ],
    )


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the rows that are not done and print the table."""
    options = parser(__doc__, "0:10", f"{' and '.join(QUICK)} only, 1 seed")
    options.add_argument("--deadline", type=float, default=None, metavar="S", help="seconds of a run")
    quick = [setting for setting in SETTINGS if setting.name in QUICK]
    arguments, settings = read_rows(options, SETTINGS, quick, argv)

    def limited(setting: Setting, seeds: range) -> Row:
        return measure(setting, seeds, arguments.deadline)

    rows = measure_all(settings, limited, seeds_of(arguments, 10, 1), arguments.json)
    tell(rows, COLUMNS)
    return rows


if __name__ == "__main__":
    main()
