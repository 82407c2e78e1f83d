"""The published pipeline for deep tanh networks on its own settings, beside its figures (Tables 4.2 to 4.5).

Networks with D = 50 inputs, unit weights in all layers and shifts of standard deviation 0.05, tanh or
identity outputs. Hessians come from differences of answers (Tables 4.2 and 4.4) or, with --exact, in closed
form (Tables 4.3 and 4.5). Measured, means over the seeds:

- **A_W**: ||P - P^||_F, the projectors onto the true and the estimated span of squared entangled weights;
- **E1 .. E4**: the largest distance of a true unit entangled weight of the layer, up to sign, to the nearest
  direction found (for identity outputs the last layer's do not curve and are not searched for);
- **false positives**: directions found that are farther than 0.1 from all true ones, summed over the seeds;
- **r(V1), r(V2)**: part of the directions sorted into the layer that are within 0.1 of one of its own;
- **full detection**: part of the seeds at which all layers are right.

With four layers an oracle that knows the truth tells the inner ones apart, as in the source. Each setting
gives two rows: the pipeline alone, which keeps the error of the entangled weights, and before it the same
followed by a fit of all parameters to 1.3 equations for each, which does not. ``--printed`` takes the
source's printed radius 1000 and raw Hessians for the assignment instead of 100 and normalised ones.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

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
from unweave.arrays import Array, IntArray
from unweave.derivatives.entangled import entangled_weights
from unweave.experiments.planted import distances
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import fit_values
from unweave.published.deep import (
    ExactDerivatives,
    PublishedDeepOptions,
    PublishedDeepResult,
    recover_deep_as_published,
)
from unweave.subspace import orthonormal_basis, symmetric_packing

SHIFTS = 0.05
NEAR = 0.1
"""Distance from which a direction is a false positive or in the wrong layer. Source: 0.1."""
EQUATIONS_PER_PARAMETER = 1.3
INPUTS = 50
QUICK_INPUTS, QUICK = 12, ((12, 6, 8), "identity")
QUICK_OPTIONS = PublishedDeepOptions(power_steps=100, newton_steps=50)


@dataclass(frozen=True)
class Published:
    """A row of Tables 4.2 and 4.4 (or 4.3 and 4.5); None where there is no figure."""

    span: float
    errors: tuple[float, ...]
    first: float | None = None
    second: float | None = None
    full: float | None = None


SETTINGS = {
    ((50, 25, 10), "tanh"): (
        Published(0.31, (2.1e-2, 1.5e-2, 8.6e-3), 0.998, 0.996, 0.9),
        Published(0.24, (1.7e-2, 1.4e-2, 7.7e-3), 0.998, 0.996, 0.9),
    ),
    ((50, 25, 10), "identity"): (
        Published(0.08, (9.3e-3, 3.1e-3), 0.998, 0.996, 0.9),
        Published(0.08, (7.4e-3, 3.2e-3), 0.996, 0.992, 0.8),
    ),
    ((50, 25, 50), "tanh"): (
        Published(0.11, (7.8e-3, 3.9e-3, 3.3e-3), 1.0, 1.0, 1.0),
        Published(0.09, (6.6e-3, 2.9e-3, 2.9e-3), 1.0, 1.0, 1.0),
    ),
    ((50, 25, 50), "identity"): (
        Published(0.04, (3.2e-3, 1.4e-3), 1.0, 1.0, 1.0),
        Published(0.04, (3.4e-3, 1.4e-3), 1.0, 1.0, 1.0),
    ),
    ((50, 35, 25, 10), "tanh"): (
        Published(1.00, (2.8e-2, 3.1e-2, 3.1e-2, 2.1e-2)),
        Published(0.93, (2.6e-2, 3.2e-2, 2.8e-2, 1.8e-2)),
    ),
    ((50, 35, 25, 10), "identity"): (
        Published(0.57, (1.9e-2, 1.9e-2, 1.5e-2)),
        Published(0.31, (1.7e-2, 1.4e-2, 9.1e-3)),
    ),
}
"""Widths and output activation to the published figures, from differences and exact."""

COLUMNS = {
    "span_error": "A_W",
    "published_span_error": "A_W published",
    "layer_errors": "E1, E2, ..",
    "published_layer_errors": "E published",
    "false_positives": "false positives",
    "first_layer": "r(V1)",
    "published_first_layer": "r(V1) published",
    "second_layer": "r(V2)",
    "published_second_layer": "r(V2) published",
    "full_detection": "full detection",
    "published_full_detection": "full detection published",
}


def plant(inputs: int, widths: Sequence[int], output: str, seed: int) -> unweave.Network:
    """Unit columns, normal shifts."""
    rng = np.random.default_rng(seed)
    weights, biases = [], []
    for before, after in pairwise([inputs, *widths]):
        columns = rng.standard_normal((before, after))
        weights.append(columns / np.linalg.norm(columns, axis=0))
        biases.append(SHIFTS * rng.standard_normal(after))
    return unweave.Network(weights, biases, ["tanh"] * (len(widths) - 1) + [output])


def true_directions(truth: unweave.Network) -> list[Array]:
    """(m_l, D) unit entangled weights at the origin, layer by layer."""
    matrices = entangled_weights(truth, np.zeros((1, truth.n_inputs))).matrices
    return [(matrix[0] / np.linalg.norm(matrix[0], axis=0)).T for matrix in matrices]


def span_error(found: PublishedDeepResult, curved: Array) -> float:
    """||P - P^||_F of the true squares' span, unit rows (m*, D), and the estimate."""
    truth = orthonormal_basis(symmetric_packing(curved.shape[1]).outer(curved).T)
    estimate = found.entangled.span.basis(found.entangled.rank)
    # ||P - P^||_F^2 = 2 (m* - ||B^T B^||_F^2) for projectors of equal rank.
    return math.sqrt(2 * np.sum((estimate - truth @ (truth.T @ estimate)) ** 2))


