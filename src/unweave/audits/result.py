"""What an audit gives back: one recovery of the target, the leakage curve, and what to do about it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unweave.audits.answer_log import LogCheck
from unweave.audits.curve import LevelSummary, Point
from unweave.audits.level import Level, OwnPrecision
from unweave.errors import InvalidInput
from unweave.networks.html_tables import html_figures, html_table
from unweave.recovery.result import Recovery


@dataclass(frozen=True)
class Defence:
    """Something that a defender can do, and what it is worth."""

    name: str
    worth: str


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of `unweave.audit`."""

    recovery: Recovery
    """The one recovery of the target"""
    target_queries: int
    """Rows sent to the target by the whole audit; those of the recovery, and none more"""
    own: OwnPrecision
    check: LogCheck | None
    """The network found against every answer of the target; None without network"""
    levels: tuple[Level, ...]
    budgets: tuple[int, ...]
    points: tuple[Point, ...]
    summaries: tuple[LevelSummary, ...]
    alarm: float
    """Median relative error of the weights at which they count as given away"""
    verdict: str
    """The answer in a sentence"""
    recommendations: tuple[str, ...]
    defences: tuple[Defence, ...]
    notes: tuple[str, ...]
    interrupted: bool
    seconds: float
    cpu_seconds: float

    @property
    def is_complete(self) -> bool:
        """Whether every level was attacked with every budget."""
        return len(self.summaries) == len(self.levels)

    def best(self, level: Level, budget: int) -> Point | None:
        """Return the attack that knows the weights best, preferably one with a network; None if none ran."""
        here = [point for point in self.points if (point.level, point.budget) == (level, budget)]
        return min(here, key=lambda point: (not point.has_network, point.median_weight_error), default=None)

    def summary(self, level: Level) -> LevelSummary | None:
        """Return the summary of ``level``; None if it was not attacked."""
        return next((summary for summary in self.summaries if summary.level == level), None)

    def __repr__(self) -> str:
        return f"Audit({self.recovery.status.name}, {len(self.points)} points, {self.target_queries} queries)"

    def _repr_html_(self) -> str:
        """Show the audit in a notebook: verdict, curve, recommendations."""
        headings = ("published", *(f"{budget:,} queries" for budget in self.budgets))
        rows = []
        for level in self.levels:
            best = [self.best(level, budget) for budget in self.budgets]
            if any(best):
                known = ("" if point is None else f"{point.median_weight_error:.2g}" for point in best)
                rows.append((level.label, *known))
        figures = html_figures(
            repr(self), [("verdict", self.verdict), *(("note", note) for note in self.notes)]
        )
        return figures + (html_table("Median relative error of the weights", headings, rows) if rows else "")

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the parameters of networks, ready for JSON (nan and infinity become null)."""
        plain: dict[str, Any] = _for_json(
            {
                "verdict": self.verdict,
                "recommendations": self.recommendations,
                "alarm": self.alarm,
                "target_queries": self.target_queries,
                "recovery_queries": self.recovery.queries,
                "own_precision": asdict(self.own),
                "check": None if self.check is None else {**asdict(self.check), "agrees": self.check.agrees},
                "levels": [{**asdict(level), "label": level.label} for level in self.levels],
                "budgets": self.budgets,
                "points": [{"label": point.level.label, **asdict(point)} for point in self.points],
                "summaries": [{"label": entry.level.label, **asdict(entry)} for entry in self.summaries],
                "defences": [asdict(defence) for defence in self.defences],
                "notes": self.notes,
                "interrupted": self.interrupted,
                "complete": self.is_complete,
                "seconds": self.seconds,
                "cpu_seconds": self.cpu_seconds,
            }
        )
        plain["recovery"] = self.recovery.to_dict()
        return plain

    def to_html(self) -> str:
        """Return the audit as one self-contained HTML page."""
        from unweave.audits.page import audit_html  # jinja2 and matplotlib are only loaded for a page

        return audit_html(self)

    def save_html(self, path: str | Path) -> None:
        """Write the page to a file that ends in .html."""
        path = Path(path)
        if path.suffix.lower() not in (".html", ".htm"):
            raise InvalidInput(f"path must end in .html. Got {str(path)!r} instead.")
        page = self.to_html()
        try:
            path.write_text(page, encoding="utf-8")
        except OSError as error:
            raise InvalidInput(
                f"path must be a file that can be written. Got {str(path)!r} instead ({error.strerror})."
            ) from error


def _for_json(value: Any) -> Any:
    """Return plain Python values; what JSON has no word for becomes None."""
    if isinstance(value, dict):
        return {str(key): _for_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
