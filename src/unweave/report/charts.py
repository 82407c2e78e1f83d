"""Charts that methods describe, drawn; and the errors on fresh rows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unweave.recovery.result import FRESH_CHECKS, Certificate, Recovery
from unweave.report.facts import Facts
from unweave.report.picture import (
    ACCENT,
    INK,
    QUIET,
    Picture,
    draw,
    logarithmic,
    positive,
    thinned,
    whole_numbers,
)
from unweave.search import Bars, Chart, Mark, Series

_LEAST_POINTS = 4  # of the longest series of a chart
_ROOM = 1.8  # factor left above and below the points of a logarithmic axis
_LOOKS: dict[str, dict[str, Any]] = {
    "dots": {"marker": "o", "ls": "", "color": INK, "ms": 3.5},
    "crosses": {"marker": "x", "ls": "", "color": ACCENT, "ms": 4.5},
    "circles": {"marker": "o", "ls": "", "color": ACCENT, "mfc": "white", "ms": 5},
    "line": {"ls": "-", "color": INK},
    "dashed": {"ls": "--", "color": INK},
    "dotted": {"ls": ":", "color": INK},
    "steps": {"marker": "o", "ls": "-", "color": INK},
    "ticks": {"marker": "|", "ls": "", "color": ACCENT, "ms": 9},
}


def evidence_pictures(recovery: Recovery, facts: Facts) -> list[Picture]:
    """Draw what the method measured, and the errors on fresh rows."""
    charts = (*recovery.evidence.charts(recovery.network), _fresh_errors(recovery))
    return [picture_of(chart, facts) for chart in charts if chart is not None and is_worth_drawing(chart)]


def is_worth_drawing(chart: Chart) -> bool:
    """Whether a chart has points enough to show more than its caption says."""
    drawn = max((len(series.x) for series in chart.series), default=0)
    return max(drawn, 0 if chart.bars is None else len(chart.bars.x)) >= _LEAST_POINTS


def place_of(certificate: Certificate, *names: str) -> int | None:
    """Place of the first check of one of these names in the certificate."""
    return next((i for i, check in enumerate(certificate) if check.name in names), None)


def picture_of(chart: Chart, facts: Facts) -> Picture:
    """Draw a chart, and fill the figures into its caption."""
    parts = re.split(r"\{(/[^}]*)\}", chart.caption)
    caption = Markup("").join(facts(part) if i % 2 else _prose(part) for i, part in enumerate(parts))
    drawing = draw(chart.name, chart.title, lambda figure: _paint(figure, chart))
    return Picture(chart.name, chart.title, caption, drawing)


def _prose(text: str) -> Markup:
    """Set what stands in backticks as a formula."""
    parts = [escape(part) for part in text.split("`")]
    formula = Markup('<span class="formula">{}</span>')
    return Markup("").join(formula.format(part) if i % 2 else part for i, part in enumerate(parts))


def _paint(figure: Figure, chart: Chart) -> None:
    paint_chart(figure.subplots(), chart)


def paint_chart(axes: Axes, chart: Chart) -> None:
    """Draw a chart on ``axes``."""
    for series in chart.series:
        _draw_series(axes, series, chart)
    if chart.bars is not None:
        _draw_bars(axes, chart.bars)
    axes.set(xlabel=chart.x_label, ylabel=chart.y_label)
    _set_scales(axes, chart)
    for mark in chart.marks:
        _draw_mark(axes, mark, chart)
    if chart.names:
        axes.set_yticks(-np.arange(len(chart.names)), chart.names)
        axes.set_ylim(0.4 - len(chart.names), 0.6)
    elif not chart.y_label:
        axes.set_yticks([])
    if chart.whole_x:
        whole_numbers(axes.xaxis)
    if any(series.label for series in chart.series) and len(chart.series) > 1:
        axes.legend(loc="best")


def _draw_series(axes: Axes, series: Series, chart: Chart) -> None:
    look = _LOOKS[series.style]
    if series.style == "ticks":
        low = np.full(len(series.x), 0.02)  # of the height of the chart
        axes.plot(series.x, low, transform=axes.get_xaxis_transform(), **look)
        return
    x = positive(series.x) if chart.log_x else series.x
    y = positive(series.y) if chart.log_y else series.y
    index = np.arange(len(x)) if series.style in ("line", "dashed", "dotted") else thinned(len(x))
    axes.plot(x[index], y[index], label=series.label, **look)


def _draw_bars(axes: Axes, bars: Bars) -> None:
    heights = positive(bars.heights)
    low = heights.min() / _ROOM**2
    axes.bar(bars.x, heights - low, 0.5, bottom=low, color="white", edgecolor=INK, hatch="///")
    for x, height, text in zip(bars.x, heights, bars.texts, strict=True):
        axes.annotate(text, (x, height), (0, 3), textcoords="offset points", ha="center")
    axes.set_xticks(bars.x)
    axes.set_xlim(bars.x.min() - 0.7, bars.x.max() + 0.7)


def _set_scales(axes: Axes, chart: Chart) -> None:
    """Make axes logarithmic, with room around their points and for what is written at a mark."""
    drawn = [series for series in chart.series if series.style != "ticks"]
    if chart.log_x:
        low, high = _limits([series.x for series in drawn], chart, "x")
        axes.set(xscale="log", xlim=(low, high))
        logarithmic(axes.xaxis)
    if chart.log_y:
        heights = [] if chart.bars is None else [chart.bars.heights]
        low, high = _limits([*(series.y for series in drawn), *heights], chart, "y")
        axes.set(yscale="log", ylim=(low, high))
        logarithmic(axes.yaxis)


def _limits(values: list[Any], chart: Chart, axis: str) -> tuple[float, float]:
    parts = [positive(part) for part in values if len(part)]
    parts += [np.array([mark.value]) for mark in chart.marks if mark.axis == axis]
    low, high = min(part.min() for part in parts), max(part.max() for part in parts)
    room = _ROOM * (high / low) ** 0.14
    return float(low / room), float(high * room)


def _draw_mark(axes: Axes, mark: Mark, chart: Chart) -> None:
    if mark.axis == "x":
        axes.axvline(mark.value, color=QUIET, ls="--", lw=1)
        low, high = axes.get_xlim()
        left = mark.value > low + 0.4 * (high - low)  # where a falling curve leaves room
        place, shift = (mark.value, 0.03 if left else 0.97), (-5 if left else 5, 0)
        look: Any = {"ha": "right", "va": "bottom"} if left else {"ha": "left", "va": "top"}
        across = axes.get_xaxis_transform()
        axes.annotate(mark.note, place, shift, xycoords=across, textcoords="offset points", **look)
        return
    axes.axhline(mark.value, color=ACCENT, ls="--", lw=1.2)
    first = chart.series[0].y[0] if chart.series else np.inf
    above = mark.value > first / _ROOM**2  # on the side where no point comes
    place, shift = (0.02, mark.value), (0, 3 if above else -3)
    look = {"va": "bottom" if above else "top", "color": ACCENT}
    across = axes.get_yaxis_transform()
    axes.annotate(mark.note, place, shift, xycoords=across, textcoords="offset points", **look)


def _fresh_errors(recovery: Recovery) -> Chart | None:
    errors = recovery.evidence.fresh_errors
    if errors is None or len(errors) < 2:
        return None
    place = place_of(recovery.certificate, *FRESH_CHECKS)
    threshold = None if place is None else recovery.certificate.checks[place].threshold
    caption = (
        "Errors on {/evidence/fresh_errors/count} rows kept out of every fit: median "
        "{/evidence/fresh_errors/median}, largest {/evidence/fresh_errors/largest}"
    )
    if threshold is not None:
        caption += f"; the precision of the answers allows {{/certificate/{place}/threshold}} (dashed)"
    shown = threshold is not None and threshold > 0 and np.isfinite(threshold)
    return Chart(
        name="fresh",
        title="Error on fresh rows",
        caption=caption + ".",
        x_label="rows with at most this error (%)",
        y_label="relative error",
        series=(Series(100 * np.arange(1.0, len(errors) + 1) / len(errors), np.sort(errors), "line"),),
        marks=(Mark("y", float(threshold or 0.0), "allowed"),) if shown else (),
        log_y=True,
    )
