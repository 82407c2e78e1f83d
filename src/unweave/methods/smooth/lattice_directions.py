"""From lattice jets to the units' directions: the span, its rank-one members, and the truncation removed.

The span of the jets ends at the width, but weak units may drown in the truncation of the differences. The
strong ones, once found, predict that truncation (`unweave.derivatives.truncation`). Without it the spectrum
shows the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.lattice_jets import LatticeJets
from unweave.derivatives.truncation import without_lattice_truncation
from unweave.methods.shared.profiles.profiles import Profiles
from unweave.methods.shared.profiles.unit_fits import model_of
from unweave.methods.smooth.jet_profiles import (
    JetProfileOptions,
    fit_jet_profiles,
    jet_samples,
    refit_jet_profiles,
)
from unweave.methods.smooth.random_slice import SliceOptions
from unweave.methods.smooth.span_members import MemberFinder, space_of, width_shown
from unweave.networks.activations import Activation
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.clock import check
from unweave.subspace.collector import RankOneDirections
from unweave.subspace.hessian_span import CLEAR_GAP, HessianSpan, hessian_span
from unweave.subspace.power_method import PowerMethodOptions
from unweave.subspace.rank_one_space import RankOneSpace


@dataclass(frozen=True, kw_only=True)
class LatticeSpanOptions:
    """Where the span of lattice jets ends, and how its truncation is taken away."""

    hint_of_gap: float = 5.0
    """Ratio of singular values at which the end of a spectrum is worth looking at."""
    hint_of_known_width: float = 1.5
    """The same at a width that the caller gave."""
    spare_members: int = 2
    """Members of the span beyond its rank, so that its end is seen."""
    corrections: int = 4
    """Corrections for truncation at most."""
    poor_profile: float = 0.1
    """Relative misfit of a profile that predicts no truncation."""


@dataclass(frozen=True, eq=False)
class LatticeSpan:
    """Jets, the span they lie in, and where it ends."""

    jets: LatticeJets
    span: HessianSpan
    rank: int
    gap: float

    @property
    def dimension(self) -> int:
        """d"""
        return int(self.jets.sites.shape[1])

    @property
    def space(self) -> RankOneSpace:
        """The span as a subspace of Sym(d)."""
        return space_of(self.span, self.rank, self.dimension)


class LatticeDirections:
    """Finds the spans of lattice jets and their rank-one members."""

    def __init__(
        self,
        inputs: int,
        width: int | None,
        finder: MemberFinder,
        options: LatticeSpanOptions,
        slices: SliceOptions,
        profiles: JetProfileOptions,
    ) -> None:
        self._inputs, self._width, self._finder = inputs, width, finder
        self._options, self._slices, self._profiles = options, slices, profiles

    def span(self, jets: LatticeJets) -> LatticeSpan | None:
        """Return the span of ``jets``; None if it has no end, or none that its directions can show."""
        options, width, members = self._options, self._width, jets.members()
        span = hessian_span(members)
        rank, gap = width_shown(span, width)
        if gap < options.hint_of_gap and width is not None and span.gap(width) >= options.hint_of_known_width:
            rank, gap = width, span.gap(width)
        ends = gap >= (options.hint_of_gap if rank != width else options.hint_of_known_width)
        enough = len(members) >= rank + options.spare_members and len(jets) >= self._slices.fewest_sites
        if not ends or not enough or rank > self._most_units(jets):
            return None
        return LatticeSpan(jets, span, rank, gap)

    def find(self, seen: LatticeSpan, known: Array | None = None) -> RankOneDirections:
        """Find members of the span besides the ``known`` ones; there may be fewer than its dimension."""
        chosen = self._finder.options.power_method
        power_method = chosen or PowerMethodOptions()
        found = self._finder.find(seen.span, seen.rank, seen.dimension, power_method, known)
        if len(found) < seen.rank and chosen is None:
            # Weak units lie farther from the span than most, but still within its own error.
            loose = replace(power_method, min_objective=1 - self._finder.options.threshold(seen.gap))
            more = self._finder.find(seen.span, seen.rank, seen.dimension, loose, found.directions)
            found = replace(more, restarts=found.restarts + more.restarts)
        return found

    def sharpened(
        self, seen: LatticeSpan, found: RankOneDirections, activation: Activation
    ) -> tuple[LatticeSpan, RankOneDirections]:
        """Return span and members less the truncation that units along ``found`` predict.

        What does not get clearer is left as it is.
        """
        best, rows, known = seen, found, None
        for _ in range(self._options.corrections):
            check()
            rows, profiles = known = self._profiles_along(best.jets, rows, activation, known)
            predicting = profiles.residuals <= self._options.poor_profile
            if not predicting.any():
                break
            model = model_of(rows.directions, profiles, activation).keep(predicting)
            corrected = self.span(without_lattice_truncation(seen.jets, model))
            if corrected is None or corrected.gap <= best.gap or corrected.rank < best.rank:
                break
            best, rows = corrected, self._moved(corrected, rows.directions)
        return best, rows

    def completed(
        self, jets: LatticeJets, model: NetworkParameters
    ) -> tuple[LatticeSpan, RankOneDirections] | None:
        """Return span and members less the truncation of a ``model`` that lacks units; None if none show."""
        cleared = without_lattice_truncation(jets, model)
        span = hessian_span(cleared.members())
        # Below the units there is only rounding now, without gaps of its own: the last gap is their number,
        # even if a larger one parts the strong from the weak.
        most = len(span.singular_values) - self._options.spare_members
        most = min(most, self._most_units(jets))
        ranks = [rank for rank in range(model.width + 1, most + 1) if span.gap(rank) >= CLEAR_GAP]
        if not ranks:
            return None
        corrected = LatticeSpan(cleared, span, ranks[-1], span.gap(ranks[-1]))
        directions = (model.weights[0] / np.linalg.norm(model.weights[0], axis=0)).T
        return corrected, self._moved(corrected, directions)

    def _profiles_along(
        self,
        jets: LatticeJets,
        found: RankOneDirections,
        activation: Activation,
        known: tuple[RankOneDirections, Profiles] | None,
    ) -> tuple[RankOneDirections, Profiles]:
        """Fit the profiles of units along directions that are close to the ``known`` ones, if any are."""
        if known is None:
            samples = jet_samples(found.directions, jets.sites, jets.hessians, jets.thirds)
            return found, fit_jet_profiles(samples, activation, self._profiles)
        before, profiles = known
        likeness = found.directions @ before.directions.T
        nearest = np.argmax(np.abs(likeness), axis=1)
        signs = np.where(likeness[np.arange(len(nearest)), nearest] < 0, -1.0, 1.0)
        found = replace(found, directions=signs[:, None] * found.directions)
        samples = jet_samples(found.directions, jets.sites, jets.hessians, jets.thirds)
        return found, refit_jet_profiles(samples, activation, self._profiles, profiles.only(nearest))

    def _most_units(self, jets: LatticeJets) -> int:
        return self._slices.most_units(jets.sites.shape[1], self._inputs)

    def _moved(self, seen: LatticeSpan, directions: Array) -> RankOneDirections:
        """Move known directions into a better span, and find the others there."""
        moved = self._finder.move(seen.span, seen.rank, directions, seen.dimension)
        threshold = self._finder.options.threshold(seen.gap)
        return self.find(seen, moved[seen.space.misalignment(moved) <= threshold])
