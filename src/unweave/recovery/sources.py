"""Where answers come from: a target that is asked, or samples that are already paid for."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from unweave.arrays import Array
from unweave.numerics.clock import SecondsLeft
from unweave.probing.far_look import far_look
from unweave.probing.findings import Findings
from unweave.probing.look import look
from unweave.probing.samples_look import look_at_samples
from unweave.recovery.choose import question_of
from unweave.recovery.fresh_rows import demands
from unweave.recovery.hearing import NEAR
from unweave.recovery.rounded_rows import HALF_A_DIGIT
from unweave.recovery.thrift import look_size
from unweave.recovery.trial import Trial, fresh_trial, held_out_trial
from unweave.search import Candidate, Method, Request
from unweave.targets.budget import Budget
from unweave.targets.held_out import FittedRows, HeldOutRows, split
from unweave.targets.queries import Queries
from unweave.targets.region import NormalisedQueries, Region
from unweave.targets.samples import Samples

_QUERIES_STREAM = 0x756E7765  # keep a search's random numbers apart from those of a network planted with ...
_SAMPLES_STREAM = 0x73616D70  # ... its seed
_WIDER = 2.0  # factor by which a region that was searched for is widened at the second attempt
_FEWEST_ROWS_TO_SPLIT = 5  # samples of which some may be held out
_HELD_OUT_SHARE = 0.2  # of the samples, at most
_LEAST_HELD_OUT_SHARE = 0.05  # of the samples, even where they are few


@dataclass(frozen=True, eq=False)
class Place:
    """Where a search works: what it may ask, and what a look found there."""

    view: NormalisedQueries | FittedRows
    findings: Findings


class Source(ABC):
    """Gives answers to searches, and rows that they have not seen to the judge."""

    asks: Literal["queries", "samples"]
    stream: int
    """First word of the seed of a run."""
    queries: Queries | None = None
    """The ledger, where something is asked."""
    notes: tuple[str, ...] = ()

    @property
    def sent(self) -> int:
        """Rows sent so far."""
        return 0 if self.queries is None else self.queries.sent

    @property
    def derivative_queries(self) -> int:
        """Those of them that were passes for derivatives."""
        return 0 if self.queries is None else self.queries.derivative_queries

    @abstractmethod
    def clock(self) -> SecondsLeft | None:
        """Return what tells the seconds until the deadline; None where there is none."""

    @abstractmethod
    def look(self, request: Request, rng: Generator) -> Findings:
        """Look at the answers before anything is fitted."""

    @abstractmethod
    def places(
        self, request: Request, findings: Findings, methods: Sequence[Method], rng: Generator
    ) -> list[Place]:
        """Return where searches work: the second place is for methods that go wider."""

    @abstractmethod
    def trial(self, candidate: Candidate, place: Place, tolerance: float | None, rng: Generator) -> Trial:
        """Try the candidate's network on rows that nothing was fitted to."""

    @abstractmethod
    def answers(self, candidate: Candidate, place: Place) -> tuple[Array, Array, Array]:
        """Return rows (n, D) of the region, their answers (n, K) and standard deviations (K,) of these."""

    def rounded_answers(self) -> tuple[Array, Array, Array] | None:
        """Return all rows (n, D), their answers (n, K) and half a digit (K,) of these.

        None if the answers are not rounded, or can be bisected, which tells more.
        """
        return None


