"""What an audit gives back: one recovery of the target, the leakage curve, and what to do about it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from unweave.audits.answer_log import LogCheck
from unweave.audits.curve import ALIKE, EXACT, LevelSummary, Point, best_point
from unweave.audits.findings import TECHNIQUE, Finding
from unweave.audits.level import Level, OwnPrecision
from unweave.audits.trace import Trace, TraceFigures
from unweave.errors import InvalidInput
from unweave.files.atomic import write_file
from unweave.networks.html_tables import html_figures, html_table
from unweave.networks.network import Network
from unweave.recovery.result import Recovery
from unweave.recovery.wording import counted, percent


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
    recommendation: str
    """What to do, in a sentence"""
    details: tuple[str, ...]
    """What each level and each budget gives away"""
    findings: tuple[Finding, ...]
    """The same by the controls of OWASP AISVS and MITRE ATLAS"""
    defences: tuple[Defence, ...]
    notes: tuple[str, ...]
    interrupted: bool
    seconds: float
    cpu_seconds: float
    trace: Trace
    """Every row that the recovery asked of the target"""
    trace_figures: TraceFigures
    settings: dict[str, Any] = field(default_factory=dict)
    """Target, date, arguments and versions, as in `Recovery.settings`"""

    @property
    def is_complete(self) -> bool:
        """Whether every level was attacked with every budget."""
        return len(self.summaries) == len(self.levels)

    def best(self, level: Level, budget: int) -> Point | None:
        """Return the attack that takes most within ``budget`` queries; None if none ran."""
        return best_point(self.points, level, budget, self.alarm)

    def summary(self, level: Level) -> LevelSummary | None:
        """Return the summary of ``level``; None if it was not attacked."""
        return next((summary for summary in self.summaries if summary.level == level), None)

    def first_to(self, reach: str, level: Level) -> LevelSummary | None:
        """Return the summary whose count ``reach`` is smallest, of ``level`` or a coarser one, as in `best`.

        None if no attack got there. ``reach`` is the name of a count, as ``alarm_after``.
        """
        there = [
            summary
            for summary in self.summaries
            if (summary.level == level or summary.level.sigma > level.sigma)
            and getattr(summary, reach) is not None
        ]
        return min(there, key=lambda summary: int(getattr(summary, reach)), default=None)

    @property
    def headline(self) -> str:
        """The outcome in a line: ``LEAKS at 2 decimals: weights to 2e-15 after 5,418 queries``."""
        so_far = "INTERRUPTED, so far " if self.interrupted else ""
        if not self.points:
            return "INTERRUPTED before any attack ended" if self.interrupted else self._without_curve()
        most = max(self.budgets)
        found = [point for level in self.levels if (point := self.best(level, most)) is not None]
        for leak in ("weights", "function"):
            leaking = [point for point in found if point.leak(self.alarm) == leak]
            if leaking:
                return so_far + _worst(max(leaking, key=lambda point: point.level.sigma), leak)
        return f"{so_far}HELD within {counted(most, 'query', 'queries')}"

    def _without_curve(self) -> str:
        if not self.recovery.status.is_recovered:
            return "NOT RECOVERED"
        if isinstance(self.recovery.network, Network):
            return "NOT DECIDED"
        return f"LEAKS as it is: the model after {counted(self.recovery.queries, 'query', 'queries')}"

    def __repr__(self) -> str:
        return f"Audit({self.recovery.status.name}, {len(self.points)} points, {self.target_queries} queries)"

    def _repr_html_(self) -> str:
        """Show the audit in a notebook: verdict, recommendation, curve."""
        headings = ("published", *(f"{budget:,} queries" for budget in self.budgets))
        rows = []
        for level in self.levels:
            best = [self.best(level, budget) for budget in self.budgets]
            if any(best):
                known = ("" if point is None else f"{point.median_weight_error:.2g}" for point in best)
                rows.append((level.label, *known))
        said = [("verdict", self.verdict), ("recommendation", self.recommendation)]
        figures = html_figures(repr(self), [*said, *(("note", note) for note in self.notes)])
        return figures + (html_table("Median relative error of the weights", headings, rows) if rows else "")

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the parameters of networks, ready for JSON (nan and infinity become null)."""
        plain: dict[str, Any] = _for_json(
            {
                "headline": self.headline,
                "verdict": self.verdict,
                "recommendation": self.recommendation,
                "details": self.details,
                "technique": TECHNIQUE,
                "findings": [asdict(finding) for finding in self.findings],
                "alarm": self.alarm,
                "alike": ALIKE,
                "exact": EXACT,
                "target_queries": self.target_queries,
                "recovery_queries": self.recovery.queries,
                "own_precision": asdict(self.own),
                "check": None if self.check is None else {**asdict(self.check), "agrees": self.check.agrees},
                "levels": [{**asdict(level), "label": level.label} for level in self.levels],
                "budgets": self.budgets,
                "points": [
                    {"label": point.level.label, **asdict(point), "leak": point.leak(self.alarm)}
                    for point in self.points
                ],
                "summaries": [{"label": entry.level.label, **asdict(entry)} for entry in self.summaries],
                "defences": [asdict(defence) for defence in self.defences],
                "notes": self.notes,
                "interrupted": self.interrupted,
                "complete": self.is_complete,
                "seconds": self.seconds,
                "cpu_seconds": self.cpu_seconds,
                "trace": asdict(self.trace_figures),
                "settings": self.settings,
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
        write_file(path, self.to_html().encode("utf-8"))

    def save_trace(self, path: str | Path) -> None:
        """Write every row that the recovery asked, for a detector: .jsonl or .csv."""
        self.trace.save(path)


def _worst(point: Point, leak: str) -> str:
    where = point.level.label if point.level == Level() else f"at {point.level.label}"
    if point.level.noise > 0:
        where = f"with {point.level.label}"
    cost = f"after {counted(point.queries, 'query', 'queries')}"
    if leak == "weights":
        return f"LEAKS {where}: weights to {percent(point.median_weight_error)} {cost}"
    return f"COPIED {where}: {percent(point.share_alike)} of fresh rows answered alike {cost}"


def _for_json(value: Any) -> Any:
    """Return plain Python values; what JSON has no word for becomes None."""
    if isinstance(value, dict):
        return {str(key): _for_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
