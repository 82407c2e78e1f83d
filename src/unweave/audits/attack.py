"""One attack on the stand-in: a real recovery, with a budget, from answers published at a level.

The stand-in is the network that the audit recovered from the target; attacking it costs the target nothing.
Two attacks go past a coarse level. *Averaging* fits all parameters to n rows, with an error that falls with
sqrt(n). *Bisection* halves the inputs at which a deterministic rounded answer flips: one bit per query,
whatever the number of decimals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from unweave.arrays import Array
from unweave.audits.level import Level, OwnPrecision, Published
from unweave.audits.measures import Knowledge, knowledge
from unweave.networks.network import Network
from unweave.recovery.recover import recover
from unweave.recovery.result import Recovery

Way = Literal["direct", "averaging", "bisection"]

FIRST_ROWS = 8.0
"""Rows per parameter of the fit from which an attack's plan is made."""
FRESH_ROWS = 2000
"""Rows on which the answers of what was found are compared."""
_AVERAGING = "averaging"
"""Stage of a recovery from coarse answers after which rows are only averaged."""
_COARSE = ("radius", _AVERAGING)
"""Stages that only a recovery from coarse answers has."""


@dataclass(frozen=True, eq=False)
class StandIn:
    """The network that is attacked in place of the target, and what the attacker knows."""

    network: Network
    own: OwnPrecision
    rows: Array
    """(n, D) fresh rows on which answers are compared"""
    seed: int = 0
    known: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `unweave.recover`: hidden, activation, domain, examples, ..."""

    def repeats(self, level: Level) -> bool:
        """Whether a row always gets the same answer."""
        return level.noise == 0 and self.own.kind != "noisy"


@dataclass(frozen=True, eq=False)
class Attack:
    """A recovery of the stand-in and what it taught."""

    recovery: Recovery
    knowledge: Knowledge
    way: Way


def attack(
    stand_in: StandIn,
    level: Level,
    max_queries: int,
    *,
    averaging: float | None = None,
    deadline: float | None = None,
) -> Attack:
    """Recover the stand-in at ``level`` within ``max_queries`` rows.

    ``averaging`` as in `unweave.recover`: rows per parameter of the final fit, or None to bisect where the
    answers are rounded.
    """
    recovery = recover(
        Published(stand_in.network, level, stand_in.seed, stand_in.own),
        seed=stand_in.seed,
        max_queries=max_queries,
        averaging=averaging,
        deadline=deadline,
        **stand_in.known,
    )
    taught = knowledge(stand_in.network, recovery.network, stand_in.rows, _seen(level, stand_in.own))
    way: Way = "direct"
    if recovery.evidence.from_exact_equations:
        way = "bisection"
    elif any(stage.name in _COARSE for stage in recovery.stages):
        way = "averaging"
    return Attack(recovery, taught, way)


def _seen(level: Level, own: OwnPrecision) -> Level:
    """Return the level with what the target's own rounding or noise hides as well."""
    if own.decimals is not None and level.noise == 0:
        return Level(decimals=own.decimals if level.decimals is None else min(own.decimals, level.decimals))
    if own.kind == "noisy" and level.decimals is None:
        return Level(noise=math.hypot(own.sigma, level.noise))
    return level


@dataclass(frozen=True)
class Plan:
    """What averaging within a budget can afford, read off a recovery that averaged."""

    start: int
    """Queries before the averaging: look, radius, Hessians, first fits"""
    already: int
    """Rows of the start that the final fit uses again"""
    verification: int
    rows_per_unit: float
    """Rows of the final fit per unit of ``averaging``"""

    @classmethod
    def of(cls, recovery: Recovery, averaging: float) -> Plan | None:
        """Return the plan behind a recovery with this ``averaging``; None if it did not come so far.

        Everything before the averaging is a function of the seed and the answers: another recovery with the
        same seed spends the same on it.
        """
        names = [stage.name for stage in recovery.stages]
        if _AVERAGING not in names:
            return None
        last = len(names) - 1 - names[::-1].index(_AVERAGING)
        stage = recovery.stages[last]
        rows = stage.figures.get("rows")
        if rows is None:
            return None
        return cls(
            # Rows may also be asked between two stages: what came after is taken off the total.
            start=recovery.queries - sum(later.queries for later in recovery.stages[last:]),
            already=int(rows) - stage.queries,  # type: ignore[arg-type]
            verification=recovery.verification_queries,
            rows_per_unit=float(rows) / averaging,  # type: ignore[arg-type]
        )

    @property
    def onset(self) -> int:
        """Queries that a first network costs, verified, before anything more is averaged."""
        return self.start + self.verification

    def averaging_within(self, budget: int) -> float | None:
        """Return the ``averaging`` that uses up ``budget``; None if the start leaves no row for it."""
        rows = self.rows_within(budget)
        # One row less: the number of rows is rounded up.
        return (rows - 1) / self.rows_per_unit if rows - 1 > self.already else None

    def queries_for(self, rows: float) -> float:
        """Return the queries after which the final fit has ``rows`` rows."""
        return self.onset + max(0.0, rows - self.already)

    def rows_within(self, queries: int) -> int:
        """Return the rows of the final fit of a recovery that sent ``queries``."""
        return queries - self.onset + self.already