class QueriedTarget(Source):
    """A target that is asked."""

    asks, stream = "queries", _QUERIES_STREAM

    def __init__(
        self, queries: Queries, domain: tuple[Any, Any] | None, examples: Any, verify: Any = None
    ) -> None:
        self.queries: Queries = queries
        self._domain, self._examples = domain, examples
        self._demands = demands(verify, examples, queries.n_inputs)

    def clock(self) -> SecondsLeft | None:
        """The ledger's."""
        return None if self.queries.seconds_left is None else lambda: self.queries.seconds_left

    def look(self, request: Request, rng: Generator) -> Findings:
        """Ask a few hundred rows; ask far out too where the depth is not known and that is allowed."""
        size = look_size(request)
        self._demands = replace(self._demands, sparing=request.tight)
        findings = look(self.queries, rng=rng, domain=self._domain, examples=self._examples, size=size)
        self._demands.refuse_rows_outside(findings.region)
        told = request.hidden is not None
        # Lines show in precise answers whether kinks are those of one layer.
        clear = findings.kinks and findings.noise.kind != "float32"
        if told or findings.region.has_box or clear or findings.is_affine:
            return findings
        sent = self.queries.sent
        view = NormalisedQueries(self.queries, findings.region)
        # Random numbers of its own: whether this look is taken must not change what follows.
        far = far_look(
            view,
            findings.noise.relative,
            np.random.default_rng(self.stream),
            findings.links,
            size.far_pairs,
        )
        cost = findings.queries + self.queries.sent - sent
        if findings.kinks:
            return replace(findings, layered=far.layered, queries=cost)
        return replace(findings, layered=far.layered, rectifies=far.rectifies, links=far.links, queries=cost)

    def places(
        self, request: Request, findings: Findings, methods: Sequence[Method], rng: Generator
    ) -> list[Place]:
        """A region that had to be searched for may be too narrow to see every unit act."""
        found = [findings]
        if findings.searched and not findings.region.has_box:
            region = findings.region
            found.append(replace(findings, region=Region(region.location, _WIDER * region.scale)))
        return [Place(NormalisedQueries(self.queries, each.region), each) for each in found]

    def trial(self, candidate: Candidate, place: Place, tolerance: float | None, rng: Generator) -> Trial:
        """Ask fresh rows, and what the user wants besides."""
        assert isinstance(place.view, NormalisedQueries)
        return fresh_trial(candidate, place.view, place.findings, tolerance, rng, self._demands)

    def answers(self, candidate: Candidate, place: Place) -> tuple[Array, Array, Array]:
        """Return what was asked near the region, in an order that says nothing."""
        x, y = self.queries.witnesses.rows()
        near = np.abs(place.findings.region.to_normalised(x)).max(axis=1) <= NEAR
        measured = candidate.evidence.answer_sigma
        return x[near], y[near], place.findings.noise.sigma_per_output if measured is None else measured


class SampledTarget(Source):
    """Rows that are already paid for; some are held out before anything is fitted."""

    asks, stream = "samples", _SAMPLES_STREAM

    def __init__(
        self, samples: Samples, deadline: float | None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._samples, self._budget = samples, Budget(clock)
        self._budget.reset(None, deadline)
        self.notes = samples.notes
        self._held: HeldOutRows | None = None

    def clock(self) -> SecondsLeft | None:
        """Of the budget, which limits nothing else here."""
        return None if self._budget.seconds_left is None else lambda: self._budget.seconds_left

    def look(self, request: Request, rng: Generator) -> Findings:
        """Read scales and precision off the rows."""
        return look_at_samples(self._samples)

    def places(
        self, request: Request, findings: Findings, methods: Sequence[Method], rng: Generator
    ) -> list[Place]:
        """Hold out what the most frugal of the likeliest methods does not need."""
        likeliest = [
            each
            for each in methods
            if each.likelihood(request, findings) == methods[0].likelihood(request, findings)
        ]
        needed = min(each.cost(question_of(request, findings, each)).rows for each in likeliest)
        count = self._held_out(methods[0], needed)
        fitted, self._held = split(self._samples, count, self._budget, rng)
        return [Place(fitted, findings)]

    def _held_out(self, method: Method, needed: int) -> int:
        rows = len(self._samples)
        if rows < _FEWEST_ROWS_TO_SPLIT:
            return 0
        share = int(_HELD_OUT_SHARE * rows)
        if method.uses_every_row:
            return max(0, min(share, rows - needed))
        least = max(1, int(_LEAST_HELD_OUT_SHARE * rows))
        return int(np.clip(rows - needed, least, max(share, 1)))

    def trial(self, candidate: Candidate, place: Place, tolerance: float | None, rng: Generator) -> Trial:
        """Compare with the rows that were held out."""
        assert isinstance(place.view, FittedRows)
        assert self._held is not None
        return held_out_trial(candidate, place.view, self._held, tolerance)

    def answers(self, candidate: Candidate, place: Place) -> tuple[Array, Array, Array]:
        """Return the rows that were fitted."""
        assert isinstance(place.view, FittedRows)
        return place.view.x, place.view.y, place.view.precision.sigma

    def rounded_answers(self) -> tuple[Array, Array, Array] | None:
        """Return the rows, those that were held out among them, if all answers have few decimals."""
        precision = self._samples.precision()
        if precision.kind != "decimals":
            return None
        return self._samples.x, self._samples.y, HALF_A_DIGIT * precision.sigma
