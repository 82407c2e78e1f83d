"""Hidden layers of units that are rectifiers from afar (softplus, gelu, swish, elu, ...), from queries.

With x = R u and R large, f(R u) / R is a network of ReLU units with the same weights and biases b / R, but
for kinks that are rounded over 1 / R. So

1. a search for kinked layers, in a region that is R times wider, finds the weights up to the scalings that
   ReLU units allow;
2. profiles across far kinks give these scalings, the biases and the kind of unit (`unit_profiles`);
3. units of the last hidden layer that switch nowhere far out are found in what the others leave near by
   (`hidden_units`);
4. all parameters are fitted to values near the origin.

Widths, depth and kind need not be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.rectified_deep.hidden_units import HiddenUnitOptions, with_hidden_units
from unweave.methods.rectified_deep.unit_profiles import (
    ProfileOptions,
    best_by_layer,
    fit_profiles,
    read_profiles,
    smooth_network,
)
from unweave.methods.shared.final_fit import corrected_widths, final_fits, points_near, with_final_fit
from unweave.networks.network import Network
from unweave.networks.value_fit import points_to_fit
from unweave.probing.findings import Findings
from unweave.search import Candidate, Context, Evidence, GaveUp, Method, Reason, Search
from unweave.targets.change_of_inputs import in_normalised_inputs, in_own_inputs
from unweave.targets.region import NormalisedQueries, Region

RECTIFIERS = ("softplus", "gelu", "swish", "mish", "elu", "selu")
"""Units that are constant on one side and straight on the other, exponentially soon."""


class RectifiedReason(Reason):
    """Why no network of such units was found."""

    NOT_PROPORTIONAL = "far out the answers do not grow along rays as those of rectifying units do"
    NO_FAR_NETWORK = "far out, where such units are rectifiers, {why}"
    NO_KIND = "no kind of unit explains the far kinks: {kind} comes nearest and leaves {misfit:.1e} of them"


@dataclass(frozen=True, kw_only=True)
class RectifiedDeepOptions:
    """How layers of rectifying units are searched for."""

    far: float = 1e10
    """R: how many times wider the far region is. Rounded kinks are as narrow as 1 / R there, and biases known
    to about eps R."""
    spread_rows: int = 32
    """Points from which the spread of far answers is taken; as many lie halfway to them."""
    proportional: float = 1e-6
    """Part of the spread by which far answers may miss twice those halfway: biases count for 1 / R."""
    profiles: ProfileOptions = field(default_factory=ProfileOptions)
    hidden_units: HiddenUnitOptions = field(default_factory=HiddenUnitOptions)
    largest_misfit: float = 1e-3
    """Misfit of the middle unit's profile at which a kind of unit is ruled out."""
    spreads: tuple[float, ...] = (1.5, 4.0)
    """Standard deviations of the inputs of the final fit: near by units bend together, farther out those with
    large biases do."""
    equations: float = 1.5
    """Equations of the final fit per parameter."""
    polishes: int = 3
    """Final fits, each with more points."""
    settled: float = 100.0
    """Residual of the final fit, over its floor, at which no further one is needed."""
    hopeless: float = 0.3
    """Share of its first residual that a fit in the wrong place leaves."""


