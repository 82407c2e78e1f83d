"""Noisy samples: of all kinds and widths, the network that the samples speak for most.

Searches for exact networks leave out units along one path, and compare kinds at the end of it by an
information criterion. That is right where answers are precise. Under noise it picks too few units, or another
kind. What they found is only the start here: a climb (`climb`) goes through kinds and widths nearby, and
keeps the network of highest marginal likelihood. It takes the place of what it started from.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unweave.methods.samples_weighed.climb import Climb, ClimbOptions, Weighed
from unweave.methods.shared.neighbors import likeness
from unweave.methods.shared.sample_evidence import (
    SampleEvidence,
    missing_directions_note,
    noise_standard_errors,
    undetermined_weights,
)
from unweave.networks.activations import get_activation
from unweave.networks.error_bars import with_fixed_lengths
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.standardized import StandardizedSamples
from unweave.networks.value_fit import fit_values
from unweave.search import Candidate, Context, GaveUp, Reason, Search

UNTOLD = ("tanh", "erf", "softplus", "gelu", "swish", "sine", "squared_relu", "relu", "leaky_relu")
"""Kinds that are weighed when the caller tells none."""


_LIKELY = "kind and width are the likeliest ones, which proves neither"
_CAUSES = "noise, more than one hidden layer (hidden=[a, b] looks for two), or units of another kind"


class SamplesWeighedReason(Reason):
    """Why nothing is weighed."""

    NOT_ASKED = "only exact networks are asked for"
    NOTHING_FOUND = "no earlier search has found units to begin with"
    EXPLAINED_OTHERWISE = "another kind of network explains the samples best"
    NO_NOISE = "what the best network leaves is no noise"
    TOO_LARGE = "the best network has {size} parameters: more than {most} take too long"


@dataclass(frozen=True, kw_only=True)
class SamplesWeighedOptions:
    """When kinds and widths are weighed, and how far the climb goes."""

    asked: bool = True
    """Whether an approximate network is of use at all."""
    over_floor: float = 10.0
    """Residual over the floor of an exact fit, up to which the answers' own precision explains it."""
    least_noise: float = 1e-4
    """Residual, relative to the spread of the answers, below which a fit that has not ended leaves it."""
    likeness: float = 0.5
    """Correlation of what is left at neighboring inputs, above which it is no noise."""
    compared: int = 2000
    """Rows that are compared with their neighbors at most."""
    far: float = 100.0
    """Information criterion above the best one beyond which an earlier fit is no start."""
    most_parameters: int = 250
    """Parameters of the largest start: a fit takes a second there."""
    step_flops: float = 1e8
    """Flops of one step of a fit, up to which the climb takes more of the rows, ..."""
    fewest_rows: float = 10.0
    """... but so many per parameter at least."""
    final_entries: int = 6_000_000
    """Entries of the Jacobian of the last fit: it takes that many of the rows."""
    climb: ClimbOptions = field(default_factory=ClimbOptions)
    """Steps and work of the climb."""


