"""The network and its price as pictures: parameters with standard errors, and stages."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.recovery.result import Recovery
from unweave.report.facts import Facts, ordinal
from unweave.report.picture import (
    ACCENT,
    INK,
    QUIET,
    WIDE,
    Picture,
    draw,
    logarithmic,
    positive,
    thinned,
    whole_numbers,
)

_MOST_BARS = 60  # parameters drawn with error bars
_LEAST_VISIBLE = 0.01  # of the range of the parameters: the largest error bar that is worth a picture
_LEAST_STAGES = 3  # of a picture of the cost: fewer are read faster in the table
_LINE_STYLES = ("-", "--", ":")
_BAR_HEIGHT = 0.27  # inches per stage


def error_picture(recovery: Recovery, facts: Facts) -> Picture | None:
    """Parameters with their standard errors, where the answers are noisy."""
    network, errors = recovery.network, recovery.standard_errors
    if network is None or errors is None:
        return None
    values, bars = _flat(network), _flat(errors)
    if not bars.max() >= _LEAST_VISIBLE * (values.max() - values.min()):
        return None  # the bars would be thinner than the points

    def paint(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        ascending = np.argsort(values)[thinned(len(values), most=_MOST_BARS)]
        places = np.arange(len(ascending))
        look = {"fmt": "o", "color": INK, "ms": 3.5, "ecolor": ACCENT, "capsize": 2.5, "lw": 1}
        left.errorbar(places, values[ascending], bars[ascending], **look)
        left.set(xlabel="parameter, sorted", ylabel="value ± standard error")
        whole_numbers(left.xaxis)
        for place, (weights, biases) in enumerate(zip(errors.weights, errors.biases, strict=True)):
            layer = positive(np.sort(np.concatenate([weights.reshape(-1), biases])))
            index = thinned(len(layer))
            shares = 100 * (index + 1) / len(layer)
            style = _LINE_STYLES[place % len(_LINE_STYLES)]
            look = {"color": INK, "marker": "os^"[place % 3], "label": f"layer {place + 1}"}
            right.semilogy(shares, layer[index], style, **look)
        right.set(xlabel="parameters with at most this error (%)", ylabel="standard error")
        logarithmic(right.yaxis)
        right.legend(loc="best")

    parts = [
        Markup("layer {}: weights {}, biases {}").format(
            ordinal(place),
            facts(f"/standard_errors/{place}/weights/largest"),
            facts(f"/standard_errors/{place}/biases/largest"),
        )
        for place in range(len(errors.weights))
    ]
    caption = Markup("Standard errors that the noise of the answers leaves, largest of each kind: ")
    caption += Markup("; ").join(parts) + "."
    title = "Error bars of the parameters"
    return Picture("errors", title, caption, draw("errors", title, paint, WIDE), wide=True)


def stage_picture(recovery: Recovery, facts: Facts) -> Picture | None:
    """Queries and seconds per stage, those of one name added up."""
    names = list(dict.fromkeys(stage.name for stage in recovery.stages))
    if len(names) < _LEAST_STAGES:
        return None
    queries = np.array([sum(s.queries for s in recovery.stages if s.name == name) for name in names])
    seconds = np.array([sum(s.seconds for s in recovery.stages if s.name == name) for name in names])
    panels = [(queries, "queries", "///")] if queries.any() else []
    panels.append((seconds, "seconds", "\\\\\\"))

    def paint(figure: Figure) -> None:
        drawn = np.atleast_1d(np.asarray(figure.subplots(1, len(panels), sharey=True)))
        for axes, (values, unit, hatch) in zip(drawn, panels, strict=True):
            _bars(axes, names, values, unit, hatch)

    height = max(1.6, 0.8 + _BAR_HEIGHT * len(names))
    caption = Markup("{} queries and {} seconds in all. ").format(facts("/queries"), facts("/seconds"))
    if not queries.any():
        caption = Markup("{} seconds in all; nothing was asked. ").format(facts("/seconds"))
    caption += "Stages of the same name are added up; the table lists each of them."
    title = "Queries and seconds per stage"
    return Picture("stages", title, caption, draw("stages", title, paint, (WIDE[0], height)), wide=True)


def _bars(axes: Axes, names: list[str], values: Array, unit: str, hatch: str) -> None:
    places = np.arange(len(names))[::-1]
    axes.barh(places, values, 0.65, color="white", edgecolor=INK, hatch=hatch)
    for place, value in zip(places, values, strict=True):
        text = f"{value:,}" if unit == "queries" else f"{value:.2g}"
        axes.annotate(text, (value, place), (4, 0), textcoords="offset points", va="center")
    axes.set_yticks(places, names)
    axes.set_xlabel(unit)
    axes.set_xlim(0, max(float(values.max()), np.finfo(np.float64).tiny) * 1.22)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.spines["left"].set_color(QUIET)
    axes.tick_params(axis="y", length=0)


def _flat(network: Network) -> Array:
    """(P,) all parameters."""
    parts = [*network.weights, *network.biases, *([] if network.skip is None else [network.skip])]
    return np.concatenate([part.reshape(-1) for part in parts])
