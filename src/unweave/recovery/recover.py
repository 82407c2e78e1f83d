"""The front door: wrap, look, choose, run, judge, tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unweave.errors import BudgetExhausted, Interrupted, InvalidInput
from unweave.execution.executor import Executor
from unweave.execution.store import Checkpoint
from unweave.methods.refusals import Request
from unweave.methods.table import METHODS, choose, no_use_for_autodiff
from unweave.networks.activations import SOFTMAX, get_activation
from unweave.probing.far_look import far_look
from unweave.probing.labels import MESSAGE as LABELS_MESSAGE
from unweave.probing.look import Findings, look
from unweave.recovery.certificate import certify
from unweave.recovery.from_samples import recover_from_samples
from unweave.recovery.judge import Verdict, judge
from unweave.recovery.polish import is_nearly_right, polished_on_values
from unweave.recovery.result import Certificate, Recovery, Status
from unweave.recovery.resume import Resumption, running
from unweave.recovery.settings import with_settings
from unweave.search.candidate import Candidate, Evidence
from unweave.search.journal import Journal, Progress
from unweave.targets.differentiation import not_differentiable
from unweave.targets.queries import Queries
from unweave.targets.region import NormalisedQueries, Region
from unweave.targets.samples import Samples
from unweave.targets.target import as_queries, release

AUTODIFF = "autodiff"
DERIVATIVES = ("queries", AUTODIFF)
"""Where derivatives may come from."""

_STREAM = 0x756E7765  # keeps the search's random numbers apart from those of a network planted with its seed
_WIDER = 2.0  # factor by which a region that was searched for is widened at the second attempt
_ORDER = (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY, Status.APPROXIMATE, Status.FAILED)


@with_settings
def recover(
    target: Any,
    hidden: Sequence[int] | None = None,
    activation: str | None = None,
    seed: int = 0,
    *,
    input_dim: int | None = None,
    output_activation: str | None = None,
    domain: tuple[Any, Any] | None = None,
    examples: Any = None,
    max_queries: int | None = None,
    deadline: float | None = None,
    tolerance: float | None = None,
    method: str | None = None,
    averaging: float | None = None,
    derivatives: str = "queries",
    progress: Callable[[Progress], None] | None = None,
    executor: Executor | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
) -> Recovery:
    """Recover the network behind ``target`` from its answers alone.

    Parameters
    ----------
    target
        A callable (n, D) -> (n,) or (n, K), a `Network`, a torch module, a scikit-learn estimator or
        pipeline (regressors are asked to predict, classifiers for probabilities; or pass a bound method such
        as ``model.decision_function``), a keras model, the path of a model file (.npz, .json, .safetensors,
        .onnx; never a pickle), the http(s) URL of an endpoint, a `CommandTarget`, or the ``ledger`` of an
        earlier error, whose answers are reused. It is only ever asked for answers; two columns of
        probabilities are one sigmoid output. Or passive data, `Samples`: only ``hidden``, ``activation``,
        ``seed``, ``tolerance`` and ``deadline`` are used.
    hidden
        Widths of the hidden layers if known, e.g. ``[100]``; ``[]`` for none; None to find out. A width
        that is too large gives the minimal network and a note.
    activation
        Name if known; None to find out (the logistic function is given as tanh).
    seed
        Whole number >= 0. Same seed, same answers of the target, same result.
    input_dim
        D; needed for a plain callable, and for a model that does not say it.
    output_activation
        Name if known; None to find out among identity, tanh, sigmoid and softmax.
    domain
        ``(low, high)``, numbers or one per input: nothing outside is ever asked.
    examples
        (n, D) typical inputs, from which location and scale of every input are taken.
    max_queries, deadline
        Rows that may be sent, seconds that may pass; when they are used up, what was found is returned.
    tolerance
        Relative error on fresh rows that counts as recovered, instead of the target's own precision.
    method
        Name of a method ("affine", "lines", "surfaces", "kinks", "shallow", "coarse", "values", "deep",
        "published"); None to choose.
    averaging
        For coarse answers: rows of the final fit per parameter; the error falls with its square root. None:
        rounded answers of a target that repeats itself are bisected instead, which makes them exact; noisy
        ones are averaged over 32 rows per parameter.
    derivatives
        "queries": from answers alone. "autodiff": gradients and Hessians of one smooth hidden layer are taken
        by backward passes through the target, a torch module, a bound method of one, or a `Network`; each
        pass counts as a query, 1 + K for the gradients of K outputs at a row and K d more for their Hessians
        in d directions, and a note says how many. They come in the module's own precision: call ``.double()``
        on a float32 module, or expect about five digits. Other methods, and verification, ask for answers.
    progress
        Called with a `Progress` from time to time.
    executor
        Who computes, e.g. ``unweave.execution.DaskExecutor(workers=2)``; None for this process. The network
        does not depend on it. It is not closed.
    checkpoint
        A path, or a `Checkpoint`: a file that ends in .sqlite, else a directory, where every answer is kept
        as it arrives. The same call with the same path goes on after a crash or a kill: nothing is asked
        twice, the network is the same, and ``queries`` counts only what was sent this time. Derivatives by
        autodiff are not kept: they are taken, and counted, again.

    Returns
    -------
    Recovery
        Status, network, error on fresh rows, queries, stages, certificate.

    Raises
    ------
    TargetError
        When the target answers nonsense; its ``ledger`` holds what was paid for.
    Interrupted
        On Ctrl-C; its ``recovery`` holds what was found.
    CheckpointError
        When the checkpoint cannot be written any more; its ``ledger`` holds what was paid for.

    Example
    -------
    >>> import unweave
    >>> net = unweave.random_network([6, 4, 1], activation="tanh", seed=1, outer="normal")
    >>> result = unweave.recover(net)
    >>> result.status.name, unweave.compare(net, result.network).parameter_error < 1e-9
    ('RECOVERED', True)
    """
    request = replace(_checked_request(hidden, activation, output_activation, method), averaging=averaging)
    request = replace(request, autodiff=_wants_autodiff(derivatives, request, target))
    if averaging is not None and not 2 <= averaging < np.inf:
        raise InvalidInput(
            f"averaging must be a number of rows per parameter, 2 or more. Got {averaging!r} instead."
        )
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidInput(f"seed must be a whole number >= 0. Got {seed!r} instead.")
    if tolerance is not None and not tolerance > 0:
        raise InvalidInput(f"tolerance must be positive. Got {tolerance!r} instead.")
    if isinstance(target, Samples):
        if checkpoint is not None:
            raise InvalidInput(
                f"checkpoint must be None for samples, because nothing is asked. Got {checkpoint!r} instead."
            )
        return recover_from_samples(
            target, request.hidden, request.activation, int(seed), tolerance, deadline, progress
        )
    queries = as_queries(
        target,
        input_dim=input_dim,
        max_queries=max_queries,
        deadline=deadline,
        differentiable=request.autodiff,
    )
    with running(queries, executor, checkpoint) as resumption:
        rng = np.random.default_rng([_STREAM, seed])
        run = _Run(queries, request, tolerance, rng, progress, resumption)
        try:
            # Methods that do not fit the target may run away; what comes out is judged, not warned about.
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                result = run.recover(domain, examples)
            release(queries)  # not after an error, which hands the ledger back to be asked again
            return result
        except KeyboardInterrupt as interrupt:
            raise Interrupted(
                run.tell("interrupted; what was found so far is not verified"), queries
            ) from interrupt


def _checked_request(
    hidden: Sequence[int] | None, activation: str | None, output_activation: str | None, method: str | None
) -> Request:
    widths = None
    if hidden is not None:
        try:
            widths = tuple(int(width) for width in hidden)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"hidden must be a list of widths or None. Got {hidden!r} instead.") from error
        whole = all(not isinstance(given, bool) and int(given) == given for given in hidden)
        if not whole or min(widths, default=1) < 1:
            raise InvalidInput(
                f"hidden must hold whole numbers >= 1. Got {list(hidden)!r} instead. "
                "For a network without hidden layer give hidden=[]."
            )
    name = None if activation is None else get_activation(activation).name
    known = [entry.name for entry in METHODS]
    if method is not None and method not in known:
        raise InvalidInput(f"method must be one of {', '.join(known)} or None. Got {method!r} instead.")
    output = output_activation
    if output is not None and output != SOFTMAX:
        output = get_activation(output).name
    return Request(widths, name, method, output)


def _wants_autodiff(derivatives: str, request: Request, target: Any) -> bool:
    """Whether derivatives are to be the target's own; refused where no method could use them."""
    if derivatives not in DERIVATIVES:
        raise InvalidInput(
            f"derivatives must be one of {', '.join(DERIVATIVES)}. Got {derivatives!r} instead."
        )
    if derivatives != AUTODIFF:
        return False
    if isinstance(target, Samples):
        raise not_differentiable("Samples, which can be asked nothing,")
    reason = no_use_for_autodiff(request)
    if reason is not None:
        raise InvalidInput(
            f'derivatives="autodiff" must be asked of one smooth hidden layer. Got {reason} instead. Leave '
            'derivatives at "queries", which needs answers only.'
        )
    return True


