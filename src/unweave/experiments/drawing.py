"""Kinds of drawings that sources print: heat maps, curves with their spread, scatter plots, densities.

Legible without color: lines differ in style and marker, cells of heat maps carry their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_LOOKS = (
    ("#14374d", "-", "o"),
    ("#9c1c14", "--", "s"),
    ("#595959", "-.", "^"),
    ("#14374d", ":", "D"),
    ("#9c1c14", "-", "v"),
    ("#595959", "--", "x"),
    ("#14374d", "-.", "+"),
    ("#9c1c14", ":", "*"),
    ("#595959", "-", "P"),
    ("#14374d", "--", "X"),
    ("#9c1c14", "-.", "<"),
    ("#595959", ":", ">"),
)
"""Color, line and marker of the first, second, ... series."""
_BAND = 0.15  # opacity of the range of a curve
_DARK = 0.62  # part of the shades from which on white is easier to read on them than black
_LONG_LABEL = 4  # characters beyond which labels side by side would touch


def look(index: int) -> dict[str, Any]:
    """Style of a series by its number."""
    color, line, marker = _LOOKS[index % len(_LOOKS)]
    return {"color": color, "ls": line, "marker": marker}


def _logarithmic(axes: Axes, x: bool, y: bool) -> None:
    """Make axes logarithmic, with ticks in plain text: formulas are not set on the pages."""
    from unweave.report.picture import logarithmic

    if x:
        axes.set_xscale("log")
        logarithmic(axes.xaxis)
    if y:
        axes.set_yscale("log")
        logarithmic(axes.yaxis)


def heat_map(
    axes: Axes,
    cells: Mapping[tuple[Any, ...], float],
    x_label: str,
    y_label: str,
    title: str,
    logarithm: bool = True,
) -> None:
    """Draw values by (x, y); each cell carries the number that its shade stands for."""
    xs, ys = sorted({key[0] for key in cells}), sorted({key[1] for key in cells})
    values = np.full((len(ys), len(xs)), np.nan)
    for (x, y), value in cells.items():
        row, column = ys.index(y), xs.index(x)
        if logarithm and value == 0:  # has no shade: it would take all the contrast
            axes.text(column, row, "zero", ha="center", va="center", fontsize=6.5, color="#010101")
        elif np.isfinite(value):
            values[row, column] = np.log10(value) if logarithm else value
    axes.imshow(values, origin="lower", aspect="auto", cmap="Greys")
    known = values[np.isfinite(values)]
    dark = known.min() + _DARK * np.ptp(known) if known.size else 0.0
    for row, column in np.ndindex(values.shape):
        shade = float(values[row, column])
        if np.isfinite(shade):
            text = f"{shade:.1f}" if logarithm else f"{shade:.2g}"
            ink = "#fefefe" if shade > dark else "#010101"
            axes.text(column, row, text, ha="center", va="center", fontsize=6.5, color=ink)
    below, beside = ([f"{v:g}" if isinstance(v, float | int) else str(v) for v in held] for held in (xs, ys))
    long = max(map(len, below), default=0) > _LONG_LABEL
    axes.set_xticks(range(len(xs)), below, fontsize=7, rotation=45 if long else 0)
    axes.set_yticks(range(len(ys)), beside, fontsize=7)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_title(title)


def curves(
    axes: Axes,
    lines: Mapping[str, tuple[Sequence[Any], Any]],
    x_label: str,
    title: str,
    *,
    log: bool = False,
    log_x: bool = False,
    legend: bool = True,
) -> None:
    """Draw series of (x, values per x): the mean as a line, the range of the values as a band."""
    for index, (name, (x, groups)) in enumerate(lines.items()):
        rows = [np.asarray(group, dtype=np.float64) for group in groups]
        rows = [row[np.isfinite(row)] for row in rows]
        kept = [(place, row) for place, row in zip(x, rows, strict=True) if row.size]
        if not kept:
            continue
        places = [place for place, _ in kept]
        axes.plot(places, [row.mean() for _, row in kept], label=name, ms=3.5, **look(index))
        if max(row.size for _, row in kept) > 1:
            low, high = [row.min() for _, row in kept], [row.max() for _, row in kept]
            axes.fill_between(places, low, high, color=look(index)["color"], alpha=_BAND, lw=0)
    if not axes.lines:
        axes.text(0.5, 0.5, "not measured", ha="center", transform=axes.transAxes, fontsize=7)
        axes.set_xticks([])
    _logarithmic(axes, log_x, log)
    axes.set_xlabel(x_label)
    axes.set_title(title)
    if legend:
        _legend(axes)


def scatter(
    axes: Axes,
    points: Mapping[str, tuple[Any, Any]],
    x_label: str,
    y_label: str,
    title: str,
    *,
    log: bool = False,
) -> None:
    """Draw points by series."""
    for index, (name, (x, y)) in enumerate(points.items()):
        style = look(index)
        axes.plot(x, y, ls="", marker=style["marker"], color=style["color"], ms=4, label=name, mfc="none")
    _logarithmic(axes, log, log)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_title(title)
    _legend(axes)


def density(axes: Axes, samples: Mapping[str, Any], x_label: str, title: str) -> None:
    """Draw Gaussian kernel density estimates by series, without a legend; equal values are left out."""
    from scipy.stats import gaussian_kde

    every = np.concatenate([np.asarray(values, dtype=np.float64) for values in samples.values()])
    room = 0.15 * (np.ptp(every) or 1.0)
    x = np.linspace(every.min() - room, every.max() + room, 200)
    for index, (name, values) in enumerate(samples.items()):
        if len(values) > 2 and np.ptp(values) > 0:
            style = look(index)
            axes.plot(x, gaussian_kde(values)(x), color=style["color"], ls=style["ls"], label=name)
            axes.plot(
                values, np.zeros(len(values)), ls="", marker=style["marker"], color=style["color"], ms=3
            )
    axes.set_xlabel(x_label)
    axes.set_title(title)


def legend_beside(drawing: Drawing, axes: Axes, columns: int = 1) -> None:
    """One legend for all panels, outside of them: right of them, or below in several columns."""
    handles, labels = axes.get_legend_handles_labels()
    if handles and columns == 1:
        drawing.legend(handles, labels, loc="outside right upper", fontsize=7)
    elif handles:
        drawing.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=7)


def _legend(axes: Axes) -> None:
    """A legend, where anything was drawn."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7)
