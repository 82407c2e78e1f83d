"""Run a recovery: look, choose, search, judge, tell.

`run_search` is the only place that catches what ends a search: its budget, the deadline, Ctrl-C, breakdown.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from unweave.errors import BudgetExhausted, Interrupted, InvalidInput
from unweave.networks.network import Network
from unweave.networks.structure import structure_of
from unweave.numerics import interrupts
from unweave.numerics.clock import time_limit
from unweave.numerics.threads import single_threaded_blas
from unweave.probing.findings import Findings
from unweave.probing.labels import MESSAGE as LABELS_MESSAGE
from unweave.probing.normalised import MESSAGE as NORMALISED_MESSAGE
from unweave.probing.normalised import is_normalised
from unweave.recovery.breakdown import NUMERICAL_ERRORS, breakdown_reason, is_breakdown
from unweave.recovery.certificate import certify
from unweave.recovery.choose import choose, options_for
from unweave.recovery.judge import Verdict, judge, unverified
from unweave.recovery.looks_like import looks_like
from unweave.recovery.polish import is_nearly_right, polished_on_values
from unweave.recovery.result import Certificate, Recovery, Status
from unweave.recovery.resume import Resumption
from unweave.recovery.ridges import RidgeSearch
from unweave.recovery.rivals import PARALLEL_UNITS, are_parallel, rival_of, smaller_rival
from unweave.recovery.rounded_rows import NOT_KEPT, keeps_rounding
from unweave.recovery.sources import Place, Source
from unweave.recovery.trial import NO_TRIAL
from unweave.search import Candidate, Context, GaveUp, Journal, Method, Progress, Request, Search
from unweave.targets.change_of_inputs import in_normalised_inputs
from unweave.targets.held_out import FittedRows
from unweave.targets.region import NormalisedQueries


def run_search(search: Search) -> Candidate:
    """Run ``search`` and return the best candidate it holds, with what ended it as its problem."""
    problem, interrupted = None, False
    try:
        with single_threaded_blas() if search.single_thread else nullcontext():
            search.run()
        interrupts.look()
    except BudgetExhausted as error:
        problem = _told(str(error), search.so_far())
    except GaveUp as error:
        problem = str(error)
    except KeyboardInterrupt:
        interrupts.taken()
        problem, interrupted = "interrupted", True
    except NUMERICAL_ERRORS as error:
        if not is_breakdown(error):
            raise
        problem = _told(breakdown_reason(error), search.so_far())
    candidate = _held_by(search)
    return replace(candidate, problem=problem or candidate.problem, interrupted=interrupted)


def completed_layers(candidate: Candidate) -> int:
    """Return how many layers a candidate knows for certain."""
    return 0 if candidate.known_layers is None else len(candidate.known_layers.weights)


def _held_by(search: Search) -> Candidate:
    """Return the best candidate of ``search``: none if its numbers are of no use."""
    try:
        with time_limit(None):  # what was found is handed back, whatever the time
            return search.candidate()
    except NUMERICAL_ERRORS as error:
        if not is_breakdown(error):
            raise
        return Candidate(problem=breakdown_reason(error))


def _told(what: str, so_far: str) -> str:
    return f"{what.rstrip('.')}; {so_far}" if so_far else what


class Run:
    """One recovery; knows at any time what it could tell."""

    def __init__(
        self,
        source: Source,
        request: Request,
        methods: tuple[Method, ...],
        tolerance: float | None,
        seed: int,
        progress: Callable[[Progress], None] | None,
        resumption: Resumption | None,
    ) -> None:
        self._source, self._request, self._tolerance = source, request, tolerance
        self._methods = methods
        self._resumption = resumption
        self._sent_before = 0 if resumption is None else resumption.sent_before
        self._derivatives_before = source.derivative_queries
        self._rng = np.random.default_rng([source.stream, seed])
        self._journal = Journal(source, progress)
        self._findings: Findings | None = None
        self._candidate = Candidate()
        self._verdict: Verdict | None = None
        self._verification = 0

    @property
    def findings(self) -> Findings | None:
        """What was found where the network was found; None before the look."""
        return self._findings

    def recover(self) -> Recovery:
        """Go the whole way; on Ctrl-C hand back what was found."""
        try:
            # Methods that do not fit the target may run away; what comes out is judged, not warned about.
            with (
                interrupts.remembered(),
                np.errstate(all="ignore"),
                time_limit(self._source.clock()),
            ):
                result = self._recover()
                interrupts.look()
                return result
        except KeyboardInterrupt as interrupt:
            interrupts.taken()
            raise Interrupted(self._tell(self._interrupted()), self._source.queries) from interrupt

    def _interrupted(self) -> str:
        """Say how far the run has come."""
        if self._candidate.network is None:
            return "interrupted before a network was found"
        if self._verdict is None:
            return "interrupted; the network found so far is not verified"
        return f"interrupted; the best network so far: {self._verdict.reason}"

    def _recover(self) -> Recovery:
        source, request = self._source, self._request
        try:
            with self._journal.stage("look") as stage:
                findings = self._findings = source.look(request, self._rng)
                noise = findings.noise
                stage.figures.update(noise=noise.kind, sigma=noise.sigma, outputs=findings.n_outputs)
        except BudgetExhausted as error:
            return self._tell(f"the budget ended while looking at the target: {error}")
        except NUMERICAL_ERRORS as error:
            if isinstance(error, InvalidInput) or not is_breakdown(error):
                raise
            return self._tell(f"while looking at the target, {breakdown_reason(error)}")
        if findings.labels:
            return self._tell(LABELS_MESSAGE.format(findings.labels))
        methods, reasons = choose(request, findings, source.asks, self._methods)
        if not methods and source.asks == "samples":
            said = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
            hidden = None if request.hidden is None else list(request.hidden)
            raise InvalidInput(
                f"hidden and activation must be those of a method for samples. Got hidden={hidden} and "
                f"activation={request.activation!r} instead ({said})."
            )
        if not methods:
            return self._tell("; ".join(f"method {name}: {reason}" for name, reason in reasons.items()))
        places = source.places(request, findings, methods, self._rng)
        earlier: list[Candidate] = []
        unexplained: tuple[Candidate, Place] | None = None
        for method, place in ((m, place) for m in methods for place in (places if m.wider else places[:1])):
            candidate = self._searched(method, place, tuple(earlier))
            earlier.append(candidate)
            verdict = self._judged(candidate, place)
            # Samples have no further rows to give.
            view, seen = place.view, place.findings
            if isinstance(view, NormalisedQueries) and is_nearly_right(candidate, verdict, seen):
                self._consider(candidate, verdict, place)
                candidate = polished_on_values(candidate, view, seen, self._journal, self._rng)
                verdict = self._judged(candidate, place)
            self._consider(candidate, verdict, place)
            if (self._verdict is not None and self._verdict.status.is_recovered) or view.seconds_left == 0:
                break
            if candidate.refusal is not None:
                return self._tell(candidate.refusal)
            if len(earlier) == 2 and self._divides_by_size(place):
                return self._tell(NORMALISED_MESSAGE)
            if candidate.directions is not None:
                unexplained = candidate, place
        # Last, since other methods see units of one direction, or many of them, where Hessians do not.
        if unexplained is not None and not (self._verdict and self._verdict.status.is_recovered):
            self._fit_ridges(*unexplained)
        return self._tell()

    def _divides_by_size(self, place: Place) -> bool:
        """Whether the target is of a kind that no method handles, which a few rows far out show.

        Their directions are their own: what is drawn afterwards does not depend on them.
        """
        view = place.view
        if not isinstance(view, NormalisedQueries) or place.findings.is_noisy or self._request.tight:
            return False
        try:
            with self._journal.stage("far rays") as stage:
                stage.figures["normalised"] = found = is_normalised(view, np.random.default_rng(0))
        except BudgetExhausted:
            return False
        return found

    def _fit_ridges(self, earlier: Candidate, place: Place) -> None:
        """Fit profiles along directions for which no kind of unit was found; keep them if they are better."""
        view, directions = place.view, earlier.directions
        if directions is None or not isinstance(view, NormalisedQueries) or view.seconds_left == 0:
            return
        fitted = RidgeSearch(directions, earlier.problem, view, place.findings, self._journal, self._rng)
        candidate = run_search(fitted)
        if candidate.interrupted:
            raise KeyboardInterrupt
        if candidate.network is None:
            return
        verdict = self._judged(candidate, place)
        known = np.nan if self._verdict is None else self._verdict.trial.error
        worse = self._verdict is None or self._verdict.status is Status.FAILED or not known <= np.inf
        if verdict.status is not Status.FAILED and (worse or verdict.trial.error < known):
            self._candidate, self._verdict, self._findings = candidate, verdict, place.findings

    def _searched(self, method: Method, place: Place, earlier: tuple[Candidate, ...]) -> Candidate:
        """Run one method's search at one place."""
        context = Context(
            view=place.view,
            findings=place.findings,
            request=self._request,
            journal=self._journal,
            rng=self._rng,
            options=options_for(method, self._request),
            earlier=earlier,
        )
        candidate = run_search(method.search(context))
        if self._verdict is None:
            self._candidate = candidate  # kept even if verification is interrupted
        if candidate.interrupted:
            raise KeyboardInterrupt
        return candidate

    def _judged(self, candidate: Candidate, place: Place) -> Verdict:
        sent, trial = self._source.sent, None
        try:
            with self._journal.stage("verification") as stage:
                if candidate.network is not None:
                    trial = self._source.trial(candidate, place, self._tolerance, self._rng)
                told = self._tolerance is not None
                verdict = judge(candidate, trial, place.findings, told_tolerance=told)
                if verdict.status.is_recovered:
                    verdict = judge(
                        self._challenged(candidate, place), trial, place.findings, told_tolerance=told
                    )
                tried = verdict.trial
                stage.figures.update(error=tried.error, threshold=tried.threshold, rows=tried.rows)
        except BudgetExhausted as error:
            return unverified(Status.APPROXIMATE, f"not verified: {error}")
        except NUMERICAL_ERRORS as error:
            if not is_breakdown(error):
                raise
            return unverified(Status.APPROXIMATE, f"not verified: {breakdown_reason(error)}")
        finally:
            self._verification += self._source.sent - sent
        return verdict

    def _challenged(self, candidate: Candidate, place: Place) -> Candidate:
        """Hold coarse answers against the network: their rounding, and other kinds where none was told."""
        if not place.findings.is_noisy:
            return candidate
        if not isinstance(candidate.network, Network) or candidate.evidence.from_exact_equations:
            return candidate
        rounded = self._source.rounded_answers()
        if rounded is not None and not keeps_rounding(candidate.network, *rounded):
            return replace(candidate, objection=candidate.objection or NOT_KEPT)
        if self._request.activation is not None:
            return candidate
        x, y, sigma = self._source.answers(candidate, place)
        region = place.findings.region
        network = in_normalised_inputs(candidate.network, region)
        rival = rival_of(network, region.to_normalised(x), y - candidate.evidence.answer_offset, sigma)
        if rival is None and isinstance(place.view, FittedRows):
            rival = smaller_rival(candidate.network, x, y, place.view.floor()[0], self._rng)
            if rival is None and network.hidden and are_parallel(network):
                return replace(candidate, objection=candidate.objection or PARALLEL_UNITS)
        if rival is None:
            return candidate
        objection = f"{rival} units explain the answers as well at this precision"
        return replace(candidate, objection=candidate.objection or objection)

    def _consider(self, candidate: Candidate, verdict: Verdict, place: Place) -> None:
        """Keep the better of what there is, with the place it was found in."""
        if candidate.tentative and not verdict.status.is_recovered and self._verdict is not None:
            return
        if self._verdict is None or verdict.status.rank < self._verdict.status.rank:
            better = True
        elif verdict.status is not self._verdict.status:
            better = False
        elif verdict.status.is_recovered:  # only a polish comes after a network that is recovered
            better = verdict.trial.error < self._verdict.trial.error
        elif candidate.replaces_earlier:
            better = True
        elif candidate.criterion is not None and self._candidate.criterion is not None:
            better = candidate.criterion < self._candidate.criterion
        elif verdict.status is Status.APPROXIMATE:
            better = verdict.trial.error < self._verdict.trial.error
        else:  # of two failures the one that knows more layers says more
            better = completed_layers(candidate) > completed_layers(self._candidate)
        if better:
            self._candidate, self._verdict, self._findings = candidate, verdict, place.findings

    def _autodiff_notes(self) -> tuple[str, ...]:
        """What the derivatives cost, if they were the target's own."""
        if not self._request.autodiff:
            return ()
        count = self._source.derivative_queries - self._derivatives_before
        if count == 0:
            return ("derivatives by autodiff were allowed and not used: answers alone were asked for",)
        return (
            f"derivatives by autodiff: {count} of the queries are forward and backward passes through the "
            "target, for its gradients and Hessians",
        )

    def _reason(self, status: Status) -> str:
        """Say why the run ended as it did, in plain words first."""
        if self._verdict is None:
            return ""
        named = None if self._findings is None else looks_like(self._findings, self._candidate, status)
        return f"{named}; {self._verdict.reason}" if named else self._verdict.reason

    def _tell(self, message: str | None = None) -> Recovery:
        """Return the result as it stands."""
        verdict, candidate, findings = self._verdict, self._candidate, self._findings
        status = Status.FAILED if candidate.network is None else Status.APPROXIMATE
        if verdict is not None:
            status = verdict.status
        network = None if status is Status.FAILED else candidate.network
        sent = self._source.sent - self._sent_before
        trial = NO_TRIAL if verdict is None else verdict.trial
        resumed = () if self._resumption is None else self._resumption.notes
        return Recovery(
            network=network,
            status=status,
            error=trial.error,
            message=message or self._reason(status),
            queries=sent,
            probing_queries=sent if findings is None else findings.queries,
            verification_queries=self._verification,
            seconds=self._journal.seconds,
            stages=tuple(self._journal.stages),
            certificate=Certificate() if findings is None else certify(candidate, verdict, findings),
            notes=(
                *(*self._source.notes, *candidate.notes, *self._autodiff_notes()),
                *(*resumed, *self._journal.notes),
                *(
                    map(str, structure_of(network))
                    if isinstance(network, Network) and status.is_recovered
                    else ()
                ),
            ),
            evidence=replace(candidate.evidence, fresh_errors=trial.errors),
            known_layers=candidate.known_layers if network is None else None,
            standard_errors=None if network is None else candidate.standard_errors,
        )