def stage_figures(found: PublishedDeepResult, truth: unweave.Network, output: str) -> dict[str, object]:
    """What the tables measure."""
    layers = true_directions(truth)
    curved = layers if output != "identity" else layers[:-1]
    directions = found.entangled.directions
    figures: dict[str, object] = {
        "span_error": span_error(found, np.concatenate(curved)),
        "layer_errors": [float(distances(layer, directions).max()) for layer in curved],
        "false_positives": int((distances(directions, np.concatenate(layers)) > NEAR).sum()),
        "full": False,
    }
    if found.layers is not None:
        right = [
            float((distances(layer.T, expected) <= NEAR).mean())
            for layer, expected in zip(found.layers, layers, strict=True)
        ]
        figures |= {"first": right[0], "second": right[1], "full": min(right) == 1.0}
    return figures


def run_once(
    inputs: int, widths: tuple[int, ...], output: str, exact: bool, seed: int, options: PublishedDeepOptions
) -> tuple[Run, Run]:
    """The pipeline followed by the fit of all parameters, and the pipeline alone."""
    truth = plant(inputs, widths, output, seed)
    layers = true_directions(truth)

    def oracle(rows: Array) -> IntArray:
        far = np.stack([distances(rows, layer) for layer in layers[1:-1]])
        return np.argmin(far, axis=0) + 2

    wall, cpu = time.perf_counter(), time.process_time()
    found = recover_deep_as_published(
        ExactDerivatives(truth) if exact else truth,
        inputs,
        widths,
        output,
        options,
        np.random.default_rng(search_seed(seed)),
        layer_oracle=oracle,
    )
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    figures = stage_figures(found, truth, output)
    asked = sum(found.queries.values())
    alone = measured(truth, found.network, seed, asked, wall, cpu, dict(found.seconds), figures)
    say(
        f"  seed {seed}: {found.outcome.name}, A_W {figures['span_error']:.2g}, full detection "
        f"{figures['full']}, parameter error {alone.parameter_error:.2g}, {wall:.1f} s"
    )
    if found.network is None:
        return replace(alone), alone
    wall2, cpu2 = time.perf_counter(), time.process_time()
    count = points_to_fit(truth)
    points = np.random.default_rng([search_seed(seed), 1]).standard_normal((count, inputs))
    fitted = fit_values(
        NetworkParameters.from_network(found.network), points, truth(points)
    ).model.to_network()
    wall2, cpu2 = time.perf_counter() - wall2, time.process_time() - cpu2
    stages = {**found.seconds, "fit of all parameters": wall2}
    fit = measured(truth, fitted, seed, asked + count, wall + wall2, cpu + cpu2, stages, figures)
    say(f"  seed {seed}: all parameters fitted, parameter error {fit.parameter_error:.2g}, {wall2:.1f} s")
    return fit, alone


