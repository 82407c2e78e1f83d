"""What a recovery would cost, before anything is asked.

    rows = look + method + verification,      seconds = rows x seconds per row + computing

The method's part comes from its own estimate (`costs`), for the widths that are told or for some that
are assumed. Nothing is sent to the target unless a look is allowed; every assumption is put into words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

import numpy as np

from unweave.errors import InvalidInput
from unweave.methods.table import METHODS
from unweave.networks.activations import get_activation
from unweave.networks.html_tables import html_figures, html_table, number
from unweave.probing.findings import Findings
from unweave.probing.lines import KinkEvidence
from unweave.probing.look import look as look_at
from unweave.probing.noise import Noise, NoiseKind
from unweave.recovery.choose import choose, question_of
from unweave.recovery.fresh_rows import rows_to_verify
from unweave.recovery.tables import width_told
from unweave.recovery.wording import counted
from unweave.search import Cost, Method, Question, Request
from unweave.search.request import checked_widths
from unweave.targets.queries import Queries
from unweave.targets.region import Region
from unweave.targets.target import as_queries, release

_LOOK_ROWS, _LOOK_ROWS_PER_INPUT = 330, 3
_RELATIVE_NOISE: dict[NoiseKind, float] = {"float64": 1e-15, "float32": 1e-7, "rounded": 1e-4, "noisy": 1e-4}
_OUTPUT_ATTRIBUTES = ("n_outputs", "n_outputs_")
_ASSUMED_FOLDS = (0.5, 1.0, 2.0)  # of the inputs: widths assumed when none is told


@dataclass(frozen=True)
class MethodPlan:
    """One method on one assumption about the widths."""

    method: str
    hidden: tuple[int, ...]
    parameters: int
    tried: bool
    why: str
    """What it does, or why it would not be tried."""
    cost: Cost
    look_rows: int
    verification_rows: int
    seconds_per_row: float | None = None

    @property
    def rows(self) -> int:
        """All rows, look and verification included."""
        return self.look_rows + self.cost.rows + self.verification_rows

    @property
    def rows_per_parameter(self) -> float:
        """Without look and verification."""
        return self.cost.rows / self.parameters

    @property
    def seconds(self) -> float | None:
        """Computing and the target's own time; None if the latter is not known."""
        if self.seconds_per_row is None:
            return None
        return self.cost.seconds + self.rows * self.seconds_per_row


@dataclass(frozen=True, repr=False)
class Plan:
    """What a recovery is expected to cost, and what that rests on."""

    inputs: int
    outputs: int
    precision: NoiseKind
    sent: int
    """Rows that were sent to make this plan: 0 without a look."""
    seconds_per_row: float | None
    methods: tuple[MethodPlan, ...]
    """In the order in which they would be tried; those that would not be last."""
    assumptions: tuple[str, ...]

    @property
    def first(self) -> MethodPlan | None:
        """What would be tried first, for the narrowest width if none is told; None if nothing would."""
        return next((entry for entry in self.methods if entry.tried), None)

    def __repr__(self) -> str:
        first = self.first
        told = "nothing to try" if first is None else f"first {first.method}, {counted(first.rows, 'row')}"
        shape = f"{counted(self.inputs, 'input')}, {counted(self.outputs, 'output')}"
        return f"Plan({shape}, {self.precision}, {told})"

    def _repr_html_(self) -> str:
        """Show the plan in a notebook."""
        tried = [
            (e.method, "-".join(map(str, e.hidden)), number(e.parameters), number(e.rows), e.cost.how)
            for e in self.methods
            if e.tried
        ]
        headings = ("method", "hidden", "parameters", "rows", "how")
        assumed = html_figures("Assumptions", [("", line) for line in self.assumptions])
        return html_table(repr(self), headings, tried) + assumed


