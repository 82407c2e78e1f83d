"""The parameters as an image: dark is negative, light is positive, in print and without colour too.

With one hidden layer a column is one unit: its incoming weights, its bias, its outgoing weights. Deeper
networks have one image per layer, inputs downwards, units to the right.
"""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.recovery.result import Recovery
from unweave.report.facts import Facts, ordinal
from unweave.report.picture import WIDE, Picture, draw, whole_numbers

MOST_CELLS = 24_000
"""Cells of one image: more are drawn block by block, by the entry of largest size."""
MOST_COLUMNS = 300
"""Columns of one image that can be told apart on a page."""
_LEVELS = 33  # shades: odd, so that zero has its own; few, so that the image is small
_SHADES = "cividis"  # its lightness rises all along: the order survives a black-and-white printer
_IMAGES_IN_A_ROW = 3
_KEYS = ("inputs", "units", "weights/smallest", "weights/largest", "biases/smallest", "biases/largest")
_ROWS_AS_TALL = (4.5, 24.0)  # rows of cells that a panel is drawn as tall as, at least and at most
_FEW_ROWS = 3  # of a panel that is too thin for words on its left and for a zero on its scale


@dataclass(frozen=True, eq=False)
class Panel:
    """One image of parameters."""

    values: Array
    """(rows, columns)"""
    rows: str
    columns: str
    title: str


def weight_picture(recovery: Recovery, facts: Facts) -> Picture | None:
    """The recovered parameters, or those of the first layers if only they are known."""
    network = recovery.network or recovery.known_layers
    if not isinstance(network, Network):
        return None
    shallow = len(network.weights) == 2 and network.skip is None
    panels = _stacked(network) if shallow else _side_by_side(network)
    budget = MOST_CELLS * 2 // (len(panels) + 1)

    def paint(figure: Figure) -> None:
        if shallow:
            tall = [float(np.clip(panel.values.shape[0], *_ROWS_AS_TALL)) for panel in panels]
            drawn = figure.subplots(len(panels), 1, sharex=True, height_ratios=tall)
        else:
            rows = -(-len(panels) // _IMAGES_IN_A_ROW)
            drawn = figure.subplots(rows, min(len(panels), _IMAGES_IN_A_ROW), squeeze=False)
        flat = np.atleast_1d(np.asarray(drawn)).reshape(-1)
        for axes, panel in zip(flat, panels, strict=False):
            paint_panel(figure, axes, panel, budget)
        for axes in flat[len(panels) :]:
            axes.set_axis_off()
        if shallow:
            for axes in flat[:-1]:
                axes.set_xlabel("")

    rows = 1 if shallow else -(-len(panels) // _IMAGES_IN_A_ROW)
    size = (WIDE[0], 4.2 if shallow else 0.4 + 2.7 * rows)
    title = "The parameters" if recovery.network is not None else "The first layers, as far as found"
    is_pooled = any(panel.values.size > budget for panel in panels)
    caption = _caption(recovery, facts, is_pooled, shallow and network.hidden[0] <= MOST_COLUMNS)
    return Picture("weights", title, caption, draw("weights", title, paint, size), wide=True)


def _stacked(network: Network) -> list[Panel]:
    (inner, outer), (biases, _) = network.weights, network.biases
    return [
        Panel(inner, "input", "unit", "incoming weights"),
        Panel(biases[None, :], "", "unit", "biases"),
        Panel(outer.T, "output", "unit", "outgoing weights"),
    ]


def _side_by_side(network: Network) -> list[Panel]:
    panels = []
    for place, weights in enumerate(network.weights):
        last = place == len(network.weights) - 1
        title = f"layer {place + 1}" + (" (output)" if last else "")
        rows, columns = "unit before" if place else "input", "output" if last else "unit"
        panels.append(Panel(weights, rows, columns, title))
    if network.skip is not None:
        panels.append(Panel(network.skip, "input", "output", "skip"))
    return panels


def layer_panel(network: Network, layer: int) -> Panel:
    """The weights of one layer, the first being 0."""
    return _side_by_side(network)[layer]


def paint_panel(figure: Figure, axes: matplotlib.axes.Axes, panel: Panel, budget: int) -> None:
    """Draw an image on ``axes``, with at most ``budget`` cells, and its scale beside it."""
    rows, columns = panel.values.shape
    limit = float(np.abs(panel.values).max()) or 1.0
    image = axes.imshow(
        pooled_extremes(panel.values, budget),
        cmap=matplotlib.colormaps[_SHADES].resampled(_LEVELS),
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        interpolation="none",  # embed the cells themselves: the browser enlarges them
        extent=(0.5, columns + 0.5, rows + 0.5, 0.5),
    )
    axes.set_title(panel.title, loc="left")
    axes.set(xlabel=panel.columns, ylabel=panel.rows)
    whole_numbers(axes.xaxis)
    whole_numbers(axes.yaxis, 4)
    thin = rows <= _FEW_ROWS
    if thin:
        axes.set_yticks([] if rows == 1 else range(1, rows + 1))
        axes.set_ylabel("")
    ticks = [-limit, limit] if thin else [-limit, 0, limit]
    bar = figure.colorbar(image, ax=axes, pad=0.01, aspect=14, ticks=ticks)
    bar.ax.set_yticklabels([f"{tick:.2g}" for tick in ticks])
    bar.outline.set_visible(False)


def pooled_extremes(values: Array, most: int) -> Array:
    """``values`` (n, k) in at most ``most`` cells, each the entry of largest size of a block.

    >>> pooled_extremes(np.array([[1.0, -3.0, 0.5, 0.0]]), 2)
    array([[-3. ,  0.5]])
    """
    rows, columns = values.shape
    if values.size <= most:
        return values
    kept_columns = min(columns, MOST_COLUMNS, most)  # a column is a unit: kept apart while it can be seen
    kept_rows = int(np.clip(most // kept_columns, 1, rows))
    for axis, kept in ((0, kept_rows), (1, kept_columns)):
        edges = np.linspace(0, values.shape[axis], kept, endpoint=False).astype(np.int64)
        high, low = (find.reduceat(values, edges, axis=axis) for find in (np.maximum, np.minimum))
        values = np.where(high >= -low, high, low)
    return values


def _caption(recovery: Recovery, facts: Facts, is_pooled: bool, is_unit: bool) -> Markup:
    caption = Markup("Dark is negative, light is positive. ")
    if is_unit:
        caption += "A column is one unit. "
    if is_pooled:
        caption += "Neighbouring weights share a cell, which shows the largest of them. "
    if recovery.network is None:
        return caption + "These layers were found; what comes after them was not."
    parts = [
        Markup("layer {}, {} by {}: weights from {} to {}, biases from {} to {}").format(
            ordinal(place), *(facts(f"/parameters/{place}/{key}") for key in _KEYS)
        )
        for place in range(len(recovery.network.weights))
    ]
    return caption + Markup("; ").join(parts).capitalize() + "."
