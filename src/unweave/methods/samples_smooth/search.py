"""One hidden layer of smooth units from samples.

The start (`fit`) needs Gaussian inputs and enough samples. Where that fails, or there are more
units than inputs, random starts are tried (`value_search`). Nothing of this is a hypothesis of the verdict: a
network that answers rows it has not seen to the precision of the answers is recovered, whatever led to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.methods.samples_smooth.fit import SmoothSampleFit, SmoothSampleOptions, fit_smooth_samples
from unweave.methods.shared.sample_evidence import (
    LARGEST_SAMPLE_CONDITION,
    SAMPLES_PER_PARAMETER,
    SampleEvidence,
    fewer_units_note,
    missing_directions_note,
    undetermined_weights,
)
from unweave.methods.shared.value_search import MOST_INPUTS, ValueSearchOptions, search_values
from unweave.networks.activations import get_activation
from unweave.numerics.variable_projection.features import feature_of
from unweave.numerics.whitening import Whitening
from unweave.search import Candidate, Check, Context, GaveUp, Reason, Search

UNTOLD = "tanh"
"""Activation tried when the caller gives none."""


class SamplesSmoothReason(Reason):
    """Why smooth units are not searched for."""

    NOT_WORTHWHILE = "smooth units are not searched for: {why}"


@dataclass(frozen=True, kw_only=True)
class SamplesSmoothOptions(ValueSearchOptions):
    """How hard to search for smooth units: from moments, then from the random starts of the base class."""

    told: SmoothSampleOptions = field(default_factory=SmoothSampleOptions)
    """Starts from moments when the caller gives the activation."""
    untold: SmoothSampleOptions = field(
        default_factory=lambda: SmoothSampleOptions(starts=4, random_starts=0)
    )
    """Starts from moments when nobody spoke of smooth units."""
    many_units: SmoothSampleOptions = field(
        default_factory=lambda: SmoothSampleOptions(starts=1, random_starts=0)
    )
    """Starts from moments when the caller gives more units than inputs, which only random starts find."""
    rounds_after_moments: tuple[int, ...] = (6,)
    """Random starts of every size after moments have failed."""
    most_inputs_told: int = 16
    """Number of inputs up to which random starts may find a width that the caller gives."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SamplesSmoothEvidence(SampleEvidence):
    """What was measured on the way to smooth units."""

    spectrum: Array | None = None
    """Singular values of the moments, which show the span of the units."""
    angle: float | None = None
    """Radians between the starts from half the samples each."""

    def checks(self) -> list[Check]:
        """Report how well the samples determine the start."""
        checks = super().checks()
        if self.angle is not None and self.angle < float("inf"):
            enough = SmoothSampleFit.unreliable_angle
            implies = f"radians between the starts from half the samples: up to {enough} they are enough"
            checks.append(Check.figure("half-sample angle", self.angle, implies))
        return checks