def plan(
    target: Any,
    hidden: Sequence[int] | int | None = None,
    activation: str | None = None,
    *,
    input_dim: int | None = None,
    outputs: int | None = None,
    precision: str | None = None,
    look: bool = False,
    domain: tuple[Any, Any] | None = None,
    examples: Any = None,
    seed: int = 0,
) -> Plan:
    """Rows, seconds and memory that `unweave.recover` would take, per method.

    Parameters
    ----------
    target
        As for `unweave.recover`. It is asked nothing unless ``look``.
    hidden, activation
        What is known; without ``hidden`` several widths are assumed.
    input_dim, outputs
        Number of inputs and outputs, where the target does not say; one output is assumed.
    precision
        "float64" (assumed), "float32", "rounded" or "noisy"; a look finds out.
    look
        Whether a few hundred rows may be asked: then precision, outputs, kinks and the time per row are
        measured, and the methods are those that `recover` would choose.
    domain, examples, seed
        For the look, as for `unweave.recover`.

    Example
    -------
    >>> import unweave
    >>> first = unweave.plan(unweave.random_network([50, 100, 1]), hidden=[100], activation="tanh").first
    >>> first.method, first.rows_per_parameter < 4
    ('smooth', True)
    """
    widths = checked_widths(hidden)
    name = None if activation is None else get_activation(activation).name
    if precision is not None and precision not in get_args(NoiseKind):
        raise InvalidInput(
            f"precision must be one of {', '.join(get_args(NoiseKind))}. Got {precision!r} instead."
        )
    queries = as_queries(target, input_dim=width_told(target, input_dim, examples))
    try:
        if look:
            basis = _looked(queries, domain, examples, seed)
        else:
            known = outputs or _declared_outputs(target)
            boxed = domain is not None
            basis = _taken_for_granted(queries.n_inputs, known, precision, name, boxed, examples is not None)
    finally:
        release(queries)
    folds = [widths] if widths is not None else _assumed_widths(queries.n_inputs)
    assumptions = list(basis.assumptions)
    if widths is None:
        shown = ", ".join(str(list(each)) for each in folds)
        assumptions.append(f"the widths are not known: {shown} are assumed, one after the other")
    assumptions.append(
        "rows are within a factor of two where a method succeeds at its first attempt; a method that fails "
        "costs its rows, and the next one runs"
    )
    last = basis.variants[-1]
    return Plan(
        inputs=queries.n_inputs,
        outputs=last.n_outputs,
        precision=last.noise.kind,
        sent=basis.sent,
        seconds_per_row=basis.seconds_per_row,
        methods=tuple(_entries(Request(widths, name), folds, basis)),
        assumptions=tuple(assumptions),
    )


@dataclass(frozen=True)
class _Basis:
    """What a plan rests on: findings, seen or assumed in one or several ways."""

    variants: tuple[Findings, ...]
    look_rows: int
    sent: int = 0
    seconds_per_row: float | None = None
    assumptions: tuple[str, ...] = ()


def _looked(queries: Queries, domain: Any, examples: Any, seed: int) -> _Basis:
    """What a look finds."""
    sent, seconds = queries.sent, queries.seconds_in_target
    findings = look_at(queries, rng=np.random.default_rng(seed), domain=domain, examples=examples)
    sent = queries.sent - sent
    per_row = (queries.seconds_in_target - seconds) / max(sent, 1)
    measured = (
        f"the time per row, {per_row:.2g} s, was measured on {sent} rows in {queries.calls} calls; larger "
        "batches may be faster"
    )
    return _Basis((findings,), sent, sent, per_row, (measured,))


