"""Does a prediction interface give its weights away? One recovery of the target, then rehearsed attacks.

    recover(target) -> stand-in -> attacks at every level and budget -> leakage curve -> advice

jinja2 and matplotlib are loaded when a page is made, not when this package is imported.
"""

from unweave.auditing.answer_log import LogCheck
from unweave.auditing.attack import Attack, StandIn, attack
from unweave.auditing.curve import LevelSummary, Point
from unweave.auditing.front_door import audit
from unweave.auditing.level import Level, OwnPrecision, Published
from unweave.auditing.measures import Knowledge, weight_errors
from unweave.auditing.result import Audit, Defence

__all__ = [
    "Attack",
    "Audit",
    "Defence",
    "Knowledge",
    "Level",
    "LevelSummary",
    "LogCheck",
    "OwnPrecision",
    "Point",
    "Published",
    "StandIn",
    "attack",
    "audit",
    "weight_errors",
]
