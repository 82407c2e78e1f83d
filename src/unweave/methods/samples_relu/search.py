"""One hidden layer of kinked units from samples, by variable projection.

Many units of the wrong kind imitate the right ones, at a price. So when the caller gives neither width nor
activation, each kind is tried with few units first. The kind that did better goes on if their number held it
back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from unweave.methods.samples_relu.standard_errors import MOST_PARAMETERS, StandardErrors, standard_errors
from unweave.methods.shared.kinked.sample_fit import SampleFit, fit_samples
from unweave.methods.shared.sample_evidence import (
    LARGEST_SAMPLE_CONDITION,
    SAMPLES_PER_PARAMETER,
    SampleEvidence,
    fewer_units_note,
    information,
    missing_directions_note,
    undetermined_weights,
)
from unweave.numerics.variable_projection.features import feature_of
from unweave.numerics.variable_projection.search import SearchOptions
from unweave.search import Candidate, Check, Context, GaveUp, Reason, Search

SQUARED = "squared_relu"


class SamplesReluReason(Reason):
    """Why a kind of unit is not searched for."""

    NOTHING_CURVED = "no units were found in the samples: an affine map explains them as well"
    TOO_FEW_ROWS = "{rows} samples are too few to tell squared_relu units from others"
    OTHERS_FIT_BETTER = "units of another kind explain the samples better than kinked ones"
    NOT_HELD_BACK = "more units than {most} were not asked for by either kind"


@dataclass(frozen=True, kw_only=True)
class SamplesReluOptions:
    """How hard to search for kinked units."""

    search: SearchOptions = field(default_factory=SearchOptions)
    """Starts, surplus units and repairs of the search."""
    first_widths: int = 16
    """Number of units allowed at first when the caller gives neither width nor activation, ..."""
    doubted: int = 13
    """... and from which on units of another kind are tried first if more of these bring little."""
    precise: float = 1e-8
    """Floor of a fit, relative to the spread of the answers, up to which many kinked units are tried although
    others explain more: no such fit is exact."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SamplesReluEvidence(SampleEvidence):
    """What was measured on the way to kinked units."""

    fewest_beyond: int | None = None
    """Samples on the emptier side of a unit's kink, for the unit that has fewest."""
    needed_beyond: int | None = None
    """Samples there that determine the unit."""
    widest: int = 0
    """Number of units of the widest fit that was tried."""

    def checks(self) -> list[Check]:
        """Check that every unit switches between samples."""
        checks = super().checks()
        if self.fewest_beyond is not None and self.needed_beyond is not None:
            implies = "every unit switches between enough samples to be determined"
            check = Check.above("samples beyond a kink", self.fewest_beyond, self.needed_beyond, implies)
            checks.insert(1, check)
        return checks


def free_numbers(activation: str | None, width: int | None, inputs: int, outputs: int) -> float:
    """Count the parameters of the network asked for (its affine part counts), per output."""
    feature = feature_of(activation or "relu")
    return ((width or 0) * (inputs + outputs) + feature.count(inputs) * outputs) / outputs


