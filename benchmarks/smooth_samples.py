"""One smooth hidden layer from Gaussian samples: 10 inputs, 3, 5 or 8 units, width and activation told.

Noiseless samples, unit norms, biases up to one, signed outer weights; 10 000 samples unless `--samples` says
otherwise. "parameter error" as everywhere; queries are none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

import unweave
from harness import COMMON, Row, Run, parser, peak_rss_mb, say, search_seed, seeds_of, summarise, tell

INPUTS = 10
WIDTHS = (3, 5, 8)
ACTIVATIONS = ("tanh", "sigmoid", "softplus")
SAMPLES = 10_000


def run(width: int, activation: str, samples: int, seed: int) -> Run:
    """Plant, sample, recover, compare."""
    truth = unweave.random_network(
        [INPUTS, width, 1], activation=activation, seed=seed, outer="signed", bias=1
    )
    x = np.random.default_rng([seed, samples]).standard_normal((samples, INPUTS))
    data = unweave.Samples(x, truth(x))
    wall, cpu = time.perf_counter(), time.process_time()
    result = unweave.recover(data, hidden=[width], activation=activation, seed=search_seed(seed))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    comparison = None if result.network is None else unweave.compare(truth, result.network)
    error = np.inf if comparison is None else comparison.parameter_error
    say(f"  seed {seed}: {result.status.name}, parameter error {error:.2g}, {wall:.1f} s")
    return Run(
        seed,
        recovered=result.status is unweave.Status.RECOVERED,
        parameter_error=error,
        fresh_error=result.error,
        seconds=wall,
        cpu_seconds=cpu,
        same=comparison is not None and comparison.is_same,
        peak_rss_mb=peak_rss_mb(),
    )


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    options = parser(__doc__, "0:5", "tanh, 3 units, 1 seed")
    options.add_argument("--samples", type=int, default=SAMPLES, help="number of samples")
    arguments = options.parse_args(argv)
    seeds = seeds_of(arguments, 5, 1)
    rows = []
    for activation in ACTIVATIONS[:1] if arguments.quick else ACTIVATIONS:
        for width in WIDTHS[:1] if arguments.quick else WIDTHS:
            setting = f"{INPUTS}-{width}-1 {activation}, {arguments.samples} samples"
            say(f"smooth_samples: {setting}")
            rows.append(
                summarise(setting, [run(width, activation, arguments.samples, seed) for seed in seeds])
            )
    tell(rows, COMMON, arguments.json)
    return rows


if __name__ == "__main__":
    main()
