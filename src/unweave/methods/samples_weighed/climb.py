"""From fits of noisy samples to the kind and the width that the samples speak for most.

A form is a kind of unit, with or without a skip connection. Every fit has a cost, -2 log of its marginal
likelihood (`unweave.networks.marginal_likelihood`). Steps from a form's best fit, of m units:

    more units      m - 1 -> m, m -> m + 1, m + 1 -> m + 2:  the unit that explains most of what is left;
    fewer units     m + 2 -> m + 1, m + 1 -> m, m -> m - 1:  each of the cheapest units left out in turn;
    another kind    units like those of the best fit, of every kind that imitates it;
    no skip         units turned so that little is left of the skip, and the rest of it dropped.

All end with least squares on all parameters. Up and down again leads out of local minima. The cheapest forms
climb; it ends where no step from any of them lowers its cost, or the work is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.kinship import imitation
from unweave.networks.activations import Activation
from unweave.networks.marginal_likelihood import marginal_likelihood
from unweave.networks.mirrored_units import with_least_skip
from unweave.networks.missing_unit import MissingUnitOptions, missing_unit
from unweave.networks.parameters import NetworkParameters
from unweave.networks.ridge_continuation import OnStep
from unweave.networks.value_fit import fit_values
from unweave.numerics.clock import check

Form = tuple[str, bool]
"""Name of the activation, and whether there is a skip connection."""
Step = Literal["more", "fewer", "kind", "skip"]


@dataclass(frozen=True, kw_only=True)
class ClimbOptions:
    """How far a climb goes."""

    forms: int = 3
    """Cheapest forms that climb, ..."""
    hopeless: float = 25.0
    """... unless they cost so much more than the cheapest one: the samples are e^12 times less likely."""
    kin: float = 0.3
    """Misfit of one kind's units as an imitation of another's, up to which they begin with those."""
    left_out: int = 4
    """Cheapest units that are left out in turn."""
    missing: MissingUnitOptions = field(
        default_factory=lambda: MissingUnitOptions(
            directions=40, refined=3, lengths=(0.3, 1.0, 3.0), biases=(-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0)
        )
    )
    """How widely one more unit is sought: coarsely, since all parameters are fitted afterwards."""
    same: float = 1e-3
    """Difference of costs up to which two fits are one."""
    fewest_equations: float = 2.0
    """Equations per parameter of the widest fit."""
    work: float = 3.0
    """Seconds that all fits take, roughly. They are counted in steps and flops, so that the climb ends at the
    same fit on every machine."""
    step_seconds: float = 1.2e-3
    """Seconds that one step takes besides its arithmetic ..."""
    flops_per_second: float = 5e9
    """... and the speed of that, measured on one thread."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """A fit and its cost."""

    model: NetworkParameters
    """In whitened inputs and standardized answers."""
    cost: float
    """-2 log evidence."""

    @property
    def form(self) -> Form:
        """Kind, and whether there is a skip."""
        return self.model.activation.name, self.model.skip is not None


class Climb:
    """Fits that are known, by form and width, and the steps that lead to others."""

    def __init__(
        self,
        inputs: Array,
        answers: Array,
        kinds: Sequence[Activation],
        rng: np.random.Generator,
        options: ClimbOptions,
        on_step: OnStep | None = None,
    ) -> None:
        self._inputs, self._answers, self._kinds = inputs, answers, kinds
        self._rng, self._options, self._on_step = rng, options, on_step
        self._known: dict[tuple[Form, int], Weighed] = {}
        self._done: set[tuple[Weighed, Step]] = set()
        self._seconds = 0.0
        self.fits = 0
        """Number of fits."""

    @property
    def best(self) -> Weighed | None:
        """The fit of least cost."""
        return min(self._known.values(), key=lambda each: each.cost, default=None)

    def enter(self, model: NetworkParameters) -> None:
        """Fit ``model``, and keep it if it is the best of its form and width."""
        check()
        try:
            fitted = fit_values(model, self._inputs, self._answers, on_step=self._on_step)
            cost = marginal_likelihood(fitted.model, self._inputs, self._answers)
        except (np.linalg.LinAlgError, ValueError):  # units that ran away
            return
        self.fits += 1
        steps = len(fitted.history)
        self._spend(steps, 2 * steps * self._answers.size * model.size**2)
        fit = Weighed(fitted.model, cost)
        place = fit.form, model.width
        if np.isfinite(cost) and (
            place not in self._known or cost < self._known[place].cost - self._options.same
        ):
            self._known[place] = fit

    def run(self) -> None:
        """Climb to the end."""
        while self._known and (step := next(self._steps(), None)) is not None:
            self._done.add(step)
            for model in self._starts(*step):
                if self._seconds >= self._options.work:
                    return
                self.enter(model)

    def ranked(self) -> list[Weighed]:
        """Return the best fit of every form, the cheapest first."""
        best: dict[Form, Weighed] = {}
        for fit in self._known.values():
            if fit.form not in best or fit.cost < best[fit.form].cost:
                best[fit.form] = fit
        return sorted(best.values(), key=lambda each: each.cost)

    def _steps(self) -> Iterator[tuple[Weighed, Step]]:
        """Yield steps that have not been taken, the most promising first."""
        ranked = self.ranked()
        worst = ranked[0].cost + self._options.hopeless
        climbing = [fit for fit in ranked if fit.cost <= worst][: self._options.forms]
        cheapest = climbing[0]
        steps: list[tuple[Weighed, Step]] = [(cheapest, "kind"), (cheapest, "skip")]
        for fit in climbing:
            steps += self._around(fit, ("more", 0), ("fewer", 0))
        for fit in climbing:
            steps += self._around(fit, ("fewer", 1), ("more", -1))
        steps += self._around(cheapest, ("more", 1), ("fewer", 2))
        return (step for step in steps if step not in self._done)

    def _around(self, fit: Weighed, *steps: tuple[Step, int]) -> Iterator[tuple[Weighed, Step]]:
        """Yield steps from the known fits of the same form with so many units more."""
        for step, further in steps:
            known = self._known.get((fit.form, fit.model.width + further))
            if known is not None:
                yield known, step

    def _starts(self, fit: Weighed, step: Step) -> Iterator[NetworkParameters]:
        """Yield the starts of one step."""
        if step == "more":
            return self._with_one_more(fit.model)
        if step == "fewer":
            return self._with_one_fewer(fit.model)
        return self._of_other_kinds(fit.model) if step == "kind" else self._without_skip(fit.model)

    def _with_one_more(self, model: NetworkParameters) -> Iterator[NetworkParameters]:
        wider = model.size + model.n_inputs + 1 + model.n_outputs
        if wider * self._options.fewest_equations > self._answers.size:
            return
        options = self._options.missing
        unit = missing_unit(model, self._inputs, self._answers, self._rng, options=options)
        looked = options.directions * 2 * len(options.lengths) * len(options.biases)
        self._spend(1, looked * self._answers.size * model.size * 2)
        if unit is not None:
            yield unit.added_to(model)

    def _with_one_fewer(self, model: NetworkParameters) -> Iterator[NetworkParameters]:
        if model.width < 2:
            return
        costs = self._removal_costs(model)
        for unit in np.argsort(costs)[: self._options.left_out]:
            kept = np.arange(model.width) != unit
            yield self._with_linear_numbers(model.keep(kept))

    def _removal_costs(self, model: NetworkParameters) -> Array:
        """Return what leaving out each unit (m,) adds to the squared residual, linear numbers refitted."""
        columns = self._columns(model)
        inverse = np.linalg.pinv(columns.T @ columns).diagonal()[: model.width]
        return np.asarray((model.weights[1] ** 2).sum(axis=1) / np.maximum(inverse, np.finfo(float).tiny))

    def _of_other_kinds(self, model: NetworkParameters) -> Iterator[NetworkParameters]:
        """Yield units of other kinds that are like those of ``model``."""
        for kind in self._kinds:
            if kind.name == model.activation.name:
                continue
            like = imitation(model.activation, kind)
            if like.misfit <= self._options.kin:
                incoming, biases = model.weights[0] * like.sharpness, model.biases[0] * like.sharpness
                yield self._with_linear_numbers(
                    replace(
                        model,
                        activations=(kind, model.activations[1]),
                        weights=(incoming, model.weights[1]),
                        biases=(biases, model.biases[1]),
                    )
                )

    def _without_skip(self, model: NetworkParameters) -> Iterator[NetworkParameters]:
        if model.skip is not None:
            yield replace(with_least_skip(model), skip=None)

    def _columns(self, model: NetworkParameters) -> Array:
        """Return what the output reads: states of units, inputs if there is a skip, ones."""
        states = model.activation(self._inputs @ model.weights[0] + model.biases[0])
        skip = [] if model.skip is None else [self._inputs]
        return np.column_stack([states, *skip, np.ones(len(states))])

    def _with_linear_numbers(self, model: NetworkParameters) -> NetworkParameters:
        """Return ``model`` with the outgoing weights, skip and offset of least squares."""
        found = np.linalg.lstsq(self._columns(model), self._answers, rcond=None)[0]
        linear = np.asarray(found, dtype=np.float64)
        width = model.width
        return replace(
            model,
            weights=(model.weights[0], linear[:width]),
            biases=(model.biases[0], linear[-1]),
            skip=None if model.skip is None else linear[width:-1],
        )

    def _spend(self, steps: int, flops: float) -> None:
        self._seconds += steps * self._options.step_seconds + flops / self._options.flops_per_second
