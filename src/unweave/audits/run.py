"""The audit: recover the target once, then let the network found stand in for it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.audits.advice import advise, may_stand_in
from unweave.audits.answer_log import MemoryStore, answers_on_disk, check_log, logged_answers
from unweave.audits.attack import FRESH_ROWS, StandIn
from unweave.audits.curve import LeakageCurve, LevelSummary, Point
from unweave.audits.findings import findings
from unweave.audits.level import OwnPrecision, checked_levels
from unweave.audits.result import Audit
from unweave.audits.trace import Trace
from unweave.errors import BudgetExhausted, Interrupted, InvalidInput
from unweave.execution.store import Checkpoint
from unweave.networks.network import Network
from unweave.probing.look import look
from unweave.recovery.recover import recover
from unweave.recovery.result import Recovery
from unweave.recovery.settings import describe_target, with_settings
from unweave.recovery.tables import width_told
from unweave.search.journal import Progress
from unweave.search.request import checked_widths
from unweave.targets.queries import Queries
from unweave.targets.query_log import QueryLog
from unweave.targets.target import as_queries

DECIMALS = (6, 4, 3, 2)
ALARM = 0.01
"""Median relative error of the weights at which they count as given away."""
_FRESH_STREAM = 0x61756469  # keeps fresh rows apart from everything that a recovery draws
_STAND_IN_SEED = 1  # added to the seed: an attacker does not draw the auditor's random numbers


@with_settings
def audit(
    target: Any,
    decimals: Sequence[int] = DECIMALS,
    noise: Sequence[float] = (),
    budgets: Sequence[int] | None = None,
    *,
    alarm: float = ALARM,
    hidden: Sequence[int] | int | None = None,
    activation: str | None = None,
    seed: int = 0,
    input_dim: int | None = None,
    output_activation: str | None = None,
    domain: tuple[Any, Any] | None = None,
    examples: Any = None,
    max_queries: int | None = None,
    deadline: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
) -> Audit:
    """Find out whether answers give the weights away, after how many queries, at which precision.

    The target is recovered once, by `unweave.recover`. If that succeeds, the network found, checked against
    every answer of the target, stands in for it: for every level (decimals published, or noise added) and
    every budget, the stand-in is attacked by a recovery of its own, which costs the target nothing.

    Args:
        target: as in `unweave.recover`; the arguments that are not explained here too. What is said about the
            network (``hidden``, ``activation``, ``domain``, ``examples``, ...) the attackers know as well.
        decimals: numbers of decimals that might be published.
        noise: standard deviations of noise that might be added, fresh for every answer.
        budgets: queries that a client might be allowed; None for three powers of ten from the number of
            parameters on.
        alarm: median relative error of the weights at which they count as given away.
        max_queries: rows that may be sent to the target.
        deadline: seconds for everything; points that are not done by then are left out, and the result says
            so.
        checkpoint: keeps every answer of the target on disk.

    Ctrl-C ends the audit: what is done is returned, with ``interrupted`` set. Cost: the queries of one
    recovery of the target, and the time of about two recoveries of the stand-in per point.

    Example:
        >>> import unweave
        >>> net = unweave.random_network([4, 3, 1], activation="tanh", seed=1, outer="normal")
        >>> found = unweave.audit(net, decimals=[3], budgets=[10_000])
        >>> found.target_queries == found.recovery.queries, sorted({point.way for point in found.points})
        (True, ['averaging', 'bisection', 'direct'])
    """
    levels = checked_levels(decimals, noise)
    allowed = None if budgets is None else checked_budgets(budgets)
    if not 0 < alarm < 1:
        raise InvalidInput(f"alarm must be between 0 and 1. Got {alarm!r} instead. For example 0.01.")
    checked_widths(hidden)  # before the target is opened
    began, cpu = time.monotonic(), time.process_time()
    width = width_told(target, input_dim, examples)
    queries = as_queries(target, input_dim=width, max_queries=max_queries, deadline=deadline)
    known = {
        "hidden": hidden,
        "activation": activation,
        "output_activation": output_activation,
        "domain": domain,
        "examples": examples,
    }
    sent, store = queries.sent, MemoryStore()
    recovery, answers, interrupted = _recovered(queries, seed, checkpoint, progress, known, store)
    recovery = replace(recovery, settings={**recovery.settings, "target": describe_target(target)})
    own = OwnPrecision.of(recovery.stages)
    check = None
    if recovery.network is not None:
        digits = [level.decimals for level in levels if level.decimals is not None]
        check = check_log(recovery.network, answers, own, recovery.error, digits)
    curve = _Collected(interrupted)
    if may_stand_in(recovery, check) and recovery.network is not None and not interrupted:
        allowed = allowed or default_budgets(recovery.network.n_parameters)
        rows = _fresh_rows(recovery.network, seed, domain, examples)
        stand_in = StandIn(recovery.network, own, rows, seed + _STAND_IN_SEED, known)
        left = None if deadline is None else max(0.0, deadline - (time.monotonic() - began))
        curve.run(LeakageCurve(stand_in, levels, allowed, alarm, left, progress))
    words = advise(
        recovery, own, check, levels, allowed or (), curve.points, curve.summaries, alarm, interrupted
    )
    trace = Trace(answers, store.times)
    asked = trace.figures()
    return Audit(
        recovery=recovery,
        target_queries=queries.sent - sent,
        own=own,
        check=check,
        levels=levels,
        budgets=allowed or (),
        points=tuple(curve.points),
        summaries=tuple(curve.summaries),
        alarm=alarm,
        verdict=words.verdict,
        recommendation=words.recommendation,
        details=words.details,
        findings=findings(levels, allowed or (), curve.points, alarm, asked),
        defences=words.defences,
        notes=(*curve.notes, *words.notes),
        interrupted=curve.interrupted,
        seconds=time.monotonic() - began,
        cpu_seconds=time.process_time() - cpu,
        trace=trace,
        trace_figures=asked,
    )


def default_budgets(n_parameters: int) -> tuple[int, ...]:
    """Return three powers of ten, the first at least the number of parameters.

    >>> default_budgets(641)
    (1000, 10000, 100000)
    """
    first = max(2, math.ceil(math.log10(max(n_parameters, 1))))
    return tuple(10**power for power in range(first, first + 3))


class _Collected:
    """What the attacks have given so far, however they end."""

    def __init__(self, interrupted: bool = False) -> None:
        self.points: list[Point] = []
        self.summaries: list[LevelSummary] = []
        self.notes = ["interrupted: no attack was run"] if interrupted else []
        self.interrupted = interrupted

    def run(self, curve: LeakageCurve) -> None:
        try:
            for found in curve:
                if isinstance(found, Point):
                    self.points.append(found)
                else:
                    self.summaries.append(found)
        except KeyboardInterrupt:
            self.interrupted = True
            self.notes.append("interrupted: the missing attacks were not run")
        except BudgetExhausted:
            self.notes.append("the deadline passed: the missing attacks were not run")


def _recovered(
    queries: Queries,
    seed: int,
    checkpoint: str | Path | Checkpoint | None,
    progress: Callable[[Progress], None] | None,
    known: dict[str, Any],
    store: MemoryStore,
) -> tuple[Recovery, Callable[[], Iterator[tuple[Array, Array]]], bool]:
    """Return the one recovery of the target, a way to read all its answers, and whether Ctrl-C ended it.

    The answers are kept in the checkpoint if there is one, else in ``store``.
    """
    interrupted = False
    if checkpoint is None:
        queries.attach_log(QueryLog(store))
    try:
        recovery = recover(queries, seed=seed, progress=progress, checkpoint=checkpoint, **known)
    except Interrupted as interrupt:
        recovery, interrupted = interrupt.recovery, True
    finally:
        if checkpoint is None:
            queries.detach_log()
    if checkpoint is None:
        return recovery, lambda: logged_answers(store, queries.n_inputs), interrupted
    path = checkpoint.path if isinstance(checkpoint, Checkpoint) else checkpoint
    return recovery, lambda: answers_on_disk(path, queries.n_inputs), interrupted


def _fresh_rows(network: Network, seed: int, domain: Any, examples: Any) -> Array:
    """Return rows (n, D) from the region in which the network acts, found by asking it."""
    rng = np.random.default_rng([_FRESH_STREAM, seed])
    region = look(as_queries(network), rng=rng, domain=domain, examples=examples).region
    return region.to_inputs(region.sample(FRESH_ROWS, rng))


def checked_budgets(budgets: Sequence[int]) -> tuple[int, ...]:
    """Return the budgets, ascending and each once; `InvalidInput` if one is no whole number from 1."""
    whole: list[int] = []
    with suppress(TypeError, ValueError):
        whole = [int(budget) for budget in budgets if not isinstance(budget, bool) and int(budget) == budget]
    if not whole or len(whole) != len(budgets) or min(whole) < 1:
        raise InvalidInput(
            f"budgets must be whole numbers of queries, 1 or more. Got {budgets!r} instead. "
            "For example (1000, 10000, 100000)."
        )
    return tuple(sorted(set(whole)))
