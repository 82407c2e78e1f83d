"""The audit as one HTML page: style and drawing of the report, a template of its own."""

from __future__ import annotations

from typing import Any

from unweave.audits.level import Level
from unweave.audits.result import Audit
from unweave.audits.words import percent


def audit_html(audit: Audit) -> str:
    """Return the page as text: same audit, same text."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader("unweave.audits"), PackageLoader("unweave.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("audit.html.j2").render(_content(audit))


def _content(audit: Audit) -> dict[str, Any]:
    from unweave.audits.pictures import audit_pictures
    from unweave.report.facts import Facts

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
