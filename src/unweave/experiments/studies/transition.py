"""How many entangled weights Hessians near a point show: [identification] Figs. 4.2 to 4.4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np

from unweave.arrays import Array
from unweave.experiments.deep import span_error, true_directions
from unweave.experiments.drawing import curves
from unweave.experiments.experiment import Figure, at_least, at_most, shown
from unweave.experiments.planted import deep_network, distances
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
from unweave.published.deep import ExactDerivatives, PublishedDeepOptions
from unweave.published.deep.entangled_recovery import leading_span, search_span
from unweave.subspace.hessian_span import HessianSpan
from unweave.subspace.power_method import power_iterations, uniform_starts
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_SHIFTS = 0.05
_FOUND = 0.05  # distance at which an entangled weight counts as found, (4.54)
_PUBLISHED_STARTS = 10_000  # of the power method
_STARTS_PER_UNIT = 8  # at half the size or far from a point; one beyond the transition, where few converge
_SITES_PER_OUTPUT = 20  # N_h = 20 ceil(m / m_L)
_SITES_PER_BLOCK = 64  # whose Hessians are formed at once: limits memory
_PUBLISHED_INPUTS = 100  # where some 40 power steps converge; in fewer dimensions Newton steps follow


def widths_of(units: int, outputs: int, layers: int, contraction: float) -> list[int]:
    """Widths of ``layers`` layers, the last of ``outputs`` units, each hidden one floor(c) of that before.

    Example:
        >>> widths_of(200, 10, 3, 0.5), widths_of(200, 10, 3, 1.0), widths_of(100, 5, 4, 1.0)
        ([127, 63, 10], [95, 95, 10], [32, 32, 31, 5])
    """
    hidden = units - outputs
    shares = np.array([contraction**level for level in range(layers - 1)])
    first = int(np.ceil(hidden / shares.sum()))
    widths = [int(first * share) for share in shares]
    missing = hidden - sum(widths)  # no layer is wider than the one before
    widths[0 if missing > 0 else -1] += missing
    return [*widths, outputs]


def measure_entangled(cell: Cell) -> Values:
    """Span of Hessians near the origin, and with ``starts`` the entangled weights that power steps find."""
    inputs, outputs, units = int(cell["D"]), int(cell["outputs"]), int(cell["m"])
    layers, radius = int(cell.get("L", 3)), float(cell.get("R", 0.01))
    widths = widths_of(units, outputs, layers, float(cell.get("c", 0.5)))
    rng = np.random.default_rng([int(cell["seed"]), inputs, *widths])
    truth = deep_network(rng, inputs, widths, "tanh", _SHIFTS)
    count = _SITES_PER_OUTPUT * -(-units // outputs)
    sites = radius * uniform_starts(count, inputs, rng)
    source = ExactDerivatives(truth)
    blocks = (sites[start : start + _SITES_PER_BLOCK] for start in range(0, count, _SITES_PER_BLOCK))
    span = leading_span(map(source.hessians, blocks), units)
    directions = np.concatenate(true_directions(truth))
    values: dict[str, object] = {
        "widths": "-".join(map(str, widths)),
        "span": span_error(directions, span.basis(units)) ** 2 / units,
    }
    starts = int(cell.get("starts", 0))
    if starts:
        options = PublishedDeepOptions(
            restarts=starts,
            power_steps=400,
            power_tolerance=1e-5,
            newton_steps=20 if inputs < _PUBLISHED_INPUTS else 0,
            single_precision=True,
        )
        zero = np.zeros(inputs)
        found = search_span(
            span, units, units, rng, zero, source.gradients(zero[None])[0], options
        ).directions
        values["found"] = float((distances(directions, found) < _FOUND).mean())
        values["false"] = float((distances(found, directions) >= _FOUND).mean()) if len(found) else 0.0
        values["held"] = held_share(span, directions, options)
    return values


def held_share(span: HessianSpan, directions: Array, options: PublishedDeepOptions) -> float:
    """Part of the unit rows (m, D) from which power steps on the span end near: what a search can find."""
    count, inputs = directions.shape
    space = RankOneSpace(span.basis(count), symmetric_packing(inputs)).astype(np.float32)
    begin = space.asarray(directions)
    ends = power_iterations(space, begin, options.gamma, options.power_steps, options.power_tolerance)
    cosines = np.abs(np.einsum("ij,ij->i", ends, begin))
    return float((np.sqrt(np.maximum(2 - 2 * cosines, 0)) < _FOUND).mean())


# Fig. 4.4
_SHARES = (0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4)


def _transition_cells(size: Size, seeds: range) -> Iterator[Cell]:
    inputs, outputs = 50, [4, 6, 8]
    shares = list(_SHARES)
    if size == "quick":
        inputs, outputs, shares = 20, [2, 4], [0.6, 0.8, 1.2, 1.4]
    for seed in seeds:
        for last in outputs:
            for share in shares:
                yield {"D": inputs, "outputs": last, "m": round(share * inputs * last), "seed": seed}


def _transition_figures(records: Records) -> Iterator[Figure]:
    rule = "the error has jumped by a factor of ten from 0.6 to 1.4 times D m_L"
    for (inputs, outputs), group in grouped(records, "D", "outputs").items():
        edge = int(inputs) * int(outputs)
        by = {int(m): mean(held, "span") for (m,), held in grouped(group, "m").items()}
        if min(by) > 0.7 * edge or max(by) < 1.3 * edge:
            continue
        name = f"D = {inputs}, m_L = {outputs}"
        yield at_least(
            f"{name}: span error above D m_L over that below",
            10.0,
            ratio(by[max(by)], by[min(by)]),
            rule,
            origin="stated, L8568",
        )
        middle = float(np.sqrt(by[min(by)] * by[max(by)]))
        place = crossing(by, middle)
        yield Figure(
            f"{name}: units at the transition",
            edge,
            place,
            bool(0.75 * edge <= place <= 1.25 * edge),
            "roughly at D m_L: within a quarter of it",
            origin="stated, L8575",
        )


def crossing(by: dict[int, float], level: float) -> float:
    """Number of units at which the error passes ``level``, by linear interpolation of its logarithm."""
    places = sorted(by)
    for left, right in pairwise(places):
        if by[left] < level <= by[right]:
            part = np.log(level / by[left]) / np.log(by[right] / by[left])
            return float(left + part * (right - left))
    return float("nan")


def _paint_transition(drawing: Drawing, records: Records) -> None:
    axes = drawing.subplots(1, 2)
    plain, scaled = {}, {}
    for (inputs, outputs), group in grouped(records, "D", "outputs").items():
        units, values = series(group, "m", "span")
        label = f"D = {inputs}, m_L = {outputs}"
        plain[label] = (units, values)
        scaled[label] = ([count / (inputs * outputs) for count in units], values)
    curves(axes[0], plain, "units m", "span error, |P - P^|_F^2 / m", log=True)
    curves(axes[1], scaled, "m / (D m_L)", "the same, over D m_L", log=True, legend=False)
    axes[1].axvline(1.0, color="#595959", lw=0.8)


TRANSITION = Study(
    _transition_cells,
    measure_entangled,
    _transition_figures,
    (
        Picture(
            "The transition at D m_L",
            "Figure 4.4. Error of the span of Hessians by number of units; right, over the number of "
            "inputs times outputs.",
            _paint_transition,
        ),
    ),
)


# Figs. 4.2 and 4.3
_RADII = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


def _concentration_cells(size: Size, seeds: range) -> Iterator[Cell]:
    grids: list[tuple[int, int, Sequence[int], list[int], list[float], Sequence[float]]]
    if size == "quick":
        grids = [(30, 5, [50, 170], [3], [0.5], [1e-2, 10.0])]
    else:  # as published, and at half the size
        grids = [
            (50, 5, [100, 150, 200, 250, 300], [2, 3, 4], [0.5, 1.0], _RADII),
            (_PUBLISHED_INPUTS, 10, range(200, 1600, 100), [2, 3, 4], [0.25, 0.5, 0.75, 1.0], _RADII),
        ]
    for seed in seeds:
        for inputs, outputs, units, layers, contractions, radii in grids:
            for count, depth, radius in product(units, layers, radii):
                for contraction in contractions if depth > 2 else [0.5]:  # one hidden layer has no shape
                    starts = _STARTS_PER_UNIT * count
                    if count > 0.8 * inputs * outputs:
                        starts = count
                    elif inputs == _PUBLISHED_INPUTS and radius < 1:
                        starts = _PUBLISHED_STARTS
                    yield {
                        "D": inputs,
                        "outputs": outputs,
                        "m": count,
                        "L": depth,
                        "c": contraction,
                        "R": radius,
                        "starts": starts,
                        "seed": seed,
                    }


def _concentration_figures(records: Records) -> Iterator[Figure]:
    for (inputs, outputs), group in grouped(records, "D", "outputs").items():
        yield from _concentration_at(group, f"D = {inputs}", float(inputs) * float(outputs))


def _concentration_at(records: Records, name: str, edge: float) -> Iterator[Figure]:
    few = [r for r in records if float(r.cell["m"]) <= 0.6 * edge]
    for (depth,), group in grouped(few, "L").items():
        near = [r for r in group if r.cell["R"] in (1e-2, 1e-1)]
        far = [r for r in group if r.cell["R"] == 10.0]
        if near and far:
            yield at_least(
                f"{name}, L = {depth}: span error at R = 10 over that at R = 0.01 and 0.1",
                10.0,
                mean(far, "span") / mean(near, "span"),
                "concentration is necessary",
                origin="stated, L8531",
            )
        if near and all("found" in r.values for r in near):
            yield at_least(
                f"{name}, L = {depth}, R = 0.01 and 0.1, few units: entangled weights found",
                0.97,
                float(numbers(near, "found").mean()),
                "all but a few: the source sees all of them, at D = 100",
                origin="stated, L8517",
            )
            known = [r for r in near if "held" in r.values]
            if known:
                yield shown(
                    f"{name}, L = {depth}, R = 0.01 and 0.1, few units: weights that power steps keep",
                    "-",
                    mean(known, "held"),
                )
            yield at_most(
                f"{name}, L = {depth}, R = 0.01 and 0.1, few units: false positives",
                0.01,
                mean(near, "false"),
                "hardly any: the source sees none, at D = 100",
                origin="stated, L8517",
            )
    many = [r for r in records if float(r.cell["m"]) >= 1.1 * edge and r.cell["R"] == 1e-2]
    below = [r for r in records if float(r.cell["m"]) <= 0.6 * edge and r.cell["R"] == 1e-2]
    if many and below:
        yield at_least(
            f"{name}, R = 0.01: span error beyond D m_L over that of few units",
            10.0,
            mean(many, "span") / mean(below, "span"),
            "it rises drastically from a critical number of units on",
            origin="stated, L8535",
        )


_TITLES = {"span": "span error", "found": "part found", "false": "false positives"}


def _paint_concentration(drawing: Drawing, records: Records) -> None:
    blocks = sorted(grouped(records, "D").items(), reverse=True)
    radii = sorted({float(r.cell["R"]) for r in records})
    axes = drawing.subplots(len(blocks) * len(_TITLES), len(radii), sharey="row", squeeze=False)
    for block, ((inputs,), held) in enumerate(blocks):
        for column, radius in enumerate(radii):
            near = grouped([r for r in held if r.cell["R"] == radius], "L")
            for place, name in enumerate(_TITLES):
                lines = {f"L = {key[0]}": series(group, "m", name) for key, group in sorted(near.items())}
                row = block * len(_TITLES) + place
                curves(
                    axes[row, column],
                    lines,
                    "units m" if name == "false" else "",
                    f"D = {inputs}, R = {radius:g}" if name == "span" else "",
                    log=name == "span",
                    legend=column == 1 and row == 0,
                )
                if column == 0:
                    axes[row, 0].set_ylabel(_TITLES[name])


CONCENTRATION = Study(
    _concentration_cells,
    measure_entangled,
    _concentration_figures,
    (
        Picture(
            "Span error, weights found and false positives by radius",
            "Figures 4.2 and 4.3. Bands contain all contraction factors and networks.",
            _paint_concentration,
            rows=lambda records: len(_TITLES) * len(grouped(records, "D")),
        ),
    ),
)
