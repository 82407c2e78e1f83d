"""Does a prediction interface give its weights away? One recovery of the target, then rehearsed attacks.

    recover(target) -> stand-in -> attacks at every level and budget -> leakage curve -> advice

jinja2 and matplotlib are loaded when a page is made, not when this package is imported.
"""

from unweave.audits.answer_log import LogCheck
from unweave.audits.attack import Attack, Knowledge, StandIn, attack, weight_errors
from unweave.audits.curve import LevelSummary, Point
from unweave.audits.findings import Finding
from unweave.audits.level import Level, OwnPrecision, Published
from unweave.audits.result import Audit, Defence
from unweave.audits.run import audit
from unweave.audits.trace import Trace, TraceFigures

__all__ = [
    "Attack",
    "Audit",
    "Defence",
    "Finding",
    "Knowledge",
    "Level",
    "LevelSummary",
    "LogCheck",
    "OwnPrecision",
    "Point",
    "Published",
    "StandIn",
    "Trace",
    "TraceFigures",
    "attack",
    "audit",
    "weight_errors",
]
