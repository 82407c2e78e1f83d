"""One hidden layer of kinked units from queries: one long line sees every unit.

1. lines: find the units, up to their signs (`kinked.line_search`).
2. signs: find them from the affine part (`networks.signs`), which also tells ReLU from leaky ReLU. Parallel
   kinks whose jumps cancel are one clipped unit instead (`networks.clipped_units`).
3. polish: Gauss-Newton on all parameters (`fit`) over the rows on both sides of every unit, already asked.

Assumed: answers precise to float64, an affine output layer or a link that can be read (`kinked.reading`).
Cost: about 1.5 rows per parameter for lines and 2 to measure every unit again, nothing more. Units whose
hyperplane lies beyond the line's reach (in a box: outside of it) cannot be seen; a unit that is active
wherever it was asked is part of the affine rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.methods.relu.fit import (
    Polished,
    PolishOptions,
    effects,
    polish,
    polished_form,
    standard_error,
)
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.kinked.line_search import (
    LineReason,
    LineSearchOptions,
    UnitsOnLines,
    sparing_line_options,
)
from unweave.methods.shared.kinked.reading import Reading, open_reading
from unweave.methods.shared.refusals import links_to_try
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.clipped_units import CLIPPED, as_clipped_units
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.networks.pooled_filters import pooling_message
from unweave.networks.signs import (
    KINKED,
    SIGN_TOLERANCE,
    SignSolution,
    negative_slope,
    solve_signs,
    to_network,
)
from unweave.networks.unit_slopes import solve_slopes
from unweave.numerics.sign_search import WIDEST_ENUMERATION, SignOptions
from unweave.search import Candidate, Context, GaveUp, Search
from unweave.search.journal import OpenStage
from unweave.targets.change_of_inputs import in_own_inputs

_TOLERATED_ERRORS = 1e3  # of a sign equation: far more than chance, far less than a wrong sign


@dataclass(frozen=True, kw_only=True)
class ReluOptions(LineSearchOptions):
    """How lines are searched, signs found, and all parameters polished."""

    polish: PolishOptions = field(default_factory=PolishOptions)
    signs: SignOptions = field(default_factory=SignOptions)
    worst_floor: float = 1e-9
    """Relative residual of the polish that may pass for rounding."""
    unpolished_error: float = 1e-11
    """Error of a sign equation at most, before any polish: units refined on lines have 1e-13 to 1e-12."""
    easy_bits: float = 6.5
    """Bits of all equations per sign from which LLL reduction finds 100 to 150 signs with such errors."""


class ReluSearch(Search):
    """Finds units on lines, then their signs, then all parameters."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._options: ReluOptions = context.options
        self._lines: UnitsOnLines | None = None
        self._reading: Reading | None = None
        self._network: Network | None = None
        self._evidence: KinkedEvidence = KinkedEvidence()
        self._notes: list[str] = []
        self._ambiguity: str | None = None
        self._refusal: str | None = None

    def run(self) -> None:
        """Search lines until their units explain the target, then find signs and polish."""
        findings, link = self.findings, Link(links_to_try(self.request, self.findings)[0])
        reading = open_reading(self.context.view, findings.noise, link, findings.spread, self.rng)
        if reading is None:
            raise GaveUp(LineReason.NOT_READ, link=link.name)
        self._reading = reading
        if self.request.tight and not reading.is_limited and not reading.region.has_box:
            self._options = sparing_line_options(self._options)
        lines = self._lines = UnitsOnLines(
            reading, self.journal, self.rng, self._options, self._set_unsigned, self.request.width
        )
        try:
            form = lines.run()
        except GaveUp:
            own = lines.units.weights / reading.region.scale[:, None]
            self._refusal = pooling_message(own)
            raise
        if not self._is_clipped(form):
            self._signs(form, lines)
        self._compare_width(lines.units.width)
        self._polish(reading, lines)

    def candidate(self) -> Candidate:
        """Return the units found so far as a network."""
        return Candidate(
            network=self._own_network(),
            evidence=self._evidence,
            notes=tuple(self._notes if self._lines is None else [*self._lines.notes, *self._notes]),
            ambiguity=self._ambiguity or self._left_out(),
            refusal=self._refusal,
        )

    def _own_network(self) -> Network | None:
        """The network in the target's own inputs and outputs."""
        if self._network is None or self._reading is None:
            return None
        own = in_own_inputs(self._network, self._reading.region, self._reading.spread)
        return Network(own.weights, own.biases, [*own.activations[:-1], self._reading.link.name], own.skip)

    def _left_out(self) -> str | None:
        """Say that weak units may be missing, however well all others are known."""
        if self._lines is None or not self._lines.left_out:
            return None
        return (
            f"{self._lines.left_out} units were seen on a line with less than {self._options.weak:g} of the "
            "strongest one's effect and not met again: they were left out"
        )

    def so_far(self) -> str:
        """Count the units."""
        count = 0 if self._lines is None else self._lines.units.width
        return f"{count} units had been found" + (", there may be more" if self.request.tight else "")

    def _set_unsigned(self, form: AbsoluteForm) -> None:
        """Keep the form with a skip matrix, in case the budget ends before the signs are known."""
        open_signs = SignSolution(np.ones(form.width), np.nan, "none", solved=False, unique=False)
        self._network = to_network(form, open_signs, self._unpaired_kind)
        self._ambiguity = "the signs of the units were not looked for: the affine rest is a skip matrix"

    def _is_clipped(self, form: AbsoluteForm) -> bool:
        """Return whether all kinks are those of clipped units, and keep the network of these."""
        told = self.request.activation
        if told is not None and told not in CLIPPED:
            return False
        network = as_clipped_units(form, told or "hard_tanh")
        if network is not None:
            self._network, self._ambiguity = network, None
            if told is None:
                self._notes.append(
                    "hard tanh, ReLU6 and hard sigmoid units are one family: the same function has units of "
                    "each kind, with other weights"
                )
        return network is not None

    @property
    def _unpaired_kind(self) -> str:
        """Activation of units that are no clipped ones."""
        told = self.request.activation
        return told if told in KINKED else KINKED[0]

    def _signs(self, form: AbsoluteForm, lines: UnitsOnLines) -> None:
        """Find the signs, and the activation for which there are any; keep the network that has them."""
        with self.journal.stage("signs") as stage:
            form, solution, name = self._solved_signs(form, lines, stage)
            stage.figures.update(method=solution.method, residual=solution.residual, activation=name)
        self._network, self._ambiguity = to_network(form, solution, name), None
        if not solution.solved:
            self._ambiguity = self._slopes_told(form) or (
                "the units are known up to signs, and no signs were found that explain the affine part: it "
                "is given as a skip matrix (units that are active everywhere, pairs of units on one "
                "hyperplane, a skip connection, units with a slope of their own below zero (PReLU), or more "
                "units than sign search can handle"
                f"{': ' if solution.reason else ''}{solution.reason})"
            )
        elif not solution.unique:
            known = len(solution.alternatives)
            self._ambiguity = (
                f"{known + 1} sign patterns of the units fit the same function"
                if known
                else "the signs of the units fit, but others may fit as well"
            )
            for pattern in solution.alternatives:
                flipped = np.flatnonzero(pattern != solution.signs)
                self._notes.append(f"the same function with the signs of units {flipped.tolist()} reversed")

    def _slopes_told(self, form: AbsoluteForm) -> str | None:
        """Name units with a slope of their own below zero, where the affine part tells all slopes."""
        found = solve_slopes(form)
        if found is None:
            return None
        shown = ", ".join(f"{slope:.12g}" for slope in found.slopes)
        self._notes.append(f"slopes of the units below zero, in their order: {shown}")
        kind = f"leaky ReLU units of slope {found.slopes[0]:.6g}" if found.is_one else "PReLU units"
        return (
            f"{kind}: a slope below zero of each unit explains the affine part (they are listed); the same "
            "function is given as ReLU units and a skip matrix"
        )

    def _solved_signs(
        self, form: AbsoluteForm, lines: UnitsOnLines, stage: OpenStage
    ) -> tuple[AbsoluteForm, SignSolution, str]:
        """Return the form, polished if that was needed, the best signs and the activation they belong to."""
        names = (self.request.activation,) if self.request.activation in KINKED else KINKED
        signs, error, tolerance = self._options.signs, None, SIGN_TOLERANCE
        wide = form.width > max(WIDEST_ENUMERATION, signs.widest_branching * form.slope.size)
        rough = self._options.unpolished_error
        if wide and form.slope.size * -np.log2(rough) >= self._options.easy_bits * form.width:
            easy = replace(signs, largest_block=2)
            solution = solve_signs(form, negative_slope(names[0]), options=easy, error=rough)
            if solution.solved:
                return form, solution, names[0]
        if wide and len(form.weights) <= len(lines.rows):
            # Only precise equations carry enough bits.
            polished = polished_form(form, lines.rows, lines.answers, self._options.polish, self.rng)
            if polished is not None:
                form, error = polished
                tolerance = min(tolerance, _TOLERATED_ERRORS * error)
                stage.figures.update(equation_error=error)
        # Every activation is tried with half the effort before one gets all of it.
        half = replace(signs, lattice_seconds=signs.lattice_seconds / 2)
        tries = [(half, name) for name in names] + [(signs, names[0])] * wide
        for effort, name in tries:
            solution = solve_signs(form, negative_slope(name), tolerance, options=effort, error=error)
            if solution.solved:
                return form, solution, name
        return form, solution, names[0]

    def _polish(self, reading: Reading, lines: UnitsOnLines) -> None:
        assert self._network is not None
        self._evidence = lines.evidence
        if not self._network.hidden:
            return
        with self.journal.stage("polish") as stage:
            options, weights = self._options, None
            if options.sparing:  # rows far along a line are as imprecise as they are large
                weights = 1 / np.maximum(1.0, np.abs(lines.rows).max(axis=1))
            result = polish(self._network, lines.rows, lines.answers, options.polish, weights)
            stage.figures.update(residual=result.history[-1], steps=len(result.history) - 1)
        self._network = result.network
        size = float(np.sqrt(np.mean(lines.answers**2)))
        floor = max(reading.error, float(np.finfo(np.float64).eps) * size)
        self._evidence = replace(
            lines.evidence,
            fit_history=result.history,
            fit_floor=self._options.lines.rounding_errors * floor,
            prediction_floor=min(max(result.history[-1], floor), self._options.worst_floor),
            answer_sigma=reading.answer_sigma,
        )
        self._name_weak_units(result)
        if weights is not None:
            noise = max(result.history[-1], floor)
            bar = standard_error(result.network, lines.rows, weights, noise, options.polish)
            self._evidence = replace(self._evidence, parameter_error_bar=bar)

    def _name_weak_units(self, result: Polished) -> None:
        """Say that further units may be missing where those found fade into what the polish leaves.

        Weight decay leaves trained networks with units of every strength down to the smallest number.
        """
        left, strengths = result.history[-1], effects(result.network)
        fading = strengths.min() <= self._options.weak * strengths.max()
        settled = left <= self._evidence.residual_over_floor * (self._evidence.fit_floor or 0.0)
        if settled or not fading or left > self._options.worst_floor:
            return
        self._evidence = replace(self._evidence, weak_units=self._options.worst_floor)
        weakest = f"{self._options.weak:g} of the strongest one's effect"
        missing = f"units with less than {weakest} are not all told apart"
        missing += f": together they leave {left:.1g} of the answers' spread"
        self._ambiguity = f"{self._ambiguity}; {missing}" if self._ambiguity else missing

    def _compare_width(self, seen: int) -> None:
        told = self.request.width
        if told is not None and told != seen:
            self._notes.append(
                f"hidden=[{told}] was said, {seen} units are what the answers show: dead units, units on "
                "one hyperplane and units that are active wherever they were asked do not count"
            )
