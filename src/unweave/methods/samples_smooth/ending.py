"""How a fit under a ridge ends: least squares without ridge, and without what is not needed.

A unit too many, a skip that mirrored units explain, equal and opposite units: all of them are left out as
long as the fit stays exact, or by the Bayesian information criterion where noise limits it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.sample_evidence import information
from unweave.methods.shared.value_search import projected_model, smooth_feature
from unweave.networks.error_bars import is_homogeneous
from unweave.networks.mirrored_units import mirror_back
from unweave.networks.parameters import NetworkParameters
from unweave.networks.ridge_continuation import OnStep
from unweave.networks.standardized import StandardizedSamples
from unweave.networks.value_fit import ValueFitResult, fit_values
from unweave.numerics.variable_projection.problem import ProjectedFit, ProjectedProblem, ProjectionOptions
from unweave.numerics.variable_projection.prune import prune_exact, prune_noisy, without_idle

_EQUAL_UNITS = 1e-6  # distance of two units (w; b), relative to their length, that are one
_NO_STEPS = ProjectionOptions(steps=0)


@dataclass(frozen=True, eq=False)
class Runner:
    """The best fit of one kind."""

    model: NetworkParameters
    """In whitened inputs and standardized answers."""
    residual: float
    """Root mean square misfit of all rows over the answers' spread, worst output."""
    information: float
    """Bayesian information criterion."""
    fitted: ValueFitResult

    @property
    def kind(self) -> str:
        """Name of the activation."""
        return self.model.activation.name


