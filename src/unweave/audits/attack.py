"""One attack on the stand-in: a real recovery, with a budget, from answers published at a level.

The stand-in is the network that the audit recovered from the target; attacking it costs the target nothing.
Two attacks go past a coarse level. *Averaging* fits all parameters to n rows, with an error that falls with
sqrt(n). *Bisection* halves the inputs at which a deterministic rounded answer flips: one bit per query,
whatever the number of decimals.

What the attacker then has is measured by the answers and by the

    weight error of unit k = |(w_k, b_k)^ - s (w_k, b_k)| / |(w_k, b_k)|,

over the first hidden layer, both networks in canonical form, units assigned to each other at least total
cost, s the better sign where the activation allows a choice. A unit without counterpart counts as 1, and so
does whatever is further away: nothing of it is known. The median tells how well a typical unit is known,
the worst whether all are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from unweave.arrays import Array
from unweave.audits.level import Level, OwnPrecision, Published
from unweave.networks.comparison import compare, relative_uniform_error
from unweave.networks.network import Network
from unweave.networks.symmetry import Layers, canonical
from unweave.recovery.recover import recover
from unweave.recovery.result import Recovery
from unweave.search.journal import Progress

_SINGLE_PRECISION = float(np.finfo(np.float32).eps)  # answers that are not rounded are alike to this
Way = Literal["direct", "averaging", "bisection"]

FIRST_ROWS = 8.0
"""Rows per parameter of the fit from which an attack's plan is made."""
FRESH_ROWS = 2000
"""Rows on which the answers of what was found are compared."""
_AVERAGING = "averaging"
"""Stage of a recovery from coarse answers after which rows are only averaged."""
_COARSE = ("radius", _AVERAGING)
"""Stages that only a recovery from coarse answers has."""


@dataclass(frozen=True)
class Knowledge:
    """What a network found tells about the one behind the answers; nan throughout if none was found."""

    parameter_error: float = math.nan
    """As `unweave.compare` has it; inf if the widths differ."""
    median_weight_error: float = math.nan
    worst_weight_error: float = math.nan
    fresh_error: float = math.nan
    """max |found(x) - f(x)| / max |f(x)| over fresh rows"""
    share_alike: float = math.nan
    """Share of fresh rows answered alike to the published digits, or to within the noise"""


def knowledge(truth: Network, found: Network | None, rows: Array, level: Level) -> Knowledge:
    """Measure ``found`` against ``truth`` on ``rows`` (n, D), whose answers are published at ``level``."""
    if found is None:
        return Knowledge()
    weights = weight_errors(truth, found)
    expected, got = truth(rows), found(rows)
    return Knowledge(
        compare(truth, found).parameter_error,
        float(np.median(weights)),
        float(weights.max()),
        relative_uniform_error(expected, got),
        share_alike(expected, got, level),
    )


def weight_errors(truth: Network, found: Network) -> Array:
    """Return the relative error (m,) of every unit of the first layer of ``truth``."""
    if found.n_inputs != truth.n_inputs:
        return np.ones(truth.weights[0].shape[1])
    reference, other = canonical(truth), canonical(found)
    layers = Layers.of(reference)
    wanted = np.vstack([reference.weights[0], reference.biases[0]]).T
    have = np.vstack([other.weights[0], other.biases[0]]).T
    sine = reference.activations[0] == "sine"
    distances = _distances(wanted, have, sine)
    if layers.hidden and layers.reflection(0) is not None:
        distances = np.minimum(distances, _distances(wanted, -have, sine))
    rows, columns = linear_sum_assignment(distances)
    errors = np.ones(len(wanted))
    sizes = np.maximum(np.linalg.norm(wanted, axis=1), np.finfo(np.float64).tiny)
    errors[rows] = np.minimum(distances[rows, columns] / sizes[rows], 1.0)
    return errors


def share_alike(expected: Array, got: Array, level: Level) -> float:
    """Return the share of rows on which ``got`` (n, K) is ``expected`` to the digits that the level shows.

    Behind noise: to within its standard deviation; unrounded: to single precision.
    """
    if level.is_rounded:
        same = np.round(expected, level.decimals or 0) == np.round(got, level.decimals or 0)
    else:
        size = float(np.abs(expected).max(initial=0.0))
        same = np.abs(expected - got) <= max(level.sigma, _SINGLE_PRECISION * size)
    return float(same.all(axis=1).mean())


def _distances(a: Array, b: Array, half_turns: bool) -> Array:
    """Return the distance (m, k) of every row of ``a`` (m, n) to every row of ``b`` (k, n); biases come last.

    With ``half_turns`` biases count modulo pi, as those of sine do.
    """
    result = np.empty((len(a), len(b)))
    for index, row in enumerate(a):
        difference = b - row
        if half_turns:
            difference[:, -1] -= math.pi * np.round(difference[:, -1] / math.pi)
        result[index] = np.linalg.norm(difference, axis=1)
    return result


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
    progress: Callable[[Progress], None] | None = None,
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
        progress=progress,
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
