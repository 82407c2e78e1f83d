"""One hidden layer of smooth units from samples.

Kinds of units race for the samples at growing sizes (`race`). Where none is exact, moments of Gaussian inputs
start another fit (`fit`), and in few inputs many random starts do (`value_search`). Nothing of this is a
hypothesis of the verdict: a network that answers rows it has not seen to the precision of the answers is
recovered, whatever led to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput, OutOfTime
from unweave.methods.samples_smooth.ending import Ending, Runner
from unweave.methods.samples_smooth.fit import SmoothSampleFit, SmoothSampleOptions, fit_smooth_samples
from unweave.methods.samples_smooth.race import race_kinds
from unweave.methods.samples_smooth.race_options import RaceOptions
from unweave.methods.samples_smooth.shrinking import ShrinkingOptions, is_structured, shrink_starts
from unweave.methods.shared.sample_evidence import (
    LARGEST_SAMPLE_CONDITION,
    SAMPLES_PER_PARAMETER,
    SampleEvidence,
    fewer_units_note,
    information,
    missing_directions_note,
    noise_standard_errors,
    undetermined_weights,
)
from unweave.methods.shared.value_search import MOST_INPUTS, ValueSearchOptions, search_values
from unweave.networks.activations import get_activation
from unweave.networks.network import Network
from unweave.networks.standardized import StandardizedSamples
from unweave.search import Candidate, Check, Context, GaveUp, Reason, Search

UNTOLD = ("tanh", "erf", "softplus", "gelu", "swish", "sine", "squared_relu")
"""Activations that race when the caller gives none: all that are smooth, or once differentiable. A sigmoid is
a tanh, up to what other parameters absorb."""


class SamplesSmoothReason(Reason):
    """Why smooth units are not searched for."""

    NOT_WORTHWHILE = "smooth units are not searched for: {why}"


@dataclass(frozen=True, kw_only=True)
class SamplesSmoothOptions(ValueSearchOptions):
    """How hard to search for smooth units: a race of kinds, moments, then random starts of the base class."""

    race: RaceOptions = field(default_factory=RaceOptions)
    """Sizes and starts of the race of kinds."""
    shrinking: ShrinkingOptions = field(default_factory=ShrinkingOptions)
    """Starts with many surplus units in few inputs."""
    told: SmoothSampleOptions = field(default_factory=SmoothSampleOptions)
    """Starts from moments when the caller gives the activation."""
    straight: float = 8.0
    """Argument beyond which a unit is straight, to a part in a thousand."""
    rounds: tuple[int, ...] = (3, 8)
    """Random starts of every size where the race ends without a result."""
    work: float = 4.0
    """Seconds that these starts take, roughly."""


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
        """Fit units of the activation that the caller gives, or let all smooth ones race."""
        told = self.request.activation
        if told is not None:
            self._fit([told])
            return
        self._stop_if_not_worthwhile()
        try:
            self._fit(list(UNTOLD))
        except InvalidInput as error:  # too many units or too few samples for smooth ones: the others stand
            raise GaveUp(SamplesSmoothReason.NOT_WORTHWHILE, why=error) from error

    def _stop_if_not_worthwhile(self) -> None:
        """Give up where nobody spoke of smooth units and little speaks for them."""
        if self.context.is_late:
            raise GaveUp(SamplesSmoothReason.NOT_WORTHWHILE, why="the deadline has passed")
        if self._width is not None:
            return
        if any(each.network is not None and not each.network.hidden for each in self.context.earlier):
            raise GaveUp(SamplesSmoothReason.NOT_WORTHWHILE, why="an affine map explains the samples as well")

    def _fit(self, names: list[str]) -> None:
        floor, rows = self._rows.floor()[0], len(self._rows.x)
        with self.journal.stage(f"fit {names[0] if len(names) == 1 else 'smooth units'}") as stage:
            fit = self._fitted(names, floor)
            network = fit.network
            width = network.hidden[0] if network.hidden else 0
            stage.figures.update(
                rows=rows,
                width=width,
                kind=network.activations[0],
                starts=fit.starts,
                residual=fit.residual,
                exact=fit.exact,
            )
            for name, runner in fit.rivals.items() if len(names) > 1 else ():
                stage.figures[f"residual of {name}"] = runner.residual
                stage.figures[f"width of {name}"] = runner.model.width
            if fit.angle is not None:
                stage.figures["angle"] = fit.angle
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
        errors = noise_standard_errors(network, self._rows.x, self._rows.y)
        self._found = Candidate(
            network,
            evidence,
            notes=self._notes(fit, network.activations[0] if network.hidden else names[0]),
            problem=self._problem(fit),
            causes=self._causes(fit),
            objection=self._objection(fit),
            ambiguity=_ambiguity(fit, errors),
            criterion=self._information(fit),
            standard_errors=None if fit.exact else errors,
        )

    def _fitted(self, names: list[str], floor: float) -> SmoothSampleFit:
        """Let the kinds race; where none is exact, try moments and random starts of the winner."""
        options, width = self._options, self._width
        samples = StandardizedSamples.of(self._rows.x, self._rows.y)
        rank = samples.whitening.rank
        most = options.race.most_units * (rank + 1)
        large = width is not None and width <= rank and width * (rank + 1) > most
        best: SmoothSampleFit | None = None
        if width is None and samples.affine_residual <= floor:
            return self._from_moments(names[0], floor)
        if not large:
            best = self._raced(samples, names, floor)
        if best is not None and not (best.exact or best.out_of_time):
            best = self._shrunk(samples, names, floor, best)
        if best is not None and (best.exact or best.out_of_time or best.settled):
            return best
        name = names[0] if best is None else best.network.activations[0]
        told = self.request.activation is not None
        if best is None or (told and (width is None or width <= rank)):
            best = self._better(best, self._from_moments(name, floor))
        if best.exact or best.out_of_time or self._is_beaten(best) or rank > MOST_INPUTS:
            return best
        return self._better(best, self._from_random_starts(name, floor, best))

    def _race_options(self, inputs: int) -> RaceOptions:
        """Return the options of the race; in few inputs other starts follow, so that all sizes race once."""
        options = self._options.race
        return replace(options, rounds=1) if inputs <= MOST_INPUTS else options

    def _shrunk(
        self, samples: StandardizedSamples, names: list[str], floor: float, known: SmoothSampleFit
    ) -> SmoothSampleFit:
        """Return an exact fit from starts with many surplus units, else what is ``known``.

        What is known is such a start where it is nearly exact; ``names`` are the kinds of others.
        """
        options, x, y = self._options, self._rows.x, self._rows.y
        left = (y - known.network(x)) / np.where(y.std(axis=0) > 0, y.std(axis=0), 1.0)
        nearly = known.residual <= options.race.nearly and known.fitted is not None
        raced = {name: runner.residual for name, runner in known.rivals.items()}
        shrinking, like = options.shrinking, None
        if samples.whitening.rank > MOST_INPUTS:
            shrinking = replace(shrinking, units=shrinking.units_of_many)
            worst = shrinking.rival_ratio * known.residual
            like = None if known.fitted is None else known.fitted.model
            names = [name for name in names if raced.get(name, np.inf) <= worst]
            if known.settled or known.residual > shrinking.near_many or self._is_beaten(known):
                names = []
        if floor > options.race.precise or not (names or nearly):
            return known
        if known.settled and not is_structured(samples.inputs, left, options.shrinking):
            return known
        order = self.rng.permutation(len(x))
        inputs, answers = samples.inputs[order], samples.answers[order]
        entries = options.race.final_entries
        ending = Ending(samples, inputs, answers, self._width, floor, entries, self.on_step)
        kinds = [get_activation(name) for name in sorted(names, key=lambda name: raced.get(name, np.inf))]
        try:
            found = shrink_starts(
                kinds,
                ending,
                rng=self.rng,
                options=shrinking,
                on_step=self.on_step,
                known=known.fitted.model if nearly and known.fitted is not None else None,
                like=like,
            )
        except OutOfTime:
            return replace(known, out_of_time=True)
        if found is None:
            return replace(known, settled=False)  # what it leaves is not noise
        rivals = {**known.rivals, found.kind: found}
        exact = found.residual <= floor
        told = self._of_runner(samples, found, replace(known, exact=exact, settled=False, rivals=rivals))
        return told if exact else self._better(replace(known, settled=False), told)

    @staticmethod
    def _of_runner(samples: StandardizedSamples, runner: Runner, known: SmoothSampleFit) -> SmoothSampleFit:
        """Return ``known`` with the network of ``runner``."""
        network = samples.network(runner.model)
        return replace(known, network=network, residual=runner.residual, fitted=runner.fitted)

    def _raced(self, samples: StandardizedSamples, names: list[str], floor: float) -> SmoothSampleFit | None:
        """Return the winner of the race; None if there are too few rows for any."""
        race = race_kinds(
            samples,
            self._width,
            [get_activation(name) for name in names],
            floor=floor,
            rng=self.rng,
            options=self._race_options(samples.whitening.rank),
            on_step=self.on_step,
            rival=self._rival(),
        )
        if race.winner is None:
            return None
        return SmoothSampleFit(
            network=samples.network(race.winner.model),
            residual=race.winner.residual,
            exact=race.exact,
            starts=race.starts,
            singular_values=None,
            angle=None,
            gaussian=None,
            missing_directions=self._rows.x.shape[1] - samples.whitening.rank,
            fitted=race.winner.fitted,
            out_of_time=race.out_of_time,
            rivals=race.runners,
            settled=race.settled,
        )

    def _information(self, fit: SmoothSampleFit) -> float:
        """Return the Bayesian information criterion; the lengths of homogeneous units are no parameters."""
        network = fit.network
        homogeneous = network.hidden and get_activation(network.activations[0]).homogeneity is not None
        free = network.n_parameters - (network.hidden[0] if homogeneous else 0)
        return information(fit.residual, free, self._rows.y.size)

    def _better(self, first: SmoothSampleFit | None, second: SmoothSampleFit | None) -> SmoothSampleFit:
        """Return the fit of lower information criterion."""
        if first is None or second is None:
            found = second if first is None else first
            assert found is not None
            return found
        best = second if second.exact or self._information(second) < self._information(first) else first
        late = first.out_of_time or second.out_of_time
        return replace(best, out_of_time=late and not best.exact, rivals=first.rivals)

    def _rival(self) -> tuple[float, int] | None:
        """Return the criterion and the width of the best earlier fit."""
        earlier = [
            (each.criterion, sum(each.network.hidden))
            for each in self.context.earlier
            if each.criterion is not None and each.network is not None
        ]
        return min(earlier, default=None)

    def _is_beaten(self, fit: SmoothSampleFit) -> bool:
        """Return whether an earlier fit explains the samples better."""
        rival = self._rival()
        return rival is not None and rival[0] < self._information(fit)

    def _from_moments(self, name: str, floor: float) -> SmoothSampleFit:
        x, y = self._rows.x, self._rows.y
        told = self._options.told
        return fit_smooth_samples(
            x, y, self._width, name, floor=floor, rng=self.rng, options=told, on_step=self.on_step
        )

    def _from_random_starts(self, name: str, floor: float, known: SmoothSampleFit) -> SmoothSampleFit | None:
        found = search_values(
            self._rows.x,
            self._rows.y,
            self._width,
            [get_activation(name)],
            floor=floor,
            rng=self.rng,
            options=self._options,
            on_step=self.on_step,
        )
        if found is None:
            return None
        return replace(
            known,
            network=found.network,
            residual=found.residual,
            exact=found.exact,
            starts=known.starts + found.starts,
            angle=None,
            fitted=found.fitted,
            out_of_time=found.out_of_time,
        )

    def _objection(self, fit: SmoothSampleFit) -> str | None:
        """Say that the samples are too few for the fit to be unique, or its units too steep to be known."""
        network = fit.network
        needed = SAMPLES_PER_PARAMETER * network.n_parameters / network.n_outputs
        if self._rows.count >= needed:
            return _steepness(network, self._rows.x, self._options.straight)
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
        causes.append(
            "noise, a local minimum, units of another kind or more than one hidden layer (hidden=[a, b] "
            "looks for two)"
        )
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


def _steepness(network: Network, x: Array, straight: float) -> str | None:
    """Say that a unit bends where hardly any sample lies, so that a kink or a step would do as well."""
    if not network.hidden or network.activations[0] in ("sine", "squared_relu"):
        return None
    bent = (np.abs(x @ network.weights[0] + network.biases[0]) < straight).sum(axis=0)
    if int(bent.min()) > network.n_inputs:
        return None
    return (
        f"a unit is so steep that only {int(bent.min())} samples lie where it bends: kinked units would "
        "explain them as well"
    )


def _ambiguity(fit: SmoothSampleFit, errors: Network | None) -> str | None:
    if fit.missing_directions:
        return undetermined_weights(fit.missing_directions)
    homogeneous = fit.network.hidden and get_activation(fit.network.activations[0]).homogeneity is not None
    condition = 0.0 if fit.fitted is None or homogeneous else fit.fitted.condition  # lengths are free there
    if condition > LARGEST_SAMPLE_CONDITION or (homogeneous and errors is None):
        return "the answers agree, but the samples leave some parameters undetermined"
    return None