class _Run:
    """One recovery; knows at any time what it could tell."""

    def __init__(
        self,
        queries: Queries,
        request: Request,
        tolerance: float | None,
        rng: np.random.Generator,
        progress: Callable[[Progress], None] | None,
        resumption: Resumption,
    ) -> None:
        self._queries = queries
        self._resumption = resumption
        self._sent_before = resumption.sent_before
        self._derivatives_before = queries.derivative_queries
        self._request = request
        self._tolerance = tolerance
        self._rng = rng
        self._journal = Journal(queries, progress)
        self._findings: Findings | None = None
        self._candidate = Candidate(None, Evidence())
        self._verdict: Verdict | None = None
        self._verification = 0

    def recover(self, domain: tuple[Any, Any] | None, examples: Any) -> Recovery:
        try:
            with self._journal.stage("look") as stage:
                findings = look(self._queries, rng=self._rng, domain=domain, examples=examples)
                stage.figures.update(
                    noise=findings.noise.kind, sigma=findings.noise.sigma, outputs=findings.n_outputs
                )
                findings = self._findings = self._with_far_look(findings)
        except BudgetExhausted as error:
            return self.tell(f"the budget ended while looking at the target: {error}")
        if findings.labels:
            return self.tell(LABELS_MESSAGE.format(findings.labels))
        methods, reasons = choose(self._request, findings)
        if not methods:
            return self.tell("; ".join(f"method {name}: {reason}" for name, reason in reasons.items()))
        places = self._places(findings)
        for method, where in ((m, place) for m in methods for place in (places if m.wider else places[:1])):
            view = NormalisedQueries(self._queries, where.region)
            candidate = method.run(view, where, self._request, self._journal, self._rng)
            if candidate.interrupted:
                self._candidate = self._candidate if self._verdict else candidate
                raise KeyboardInterrupt
            if self._verdict is None:
                self._candidate = candidate  # kept even if verification is interrupted
            verdict = self._judged(candidate, view, where)
            if is_nearly_right(candidate, verdict, where):
                self._consider(candidate, verdict, where)
                candidate = polished_on_values(candidate, view, where, self._journal, self._rng)
                verdict = self._judged(candidate, view, where)
            self._consider(candidate, verdict, where)
            if self._verdict is not None and self._verdict.status in _ORDER[:2]:
                break
        return self.tell()

    def _with_far_look(self, findings: Findings) -> Findings:
        """Depth from the far field, where it is not known and may be asked for."""
        told = self._request.hidden is not None
        if told or findings.region.has_box or findings.kinks or findings.constant or findings.linear:
            return findings
        sent = self._queries.sent
        view = NormalisedQueries(self._queries, findings.region)
        # Random numbers of its own: whether this look is taken must not change what follows.
        far = far_look(view, findings.noise.relative, np.random.default_rng(_STREAM), findings.links)
        cost = findings.queries + self._queries.sent - sent
        return replace(findings, layered=far.layered, links=far.links, queries=cost)

    @staticmethod
    def _places(findings: Findings) -> list[Findings]:
        """Where to look: a region that had to be searched for may be too narrow to see every neuron act."""
        if not findings.searched or findings.region.has_box:
            return [findings]
        region = findings.region
        return [findings, replace(findings, region=Region(region.location, _WIDER * region.scale))]

    def _judged(self, candidate: Candidate, view: NormalisedQueries, findings: Findings) -> Verdict:
        sent = self._queries.sent
        try:
            with self._journal.stage("verification") as stage:
                verdict = judge(candidate, view, findings, self._tolerance, self._rng)
                stage.figures.update(error=verdict.error, threshold=verdict.threshold, rows=verdict.rows)
        except BudgetExhausted as error:
            status = Status.FAILED if candidate.network is None else Status.APPROXIMATE
            return Verdict(status, np.nan, np.nan, 0, f"not verified: {error}")
        finally:
            self._verification += self._queries.sent - sent
        return verdict

    def _consider(self, candidate: Candidate, verdict: Verdict, where: Findings) -> None:
        """Keep the better of what there is, with the region it was found in."""
        better = self._verdict is None or _ORDER.index(verdict.status) < _ORDER.index(self._verdict.status)
        if self._verdict is not None and verdict.status is self._verdict.status is Status.FAILED:
            # Of two failures the one that knows some layers says more.
            better = self._candidate.known_layers is None and candidate.known_layers is not None
        if better:
            self._candidate, self._verdict, self._findings = candidate, verdict, where

    def _autodiff_notes(self) -> tuple[str, ...]:
        """What the derivatives cost, if they were the target's own."""
        if not self._request.autodiff:
            return ()
        count = self._queries.derivative_queries - self._derivatives_before
        if count == 0:
            return ("derivatives by autodiff were allowed and not used: answers alone were asked for",)
        return (
            f"derivatives by autodiff: {count} of the queries are forward and backward passes through the "
            "target, for its gradients and Hessians",
        )

    def tell(self, message: str | None = None) -> Recovery:
        """The result as it stands."""
        verdict, candidate, findings = self._verdict, self._candidate, self._findings
        status = Status.FAILED if candidate.network is None else Status.APPROXIMATE
        if verdict is not None:
            status = verdict.status
        network = None if status is Status.FAILED else candidate.network
        sent = self._queries.sent - self._sent_before
        certificate = Certificate()
        if findings is not None:
            certificate = certify(candidate, verdict, findings)
        return Recovery(
            network=network,
            status=status,
            error=np.nan if verdict is None else verdict.error,
            message=message or ("" if verdict is None else verdict.reason),
            queries=sent,
            probing_queries=sent if findings is None else findings.queries,
            verification_queries=self._verification,
            seconds=self._journal.seconds,
            stages=tuple(self._journal.stages),
            certificate=certificate,
            notes=(*candidate.notes, *self._autodiff_notes(), *self._resumption.notes),
            evidence=replace(candidate.evidence, fresh_errors=None if verdict is None else verdict.errors),
            known_layers=candidate.known_layers if network is None else None,
            standard_errors=None if network is None else candidate.standard_errors,
        )
