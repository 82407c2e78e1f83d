"""What the audit says about named controls, so that a finding can be filed under the right one.

Names and numbers are those of OWASP AISVS 1.0, chapter C11, and MITRE ATLAS 5.6. Drafts of AISVS before
June 2026 numbered the three requirements 11.5.1 to 11.5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unweave.audits.curve import Leak, Point, best_point
from unweave.audits.level import Level
from unweave.audits.trace import CLOSE, FAR, TraceFigures
from unweave.recovery.wording import counted, listed, percent

TECHNIQUE = "MITRE ATLAS AML.T0024.002 Extract AI Model"
QUERY_LIMITS = (
    "OWASP AISVS 11.2.2 (draft 11.5.1): rate limits sized to the extraction threat model",
    "MITRE ATLAS AML.M0004 Restrict Number of AI Model Queries",
)
QUERY_PATTERNS = (
    "OWASP AISVS 11.3.1 (draft 11.5.2): query-pattern analysis feeds an extraction-attempt detector",
    "MITRE ATLAS AML.M0024 AI Telemetry Logging",
)
OUTPUT_PRECISION = (
    "OWASP AISVS 11.3.2 (draft 11.5.3): visible responses are calibrated to the extraction risk",
    "MITRE ATLAS AML.M0002 Passive AI Output Obfuscation",
)


@dataclass(frozen=True)
class Finding:
    """One control, and what the audit measured about it."""

    controls: tuple[str, ...]
    result: str
    holds: bool | None
    """Whether the attacks were stopped; None if the audit does not test that"""


def findings(
    levels: Sequence[Level],
    budgets: Sequence[int],
    points: Sequence[Point],
    alarm: float,
    trace: TraceFigures,
) -> tuple[Finding, ...]:
    """Return the findings that the attacks and the trace support."""
    tested = (
        [] if not points else [_limits(budgets, points, alarm), _precision(levels, budgets, points, alarm)]
    )
    return (*(finding for finding in tested if finding is not None), _patterns(trace))


def leaks(levels: Sequence[Level], budget: int, points: Sequence[Point], alarm: float) -> dict[Level, Leak]:
    """Return what a client with ``budget`` queries can take, by level, for the levels that were attacked."""
    best = {level: best_point(points, level, budget, alarm) for level in levels}
    return {level: point.leak(alarm) for level, point in best.items() if point is not None}


def _limits(budgets: Sequence[int], points: Sequence[Point], alarm: float) -> Finding | None:
    own = {budget: leaks([Level()], budget, points, alarm).get(Level()) for budget in budgets}
    tried = [budget for budget, leak in own.items() if leak is not None]
    if not tried:
        return None
    held = [budget for budget in tried if own[budget] == "nothing"]
    if len(held) == len(tried):
        return Finding(QUERY_LIMITS, f"As it is, nothing leaked within {max(tried):,} queries.", True)
    spent = [point.queries for point in points if point.leak(alarm) != "nothing"]
    result = f"An attack succeeded with {min(spent):,} queries."
    if held:
        result += (
            f" A limit of {max(held):,} queries per client stopped all attacks on the answers as they are."
        )
    else:
        result += f" Even {counted(min(tried), 'query', 'queries')} per client are too many."
    return Finding(QUERY_LIMITS, result, False)


def _precision(
    levels: Sequence[Level], budgets: Sequence[int], points: Sequence[Point], alarm: float
) -> Finding | None:
    coarse = [level for level in levels if level != Level()]
    tried = [budget for budget in budgets if leaks(coarse, budget, points, alarm)]
    if not tried:
        return None
    most = max(tried)
    found = leaks(coarse, most, points, alarm)
    held = [level.label for level, leak in found.items() if leak == "nothing"]
    if held:
        return Finding(OUTPUT_PRECISION, f"Within {most:,} queries, {listed(held)} held.", True)
    result = f"Within {most:,} queries, no coarser level held ({listed([level.label for level in found])})."
    return Finding(OUTPUT_PRECISION, result, False)


def _patterns(trace: TraceFigures) -> Finding:
    result = (
        f"Not tested. The recovery sent {counted(trace.rows, 'row')} in "
        f"{counted(trace.requests, 'request')}: "
        f"{percent(trace.close_share)} of the rows differ from the row before by at most {percent(CLOSE)} of "
        f"their size, and {percent(trace.far_share)} are at least {FAR:g} times as large as the median row. "
        "Export the trace and replay it through your detector."
    )
    return Finding(QUERY_PATTERNS, result, None)
