"""Wide shallow layers: [identification] Table 3.2 and Figs. 3.3 to 3.5."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from unweave.diagnose import weight_error_terms
from unweave.experiments.drawing import curves, heat_map
from unweave.experiments.experiment import Figure, at_most, equal, shown
from unweave.experiments.planted import uniform_error, unit_errors
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
    series,
)
from unweave.networks.comparison import compare
from unweave.networks.random import random_network
from unweave.published.shallow import PublishedOptions, recover_published
from unweave.published.shallow.pipeline import recover_weights
from unweave.recovery.recover import recover
from unweave.recovery.result import Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_BIAS = 0.5  # shifts are uniform on [-0.5, 0.5]
_ORDERS = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 1.875, 1.9375, 2.0)
SECONDS = {
    20: (4.58, 4.53, 4.75, 4.76, 5.25, 5.89, 6.33, 6.6, 7.63),
    25: (5.7, 5.67, 5.75, 6.19, 7.02, 8.38, 9.52, 10.3, 11.4),
    30: (6.77, 6.87, 6.93, 7.44, 8.53, 10.6, 12.6, 14.7, 17.4),
    35: (8.35, 8.41, 8.49, 9.3, 10.6, 13.8, 18.3, 22.1, 27.5),
    40: (9.89, 9.95, 10.3, 11.1, 12.8, 18.2, 26.5, 33.0, 43.1),
    45: (12.3, 12.4, 12.9, 13.6, 16.0, 25.1, 38.4, 50.7, 70.8),
    50: (15.0, 15.2, 15.7, 16.7, 19.9, 34.1, 57.2, 79.8, 113.0),
}
"""Table 3.2, L6987-6996: inputs D to seconds on a GPU by order beta."""


def width_of(inputs: int, order: float) -> int:
    """m = ceil(2/5 D^beta)."""
    return max(1, math.ceil(0.4 * math.pow(inputs, order) - 1e-9))


def _grid_cells(size: Size, seeds: range) -> Iterator[Cell]:
    dimensions, orders = list(SECONDS), list(_ORDERS)
    if size == "quick":
        dimensions, orders = [20], [1.0, 1.5]
    for seed in seeds:
        for inputs in dimensions:
            for order in orders:
                for route in ("published", "default"):
                    yield {"D": inputs, "beta": order, "route": route, "seed": seed}


def measure_grid(cell: Cell) -> Values:
    """One network, by Alg. 3.1 as printed or by `unweave.recover`."""
    inputs, seed = int(cell["D"]), int(cell["seed"])
    width = width_of(inputs, float(cell["beta"]))
    truth = random_network([inputs, width, 1], seed=seed, outer="ones", bias=_BIAS)
    began, wall = time.process_time(), time.perf_counter()
    nothing = {"m": width, "uniform": None, "weights": None, "shifts": None, "signs": 0}
    if cell["route"] == "default":
        recovered = recover(truth, hidden=[width], activation="tanh", seed=seed + 1)  # asked, never read
        if recovered.network is None or recovered.status is not Status.RECOVERED:
            return {**nothing, "cpu": time.process_time() - began}
        error = compare(truth, recovered.network).parameter_error
        found, signs, early = recovered.network, width, None
        values = {"uniform": uniform_error(truth, found, 20_000, np.random.default_rng(seed))[0]}
        values |= {"weights": error, "shifts": error}
    else:
        options = PublishedOptions(refinement="none")
        printed = recover_published(truth, inputs, width, "tanh", seed + 1, options)
        overlap = truth.weights[0].T @ printed.weights
        order = np.argmax(np.abs(overlap), axis=1)
        signs = int((overlap[np.arange(width), order] > 0).sum()) if len(set(order)) == width else 0
        weights, shifts = unit_errors(truth, printed.network)
        early = sum(printed.seconds[name] for name in ("hessians and span", "directions", "signs and shifts"))
        uniform = uniform_error(truth, printed.network, 20_000, np.random.default_rng(seed))[0]
        values = {"uniform": uniform, "weights": weights, "shifts": shifts}
    seconds = time.perf_counter() - wall if early is None else early
    return {"m": width, **values, "signs": signs, "cpu": time.process_time() - began, "wall": seconds}


def _grid_figures(records: Records) -> Iterator[Figure]:
    printed = [r for r in records if r.cell["route"] == "published"]
    ours = [r for r in records if r.cell["route"] == "default"]
    if printed:
        yield equal(
            "Alg. 3.1: cells with every sign right",
            len(printed),
            sum(r.values["signs"] == r.values["m"] for r in printed),
            origin="stated, L6934",
        )
        wide = [r for r in printed if float(r.cell["beta"]) < 2]
        rule = "not above the darkest tick of the figure"
        for group, name in ((wide, "beta < 2"), ([r for r in printed if r.cell["beta"] == 2], "beta = 2")):
            if group:
                note = "before the gradient descent of the shifts"
                yield at_most(
                    f"Alg. 3.1, {name}: worst weight",
                    1e-1,
                    float(numbers(group, "weights").max()),
                    rule,
                    note,
                    origin="axis, L6918",
                )
                yield at_most(
                    f"Alg. 3.1, {name}: worst error of all shifts, l2",
                    1e-1 if name == "beta < 2" else 1.0,
                    float(numbers(group, "shifts").max()),
                    rule,
                    note,
                    origin="axis, L6918",
                )
        square = grouped([r for r in printed if r.cell["beta"] == 2], "D")
        if len(square) > 2:
            dimensions = sorted(key[0] for key in square)
            ends = [mean(square[key,], "weights") for key in (dimensions[0], dimensions[-1])]
            yield at_most(
                f"Alg. 3.1, beta = 2: worst weight at D = {dimensions[-1]} over that at D = {dimensions[0]}",
                1.0,
                ends[1] / ends[0],
                "errors fall as the dimension grows",
                origin="stated, L6983",
            )
    if ours:
        yield equal(
            "default route: cells recovered",
            len(ours),
            sum(r.values["uniform"] is not None for r in ours),
            origin="derived",
        )
        yield at_most(
            "default route: worst parameter error",
            1e-4,
            float(numbers(ours, "weights").max()),
            "not above the smallest published error",
            published="1e-4 to 1e-1",
            origin="axis, L6956",
        )
    for (inputs, order, route), group in grouped(records, "D", "beta", "route").items():
        if order == 2.0:
            seconds = SECONDS[int(inputs)][-1]
            yield shown(
                f"D = {inputs}, beta = 2, {route}: CPU seconds",
                f"{seconds:g} s on a GPU",
                mean(group, "cpu"),
                origin="L6987-6996",
            )


def _paint_grid(drawing: Drawing, records: Records) -> None:
    panels = (("uniform", "uniform error"), ("weights", "worst weight"), ("shifts", "shifts, l2"))
    routes = [route for route in ("published", "default") if any(r.cell["route"] == route for r in records)]
    axes = drawing.subplots(len(routes), 3, sharex=True, sharey=True, squeeze=False)
    for row, route in enumerate(routes):
        for column, (name, title) in enumerate(panels):
            held = [r for r in records if r.cell["route"] == route]
            cells = {
                (key[1], key[0]): float(np.median(numbers(group, name)))
                for key, group in grouped(held, "D", "beta").items()
            }
            heading = f"{'Alg. 3.1' if route == 'published' else 'unweave.recover'}: {title}"
            heat_map(axes[row, column], cells, "beta", "D" if column == 0 else "", heading)


def _paint_square(drawing: Drawing, records: Records) -> None:
    axes = drawing.subplots()
    held = [r for r in records if r.cell["beta"] == 2.0 and r.cell["route"] == "published"]
    names = (("uniform", "uniform error"), ("weights", "worst weight"), ("shifts", "shifts, l2"))
    lines = {title: series(held, "D", name) for name, title in names}
    curves(axes, lines, "D", "Alg. 3.1, m = 2/5 D^2, before descent", log=True)


WIDE_GRID = Study(
    _grid_cells,
    measure_grid,
    _grid_figures,
    (
        Picture(
            "Errors of all cells, by Algorithm 3.1 and by the default route",
            "Figure 3.3 and Table 3.2. Decimal logarithms; Algorithm 3.1 without its final descent.",
            _paint_grid,
            rows=lambda records: 2,
        ),
        Picture("The quadratic regime", "Figure 3.4, before the final descent.", _paint_square, wide=False),
    ),
)


# Fig. 3.5
def _bound_cells(size: Size, seeds: range) -> Iterator[Cell]:
    inputs, widths = 50, list(range(50, 621, 30))
    if size == "quick":
        inputs, widths = 20, [60, 90, 120]
    for seed in seeds:
        for width in widths:
            yield {"D": inputs, "m": width, "seed": seed}


def measure_bounds(cell: Cell) -> Values:
    """Weights by Alg. 3.2, and what their errors make of the bounds of Prop. 3.1 and Thm. 3.2."""
    inputs, width, seed = int(cell["D"]), int(cell["m"]), int(cell["seed"])
    truth = random_network([inputs, width, 1], seed=seed, outer="ones", bias=_BIAS)
    found = recover_weights(truth, inputs, width, np.random.default_rng(seed + 1)).directions.directions
    weights = truth.weights[0]
    if len(found) < width:
        return {"found": len(found), "initial": None, "floor": None, "accumulated": None, "largest": None}
    overlap = weights.T @ found.T
    order = np.argmax(np.abs(overlap), axis=1)
    signs = np.sign(overlap[np.arange(width), order])
    terms = weight_error_terms(weights, found[order].T * signs)
    return {
        "found": len(set(order.tolist())),
        "initial": terms.initial_second,
        "floor": terms.floor,
        "accumulated": terms.accumulated,
        "largest": terms.largest,
    }


def _bound_figures(records: Records) -> Iterator[Figure]:
    yield equal(
        "networks with all weights found",
        len(records),
        sum(r.values["found"] == r.cell["m"] for r in records),
        origin="derived",
    )
    kept = [r for r in records if r.values["floor"] is not None]
    widths = sorted({int(r.cell["m"]) for r in kept})
    for width in (widths[0], widths[len(widths) // 2], widths[-1]):
        group = [r for r in kept if r.cell["m"] == width]
        yield at_most(
            f"m = {width}: bound after descent over that of the start",
            1.0,
            mean(group, "floor") / mean(group, "initial"),
            "descent is expected to improve the shifts",
            origin="stated, L7063",
        )
        yield at_most(
            f"m = {width}: |sum of residuals| over sqrt(m) times the largest one",
            1.0,
            mean(group, "accumulated") / (math.sqrt(width) * mean(group, "largest")),
            "errors do not add up",
            origin="stated, L7020",
        )


def _paint_bounds(drawing: Drawing, records: Records) -> None:
    axes = drawing.subplots()
    held = [r for r in records if r.values["floor"] is not None]
    names = (
        ("initial", "start, (3.142)"),
        ("floor", "after descent, (3.143)"),
        ("accumulated", "sum of residuals"),
    )
    lines = {title: series(held, "m", name) for name, title in names}
    curves(axes, lines, "units m", "bounds with constants 1", log=True)


SHIFT_BOUNDS = Study(
    _bound_cells,
    measure_bounds,
    _bound_figures,
    (
        Picture(
            "Bounds on the shifts before and after descent", "Figure 3.5, D = 50.", _paint_bounds, wide=False
        ),
    ),
)
