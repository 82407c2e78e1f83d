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

from unweave.audits.curve import ALIKE, EXACT, Point, distinct
from unweave.audits.level import Level
from unweave.audits.result import Audit
from unweave.recovery.wording import percent
from unweave.report.facts import Facts
from unweave.report.picture import ACCENT, INK, PAPER, QUIET, TEXT, WIDE, Picture, draw, logarithmic
from unweave.report.repeat import python_call

_NOTHING_KNOWN_ERROR = 1.0  # drawn where there is no network: a guess of 0 errs by 100 %
_LEAST_LEVELS = 3  # of a picture: two points are no curve
_LEAST_DRAWN = 1e-16  # smaller errors cannot be told from rounding
_FIGURE_INCHES = (9.4, 4.4)  # width and height of the picture of a curve, as wide as the page
_MARKERS = "osD^vP*X<>hd"
_LINES = ("-", "--", "-.", ":")


def audit_html(audit: Audit, pictures: Sequence[Picture] | None = None) -> str:
    """Return the page as text: same audit, same text. ``pictures`` saves drawing `audit_pictures`."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("unweave.audits"), PackageLoader("unweave.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("audit.html.j2").render(
        _content(audit, audit_pictures(audit) if pictures is None else pictures)
    )


TOOK = {"weights": "weights", "function": "function", "nothing": "held"}
"""What an attack took -> the word in the table."""
_TONES = {"LEAKS": "bad", "COPIED": "fair", "HELD": "good"}


def _content(audit: Audit, pictures: Sequence[Picture]) -> dict[str, Any]:
    places = {id(point): index for index, point in enumerate(audit.points)}
    facts = Facts(audit.to_dict())
    return {
        "audit": audit,
        "fact": facts,
        "percent": percent,
        "word": audit.headline,
        "tone": _TONES.get(audit.headline.removeprefix("INTERRUPTED, so far ").split()[0], "fair"),
        "command": audit_command(audit.settings),
        "took": TOOK,
        "alike": ALIKE,
        "exact": EXACT,
        "cells": _cells(audit, places),
        "runs": [(places[id(point)], point) for point in distinct(audit.points)],
        "pictures": pictures,
    }


def audit_command(settings: dict[str, Any]) -> str:
    """Return the command that was typed, or the call in Python."""
    typed = settings.get("command")
    return str(typed) if typed else python_call(settings, "audit").splitlines()[-1]


def _cells(audit: Audit, places: dict[int, int]) -> list[dict[str, Any]]:
    """Return a row per attacked level: what every budget takes, and after how many queries."""
    rows = []
    for index, level in enumerate(audit.levels):
        best = [audit.best(level, budget) for budget in audit.budgets]
        if not any(best):
            continue
        summary = audit.summary(level)
        rows.append(
            {
                "place": index,
                "level": level,
                "points": [
                    (None, None, None)
                    if point is None
                    else (places[id(point)], point, point.leak(audit.alarm))
                    for point in best
                ],
                "summary": None if summary is None else audit.summaries.index(summary),
                "after": {
                    reach: audit.summaries.index(audit.first_to(reach, level) or summary)
                    for reach in ("first_network", "function_after", "alarm_after", "exact_after")
                    if summary is not None
                },
            }
        )
    return rows


def audit_pictures(audit: Audit) -> list[Picture]:
    """Return the pictures that show more than a sentence could."""
    facts, pictures = Facts(audit.to_dict()), []
    if any(point.has_network for point in audit.points):
        pictures.append(_against_queries(audit, facts))
    largest = max((point.budget for point in _rounded(audit)), default=0)
    if len({point.level for point in _rounded(audit) if point.budget == largest}) >= _LEAST_LEVELS:
        pictures.append(_against_decimals(audit, largest, facts))
    return pictures


def _against_queries(audit: Audit, facts: Facts) -> Picture:
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
                    mfc=PAPER if level.noise > 0 else _colour(level),
                    label=level.label,
                )
        _alarm(axes, audit.alarm)
        axes.set(xlabel="queries", ylabel="median relative error of the weights", ylim=(_LEAST_DRAWN / 3, 5))
        logarithmic(axes.xaxis)
        logarithmic(axes.yaxis)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="published")

    caption = Markup(
        "Each line is a way to publish the answers, each marker one of {} attacks, with up to {} queries. "
        "At the top nothing is known yet. Below the dashed grey line, at {}, the weights count as given away."
    ).format(
        Markup('<span class="label">{}</span>').format(len(distinct(audit.points))),
        facts(f"/points/{max(range(len(audit.points)), key=lambda i: audit.points[i].queries)}/queries"),
        facts("/alarm"),
    )
    return Picture("queries", title, caption, draw("queries", title, paint, _FIGURE_INCHES), wide=True)


def _against_decimals(audit: Audit, budget: int, facts: Facts) -> Picture:
    title = "Weights against decimals"

    def paint(figure: Figure) -> None:
        axes = _by_decimals(figure, audit, budget, lambda point: max(point.median_weight_error, _LEAST_DRAWN))
        _alarm(axes, audit.alarm)
        axes.set_yscale("log")
        axes.set(ylabel="median relative error", ylim=(_LEAST_DRAWN / 3, 5))
        logarithmic(axes.yaxis)

    parts = []
    for way, marker in (("averaging", "circles"), ("bisection", "squares")):
        mine = [
            (point.level.decimals or 0, index)
            for index, point in enumerate(audit.points)
            if point.level.is_rounded and point.has_network and (point.way, point.budget) == (way, budget)
        ]
        if mine:
            told = [
                Markup("{} at {}").format(
                    facts(f"/points/{index}/median_weight_error"), facts(f"/points/{index}/label")
                )
                for _, index in dict.fromkeys((max(mine), min(mine)))
            ]
            parts.append(Markup("{} ({}): {}").format(way, marker, Markup(", ").join(told)))
    within = Markup("Median relative error with {} queries per client. ").format(
        facts(f"/budgets/{audit.budgets.index(budget)}")
    )
    caption = within + Markup("; ").join(parts).capitalize() + "."
    return Picture("decimals", title, caption, draw("decimals", title, paint, WIDE), wide=True)


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
    return INK if level.decimals is not None else TEXT


def _alarm(axes: Axes, alarm: float) -> None:
    axes.axhline(alarm, color=QUIET, ls=(0, (6, 3)), lw=1)