class SamplesSmoothSearch(Search):
    """Fits smooth units from moments, then from random starts."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._rows, self._width = context.view, self.request.width
        self._options: SamplesSmoothOptions = context.options
        self._found = Candidate()

    def candidate(self) -> Candidate:
        """Return the fit."""
        return self._found

    def run(self) -> None:
        """Fit units of the activation that the caller gives, or of tanh."""
        told = self.request.activation
        if told is not None:
            self._fit(told, self._options.told)
            return
        self._stop_if_not_worthwhile()
        try:
            self._fit(UNTOLD, self._options.untold)
        except InvalidInput as error:  # too many units or too few samples for smooth ones: the others stand
            raise GaveUp(SamplesSmoothReason.NOT_WORTHWHILE, why=error) from error

    def _stop_if_not_worthwhile(self) -> None:
        """Give up where nobody spoke of smooth units and little speaks for them."""
        x = self._rows.x
        if self.context.is_late:
            raise GaveUp(SamplesSmoothReason.NOT_WORTHWHILE, why="the deadline has passed")
        if self._width is not None:
            return
        if len(x) <= SAMPLES_PER_PARAMETER * feature_of("squared_relu").count(x.shape[1]):
            raise GaveUp(SamplesSmoothReason.NOT_WORTHWHILE, why=f"{len(x)} samples are too few")
        if any(each.network is not None and not each.network.hidden for each in self.context.earlier):
            raise GaveUp(SamplesSmoothReason.NOT_WORTHWHILE, why="an affine map explains the samples as well")

    def _fit(self, activation: str, options: SmoothSampleOptions) -> None:
        floor, rows = self._rows.floor()[0], len(self._rows.x)
        with self.journal.stage(f"fit {activation}") as stage:
            fit = self._fitted(activation, floor, options)
            network = fit.network
            stage.figures.update(
                rows=rows,
                width=network.hidden[0] if network.hidden else 0,
                starts=fit.starts,
                residual=fit.residual,
                exact=fit.exact,
            )
            if fit.angle is not None:
                stage.figures["angle"] = fit.angle
        width = network.hidden[0] if network.hidden else 0
        evidence = SamplesSmoothEvidence(
            width=width,
            found=width,
            restarts=fit.starts,
            fit_history=(*(() if fit.fitted is None else fit.fitted.history), fit.residual),
            fit_floor=floor,
            condition=None if fit.fitted is None else fit.fitted.condition,
            parameter_error_bar=None if fit.fitted is None else fit.fitted.error_bar,
            samples_per_parameter=rows * network.n_outputs / network.n_parameters,
            spectrum=fit.singular_values,
            angle=fit.angle,
        )
        self._found = Candidate(
            network,
            evidence,
            notes=self._notes(fit, activation),
            problem=self._problem(fit),
            causes=self._causes(fit),
            objection=self._objection(fit),
            ambiguity=_ambiguity(fit),
            tentative=self.request.activation is None,
        )

    def _fitted(self, activation: str, floor: float, options: SmoothSampleOptions) -> SmoothSampleFit:
        """Fit from moments, or from random starts where these are exact or there are no moments to use."""
        x, y, width = self._rows.x, self._rows.y, self._width
        rank = Whitening.of(x).rank
        by_moments = width is None or width <= rank
        first = fit_smooth_samples(
            x,
            y,
            width if by_moments else rank,
            activation,
            floor=floor,
            rng=self.rng,
            options=options if by_moments else self._options.many_units,
            on_step=self.on_step,
        )
        most = MOST_INPUTS if width is None else self._options.most_inputs_told
        if first.exact or first.out_of_time or rank > most:
            return first
        rounds = self._options.rounds_after_moments if by_moments else self._options.rounds
        second = search_values(
            x,
            y,
            width,
            [get_activation(activation)],
            floor=floor,
            rng=self.rng,
            options=replace(self._options, rounds=rounds),
            on_step=self.on_step,
        )
        if second is None or (by_moments and not second.exact):
            return first
        return replace(
            first,
            network=second.network,
            residual=second.residual,
            exact=second.exact,
            starts=first.starts + second.starts,
            angle=None,
            fitted=second.fitted,
            out_of_time=second.out_of_time,
        )

    def _objection(self, fit: SmoothSampleFit) -> str | None:
        """Say that the samples are too few for the fit to be unique."""
        network = fit.network
        needed = SAMPLES_PER_PARAMETER * network.n_parameters / network.n_outputs
        if self._rows.count >= needed:
            return None
        return (
            f"{self._rows.count} samples are too few for a network of {network.n_parameters} parameters: "
            f"about {needed:.0f} are needed"
        )

    def _problem(self, fit: SmoothSampleFit) -> str | None:
        """Say what stood in the way, None if nothing did."""
        if fit.out_of_time:
            return "the deadline ended the search"
        if not fit.starts and not fit.exact:
            count, inputs = self._rows.count, fit.network.n_inputs
            return f"{count} samples are too few to look for units of {inputs} inputs"
        return None

    def _causes(self, fit: SmoothSampleFit) -> str:
        causes = []
        if not fit.reliable:
            causes.append(
                f"too few samples (the directions of units from the two halves of them differ by "
                f"{fit.angle:.2f} > {fit.unreliable_angle} radians)"
            )
        if fit.angle is not None and fit.gaussian is not None and not fit.gaussian.is_plausible:
            causes.append("inputs that are not Gaussian, for which the start of the fit is made")
        causes.append("noise, a local minimum or units of another kind")
        inputs = fit.network.n_inputs
        if self._width is None and inputs > MOST_INPUTS:
            causes.append(f"more units than the {inputs} inputs, which only queries can tell")
        return ", or ".join(causes)

    def _notes(self, fit: SmoothSampleFit, activation: str) -> tuple[str, ...]:
        why = "exact fit" if fit.exact else "least squares"
        told = "not told" if self._width is None else "told"
        way = "random starts" if fit.angle is None else "moments"
        notes = [f"{activation} units by {way} and least squares ({why}; width {told}, {fit.starts} starts)"]
        if not fit.network.hidden:
            notes = [f"an affine map by least squares; no {activation} units were looked for"]
        if fit.angle is not None and fit.gaussian is not None and not fit.gaussian.is_plausible:
            notes.append(f"{fit.gaussian}; the moments that start the fit are then only a guess")
        found = fit.network.hidden[0] if fit.network.hidden else 0
        if self._width and found < self._width and fit.exact:
            notes.append(fewer_units_note(found, self._width))
        if fit.missing_directions:
            notes.append(missing_directions_note(fit.missing_directions))
        return tuple(notes)


def _ambiguity(fit: SmoothSampleFit) -> str | None:
    if fit.missing_directions:
        return undetermined_weights(fit.missing_directions)
    if fit.fitted is not None and fit.fitted.condition > LARGEST_SAMPLE_CONDITION:
        return "the answers agree, but the samples leave some parameters undetermined"
    return None