class SamplesReluSearch(Search):
    """Fits ReLU or leaky ReLU units."""

    squared: ClassVar[bool] = False

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._rows = context.view
        self._width = None if self.request.hidden is None else (self.request.width or 0)
        self._options: SamplesReluOptions = context.options
        self._found = Candidate()

    def run(self) -> None:
        """Fit, and stop at the number of units allowed."""
        self._fit(self._kind(), self._most())

    def candidate(self) -> Candidate:
        """Return the fit."""
        return self._found

    def _kind(self) -> str | None:
        """Return the activation that the caller gave; None for ReLU or leaky ReLU."""
        if self._width == 0:
            return None
        return self.request.activation

    @property
    def _nothing_told(self) -> bool:
        return self.request.activation is None and self._width is None

    def _most(self) -> int | None:
        """Return the number of units allowed, or None."""
        return self._options.first_widths if self._nothing_told and not self._few_rows else None

    @property
    def _few_rows(self) -> bool:
        """Whether the rows are too few for the polynomials behind squared_relu units."""
        x = self._rows.x
        return bool(len(x) <= SAMPLES_PER_PARAMETER * feature_of(SQUARED).count(x.shape[1]))

    def _earlier(self) -> list[Candidate]:
        """Return earlier fits of kinked units."""
        return [each for each in self.context.earlier if isinstance(each.evidence, SamplesReluEvidence)]

    def _stop_if_affine(self) -> None:
        """Give up if an earlier fit needed no unit at all."""
        if any(each.network is not None and not each.network.hidden for each in self._earlier()):
            raise GaveUp(SamplesReluReason.NOTHING_CURVED)

    def _fit(self, activation: str | None, most: int | None) -> None:
        """Fit units of ``activation`` (None: ReLU or leaky ReLU), at most ``most`` of them."""
        rows, options = self._rows, self._options.search
        floor, noisy = rows.floor()
        if most is not None:
            exact_only = floor <= self._options.precise  # what is not exact is an imitation
            options = replace(
                options, starts=1, most=most, doubted=self._options.doubted, all_or_nothing=exact_only
            )
        with self.journal.stage(f"fit {activation or 'relu or leaky_relu'}") as stage:
            fit = fit_samples(
                rows.x,
                rows.y,
                self._width,
                activation,
                floor=floor,
                rng=self.rng,
                noisy=noisy,
                options=options,
                on_step=self.on_step,
            )
            search = fit.search
            stage.figures.update(
                rows=len(rows.x),
                width=search.fit.units.shape[1],
                starts=search.starts,
                repairs=search.repairs,
                widest=search.widest,
                residual=fit.residual,
                exact=search.exact,
                signs=fit.signs_method,
            )
        errors = standard_errors(fit.network, rows.x, rows.y) if fit.network.hidden else None
        told = None if search.exact else errors  # of an exact fit rounding is all that is left
        self._found = Candidate(
            network=fit.network if told is None else told.network,
            evidence=self._evidence(fit, errors, floor),
            notes=self._notes(fit, errors),
            problem=self._problem(fit),
            causes=self._causes(),
            ambiguity=_ambiguity(fit, errors),
            criterion=self._criterion(fit),
            standard_errors=None if told is None else told.as_network(),
        )
        if search.interrupted:
            raise KeyboardInterrupt

    def _criterion(self, fit: SampleFit) -> float:
        """Return the Bayesian information criterion; the lengths of homogeneous units are no parameters."""
        free = fit.network.n_parameters - sum(fit.network.hidden)
        return information(fit.residual, free, self._rows.y.size)

    def _problem(self, fit: SampleFit) -> str | None:
        """Say what stood in the way, None if nothing did."""
        count, width = self._rows.count, self._width
        needed = free_numbers(self._kind(), width, *(part.shape[1] for part in (self._rows.x, self._rows.y)))
        if width and count < SAMPLES_PER_PARAMETER * needed:
            return (
                f"{count} samples are too few for {width} units: the fit has {needed:.0f} free numbers "
                f"per output, so that about {SAMPLES_PER_PARAMETER * needed:.0f} samples are needed"
            )
        if fit.search.interrupted:
            return "interrupted"
        if fit.search.out_of_time:
            return "the deadline ended the search"
        if width is not None and (fit.search.exact_width or 0) > width:
            return f"{fit.search.exact_width} units fit exactly, {width} do not: leave the width open"
        return None

    def _causes(self) -> str:
        what = (
            "too few units, a local minimum or noise"
            if self._width
            else "noise, more than one hidden layer (hidden=[a, b] looks for two), or units of another kind"
        )
        return f"{what}, which samples alone cannot tell apart"

    def _evidence(self, fit: SampleFit, errors: StandardErrors | None, floor: float) -> SamplesReluEvidence:
        network, search = fit.network, fit.search
        units = bool(network.hidden)
        return SamplesReluEvidence(
            width=search.fit.units.shape[1],
            found=search.fit.units.shape[1],
            restarts=search.starts,
            fit_history=(*search.history, fit.residual),
            fit_floor=floor,
            condition=None if errors is None else errors.condition,
            parameter_error_bar=None if errors is None else errors.largest,
            samples_per_parameter=len(self._rows.x) * network.n_outputs / network.n_parameters
            if units
            else None,
            fewest_beyond=fit.fewest_beyond if units else None,
            needed_beyond=network.n_inputs + 1,
            widest=search.widest,
        )

    def _notes(self, fit: SampleFit, errors: StandardErrors | None) -> tuple[str, ...]:
        network, search = fit.network, fit.search
        width = network.hidden[0] if network.hidden else 0
        why = "exact fit" if search.exact else "least squares"
        told = "told" if self._width is not None else "not told"
        notes = [
            f"kinked units by variable projection ({why}; width {told}, {search.starts} starts, answers of "
            f"{self._rows.precision.kind} precision, {len(self._rows.x)} rows fitted)"
        ]
        if self._width and width < self._width and search.exact:
            notes.append(fewer_units_note(width, self._width))
        if fit.missing_directions:
            notes.append(missing_directions_note(fit.missing_directions))
        if width and fit.fewest_beyond < network.n_inputs + 1:
            notes.append(f"a unit has only {fit.fewest_beyond} samples on one side: it is poorly determined")
        if errors is not None and not search.exact:
            notes.append(
                f"if the residual is noise, the largest standard error of a parameter is "
                f"{errors.largest:.2g} (`standard_errors` has all)"
            )
        return tuple(notes)


class SamplesSquaredReluSearch(SamplesReluSearch):
    """Fits squared ReLU units."""

    def run(self) -> None:
        """Fit, unless the samples cannot tell such units from others."""
        if self.request.activation is None:
            self._stop_if_affine()
            if self._few_rows:
                raise GaveUp(SamplesReluReason.TOO_FEW_ROWS, rows=len(self._rows.x))
        self._fit(SQUARED, self._most())


class SamplesWideReluSearch(SamplesReluSearch):
    """Goes on with the kind that did better with few units."""

    def run(self) -> None:
        """Fit as many units as the samples ask for, if their number held the better kind back."""
        self._stop_if_affine()
        most, earlier = self._options.first_widths, self._earlier()
        better = min(earlier, key=lambda each: each.criterion or np.inf, default=None)
        if self._few_rows or better is None or better.network is None:
            raise GaveUp(SamplesReluReason.NOT_HELD_BACK, most=most)
        least = min(each.criterion for each in self.context.earlier if each.criterion is not None)
        coarse = self._rows.floor()[0] > self._options.precise  # else all that is not exact is an imitation
        if coarse and better.criterion is not None and least < better.criterion:
            raise GaveUp(SamplesReluReason.OTHERS_FIT_BETTER)
        evidence = better.evidence
        if not isinstance(evidence, SamplesReluEvidence) or evidence.widest < self._options.doubted:
            raise GaveUp(SamplesReluReason.NOT_HELD_BACK, most=most)
        self._fit(SQUARED if better.network.activations[0] == SQUARED else None, None)


def _ambiguity(fit: SampleFit, errors: StandardErrors | None) -> str | None:
    """Say what else fits, if anything."""
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
    small = fit.network.n_parameters <= MOST_PARAMETERS
    if small and (errors is None or errors.condition > LARGEST_SAMPLE_CONDITION):
        return (
            "the answers agree, but the samples leave some parameters undetermined: too few lie between "
            "the kinks of the units"
        )
    return fit.other_signs()