@dataclass(frozen=True, eq=False)
class Ending:
    """Rows to end on, in an order of their own, and what counts as exact."""

    samples: StandardizedSamples
    inputs: Array
    answers: Array
    width: int | None
    """Width that the caller gives."""
    floor: float
    """Root mean square misfit, relative to the answers' spread, that counts as exact."""
    entries: int
    """Entries of the Jacobian of the last fit: it takes that many of the rows."""
    on_step: OnStep | None
    rounding: float = 1e-14
    """Root mean square misfit, relative to the answers' spread, that rounding leaves, ..."""
    nearly: float = 1e-8
    """... and one from which a fit may have a few steps to go to it: ..."""
    valley_rows: float = 10.0
    """... on so many rows per parameter, ..."""
    valley_steps: int = 200
    """... in so many steps at most, ..."""
    valley_patience: int = 20
    """... of which so many in a row may bring no progress."""

    def end(self, model: NetworkParameters) -> Runner:
        """Fit without ridge, on all rows if that is cheap or the fit is exact, and leave out the skip."""
        if self.width is not None and model.width > self.width:
            model = self._cut(model, self.width)
        rows = max(int(self.entries / model.size), len(self.inputs) // 100)
        inputs, answers = self.inputs[:rows], self.answers[:rows]
        best = self._runner(fit_values(model, inputs, answers, on_step=self.on_step))
        if best.model.skip is not None:
            turned = replace(mirror_back(best.model), skip=None)
            without = self._runner(fit_values(turned, inputs, answers, on_step=self.on_step))
            if without.information < best.information or without.residual <= self.floor:
                best = without
        if self.floor < best.residual <= self.nearly:
            best = self._to_rounding(best, inputs, answers)
        if best.residual > self.floor:
            return best
        return self._to_rounding(self._narrowed(best, inputs, answers), inputs, answers)

    def _to_rounding(self, near: Runner, inputs: Array, answers: Array) -> Runner:
        """Go on to rounding: where units hardly bend, least squares on all parameters ends in a valley.

        There a residual far below the floor may still leave parameters off by a millionth. Without the linear
        numbers, and with J itself factored, a few steps are left.
        """
        if near.residual <= self.rounding:
            return near
        rows = int(self.valley_rows * near.model.size)
        problem, units = self._problem(near.model, inputs[:rows], answers[:rows])
        options = ProjectionOptions(
            steps=self.valley_steps, floor=self.rounding / 10, patience=self.valley_patience, factored=True
        )
        try:
            fit = problem.minimise(units, options, self.on_step)
        except np.linalg.LinAlgError:  # units that ran away
            return near
        start = projected_model(fit, smooth_feature(near.model.activation), inputs, answers)
        start = start if near.model.skip is not None else replace(start, skip=None)
        further = self._runner(fit_values(start, inputs, answers, on_step=self.on_step))
        return min(near, further, key=lambda runner: runner.residual)

    def end_boldly(self, model: NetworkParameters) -> Runner | None:
        """Leave out all units that are worth little at once, and end; None if that is not exact.

        A fit with surplus units converges slowly, one without them in a few steps.
        """
        problem, units = self._problem(model, self.inputs, self.answers)
        known = ProjectedFit(units, model.weights[1], self.samples.residual(model), ())
        try:
            few = problem.minimise(without_idle(problem, known), _NO_STEPS)
        except np.linalg.LinAlgError:  # units that ran away
            return None
        if self.width is not None and few.units.shape[1] > self.width:
            return None
        ended = self.end(projected_model(few, smooth_feature(model.activation), self.inputs, self.answers))
        return ended if ended.residual <= self.floor else None

    def as_it_is(self, model: NetworkParameters) -> Runner:
        """Return a fit that there is no time to end."""
        residual = self.samples.residual(model)
        return self._runner(ValueFitResult(model, (residual,), 0.0, 0.0, np.inf, None))

    def _cut(self, model: NetworkParameters, width: int) -> NetworkParameters:
        """Leave out the cheapest units until ``width`` are left."""
        problem, units = self._problem(model, self.inputs, self.answers)
        try:
            fewer = prune_noisy(problem, problem.minimise(units, _NO_STEPS), width, self.on_step)
        except np.linalg.LinAlgError:  # units that ran away
            return model
        return projected_model(fewer, smooth_feature(model.activation), self.inputs, self.answers)

    def _narrowed(self, exact: Runner, inputs: Array, answers: Array) -> Runner:
        """Leave out units as long as the fit stays exact: equal and opposite ones, and idle ones."""
        model = exact.model
        problem, units = self._problem(model, inputs, answers)
        # Sines of one direction are a single one, whatever their phases.
        kept = _distinct_units(units[:-1] if model.activation.name == "sine" else units)
        found = ProjectedFit(units[:, kept], model.weights[1][kept], exact.residual, ())
        try:
            fewer = prune_exact(problem, found, self.floor, self.on_step)
        except np.linalg.LinAlgError:  # units that ran away
            return exact
        if not 0 < fewer.units.shape[1] < units.shape[1]:
            return exact
        start = projected_model(fewer, smooth_feature(model.activation), inputs, answers)
        narrowed = self._runner(fit_values(start, inputs, answers, on_step=self.on_step))
        return narrowed if narrowed.residual <= self.floor else exact

    def _problem(
        self, model: NetworkParameters, inputs: Array, answers: Array
    ) -> tuple[ProjectedProblem, Array]:
        """Return the problem of finding units like those of ``model``, and these (w; b)."""
        problem = ProjectedProblem(inputs, answers, smooth_feature(model.activation))
        return problem, np.vstack([model.weights[0], model.biases[0]])

    def _runner(self, fitted: ValueFitResult) -> Runner:
        residual, numbers = self.samples.residual(fitted.model), self.samples.answers.size
        model = fitted.model
        free = model.size - (model.width if is_homogeneous(model) else 0)
        return Runner(model, residual, information(residual, free, numbers), fitted)


def _distinct_units(units: Array) -> list[int]:
    """Numbers of the units (w; b), or (w), that differ from all before them, in more than their sign."""
    kept: list[int] = []
    for number, unit in enumerate(units.T):
        others = units[:, kept]
        apart = np.minimum(
            np.linalg.norm(others - unit[:, None], axis=0), np.linalg.norm(others + unit[:, None], axis=0)
        )
        if not (apart <= _EQUAL_UNITS * np.linalg.norm(unit)).any():
            kept.append(number)
    return kept
