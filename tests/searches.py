"""Run one method's search, or the judge, on a target by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unweave import Queries
from unweave.arrays import Array
from unweave.probing.findings import Findings
from unweave.probing.look import look
from unweave.recovery.choose import method_named, options_for
from unweave.recovery.judge import Verdict, judge
from unweave.recovery.run import run_search
from unweave.recovery.trial import fresh_trial
from unweave.search import Candidate, Context, Journal, Request
from unweave.targets import NormalisedQueries, as_queries


@dataclass(frozen=True, eq=False)
class Looked:
    """A target that was looked at."""

    queries: Queries
    view: NormalisedQueries
    findings: Findings
    rng: np.random.Generator

    def search(
        self,
        method: str,
        request: Request | None = None,
        *,
        budget: int | None = None,
        options: Any = None,
    ) -> Searched:
        """Run the search of ``method``, which may ask ``budget`` rows."""
        told = request or Request()
        if options is not None:
            told = replace(told, options=(options,))
        if budget is not None:
            self.queries.reset_budget(max_queries=budget)
        row, journal = method_named(method), Journal(self.queries)
        context = Context(self.view, self.findings, told, journal, self.rng, options=options_for(row, told))
        candidate = run_search(row.search(context))
        return Searched(candidate, self.findings, self.queries, journal, self.view)

    def verdict(self, candidate: Candidate, tolerance: float | None = None, seed: int = 1) -> Verdict:
        """Judge ``candidate`` by fresh rows."""
        return judged(candidate, self.view, self.findings, tolerance, seed)


@dataclass(frozen=True, eq=False)
class Searched:
    """What a search handed back, and all that it was given."""

    candidate: Candidate
    findings: Findings
    queries: Queries
    journal: Journal
    view: NormalisedQueries

    @property
    def stages(self) -> list[str]:
        """Names of the stages, in their order."""
        return [stage.name for stage in self.journal.stages]


def looked(
    target: Callable[[Array], Any], *, input_dim: int | None = None, seed: int = 1000, **where: Any
) -> Looked:
    """Look at ``target``; ``where`` is a domain or examples."""
    queries, rng = as_queries(target, input_dim=input_dim), np.random.default_rng(seed)
    findings = look(queries, rng=rng, **where)
    return Looked(queries, NormalisedQueries(queries, findings.region), findings, rng)


def searched(
    method: str,
    target: Callable[[Array], Any],
    request: Request | None = None,
    *,
    budget: int | None = None,
    options: Any = None,
    **how: Any,
) -> Searched:
    """Look at ``target`` (``how``: see `looked`) and run the search of ``method``."""
    return looked(target, **how).search(method, request, budget=budget, options=options)


def judged(
    candidate: Candidate,
    view: NormalisedQueries,
    findings: Findings,
    tolerance: float | None = None,
    seed: int = 1,
) -> Verdict:
    """Try ``candidate`` on fresh rows, if it has a network, and judge it."""
    trial = None
    if candidate.network is not None:
        trial = fresh_trial(candidate, view, findings, tolerance, np.random.default_rng(seed))
    return judge(candidate, trial, findings, told_tolerance=tolerance is not None)
