"""Targets with whole numbers, booleans and categories: recover at one setting of them, then what each adds.

Behind the codes of such columns stands a network whose first layer adds up what every column brings:

    z = x_free W + b + sum_c v_c(level of column c).

With all discrete columns at their usual levels the target is an ordinary network in the free columns, which
`Run` recovers. With one column at another level only z moves, by a vector that least squares finds from a few
rows per unit. Whole numbers and booleans are weighted: two levels give the weight. Only rows that the columns
admit are ever asked, and the joined network is judged on rows with all columns drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import BudgetExhausted, Interrupted, InvalidInput
from unweave.networks.columns import Columns
from unweave.networks.mixed import MixedNetwork
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.trees import TreeEnsemble
from unweave.networks.value_fit import fit_values, points_to_fit
from unweave.numerics import clock, interrupts
from unweave.probing.findings import Findings
from unweave.recovery.certificate import certify
from unweave.recovery.column_inputs import CodedNetwork, ColumnInputs, with_levels_as_categories
from unweave.recovery.fresh_rows import Demands
from unweave.recovery.judge import Verdict, judge, unverified
from unweave.recovery.level_offset import LevelOffset
from unweave.recovery.result import Certificate, Recovery, Status
from unweave.recovery.run import Run
from unweave.recovery.sources import QueriedTarget
from unweave.recovery.trial import NO_TRIAL, fresh_trial
from unweave.search import Candidate, Evidence, Method, Request
from unweave.targets.coded import coded_queries
from unweave.targets.mixed_region import MixedRegion
from unweave.targets.queries import Queries
from unweave.targets.region import NormalisedQueries

_ROWS_PER_UNIT = 4  # of a fit of what a level adds ...
_SPARE_ROWS = 24  # ... and these
_STARTS = 12  # of such a fit, before the target is recovered anew at a level
_START_SIZES = (0.2, 0.5, 1.0)  # standard deviations of random starts, in pre-activations over their spread
_FITTED = 1e-9  # largest residual of a fit that counts, over the spread of the answers
_FEW_VALUES = 30  # different whole numbers up to which a column may be a category in disguise
_NO_FREE = (
    "no column takes any number: a network cannot be told from a table of answers. Declare one of the "
    "columns as a number if the target takes values in between"
)


def recover_columns(
    target: Any,
    columns: Columns,
    examples: Any,
    request: Request,
    methods: tuple[Method, ...],
    tolerance: float | None,
    seed: int,
    progress: Callable[[Any], None] | None,
    **limits: Any,
) -> Recovery:
    """Recover ``target`` from rows that ``columns`` admit; ``examples`` are rows of these."""
    codes = columns.encode(examples)
    ledger = coded_queries(target, columns, **limits)
    return _Joined(ledger, columns, codes, request, methods, tolerance, seed, progress).recover()


class _Joined:
    """One recovery: the base, what every level adds, the verdict."""

    def __init__(
        self,
        ledger: Queries,
        columns: Columns,
        codes: Array,
        request: Request,
        methods: tuple[Method, ...],
        tolerance: float | None,
        seed: int,
        progress: Callable[[Any], None] | None,
    ) -> None:
        self._ledger, self._columns, self._codes = ledger, columns, codes
        self._request, self._methods, self._tolerance = request, methods, tolerance
        self._seed, self._progress = seed, progress
        self._base: Recovery | None = None
        self._rng = np.random.default_rng([0x6D697865, seed])
        self._free = np.flatnonzero(~columns.discrete)
        self._usual = np.array([_usual(codes[:, j]) for j in range(len(columns))])

    def recover(self) -> Recovery:
        """Go the whole way; on Ctrl-C hand back what was found."""
        try:
            with interrupts.remembered():
                return self._recover()
        except KeyboardInterrupt as interrupt:
            interrupts.taken()
            inner = interrupt.recovery if isinstance(interrupt, Interrupted) else None
            told = self._told(Status.FAILED, "interrupted before all levels were asked", self._base or inner)
            raise Interrupted(told, self._ledger) from interrupt

    def _recover(self) -> Recovery:
        if not len(self._free):
            return self._in_steps()
        base, findings = self._at_usual_levels()
        self._base = base
        if findings is not None and findings.steps:
            return self._in_steps()
        if not isinstance(base.network, Network) or findings is None:
            return replace(base, queries=self._ledger.sent, notes=(*self._notes(), *base.notes))
        try:
            candidate, verdict, region = self._joined(base, findings, self._columns)
            if not verdict.status.is_recovered and (other := self._with_categories()) is not None:
                second = self._joined(base, findings, other)
                if second[1].status.is_recovered:
                    candidate, verdict, region = second
        except BudgetExhausted as error:
            return self._told(Status.FAILED, f"the budget ended before all levels were asked: {error}", base)
        findings = replace(findings, region=region)
        return self._told(verdict.status, verdict.reason, base, candidate, verdict, findings)

    def _in_steps(self) -> Recovery:
        """Recover trees in the codes of all columns: between two codes stands the nearest one."""
        discrete, low, high = self._columns.discrete, self._codes.min(axis=0), self._codes.max(axis=0)
        for j, column in enumerate(self._columns.columns):
            if column.kind in ("category", "boolean"):
                low[j], high[j] = 0, 1 if column.kind == "boolean" else column.width - 1

        def answer(x: Array) -> Array:
            nearest = np.clip(np.round(x), low, high)
            return self._ledger(np.where(discrete, nearest, x), fresh=True)

        limits = self._ledger.remaining, self._ledger.seconds_left
        inner = Queries(answer, len(self._columns), max_queries=limits[0], deadline=limits[1])
        source = QueriedTarget(inner, None, self._codes)
        run = Run(source, self._request, self._methods, self._tolerance, self._seed, self._progress, None)
        result = run.recover()
        trees: Any = result.network
        if isinstance(trees, TreeEnsemble):
            trees = trees.with_names(self._columns.names)
            trees = MixedNetwork(self._columns, trees) if self._columns.categories else trees
        notes, message = (*self._notes(), *result.notes), result.message
        if not len(self._free) and trees is None:
            message = f"{_NO_FREE}; {message}"
        return replace(result, network=trees, queries=self._ledger.sent, notes=notes, message=message)

    def _at_usual_levels(self) -> tuple[Recovery, Findings | None]:
        """Recover the target in its free columns."""
        inner = _at(self._ledger, self._usual, self._free)
        source = QueriedTarget(inner, None, self._codes[:, self._free])
        run = Run(source, self._request, self._methods, self._tolerance, self._seed, self._progress, None)
        return run.recover(), run.findings

    def _with_categories(self) -> Columns | None:
        """Return the columns with whole numbers of few values as categories; None if there are none."""
        changed = list(self._columns.columns)
        for j, column in enumerate(changed):
            values = np.unique(self._codes[:, j])
            if column.kind == "whole" and 2 < len(values) <= _FEW_VALUES:
                changed[j] = replace(column, kind="whole", levels=tuple(int(value) for value in values))
        return (
            None if changed == list(self._columns.columns) else replace(self._columns, columns=tuple(changed))
        )

    def _joined(
        self, base: Recovery, findings: Findings, columns: Columns
    ) -> tuple[Candidate, Verdict, MixedRegion]:
        """Find what every level adds, and judge the network of all."""
        parts, problem = [], None
        model = NetworkParameters.from_network(base.network)
        inputs = ColumnInputs(columns, self._codes, self._usual, findings.region)
        for j, column in enumerate(columns.columns):
            added = {}
            for level in inputs.levels(j):
                added[level], residual = self._added(model, findings, j, level)
                if residual > _FITTED:
                    said = repr(column.levels[int(level)]) if column.kind == "category" else f"{level:g}"
                    problem = (
                        f"column {column.name!r} at {said} does more than move what the "
                        f"units read: its fit leaves {residual:.2g} of the spread"
                    )
            parts.append(added)
        region = MixedRegion.of(self._columns, self._codes)
        final, evidence = self._fitted(inputs.start(model, parts), inputs, findings, region)
        problem = None if evidence is not None else problem
        network = inputs.assembled(final)
        mixed = columns.categories or any(c.levels for c in columns.columns)
        found: Any = MixedNetwork(with_levels_as_categories(columns), network) if mixed else network
        wrapped: Any = CodedNetwork(found, columns) if mixed else found
        evidence = replace(base.evidence, prediction_floor=None) if evidence is None else evidence
        # What the free columns leave open, no level of the others decides.
        open_still = base.status is Status.RECOVERED_UP_TO_AMBIGUITY
        ambiguity = base.message if open_still else None
        candidate = Candidate(wrapped, evidence, problem=problem, ambiguity=ambiguity)
        view = NormalisedQueries(self._ledger, region)
        seen = replace(findings, region=region)
        trial = fresh_trial(
            candidate, view, seen, self._tolerance, self._rng, Demands(examples=self._codes, sparing=False)
        )
        verdict = judge(candidate, trial, seen, told_tolerance=self._tolerance is not None)
        return replace(candidate, network=found), verdict, region

    def _added(
        self, model: NetworkParameters, findings: Findings, j: int, level: float
    ) -> tuple[Array, float]:
        """Fit what a level adds: from zero, from random starts, then from the target recovered there anew."""
        unknowns = len(model.biases[0]) + (len(model.biases[-1]) if model.skip is not None else 0)
        count, region = int(_ROWS_PER_UNIT * unknowns) + _SPARE_ROWS, findings.region
        inner = region.to_inputs(region.sample(count, self._rng))
        rows = np.tile(self._usual, (count, 1))
        rows[:, self._free], rows[:, j] = inner, level
        problem = LevelOffset(model, inner, self._ledger(rows), findings.spread)
        size = np.std(inner @ model.weights[0], axis=0) + 1e-300
        best, left = np.zeros(problem.size), np.inf
        for start in range(_STARTS + 1):
            clock.check()
            at = np.zeros(problem.size)
            if start == _STARTS:
                matched = self._recovered_at(model, j, level)
                if matched is None:
                    break
                at[: problem.units] = matched
            elif start:
                drawn = self._rng.choice(_START_SIZES) * self._rng.standard_normal(problem.units)
                at[: problem.units] = drawn * size
            found, worst = problem.fitted(at)
            if worst < left:
                best, left = found, worst
            if left <= _FITTED:
                break
        return best, left

    def _recovered_at(self, model: NetworkParameters, j: int, level: float) -> Array | None:
        """Recover the target at one level anew and return what that adds to every unit; None if it fails."""
        if model.depth < 2 or model.activation.homogeneity not in (None, 1):
            return None
        usual = self._usual.copy()
        usual[j] = level
        told = replace(
            self._request,
            hidden=tuple(len(bias) for bias in model.biases[:-1]),
            activation=model.activation.name,
        )
        source = QueriedTarget(_at(self._ledger, usual, self._free), None, self._codes[:, self._free])
        found = Run(source, told, self._methods, self._tolerance, self._seed, self._progress, None).recover()
        if not isinstance(found.network, Network) or not found.network.hidden:
            return None
        other = NetworkParameters.from_network(found.network)
        length = np.linalg.norm(model.weights[0], axis=0), np.linalg.norm(other.weights[0], axis=0)
        alike = (model.weights[0] / length[0]).T @ (other.weights[0] / length[1])
        match = np.abs(alike).argmax(axis=1)
        units = np.arange(len(match))
        factor = np.sign(alike[units, match]) * length[0] / length[1][match]
        return np.asarray(other.biases[0][match] * factor - model.biases[0])

    def _fitted(
        self, start: NetworkParameters, inputs: ColumnInputs, findings: Findings, region: MixedRegion
    ) -> tuple[NetworkParameters, Evidence | None]:
        """Fit everything at once to rows with all columns drawn anew; as it was where that gets nowhere."""
        count = points_to_fit(start.to_network(), spare_points=2 * _SPARE_ROWS)
        codes = region.to_inputs(region.sample(count, self._rng))
        points, answers = inputs.points(codes), self._ledger(codes)
        spread = float(findings.spread.max())
        fit = fit_values(start, points, answers, float(findings.noise.sigma_per_output.max()))
        if not fit.history or fit.history[-1] > _FITTED * spread:
            return start, None
        scaled = start.depth > 1 and start.activation.homogeneity is not None
        evidence = Evidence(
            fit_history=tuple(value / spread for value in fit.history),
            fit_floor=fit.floor / spread,
            prediction_floor=fit.prediction_floor / spread,
            condition=_first_layer_condition(fit.model, points) if scaled else fit.condition,
            parameter_error_bar=None if scaled else fit.error_bar,
        )
        return fit.model, evidence

    def _notes(self) -> tuple[str, ...]:
        return (f"columns: {self._columns.describe()}; only rows that these admit were asked",)

    def _told(
        self,
        status: Status,
        message: str,
        base: Recovery | None,
        candidate: Candidate | None = None,
        verdict: Verdict | None = None,
        findings: Findings | None = None,
    ) -> Recovery:
        """Return the result."""
        trial = NO_TRIAL if verdict is None else verdict.trial
        candidate = candidate or Candidate()
        asked = 0 if base is None else base.queries
        certificate = Certificate()
        if findings is not None:
            certificate = certify(candidate, verdict or unverified(status, message), findings)
        return Recovery(
            network=None if status is Status.FAILED else candidate.network,
            status=status,
            error=trial.error,
            message=message,
            queries=self._ledger.sent,
            probing_queries=0 if base is None else base.probing_queries,
            verification_queries=trial.rows + (0 if base is None else base.verification_queries),
            seconds=0.0 if base is None else base.seconds,
            stages=() if base is None else base.stages,
            certificate=certificate,
            notes=(*self._notes(), *(() if base is None else base.notes)) if asked else self._notes(),
            evidence=replace(candidate.evidence, fresh_errors=trial.errors),
        )


def _first_layer_condition(model: NetworkParameters, points: Array) -> float:
    """Return the condition of the equations for the first layer alone, columns scaled to length one.

    A factor that moves from a unit's incoming to its outgoing weights changes nothing, so that with all
    layers free no equations would determine such units. Infinite if one of them acts on no row.
    """
    slopes = model.sensitivities(model.forward(points).slopes)[0]  # (n, K, m)
    reads = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    jacobian = np.einsum("nkm,nd->nkdm", slopes, reads).reshape(slopes.shape[0] * slopes.shape[1], -1)
    length = np.linalg.norm(jacobian, axis=0)
    if not (length > 0).all():
        return float(np.inf)
    values = np.linalg.svd(jacobian / length, compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 0 else float(np.inf)


def _usual(codes: Array) -> float:
    """Return the most frequent code."""
    values, counts = np.unique(codes, return_counts=True)
    return float(values[np.argmax(counts)])


def _at(ledger: Queries, usual: Array, free: Any) -> Queries:
    """Return a ledger in the ``free`` columns, the others at their ``usual`` codes."""

    def answer(x: Array) -> Array:
        rows = np.tile(usual, (len(x), 1))
        rows[:, free] = x
        return ledger(rows, fresh=True)  # the inner ledger keeps the answers, and repeats on purpose

    return Queries(answer, len(free), max_queries=ledger.remaining, deadline=ledger.seconds_left)


def refuse_other_arguments(given: dict[str, Any]) -> None:
    """Raise if something was said that makes no sense for columns that are no plain numbers."""
    for name in ("domain", "verify", "checkpoint", "executor"):
        if given.get(name) is not None:
            raise InvalidInput(f"{name} must be None where columns are no plain numbers. Leave it out.")
