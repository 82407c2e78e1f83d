"""The network and its price as pictures: parameters, standard errors, layers, kinks on a line, stages."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.recovery.result import Recovery
from unweave.report.drawing import (
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
from unweave.report.facts import Facts

_LINE_POINTS = 600
_SEEN_KINKS = (0.1, 0.9)  # quantiles of the kinks' positions between which the line is drawn
_LINE_MARGIN = 0.15  # of that range, on either side
_MOST_OUTPUTS = 3  # drawn of the answers along a line
_MOST_BARS = 60  # parameters drawn with error bars
_LINE_STYLES = ("-", "--", ":")
_ROOM = 1.8  # factor left around the points of a logarithmic axis
_BAR_HEIGHT = 0.27  # inches per stage


def network_pictures(recovery: Recovery, facts: Facts) -> list[Picture]:
    """The pictures for which there is something to show; those of weights and of stages are elsewhere."""
    makers = (_layers, _kinks, _standard_errors)
    pictures = (maker(recovery, facts) for maker in makers)
    return [picture for picture in pictures if picture is not None]


def _layers(recovery: Recovery, facts: Facts) -> Picture | None:
    layers = recovery.evidence.layers
    kept = [place for place, layer in enumerate(layers) if np.isfinite(layer.residual)]
    if not kept:
        return None
    values = positive(np.array([layers[place].residual for place in kept]))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        numbers = np.array([layers[place].layer for place in kept])
        low = values.min() / _ROOM**2
        axes.bar(numbers, values - low, 0.5, bottom=low, color="white", edgecolor=INK, hatch="///")
        for number, place in zip(numbers, kept, strict=True):
            height = values[kept.index(place)]
            text = f"{layers[place].width} units"
            axes.annotate(text, (number, height), (0, 3), textcoords="offset points", ha="center")
        axes.set(xlabel="hidden layer", ylabel="residual", yscale="log", ylim=(low, values.max() * _ROOM**3))
        axes.set_xticks(numbers)
        axes.set_xlim(numbers.min() - 0.7, numbers.max() + 0.7)
        logarithmic(axes.yaxis)

    parts = [
        Markup("layer {} ({} units) {}").format(
            facts(f"/layers/{place}/layer"),
            facts(f"/layers/{place}/width"),
            facts(f"/layers/{place}/residual"),
        )
        for place in kept
    ]
    caption = Markup("What every layer left unexplained of the derivatives behind it when it was found: ")
    caption += Markup("; ").join(parts) + ". The final fit starts there."
    return Picture("layers", "Residual per layer", caption, draw("layers", "Residual per layer", paint))


def _kinks(recovery: Recovery, facts: Facts) -> Picture | None:
    kinks, line, network = recovery.evidence.kinks, recovery.evidence.line, recovery.network
    if kinks is None or line is None or not len(kinks):
        return None
    low, high = np.quantile(kinks, _SEEN_KINKS)
    margin = _LINE_MARGIN * max(high - low, np.finfo(np.float64).eps * max(abs(low), abs(high), 1.0))
    t = np.linspace(low - margin, high + margin, _LINE_POINTS)
    seen = kinks[(kinks >= t[0]) & (kinks <= t[-1])]
    seen = seen[thinned(len(seen))]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        if network is not None:
            answers = network(line[0] + t[:, None] * line[1])
            at_kinks = network(line[0] + seen[:, None] * line[1])
            for output in range(min(answers.shape[1], _MOST_OUTPUTS)):
                axes.plot(t, answers[:, output], _LINE_STYLES[output], color=INK)
                axes.plot(seen, at_kinks[:, output], "o", color=ACCENT, mfc="white", ms=4.5)
            axes.set_ylabel("answer of the network")
        else:
            axes.set_yticks([])
        axes.plot(
            seen, np.full(len(seen), 0.02), "|", color=ACCENT, ms=9, transform=axes.get_xaxis_transform()
        )
        axes.set(xlabel="position on the line", xlim=(t[0], t[-1]))

    caption = Markup(
        "{} kinks of the target on the first line that was searched, between {} and {} (marks below; the "
        "densest part is drawn)"
    ).format(
        facts("/evidence/kinks/count"), facts("/evidence/kinks/smallest"), facts("/evidence/kinks/largest")
    )
    if network is not None:
        caption += ", and the recovered network's answers along it, which bend there (circles)"
    return Picture("kinks", "Kinks on a line", caption + ".", draw("kinks", "Kinks on a line", paint))


def _standard_errors(recovery: Recovery, facts: Facts) -> Picture | None:
    network, errors = recovery.network, recovery.standard_errors
    if network is None or errors is None:
        return None
    values, bars = flat(network), flat(errors)

    def paint(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        ascending = np.argsort(values)[thinned(len(values), most=_MOST_BARS)]
        places = np.arange(len(ascending))
        left.errorbar(
            places,
            values[ascending],
            bars[ascending],
            fmt="o",
            color=INK,
            ms=3.5,
            ecolor=ACCENT,
            capsize=2.5,
            lw=1,
        )
        left.set(xlabel="parameter, sorted", ylabel="value ± standard error")
        whole_numbers(left.xaxis)
        for place, (weights, biases) in enumerate(zip(errors.weights, errors.biases, strict=True)):
            layer = positive(np.sort(np.concatenate([weights.reshape(-1), biases])))
            index = thinned(len(layer))
            shares = 100 * (index + 1) / len(layer)
            style = _LINE_STYLES[place % len(_LINE_STYLES)]
            right.semilogy(
                shares, layer[index], style, color=INK, marker="os^"[place % 3], label=f"layer {place + 1}"
            )
        right.set(xlabel="parameters with at most this error (%)", ylabel="standard error")
        logarithmic(right.yaxis)
        right.legend(loc="best")

    parts = [
        Markup("layer {}: weights {}, biases {}").format(
            _ordinal(place),
            facts(f"/standard_errors/{place}/weights/largest"),
            facts(f"/standard_errors/{place}/biases/largest"),
        )
        for place in range(len(errors.weights))
    ]
    caption = Markup("Standard errors that the noise of the answers leaves, largest of each kind: ")
    if recovery.evidence.flips:
        caption = Markup("Standard errors that averaging alone would leave; the flips leave less. Largest: ")
    caption += Markup("; ").join(parts) + "."
    title = "Error bars of the parameters"
    return Picture("errors", title, caption, draw("errors", title, paint, WIDE), wide=True)


def stage_picture(recovery: Recovery, facts: Facts) -> Picture | None:
    """Queries and seconds per stage, those of one name added up."""
    names = list(dict.fromkeys(stage.name for stage in recovery.stages))
    if not names:
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
    caption += "Stages of one name are added up; the table has each of them."
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


def flat(network: Network) -> Array:
    """(P,) all parameters."""
    parts = [*network.weights, *network.biases, *([] if network.skip is None else [network.skip])]
    return np.concatenate([part.reshape(-1) for part in parts])


def _ordinal(place: int) -> Markup:
    """The number of a layer, which is no figure of the run."""
    return Markup("<span class=label>{}</span>").format(place + 1)