def _taken_for_granted(
    inputs: int, outputs: int | None, precision: str | None, activation: str | None, boxed: bool, seen: bool
) -> _Basis:
    """What is assumed without a look; ``seen``: whether examples tell where to ask."""
    words = ["nothing was asked; the target's own time per row is not known, and not included"]
    words.append("one output is assumed" if outputs is None else f"number of outputs, as was said: {outputs}")
    if precision is None:
        words.append(
            "answers in float64 are assumed: rounded or noisy ones cost ten times as many rows or more"
        )
    if activation is None:
        words.append("whether the units are smooth or have kinks is not known: both are shown")
        possible: tuple[bool, ...] = (False, True)
    else:
        possible = (not get_activation(activation).smooth,)
    kind = cast(NoiseKind, precision or "float64")
    variants = tuple(_assumed(inputs, outputs or 1, kind, kinks, boxed) for kinks in possible)
    rows = _LOOK_ROWS + (0 if boxed or seen else _LOOK_ROWS_PER_INPUT * inputs)
    return _Basis(variants, rows, assumptions=tuple(words))


def usual_rows(request: Request, inputs: int, boxed: bool, seen: bool) -> tuple[int, int]:
    """Return the rows that a recovery usually takes, of the dearest kind of target, and those of its look.

    ``boxed``: in a domain; ``seen``: with examples.
    """
    basis = _taken_for_granted(inputs, None, None, request.activation, boxed, seen)
    most = 0
    for findings in basis.variants:
        first = next(iter(choose(request, findings)[0]), None)
        if first is not None:
            entry = _entry(first, question_of(request, findings, first), True, "", basis, findings)
            most = max(most, entry.rows)
    return most, basis.look_rows


def _entries(request: Request, folds: Sequence[tuple[int, ...]], basis: _Basis) -> list[MethodPlan]:
    """Every method for every width, those that would be tried first, in their order."""
    entries: dict[tuple[str, tuple[int, ...]], MethodPlan] = {}
    told = request.hidden is not None
    for findings in basis.variants:
        tried, reasons = choose(request, findings)
        others = [m for m in METHODS if m.asks == "queries" and m not in tried and not m.by_name_only]
        for method in (*tried, *others):
            for hidden in folds:
                if told or method.is_for(hidden):
                    why = method.description if method in tried else reasons.get(method.name, "")
                    question = question_of(request, findings, method, hidden)
                    entry = _entry(method, question, method in tried, why, basis, findings)
                    known = entries.get((entry.method, entry.hidden))
                    if known is None or (entry.tried and not known.tried):
                        entries[entry.method, entry.hidden] = entry
    return sorted(entries.values(), key=lambda entry: not entry.tried)  # stable


def _entry(
    method: Method, question: Question, tried: bool, why: str, basis: _Basis, findings: Findings
) -> MethodPlan:
    rows = rows_to_verify(question.parameters, question.hidden, findings.region, findings.kinks)
    return MethodPlan(
        method=method.name,
        hidden=question.hidden,
        parameters=question.parameters,
        tried=tried,
        why=why,
        cost=method.cost(question),
        look_rows=basis.look_rows,
        verification_rows=rows,
        seconds_per_row=basis.seconds_per_row,
    )


def _declared_outputs(target: Any) -> int | None:
    values = (getattr(target, name, None) for name in _OUTPUT_ATTRIBUTES)
    return next((int(value) for value in values if isinstance(value, int | np.integer)), None)


def _assumed_widths(inputs: int) -> list[tuple[int, ...]]:
    one = [(max(2, int(fold * inputs)),) for fold in _ASSUMED_FOLDS]
    return [*dict.fromkeys(one), (max(2, inputs // 2), max(2, inputs // 4))]


def _assumed(inputs: int, outputs: int, kind: NoiseKind, kinks: bool, box: bool) -> Findings:
    """Findings as they would be if the assumptions hold."""
    region = Region.from_domain(-1.0, 1.0, inputs) if box else Region.standard(inputs)
    sigma, decimals = _RELATIVE_NOISE[kind], 4 if kind == "rounded" else None
    noise = Noise(kind, sigma, np.full(outputs, sigma), decimals, 1.0, sigma, repeatable=kind != "noisy")
    evidence = KinkEvidence((), np.zeros(0), np.zeros(0), judged=6, broken=6 if kinks else 0)
    return Findings(region, noise, outputs, np.ones(outputs), kinks, evidence, False, False, False, 0)