class SamplesWeighedSearch(Search):
    """Weighs kinds and widths near what earlier searches found."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._rows = context.view
        self._options: SamplesWeighedOptions = context.options
        self._samples = StandardizedSamples.of(self._rows.x, self._rows.y)
        self._climb: Climb | None = None
        self._weighed_all = False
        self._last: NetworkParameters | None = None

    def run(self) -> None:
        """Climb from earlier fits, and fit the best network to all rows."""
        starts = self._starts()
        samples, options = self._samples, self._options
        order = self.rng.permutation(len(samples.inputs))
        size = max(each.size for each in starts)
        rows = order[: int(max(options.step_flops / (2 * size**2), options.fewest_rows * size))]
        names = self.request.activations_among(UNTOLD)
        kinds = [get_activation(name) for name in names]
        self._climb = climb = Climb(
            samples.inputs[rows], samples.answers[rows], kinds, self.rng, options.climb, self.on_step
        )
        with self.journal.stage("weigh kinds and widths") as stage:
            for start in starts:
                climb.enter(start)
            self._weighed_all = True
            climb.run()
            best = climb.best
            if best is not None:
                kind, width = best.model.activation.name, best.model.width
                stage.figures.update(rows=len(rows), fits=climb.fits, kind=kind, width=width)
        if best is not None and len(rows) < len(order):
            more = order[: int(options.final_entries / best.model.size)]
            fitted = fit_values(best.model, samples.inputs[more], samples.answers[more], on_step=self.on_step)
            self._last = fitted.model

    def _starts(self) -> list[NetworkParameters]:
        """Return earlier fits to begin with, the best first; give up where there is nothing to weigh."""
        options = self._options
        if not options.asked:
            raise GaveUp(SamplesWeighedReason.NOT_ASKED)
        earlier = [
            (each.criterion, each.network)
            for each in self.context.earlier
            if each.criterion is not None and isinstance(each.network, Network)
        ]
        earlier.sort(key=lambda pair: pair[0])
        if not earlier:
            raise GaveUp(SamplesWeighedReason.NOTHING_FOUND)
        usual = [self._is_usual(network) for _, network in earlier]
        if not usual[0]:
            raise GaveUp(SamplesWeighedReason.EXPLAINED_OTHERWISE)
        worst = earlier[0][0] + options.far
        models = [
            self._samples.model(network)
            for (criterion, network), is_usual in zip(earlier, usual, strict=True)
            if is_usual and criterion <= worst
        ]
        best = models[0]
        if best.size > options.most_parameters:
            raise GaveUp(SamplesWeighedReason.TOO_LARGE, size=best.size, most=options.most_parameters)
        left = self._samples.answers - best.values(self._samples.inputs)
        no_noise = likeness(self._samples.inputs, left, options.compared) > options.likeness
        least = max(options.least_noise, options.over_floor * self._rows.floor()[0])
        if self._samples.residual(best) < least or no_noise:
            raise GaveUp(SamplesWeighedReason.NO_NOISE)
        return [model for model in models if model.size <= options.most_parameters]

    def _is_usual(self, network: Network) -> bool:
        """Return whether a network has one hidden layer of a kind that is weighed."""
        kinds = self.request.activations_among(UNTOLD)
        return len(network.hidden) == 1 and network.activations[0] in kinds

    def candidate(self) -> Candidate:
        """Return the best network, once all that it may replace has been weighed."""
        ranked = [] if self._climb is None or not self._weighed_all else self._climb.ranked()
        if not ranked:
            return Candidate()
        rows, samples = self._rows, self._samples
        network = samples.network(self._last or ranked[0].model)
        network = with_fixed_lengths(NetworkParameters.from_network(network)).to_network()
        missing = rows.x.shape[1] - samples.whitening.rank
        residual, floor = samples.residual(self._last or ranked[0].model), rows.floor()[0]
        errors = noise_standard_errors(network, rows.x, rows.y)
        return Candidate(
            network,
            SampleEvidence(
                width=network.hidden[0],
                found=network.hidden[0],
                restarts=self._climb.fits if self._climb is not None else 0,
                fit_history=(residual,),
                fit_floor=floor,
                samples_per_parameter=rows.y.size / network.n_parameters,
            ),
            notes=(
                self._note(ranked),
                *(() if errors is None else (_error_note(errors),)),
                *((missing_directions_note(missing),) if missing else ()),
            ),
            causes=_CAUSES,
            objection=_LIKELY if residual <= self._options.over_floor * floor else None,
            ambiguity=undetermined_weights(missing) if missing else None,
            replaces_earlier=True,
            standard_errors=errors,
        )

    def _note(self, ranked: list[Weighed]) -> str:
        """Say what the network was weighed against."""
        fits = 0 if self._climb is None else self._climb.fits
        note = f"{_named(ranked[0])} by marginal likelihood (kind and width not told, {fits} fits)"
        if len(ranked) < 2:
            return note
        odds = np.exp(min((ranked[1].cost - ranked[0].cost) / 2, 100.0))
        return f"{note}; {_named(ranked[1])} are {odds:.2g} times less likely"


def _error_note(errors: Network) -> str:
    """Tell the largest standard error."""
    arrays = [*errors.weights, *errors.biases, *([] if errors.skip is None else [errors.skip])]
    largest = max(float(array.max(initial=0.0)) for array in arrays)
    return (
        f"if the residual is noise, the largest standard error of a parameter is {largest:.2g} "
        "(`standard_errors` has all)"
    )


def _named(fit: Weighed) -> str:
    """Name the units of a fit."""
    return f"{fit.model.width} {fit.form[0]} units" + (" beside a skip connection" if fit.form[1] else "")