def points_to_fit(network: unweave.Network) -> int:
    """Points with 1.3 independent equations per parameter, behind every bottleneck.

    The parameters of layers 1 .. l act through every later layer, so that a point gives no more equations
    for them than the narrowest of those has units.
    """
    widths = (*network.hidden, network.n_outputs)
    sizes = [w.size + b.size for w, b in zip(network.weights, network.biases, strict=True)]
    per_point = [sum(sizes[: layer + 1]) / min(widths[layer:]) for layer in range(len(widths))]
    return math.ceil(EQUATIONS_PER_PARAMETER * max(per_point))


def measured(
    truth: unweave.Network,
    network: unweave.Network | None,
    seed: int,
    queries: int,
    wall: float,
    cpu: float,
    stages: dict[str, float],
    figures: dict[str, object],
) -> Run:
    """One run against the truth. Recovered means that `unweave.compare` says so, the only verdict here."""
    comparison = None if network is None else unweave.compare(truth, network)
    same = comparison is not None and comparison.is_same
    return Run(
        seed,
        recovered=same,
        parameter_error=math.inf if comparison is None else comparison.parameter_error,
        fresh_error=math.inf if network is None else fresh_error(truth, network, seed),
        queries_per_parameter=queries / truth.n_parameters,
        queries=queries,
        seconds=wall,
        cpu_seconds=cpu,
        stages=stages,
        extra=figures,
        same=same,
        peak_rss_mb=peak_rss_mb(),
    )


def row_of(setting: str, runs: Sequence[Run], published: Published | None) -> Row:
    """Means of the figures, with the published ones beside them."""

    def mean(name: str) -> float | None:
        known = [run.extra[name] for run in runs if name in run.extra]
        return float(np.mean(known)) if known else None

    return summarise(
        setting,
        runs,
        span_error=mean("span_error"),
        layer_errors=np.mean([run.extra["layer_errors"] for run in runs], axis=0).tolist(),
        false_positives=sum(run.extra["false_positives"] for run in runs),
        first_layer=mean("first"),
        second_layer=mean("second"),
        full_detection=mean("full"),
        published_span_error=published and published.span,
        published_layer_errors=published and list(published.errors),
        published_first_layer=published and published.first,
        published_second_layer=published and published.second,
        published_full_detection=published and published.full,
    )


def measure(
    inputs: int,
    widths: tuple[int, ...],
    output: str,
    exact: bool,
    seeds: range,
    options: PublishedDeepOptions,
) -> list[Row]:
    """The two rows of one setting."""
    derivatives = "exact" if exact else "differences"
    name = f"{'-'.join(map(str, widths))} {output}, {derivatives}"
    say(f"deep_published: D = {inputs}, {name}")
    runs = [run_once(inputs, widths, output, exact, seed, options) for seed in seeds]
    published = SETTINGS[widths, output][int(exact)] if (widths, output) in SETTINGS else None
    return [
        row_of(f"{name}, then all parameters", [fit for fit, _ in runs], published),
        row_of(name, [alone for _, alone in runs], published),
    ]


def widths_of(text: str) -> tuple[int, ...]:
    """Read ``50,25,10``."""
    try:
        widths = tuple(int(part) for part in text.split(","))
    except ValueError:
        widths = ()
    if widths not in {known for known, _ in SETTINGS}:
        raise argparse.ArgumentTypeError(
            f"widths must be those of a published setting. Got {text!r} instead. For example 50,25,10."
        )
    return widths


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    options_of = parser(__doc__, "0:10", f"D = {QUICK_INPUTS}, {QUICK}, 1 seed")
    options_of.add_argument("--exact", action="store_true", help="derivatives in closed form")
    options_of.add_argument("--printed", action="store_true", help="the printed constants of the assignment")
    options_of.add_argument("--widths", type=widths_of, default=None, help="only this setting: 50,25,10")
    arguments = options_of.parse_args(argv)
    seeds = seeds_of(arguments, 10, 1)
    options = QUICK_OPTIONS if arguments.quick else PublishedDeepOptions()
    if arguments.printed:
        printed = PublishedDeepOptions.as_printed()
        options = replace(printed, completion=options.completion, newton_steps=options.newton_steps)
    chosen = [key for key in SETTINGS if arguments.widths in (None, key[0])]
    rows = []
    for widths, output in [QUICK] if arguments.quick else chosen:
        inputs = QUICK_INPUTS if arguments.quick else INPUTS
        rows += measure(inputs, widths, output, arguments.exact, seeds, options)
    tell(rows, {**COMMON, **COLUMNS}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