class RectifiedDeepSearch(Search):
    """Finds a network of ReLU units far out, then what its units are near by."""

    def __init__(self, context: Context, kinked: Sequence[Method]) -> None:
        super().__init__(context)
        self.rng = context.rng.spawn(1)[0]  # a search that follows draws what it would have drawn without
        self._options: RectifiedDeepOptions = context.options
        self._kinked = kinked
        self._far_search: Search | None = None
        self._network: Network | None = None
        self._evidence = Evidence()

    def candidate(self) -> Candidate:
        """Return the network, once its units are known."""
        if self._network is None:
            return Candidate(evidence=self._evidence)
        notes = corrected_widths(self.request.hidden, self._network.hidden)
        network = in_own_inputs(self._network, self.findings.region)
        return Candidate(network=network, evidence=self._evidence, notes=notes)

    def so_far(self) -> str:
        """Say what had been found far out."""
        return "" if self._far_search is None else f"far out, {self._far_search.so_far()}"

    def run(self) -> None:
        """Find the weights far out, then scales, biases and kind, then fit all."""
        far = self._far_network()
        with self.journal.stage("unit profiles") as stage:
            options = self._options.profiles
            profiles = read_profiles(self.context.view, far, self.rng, options)
            kinds = self.request.activations_among(RECTIFIERS)
            fitted = [fit_profiles(profiles, kind, options) for kind in kinds]
            layers = best_by_layer(fitted, far.hidden)
            worst = max(layers, key=lambda layer: layer.misfit)
            names = list(dict.fromkeys(layer.kind for layer in layers))
            stage.figures.update(activation=", ".join(names), misfit=worst.misfit)
        if not worst.misfit < self._options.largest_misfit:
            raise GaveUp(RectifiedReason.NO_KIND, kind=worst.kind, misfit=worst.misfit)
        self._network = smooth_network(far, profiles, layers)
        self._find_hidden_units()
        self._polish()

    def _far_network(self) -> Network:
        """Return a network of ReLU units, in normalised inputs, that the target is far out."""
        region = self.findings.region
        wide = Region(region.location, self._options.far * region.scale)
        view = NormalisedQueries(self.context.view.ledger, wide)
        findings = self._far_findings(view)
        told = self.request.hidden
        why = ""
        for method in self._kinked:
            if told is not None and not method.is_for(told):
                continue
            context = replace(
                self.context,
                view=view,
                rng=self.rng,
                findings=findings,
                request=replace(self.request, activation="relu", method=method.name),
                options=method.options(),
            )
            self._far_search = method.search(context)
            try:
                self._far_search.run()
            except GaveUp as error:
                why = str(error)
            network = self._far_search.candidate().network
            if network is not None:
                return in_normalised_inputs(network, region)
        raise GaveUp(RectifiedReason.NO_FAR_NETWORK, why=why)

    def _far_findings(self, view: NormalisedQueries) -> Findings:
        """Return what a look at the far region would find: rounding grows with the answers."""
        options = self._options
        with self.journal.stage("far spread"):
            points = view.region.sample(options.spread_rows, self.rng)
            halfway, answers = np.split(view(np.concatenate([points / 2, points])), 2)
        scale = answers.std(axis=0)
        if not (np.median(np.abs(answers - 2 * halfway), axis=0) <= options.proportional * scale).all():
            raise GaveUp(RectifiedReason.NOT_PROPORTIONAL)
        grown = scale / self.findings.spread
        noise = self.findings.noise
        sigmas = noise.sigma_per_output * grown
        noise = replace(noise, sigma=float(sigmas.max()), sigma_per_output=sigmas, scale=float(scale.max()))
        return replace(
            self.findings, region=view.region, output_scale=scale, noise=noise, kinks=True, layered=False
        )

    def _find_hidden_units(self) -> None:
        assert self._network is not None
        with self.journal.stage("hidden units") as stage:
            options = self._options
            points = self._near(points_to_fit(self._network, options.equations))
            answers = self.context.view(points)
            self._network = with_hidden_units(self._network, points, answers, self.rng, options.hidden_units)
            stage.figures.update(units=self._network.hidden[-1])

    def _polish(self) -> None:
        assert self._network is not None
        options = self._options
        fits = final_fits(
            self._network,
            self._near,
            self.context.view,
            float(self.findings.noise.sigma_per_output.max()),
            self.journal,
            polishes=options.polishes,
            settled=options.settled,
            hopeless=options.hopeless,
            equations_per_parameter=options.equations,
        )
        for fit in fits:
            self._network = fit.model.to_network()
            self._evidence = with_final_fit(self._evidence, fit, float(self.findings.spread.max()))

    def _near(self, count: int) -> Array:
        assert self._network is not None
        return points_near(self._network, self.findings.region, count, self._options.spreads, self.rng)
