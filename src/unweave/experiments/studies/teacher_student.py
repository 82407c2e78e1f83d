"""Empirical risk minimization by stochastic gradients: [identification] Figs. 1.2 to 1.5.

The source stops training by the clock of a GPU; here it stops after a number of steps, which every cell
names. So cells that need long training end earlier here, and no rule asks that they arrive.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from unweave.experiments.drawing import curves, heat_map, legend_beside
from unweave.experiments.experiment import Figure, at_least, at_most, shown
from unweave.experiments.planted import deep_network, sum_of_units, uniform_error, unit_errors
from unweave.experiments.study import (
    Cell,
    Picture,
    Records,
    Size,
    Study,
    Values,
    grouped,
    mean,
    numbers,
    ratio,
    series,
)
from unweave.optimize.student import StudentOptions, train_student

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_SHIFTS = 0.05  # standard deviation of the shifts, teacher and student alike
_TEST_POINTS = 100_000  # unseen inputs over which the uniform error is taken, as in the source
_ARRIVED = 1e-2  # uniform error from which on the teacher counts as found: others are above 0.1


def width_of(inputs: int, order: float) -> int:
    """m = ceil(2/5 D^beta)."""
    return max(1, math.ceil(0.4 * math.pow(inputs, order) - 1e-9))


# Fig. 1.2: samples against width, D = 25.
_ALPHAS = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
_BETAS = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 1.875, 2.0)


def _sample_cells(size: Size, seeds: range) -> Iterator[Cell]:
    grid = [(a, b) for b in _BETAS for a in _ALPHAS]
    inputs, steps = 25, 30_000
    if size == "quick":
        grid, inputs, steps = [(1.5, 1.75), (2.5, 1.0), (4.0, 1.0)], 10, 20_000
    for seed in seeds:
        for alpha, beta in grid:
            yield {"D": inputs, "alpha": alpha, "beta": beta, "steps": steps, "seed": seed}


def measure_shallow(cell: Cell) -> Values:
    """Train one student, and compare it with its teacher."""
    inputs, seed = int(cell["D"]), int(cell["seed"])
    width = int(cell["m"]) if "m" in cell else width_of(inputs, float(cell["beta"]))
    samples = (
        math.ceil(inputs ** float(cell["alpha"])) if "alpha" in cell else math.ceil(2.5 * width * inputs**2)
    )
    rng = np.random.default_rng([seed, inputs, width, samples])
    teacher, start = (sum_of_units(rng, inputs, width, _SHIFTS) for _ in range(2))
    options = StudentOptions(
        samples=samples,
        steps=int(cell["steps"]),
        rate=float(cell.get("rate", 0.005)),
        batch=min(64, samples),
    )
    found = train_student(teacher, start, options, rng)
    weights, shifts = unit_errors(teacher, found.network)
    uniform, relative = uniform_error(teacher, found.network, _TEST_POINTS, rng)
    return {
        "m": width,
        "samples": samples,
        "parameters": width * (inputs + 1),
        "mse": found.loss,
        "uniform": uniform,
        "relative": relative,
        "weights": weights,
        "shifts": shifts,
        "steps": found.steps,
    }


def _sample_figures(records: Records) -> Iterator[Figure]:
    few = [r for r in records if r.values["samples"] <= r.values["parameters"]]
    found = [r for r in records if r.values["uniform"] < _ARRIVED]
    identified = [r for r in found if r.values["weights"] < _ARRIVED]
    yield at_least(
        "teachers found, of all trainings",
        1,
        len(found),
        "some are found: the figure has a light region",
    )
    yield Figure(
        "of those with at most as many samples as parameters",
        0,
        sum(r.values["uniform"] < _ARRIVED for r in few),
        not any(r.values["uniform"] < _ARRIVED for r in few),
        "none: identification was only seen with more samples than parameters",
        origin="stated, L889",
    )
    yield Figure(
        "low error without the teacher's weights",
        0,
        len(found) - len(identified),
        len(found) == len(identified),
        "none: a low generalization error comes with the parameters",
        origin="stated, L885",
    )
    plenty = [r for r in records if float(r.cell["beta"]) <= 1 and float(r.cell["alpha"]) >= 4]
    if plenty:
        share = float(np.mean([r.values["uniform"] < _ARRIVED for r in plenty]))
        yield at_least(
            "beta <= 1, alpha >= 4: share found", 0.7, share, "most of the light corner of the figure"
        )
    over = [r for r in few if r.values["mse"] is not None]
    if over:
        ratio = float(
            np.median([r.values["relative"] / math.sqrt(max(r.values["mse"], 1e-16)) for r in over])
        )
        yield shown("few samples: uniform error over training error, median", "large: overfitting", ratio)


def _paint_samples(drawing: Drawing, records: Records) -> None:
    panels = (
        ("mse", "training error"),
        ("uniform", "uniform error"),
        ("weights", "worst weight"),
        ("shifts", "shifts, l2"),
    )
    axes = drawing.subplots(1, len(panels), sharey=True)
    for place, (name, title) in zip(axes, panels, strict=True):
        cells = {
            key: float(np.median(numbers(group, name)))
            for key, group in grouped(records, "alpha", "beta").items()
        }
        heat_map(place, cells, "alpha, N = D^alpha", "beta, m = 2/5 D^beta" if name == "mse" else "", title)


SGD_SAMPLES = Study(
    _sample_cells,
    measure_shallow,
    _sample_figures,
    (
        Picture(
            "Errors after training, by number of samples and of units",
            "Figure 1.2. Decimal logarithm of the median over the networks; each cell carries its number.",
            _paint_samples,
        ),
    ),
)


# Fig. 1.3: growing dimension.
def _dimension_cells(size: Size, seeds: range) -> Iterator[Cell]:
    dimensions, orders, steps = [15, 20, 25, 30, 35, 40, 45, 50], [0.5, 1.0, 1.5, 1.75], 20_000
    if size == "quick":
        dimensions, orders, steps = [8, 16], [1.0], 12_000
    for seed in seeds:
        for inputs in dimensions:
            for order in orders:
                yield {"D": inputs, "beta": order, "steps": steps, "seed": seed}


def _dimension_figures(records: Records) -> Iterator[Figure]:
    dimensions = sorted({int(r.cell["D"]) for r in records})
    for order in sorted({float(r.cell["beta"]) for r in records}):
        held = grouped([r for r in records if r.cell["beta"] == order], "D")
        low, high = held.get((dimensions[0],)), held.get((dimensions[-1],))
        if low is None or high is None or dimensions[0] == dimensions[-1]:
            continue
        note = "the same number of steps for every dimension"
        if order >= 1:
            yield at_least(
                f"beta = {order:g}: uniform error at D = {dimensions[-1]} over that at D = {dimensions[0]}",
                1.0,
                ratio(mean(high, "uniform"), mean(low, "uniform")),
                "training of a given length fails as the dimension grows",
                note,
                origin="stated, L912",
            )
        else:
            yield shown(
                f"beta = {order:g}: uniform error at D = {dimensions[-1]}", "small", mean(high, "uniform")
            )


def _paint_dimensions(drawing: Drawing, records: Records) -> None:
    axes = drawing.subplots(1, 3)
    for place, (name, title) in zip(
        axes,
        (("uniform", "uniform error"), ("weights", "worst weight"), ("shifts", "shifts, l2")),
        strict=True,
    ):
        lines = {}
        for (order,), group in grouped(records, "beta").items():
            lines[f"beta = {order:g}"] = series(group, "D", name)
        curves(place, lines, "D", title, log=True, legend=False)
    legend_beside(drawing, axes[0], columns=4)


SGD_DIMENSION = Study(
    _dimension_cells,
    measure_shallow,
    _dimension_figures,
    (
        Picture(
            "Errors as the dimension grows",
            "Figure 1.3. Mean over the networks, with their range.",
            _paint_dimensions,
        ),
    ),
)


# Fig. 1.4: learning rates, D = 50.
def _rate_cells(size: Size, seeds: range) -> Iterator[Cell]:
    inputs, widths, rates, steps = 50, [50, 100, 200, 400, 1000], [0.01, 0.005, 0.0025, 0.001], 5_000
    if size == "quick":
        inputs, widths, rates, steps = 10, [4, 40], [0.01, 0.0025], 10_000
    for seed in seeds:
        for width in widths:
            for rate in rates:
                yield {"D": inputs, "m": width, "rate": rate, "steps": steps, "seed": seed}


def _rate_figures(records: Records) -> Iterator[Figure]:
    widths = sorted({int(r.cell["m"]) for r in records})
    best = {
        width: min(
            mean(group, "weights")
            for group in grouped([r for r in records if r.cell["m"] == width], "rate").values()
        )
        for width in widths
    }
    if len(widths) > 1:
        yield at_least(
            f"best rate: worst weight at m = {widths[-1]} over that at m = {widths[0]}",
            1.0,
            ratio(best[widths[-1]], best[widths[0]]),
            "wider networks are harder to learn",
            origin="stated, L926",
        )
    widest = [r for r in records if r.values["m"] >= 2 / 5 * float(r.cell["D"]) ** 2]
    if widest:
        yield at_least(
            "m = 2/5 D^2: smallest uniform error",
            _ARRIVED,
            float(numbers(widest, "uniform").min()),
            "not found: SGD does not identify the quadratic regime",
            origin="stated, L907",
        )


def _paint_rates(drawing: Drawing, records: Records) -> None:
    axes = drawing.subplots(1, 2)
    for place, (name, title) in zip(
        axes, (("uniform", "uniform error"), ("weights", "worst weight")), strict=True
    ):
        lines = {}
        for (rate,), group in grouped(records, "rate").items():
            lines[f"rate {rate:g}"] = series(group, "m", name)
        curves(place, lines, "units m", title, log=True)


SGD_RATES = Study(
    _rate_cells,
    measure_shallow,
    _rate_figures,
    (
        Picture(
            "Errors by learning rate, D = 50",
            "Figure 1.4. Mean over the networks, with their range.",
            _paint_rates,
        ),
    ),
)


# Fig. 1.5: depth.
_RATES = (0.5, 0.25, 0.125, 0.0625, 0.015625, 0.00390625)


def _depth_cells(size: Size, seeds: range) -> Iterator[Cell]:
    inputs, shapes, rates, powers, steps = 50, ["50-25-10", "50-35-25-10"], list(_RATES), [2, 3], 20_000
    if size == "quick":
        inputs, shapes, rates, powers, steps = 10, ["10-6-3", "10-10-8-6-3"], [0.5, 0.015625], [2], 20_000
    for seed in seeds:
        for widths in shapes:
            for power in powers:
                for rate in rates:
                    yield {
                        "D": inputs,
                        "widths": widths,
                        "N": f"D^{power} m",
                        "rate": rate,
                        "steps": steps,
                        "seed": seed,
                    }


def measure_depth(cell: Cell) -> Values:
    """Train one deep student; the relative uniform error along the way."""
    inputs, steps = int(cell["D"]), int(cell["steps"])
    widths = [int(width) for width in str(cell["widths"]).split("-")]
    samples = inputs ** int(str(cell["N"])[2]) * sum(widths)
    rng = np.random.default_rng([int(cell["seed"]), inputs, samples, *widths])
    teacher, start = (deep_network(rng, inputs, widths, "tanh", _SHIFTS) for _ in range(2))
    times = sorted({round(float(t)) for t in np.geomspace(100, steps, 16)})
    test = np.random.default_rng([int(cell["seed"]), 1])
    errors = [uniform_error(teacher, start, 10_000, test)[1]]
    options = StudentOptions(
        samples=samples,
        steps=steps,
        rate=float(cell["rate"]),
        batch=32,
        frozen_output=False,
        records=times,
        tolerance=1e-14,
    )
    train_student(
        teacher,
        start,
        options,
        rng,
        lambda _, network: errors.append(uniform_error(teacher, network, 10_000, test)[1]),
    )
    return {"samples": samples, "times": [0, *times][: len(errors)], "errors": errors, "last": errors[-1]}


def _depth_figures(records: Records) -> Iterator[Figure]:
    shapes = list(dict.fromkeys(str(r.cell["widths"]) for r in records))
    best = {}
    for widths in shapes:
        held = grouped([r for r in records if r.cell["widths"] == widths], "rate")
        means = {rate: mean(group, "last") for (rate,), group in held.items()}
        best[widths] = min(means.values())
        if len(means) > 1:
            yield at_most(
                f"{widths}: error at rate {max(means):g} over that at rate {min(means):g}",
                1.0,
                ratio(means[max(means)], means[min(means)]),
                "higher rates perform better",
                origin="stated, L967",
            )
    if len(shapes) == 2:
        yield at_least(
            "error of four layers over that of three, best rates",
            1.0,
            ratio(best[shapes[1]], best[shapes[0]]),
            "four layers are learned worse",
            origin="stated, L993",
        )
        published = "about 0.1, stagnating"
        yield shown(
            f"{shapes[1]}: best relative uniform error",
            published,
            best[shapes[1]],
            "after the steps of a cell, not two hours",
        )


def _paint_depth(drawing: Drawing, records: Records) -> None:
    keys = list(grouped(records, "widths", "N"))
    axes = np.atleast_1d(drawing.subplots(1, len(keys), sharey=True))
    for place, (widths, count) in zip(axes, keys, strict=True):
        held = [r for r in records if r.cell["widths"] == widths and r.cell["N"] == count]
        lines = {}
        for (rate,), group in grouped(held, "rate").items():
            length = min(len(r.values["times"]) for r in group)
            times = group[0].values["times"][1:length]
            lines[f"rate {rate:g}"] = (times, np.array([r.values["errors"][1:length] for r in group]).T)
        curves(place, lines, "steps", f"{widths}, N = {count}", log=True, log_x=True, legend=place is axes[0])


SGD_DEPTH = Study(
    _depth_cells,
    measure_depth,
    _depth_figures,
    (
        Picture(
            "Relative uniform error along training of deep students",
            "Figure 1.5. Lines are means, bands contain all networks.",
            _paint_depth,
        ),
    ),
)
