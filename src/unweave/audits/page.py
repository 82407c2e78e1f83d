"""The audit as one HTML page, with pictures of the leakage curve against queries and against decimals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from unweave.audits.advice import percent
from unweave.audits.attack import FRESH_ROWS
from unweave.audits.curve import Point
from unweave.audits.level import Level
from unweave.audits.result import Audit
from unweave.report.facts import Facts
from unweave.report.picture import ACCENT, INK, QUIET, Picture, draw

_NOTHING_KNOWN_ERROR = 1.0  # drawn where there is no network: a guess of 0 errs by 100 %
_LEAST_DRAWN = 1e-16  # smaller errors cannot be told from rounding
_FIGURE_INCHES = (9.4, 4.4)  # width and height of the picture of a curve, as wide as the page
_MARKERS = "osD^vP*X<>hd"
_LINES = ("-", "--", "-.", ":")


def audit_html(audit: Audit) -> str:
    """Return the page as text: same audit, same text."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("unweave.audits"), PackageLoader("unweave.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("audit.html.j2").render(_content(audit))


def _content(audit: Audit) -> dict[str, Any]:
    return {
        "audit": audit,
        "fact": Facts(audit.to_dict()),
        "percent": percent,
        "cells": _cells(audit),
        "pictures": audit_pictures(audit),
    }


def _cells(audit: Audit) -> list[dict[str, Any]]:
    """Return a row per attacked level: the best attack of every budget, and when attacks succeed."""
    rows = []
    places = {id(point): index for index, point in enumerate(audit.points)}
    for index, level in enumerate(audit.levels):
        best = [audit.best(level, budget) for budget in audit.budgets]
        if not any(best):
            continue
        summary = audit.summary(level)
        rows.append(
            {
                "place": index,
                "unrounded": level == Level(),
                "points": [(None if point is None else places[id(point)], point) for point in best],
                "summary": None if summary is None else audit.summaries.index(summary),
            }
        )
    return rows


def audit_pictures(audit: Audit) -> list[Picture]:
    """Return the pictures for which there are points."""
    pictures = []
    if any(point.has_network for point in audit.points):
        pictures.append(_against_queries(audit))
        largest = max((point.budget for point in _rounded(audit)), default=0)
        if len({point.level for point in _rounded(audit) if point.budget == largest}) > 1:
            pictures += [_against_decimals(audit, largest), _answers_alike(audit, largest)]
    return pictures


def _against_queries(audit: Audit) -> Picture:
    title = "Error of the weights against queries"

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for index, level in enumerate(audit.levels):
            mine = _steps([point for point in audit.points if point.level == level])
            if mine:
                queries, errors = zip(*mine, strict=True)
                axes.loglog(
                    queries,
                    np.maximum(errors, _LEAST_DRAWN),
                    marker=_MARKERS[index % len(_MARKERS)],
                    ls=_LINES[index % len(_LINES)],
                    drawstyle="steps-post",  # what is known stays until more is
                    color=_colour(level),
                    mfc="white" if level.noise > 0 else _colour(level),
                    label=level.label,
                )
        _alarm(axes, audit.alarm)
        axes.set(xlabel="queries", ylabel="median relative error of the weights", ylim=(_LEAST_DRAWN / 3, 5))
        axes.set_yticks([10.0**power for power in range(-15, 1, 3)])
        axes.minorticks_off()
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="published")

    caption = Markup(
        "Each line is a way to publish the answers, each marker a recovery that was run. At one, at the top, "
        "nothing is known yet. A line falls twice: when a first network is found, and, where answers are "
        "rounded, when bisection has made all of it exact. Below the dashed grey line ({}) weights count as "
        "given away."
    ).format(percent(audit.alarm))
    return Picture("queries", title, caption, draw("queries", title, paint, _FIGURE_INCHES), wide=True)


def _against_decimals(audit: Audit, budget: int) -> Picture:
    title = f"Weights, with {budget:,} queries"

    def paint(figure: Figure) -> None:
        axes = _by_decimals(figure, audit, budget, lambda point: max(point.median_weight_error, _LEAST_DRAWN))
        _alarm(axes, audit.alarm)
        axes.set_yscale("log")
        axes.set(ylabel="median relative error", ylim=(_LEAST_DRAWN / 3, 5))
        axes.set_yticks([10.0**power for power in range(-15, 1, 3)])
        axes.minorticks_off()

    caption = Markup(
        "Averaging (circles) loses a factor of ten with every decimal less. Bisection (squares) does not "
        "care how many there are."
    )
    return Picture("decimals", title, caption, draw("decimals", title, paint))


def _answers_alike(audit: Audit, budget: int) -> Picture:
    title = f"Answers, with {budget:,} queries"

    def paint(figure: Figure) -> None:
        axes = _by_decimals(figure, audit, budget, lambda point: 100 * point.share_alike)
        axes.set(ylabel="rows answered alike, per cent", ylim=(0, 105))

    caption = Markup(
        "How many of {} fresh rows the copy answers like the original, to the last digit that is published. "
        "What is missing are rows close to where that digit changes."
    ).format(f"{FRESH_ROWS:,}")
    return Picture("alike", title, caption, draw("alike", title, paint))


def _by_decimals(figure: Figure, audit: Audit, budget: int, value: Callable[[Point], float]) -> Axes:
    """Return ``value`` of the rounded levels, one line per attack."""
    axes = figure.subplots()
    for way, marker, style, color in (("averaging", "o", "-", INK), ("bisection", "s", "--", ACCENT)):
        mine = sorted(
            (point.level.decimals or 0, value(point))
            for point in _rounded(audit)
            if point.way == way and point.budget == budget
        )
        if mine:
            axes.plot(*zip(*mine, strict=True), marker=marker, ls=style, color=color, label=way)
    axes.set_xlabel("decimals published")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="center left")
    return axes


def _steps(points: Sequence[Point]) -> list[tuple[int, float]]:
    """Return (queries, error) of the best that is known by then, from few queries to many.

    An attack that ended without network is drawn at its budget; a network at what it cost.
    """
    without = [(point.budget, _NOTHING_KNOWN_ERROR) for point in points if not point.has_network]
    having = [(point.queries, point.median_weight_error) for point in points if point.has_network]
    line: list[tuple[int, float]] = []
    for queries, error in sorted(set(without + having)):
        line.append((queries, min(error, line[-1][1] if line else _NOTHING_KNOWN_ERROR)))
    return line


def _rounded(audit: Audit) -> list[Point]:
    return [
        point
        for point in audit.points
        if point.level.is_rounded and point.has_network and point.budget in audit.budgets
    ]


def _colour(level: Level) -> str:
    if level.noise > 0:
        return ACCENT
    return INK if level.decimals is not None else "black"


def _alarm(axes: Axes, alarm: float) -> None:
    axes.axhline(alarm, color=QUIET, ls=(0, (6, 3)), lw=1)
