"""Kinked units from samples: the fit, the verdict on it from held-out rows, and what the user should know."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.methods.samples_relu.standard_errors import LARGEST, StandardErrors, standard_errors
from unweave.methods.shared.held_out import HeldOut, SplitSamples
from unweave.methods.shared.kinked.sample_fit import SampleFit, fit_samples
from unweave.methods.shared.sample_verdict import (
    LARGEST_CONDITION,
    NOTHING_HELD_OUT,
    PER_PARAMETER,
    SampledNetwork,
    SampleVerdict,
    fewer_units_note,
    held_out_checks,
    imprecise,
    missing_directions_note,
    rate_check,
    residual_check,
    undetermined_weights,
    verdict_of,
)
from unweave.numerics.variable_projection.features import feature_of
from unweave.numerics.variable_projection.pruning import OnStep
from unweave.numerics.variable_projection.search import SearchOptions
from unweave.recovery.result import Check
from unweave.search.candidate import Evidence
from unweave.search.journal import Journal


def free_numbers(activation: str | None, width: int | None, inputs: int, outputs: int) -> float:
    """Parameters of the network asked for (the affine part counts), per output; None stands for ReLU."""
    feature = feature_of(activation or "relu")
    return ((width or 0) * (inputs + outputs) + feature.count(inputs) * outputs) / outputs


@dataclass(frozen=True, eq=False)
class KinkedFit:
    """A fit with its verdict."""

    fit: SampleFit
    verdict: SampleVerdict
    errors: StandardErrors | None

    def information(self, numbers: int) -> float:
        """Bayesian information criterion: the lower, the better the fit for its number of parameters."""
        residual = max(self.fit.residual, float(np.finfo(np.float64).tiny))
        return float(2 * numbers * np.log(residual) + self.fit.network.n_parameters * np.log(numbers))


class KinkedFitter:
    """Fits units of one kind after the other to ``samples``.

    ``needed`` is the number of parameters of the network asked for, per output.
    """

    def __init__(
        self,
        samples: SplitSamples,
        width: int | None,
        needed: float,
        options: SearchOptions | None,
        rng: np.random.Generator,
        journal: Journal,
        on_step: OnStep,
    ) -> None:
        self._samples, self._width, self._needed = samples, width, needed
        self._options = options or SearchOptions()
        self._rng, self._journal, self._on_step = rng, journal, on_step

    def fit(self, activation: str | None, most: int | None) -> KinkedFit:
        """Units of ``activation`` (None: ReLU or leaky ReLU), at most ``most`` of them."""
        fit = self._fitted(activation, most)
        x, y = self._samples.x, self._samples.y
        errors = standard_errors(fit.network, x, y) if fit.network.hidden else None
        seen = self._samples.errors_of(fit.network)
        return KinkedFit(fit, verdict_of(seen, self._problem(fit, seen), _ambiguity(fit, errors)), errors)

    def told(self, found: KinkedFit) -> SampledNetwork:
        """All that is said about a fit."""
        evidence, checks = self._evidence(found)
        notes = self._notes(found.fit, evidence)
        return SampledNetwork(found.fit.network, found.verdict, evidence, checks, notes)

    def _fitted(self, activation: str | None, most: int | None) -> SampleFit:
        floor, noisy = self._samples.floor()
        options = self._options
        if most is not None:
            options = replace(options, starts=1, most=most)
        with self._journal.stage(f"fit {activation or 'relu or leaky_relu'}") as stage:
            fit = fit_samples(
                self._samples.x,
                self._samples.y,
                self._width,
                activation,
                floor=floor,
                rng=self._rng,
                noisy=noisy,
                options=options,
                on_step=self._on_step,
            )
            search = fit.search
            stage.figures.update(
                rows=len(self._samples.x),
                width=search.fit.units.shape[1],
                starts=search.starts,
                repairs=search.repairs,
                widest=search.widest,
                residual=fit.residual,
                exact=search.exact,
                signs=fit.signs_method,
            )
        return fit

    def _problem(self, fit: SampleFit, seen: HeldOut) -> str | None:
        """Why the fit does not count as recovered, None if it does."""
        count, needed = self._samples.count, self._needed
        if self._width and count < PER_PARAMETER * needed and not seen.precise:
            return (
                f"{count} samples are too few for {self._width} units: the fit has {needed:.0f} free numbers "
                f"per output, so that about {PER_PARAMETER * needed:.0f} samples are needed"
            )
        if not seen.rows:
            return NOTHING_HELD_OUT
        if seen.precise:
            return None
        reason = imprecise(seen)
        if fit.search.interrupted:
            return f"interrupted; {reason}"
        if fit.search.out_of_time:
            return f"the deadline ended the search; {reason}"
        if self._width is not None and (fit.search.exact_width or 0) > self._width:
            return (
                f"{reason}; {fit.search.exact_width} units fit exactly, {self._width} do not: "
                "leave the width open"
            )
        what = (
            "too few units, a local minimum or noise" if self._width else "noise, or no network of this kind"
        )
        return f"{reason}: {what}, which samples alone cannot tell apart"

    def _evidence(self, found: KinkedFit) -> tuple[Evidence, tuple[Check, ...]]:
        """What was measured about a fit, and the certificate's checks on it."""
        fit, errors, floor = found.fit, found.errors, self._samples.floor()[0]
        network, search = fit.network, fit.search
        bar = None if errors is None else errors.largest
        evidence = Evidence(
            width=search.fit.units.shape[1],
            found=search.fit.units.shape[1],
            restarts=search.starts,
            fit_history=(*search.history, fit.residual),
            fit_floor=floor,
            condition=None if errors is None else errors.condition,
            parameter_error_bar=bar,
        )
        checks = [*held_out_checks(found.verdict), residual_check(fit.residual, floor)]
        if network.hidden:
            seen, needed = float(fit.fewest_beyond), float(network.n_inputs + 1)
            implies = "every unit switches between enough samples to be determined"
            checks.append(Check("samples beyond a kink", seen, needed, seen >= needed, implies))
            checks.append(rate_check(network, len(self._samples.x)))
        if bar is not None:
            implies = "largest standard error of a parameter if the residual is independent noise"
            checks.append(Check("parameter error bar", bar, None, None, implies))
        return evidence, tuple(checks)

    def _notes(self, fit: SampleFit, evidence: Evidence) -> tuple[str, ...]:
        network, search = fit.network, fit.search
        width = network.hidden[0] if network.hidden else 0
        why = "exact fit" if search.exact else "least squares"
        told = "told" if self._width is not None else "not told"
        notes = [
            f"kinked units by variable projection ({why}; width {told}, {search.starts} starts, answers of "
            f"{self._samples.precision.kind} precision, {len(self._samples.x)} rows fitted)"
        ]
        if self._width and width < self._width and search.exact:
            notes.append(fewer_units_note(width, self._width))
        if fit.missing_directions:
            notes.append(missing_directions_note(fit.missing_directions))
        if width and fit.fewest_beyond < network.n_inputs + 1:
            notes.append(f"a unit has only {fit.fewest_beyond} samples on one side: it is poorly determined")
        if evidence.parameter_error_bar is not None and not search.exact:
            notes.append(
                f"if the residual is noise, the largest standard error of a parameter is "
                f"{evidence.parameter_error_bar:.2g} "
                "(unweave.methods.samples_relu.standard_errors gives all)"
            )
        return tuple(notes)


def _ambiguity(fit: SampleFit, errors: StandardErrors | None) -> str | None:
    """What else fits, if anything."""
    if fit.missing_directions:
        return undetermined_weights(fit.missing_directions)
    if not fit.network.hidden:
        return None
    needed = fit.network.n_inputs + 1
    if fit.fewest_beyond < needed:
        return (
            f"the answers agree, but a unit has only {fit.fewest_beyond} samples on one side of its kink, "
            f"and {needed} would determine it"
        )
    small = fit.network.n_parameters <= LARGEST
    if small and (errors is None or errors.condition > LARGEST_CONDITION):
        return (
            "the answers agree, but the samples leave some parameters undetermined: too few lie between "
            "the kinks of the units"
        )
    return fit.other_signs()
