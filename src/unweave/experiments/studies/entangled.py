"""Entangled weights of deep networks: [identification] Tables 4.2 to 4.7 and Figs. 4.5 to 4.7."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

from unweave.arrays import Array, IntArray
from unweave.experiments.deep import span_error, true_directions
from unweave.experiments.drawing import curves, legend_beside, scatter
from unweave.experiments.experiment import Figure, at_most, equal, shown
from unweave.experiments.planted import deep_network, distances, uniform_error
from unweave.experiments.study import Cell, Picture, Records, Size, Study, Values, grouped, mean, numbers
from unweave.networks.network import Network
from unweave.published.deep import (
    ExactDerivatives,
    PublishedDeepOptions,
    PublishedDeepResult,
    recover_deep_as_published,
)
from unweave.published.deep.completion import complete_by_stochastic_gradients, training_count
from unweave.published.deep.reparametrization import DiagonalParameters, Reparametrisation, reparametrise

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_INPUTS, _SHIFTS = 50, 0.05
_NEAR = 0.1  # distance from which on a direction is a false positive, or in the wrong layer


@dataclass(frozen=True)
class Row:
    """A row of Tables 4.2 and 4.4, or of 4.3 and 4.5; None where nothing is printed."""

    span: float
    errors: tuple[float, ...]
    sorted_right: tuple[float, float] | None = None
    full: float | None = None


PRINTED = {
    ("50-25-10", "tanh", "differences"): Row(0.31, (2.1e-2, 1.5e-2, 8.6e-3), (0.998, 0.996), 0.9),
    ("50-25-10", "identity", "differences"): Row(0.08, (9.3e-3, 3.1e-3), (0.998, 0.996), 0.9),
    ("50-25-50", "tanh", "differences"): Row(0.11, (7.8e-3, 3.9e-3, 3.3e-3), (1.0, 1.0), 1.0),
    ("50-25-50", "identity", "differences"): Row(0.04, (3.2e-3, 1.4e-3), (1.0, 1.0), 1.0),
    ("50-35-25-10", "tanh", "differences"): Row(1.00, (2.8e-2, 3.1e-2, 3.1e-2, 2.1e-2)),
    ("50-35-25-10", "identity", "differences"): Row(0.57, (1.9e-2, 1.9e-2, 1.5e-2)),
    ("50-25-10", "tanh", "exact"): Row(0.24, (1.7e-2, 1.4e-2, 7.7e-3), (0.998, 0.996), 0.9),
    ("50-25-10", "identity", "exact"): Row(0.08, (7.4e-3, 3.2e-3), (0.996, 0.992), 0.8),
    ("50-25-50", "tanh", "exact"): Row(0.09, (6.6e-3, 2.9e-3, 2.9e-3), (1.0, 1.0), 1.0),
    ("50-25-50", "identity", "exact"): Row(0.04, (3.4e-3, 1.4e-3), (1.0, 1.0), 1.0),
    ("50-35-25-10", "tanh", "exact"): Row(0.93, (2.6e-2, 3.2e-2, 2.8e-2, 1.8e-2)),
    ("50-35-25-10", "identity", "exact"): Row(0.31, (1.7e-2, 1.4e-2, 9.1e-3)),
}
"""Widths, output and derivatives to the printed row. L9385-9412 and L9436-9452."""


def _table_cells(size: Size, seeds: range) -> Iterator[Cell]:
    keys = list(PRINTED)
    if size == "quick":
        keys = [("50-25-10", "identity", "exact")]
    for seed in seeds:
        for widths, output, derivatives in keys:
            yield {"widths": widths, "output": output, "derivatives": derivatives, "seed": seed}


def measure_table(cell: Cell) -> Values:
    """One network of a row: span, entangled weights and layers, against the truth."""
    truth, found = _recovered(cell)
    output = str(cell["output"])
    layers = true_directions(truth)
    curved = layers if output == "tanh" else layers[:-1]
    directions = found.entangled.directions
    values = {
        "span": span_error(np.concatenate(curved), found.entangled.span.basis(found.entangled.rank)),
        "errors": [float(distances(layer, directions).max()) for layer in curved],
        "false": int((distances(directions, np.concatenate(layers)) > _NEAR).sum()),
        "sorted": [0.0] * len(layers),
        "full": 0,
        "matrix_errors": None,
    }
    if found.layers is not None:
        pairs = list(zip(found.layers, layers, strict=True))
        right = [float((distances(columns.T, layer) <= _NEAR).mean()) for columns, layer in pairs]
        values |= {"sorted": right, "full": int(min(right) == 1.0)}
        values["matrix_errors"] = [float(distances(layer, columns.T).max()) for columns, layer in pairs]
    return values


def _planted(cell: Cell) -> tuple[Network, list[int]]:
    """The network of a cell, and the words that its draws begin with."""
    widths = [int(width) for width in str(cell["widths"]).split("-")]
    output = str(cell["output"])
    words = [int(cell["seed"]), len(output), *widths]
    return deep_network(np.random.default_rng(words), _INPUTS, widths, output, _SHIFTS), words


def _recovered(cell: Cell) -> tuple[Network, PublishedDeepResult]:
    truth, words = _planted(cell)
    source = ExactDerivatives(truth) if cell["derivatives"] == "exact" else truth
    found = recover_deep_as_published(
        source,
        _INPUTS,
        words[2:],
        str(cell["output"]),
        PublishedDeepOptions(completion="none"),
        np.random.default_rng([*words, 1]),
        layer_oracle=_oracle(truth),
    )
    return truth, found


def _oracle(truth: Network):  # type: ignore[no-untyped-def]
    """Tell inner layers apart by the truth, as the source does for four layers.

    Every layer gets as many directions as it has units: one that is no unit's goes where a unit is missing.
    """
    layers = true_directions(truth)[1:-1]
    places = np.repeat(np.arange(len(layers)), [len(layer) for layer in layers])

    def oracle(rows: Array) -> IntArray:
        far = np.stack([distances(rows, layer) for layer in layers], axis=1)
        return np.asarray(places[linear_sum_assignment(far[:, places])[1]] + 2)

    return oracle


_FACTOR = 1.5  # a mean over networks of ours agrees up to this factor above the printed mean of ten
_ONE_NETWORK = 2.0  # the same where fewer than five networks were measured


def _table_figures(records: Records) -> Iterator[Figure]:
    radius = (
        "layers by normalised Hessians at radius 100: with raw ones at the printed radius 1000 the published "
        "rate is not reached"
    )
    for key, group in grouped(records, "widths", "output", "derivatives").items():
        row, count = PRINTED[key], len(group)
        cell = f"{key[0]} {key[1]}, {key[2]}"
        numeric = key[2] == "differences"
        factor = _FACTOR if count >= 5 else _ONE_NETWORK
        rule = f"mean over {count} networks at most {factor:g} times the printed mean over 10"
        spread = _spread(numbers(group, "span"))
        table = "L9387-9394" if numeric else "L9398-9405"
        yield at_most(
            f"{cell}: A_W", factor * row.span, mean(group, "span"), rule, spread, row.span, origin=table
        )
        for index, printed in enumerate(row.errors):
            values = np.array([record.values["errors"][index] for record in group])
            yield at_most(
                f"{cell}: E{index + 1}",
                factor * printed,
                float(values.mean()),
                rule,
                _spread(values),
                printed,
                origin=table,
            )
        yield equal(f"{cell}: false positives", 0, int(numbers(group, "false").sum()), origin=table)
        if row.full is not None and row.sorted_right is not None:
            table = "L9438-9442" if numeric else "L9447-9451"
            for index, rate in enumerate(row.sorted_right):
                values = np.array([record.values["sorted"][index] for record in group])
                yield Figure(
                    f"{cell}: part of layer {index + 1} sorted",
                    rate,
                    float(values.mean()),
                    bool(values.mean() >= rate - 0.01),
                    "not more than 0.01 below the printed part",
                    ">=",
                    radius,
                    table,
                )
            yield shown(f"{cell}: full detection", row.full, mean(group, "full"), radius)
        full = [record for record in group if record.values["full"]]
        if full and key[0] != "50-35-25-10":
            last = np.array([record.values["matrix_errors"][-1] for record in full])
            level = 1e-6 if numeric else 1e-7
            yield at_most(
                f"{cell}: error of the last layer's matrix",
                level,
                float(last.max()),
                "of the printed order, 2e-7 from differences and 2e-8 exact",
                published="1.9e-07 to 2.9e-07" if numeric else "2.0e-08 to 2.8e-08",
                origin="L9494-9502" if numeric else "L9510-9519",
            )


def _spread(values: Array) -> str:
    return (
        f"from {values.min():.2g} to {values.max():.2g} over {len(values)} networks"
        if len(values) > 1
        else ""
    )


def _paint_tables(drawing: Drawing, records: Records) -> None:
    axes = drawing.subplots(1, 2)
    points, spans = {}, {}
    for key, group in grouped(records, "widths", "output", "derivatives").items():
        row, label = PRINTED[key], f"{key[0]} {key[1]}, {key[2]}"
        measured = np.array([record.values["errors"] for record in group])
        points[label] = (np.tile(row.errors, len(group)), measured.ravel())
        spans[label] = ([row.span] * len(group), numbers(group, "span"))
    for place, held, title in ((axes[0], spans, "A_W"), (axes[1], points, "E1, E2, .. of all layers")):
        scatter(place, held, "printed mean", "measured, by network", title, log=True)
        low, high = place.get_xlim()
        place.plot([low, high], [low, high], color="#595959", lw=0.8)
        place.get_legend().remove()
    legend_beside(drawing, axes[0], columns=4)


ENTANGLED_TABLES = Study(
    _table_cells,
    measure_table,
    _table_figures,
    (
        Picture(
            "Printed means beside the networks measured",
            "Tables 4.2 to 4.7. The line is equality; a point above it is an error larger than printed.",
            _paint_tables,
        ),
    ),
)


# Figs. 4.5 to 4.7: the completion, epoch by epoch.
def _curve_cells(size: Size, seeds: range) -> Iterator[Cell]:
    keys = [
        (widths, output, derivatives)
        for widths in ("50-25-10", "50-25-50", "50-35-25-10")
        for output in ("tanh", "identity")
        for derivatives in ("differences", "exact", "given")
    ]
    steps = 10_000
    if size == "quick":
        keys, steps = [("50-25-10", "tanh", "exact"), ("50-25-10", "tanh", "given")], 3000
    for seed in seeds:
        for widths, output, derivatives in keys:
            yield {
                "widths": widths,
                "output": output,
                "derivatives": derivatives,
                "steps": steps,
                "seed": seed,
            }


def measure_curve(cell: Cell) -> Values:
    """Fit scales and shifts to answers by stochastic gradients, with the metrics (4.81) to (4.83)."""
    if cell["derivatives"] == "given":
        truth, _ = _planted(cell)
        layers = tuple(rows.T for rows in true_directions(truth))
    else:
        truth, found = _recovered(cell)
        if found.layers is None:
            return {"full": 0, "steps": [], "mae": [], "relative": [], "shifts": [], "last": None}
        layers = found.layers
    rng = np.random.default_rng([int(cell["seed"]), 2])
    model = reparametrise(layers, truth.activations)
    options = PublishedDeepOptions(completion="sgd", max_steps=int(cell["steps"]))
    x = rng.standard_normal((training_count(model, options), _INPUTS))
    y = truth(x)
    test = np.random.default_rng([int(cell["seed"]), 3])
    metrics: dict[str, list[float]] = {"steps": [], "mae": [], "relative": [], "shifts": []}

    def record(steps: int, parameters: DiagonalParameters) -> None:
        network = model.to_network(parameters)
        metrics["steps"].append(steps)
        metrics["mae"].append(float(np.linalg.norm(network(x[:20_000]) - y[:20_000], axis=1).mean()))
        metrics["relative"].append(uniform_error(truth, network, 10_000, test)[1])
        metrics["shifts"].append(shift_error(truth, model, parameters, layers))

    complete_by_stochastic_gradients(model, x, y, model.identity(), rng, options, on_epoch=record)
    expected = true_directions(truth)
    right = all(
        (distances(columns.T, layer) <= _NEAR).all() for columns, layer in zip(layers, expected, strict=True)
    )
    return {"full": int(right), **metrics, "last": metrics["relative"][-1]}


def shift_error(
    truth: Network, model: Reparametrisation, parameters: DiagonalParameters, layers: tuple[Array, ...]
) -> float:
    """Largest over the hidden layers of the l2 distance of the shifts, matched by columns, up to signs."""
    worst = 0.0
    pairs = zip(true_directions(truth)[:-1], layers[:-1], truth.biases, parameters.shifts, strict=False)
    for expected, columns, true, found in pairs:
        near = np.argmax(np.abs(expected @ columns), axis=1)
        worst = max(worst, float(np.linalg.norm(np.abs(true) - np.abs(found[near]))))
    return worst


def _curve_figures(records: Records) -> Iterator[Figure]:
    for key, group in grouped(records, "widths", "output", "derivatives").items():
        cell = f"{key[0]} {key[1]}, {key[2]}"
        kept = [record for record in group if record.values["full"]]
        if not kept:
            yield shown(f"{cell}: networks with all layers right", "only those are shown", 0)
            continue
        first = np.mean([record.values["relative"][0] for record in kept])
        last = np.mean([record.values["last"] for record in kept])
        yield at_most(
            f"{cell}: relative uniform error at the end over that at the start",
            1.0,
            float(last / first),
            "falls",
            origin="stated, L9605",
        )
    for (widths, output), group in grouped(records, "widths", "output").items():
        ends = {
            key[0]: float(np.mean([r.values["last"] for r in held if r.values["full"]] or [np.inf]))
            for key, held in grouped(group, "derivatives").items()
        }
        found = [ends[name] for name in ("differences", "exact") if np.isfinite(ends.get(name, np.inf))]
        if "given" in ends and found:
            yield at_most(
                f"{widths} {output}: end from given entangled weights over that from recovered ones",
                1.0,
                ends["given"] / min(found),
                "exact entangled weights go further",
                origin="stated, L9611",
            )


_CURVE_COLUMNS = 3  # panels side by side that leave room for their numbers


def _paint_curves(drawing: Drawing, records: Records) -> None:
    keys = list(grouped(records, "widths", "output"))
    shape = (_curve_rows(records), min(_CURVE_COLUMNS, len(keys)))
    axes = np.atleast_2d(drawing.subplots(*shape, sharex=True, squeeze=False))
    for number, (widths, output) in enumerate(keys):
        block, column = divmod(number, _CURVE_COLUMNS)
        held = [
            r
            for r in records
            if (r.cell["widths"], r.cell["output"]) == (widths, output) and r.values["full"]
        ]
        for row, (name, title) in enumerate(
            (("relative", "relative uniform error"), ("shifts", "shifts, l2"))
        ):
            lines = {}
            for (derivatives,), group in grouped(held, "derivatives").items():
                length = min(len(r.values["steps"]) for r in group)
                steps = [max(1, step) for step in group[0].values["steps"][:length]]
                lines[f"{derivatives}"] = (steps, np.array([r.values[name][:length] for r in group]).T)
            heading = f"{widths} {output}\n{title}" if row == 0 else title
            place, label = axes[2 * block + row, column], "steps" if row else ""
            curves(place, lines, label, heading, log=True, legend=not number and not row)


def _curve_rows(records: Records) -> int:
    """Rows of panels: two for every few networks."""
    return 2 * -(-len(grouped(records, "widths", "output")) // _CURVE_COLUMNS)


COMPLETION_CURVES = Study(
    _curve_cells,
    measure_curve,
    _curve_figures,
    (
        Picture(
            "Relative uniform error and shifts along the completion",
            "Figures 4.5 to 4.7. Entangled weights from differences, from exact Hessians, and given.",
            _paint_curves,
            rows=_curve_rows,
        ),
    ),
)
