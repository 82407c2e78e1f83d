"""Does a prediction interface give its weights away? One recovery of the target, then rehearsed attacks.

    recover(target) -> stand-in -> attacks at every level and budget -> leakage curve -> advice

jinja2 and matplotlib are loaded when a page is made, not when this package is imported.
"""

from unweave.audit.answer_log import LogCheck
from unweave.audit.attack import Attack, StandIn, attack
from unweave.audit.curve import LevelSummary, Point
from unweave.audit.front_door import audit
from unweave.audit.level import Level, OwnPrecision, Published
from unweave.audit.measures import Knowledge, weight_errors
from unweave.audit.result import Audit, Defence

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
