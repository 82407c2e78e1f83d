"""From lattice jets to the units' directions: the span, its rank-one members, and truncation taken away.

The span of the jets ends at the width; weak units may drown in the truncation of the differences. The
strong ones, once found, predict that truncation (`unweave.methods.smooth.lattice_truncation`): without it the
spectrum shows the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.lattice_jets import LatticeJets
from unweave.derivatives.truncation import without_lattice_truncation
from unweave.execution.executor import Executor
from unweave.methods.shared.profiles.unit_fits import model_of
from unweave.methods.smooth.frame_directions import (
    acceptance_threshold,
    find_directions,
    refine_directions,
    width_shown,
)
from unweave.methods.smooth.jet_profiles import fit_jet_profiles, jet_samples
from unweave.methods.smooth.random_slice import FEWEST_SITES, most_units
from unweave.networks.activations import Activation
from unweave.networks.parameters import NetworkParameters
from unweave.search.journal import Journal
from unweave.subspace.collector import RankOneDirections
from unweave.subspace.hessian_span import CLEAR_GAP, HessianSpan, hessian_span
from unweave.subspace.power_method import PowerMethodOptions
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing

HINT_OF_GAP = 5.0
"""Ratio of singular values from which on the end of a spectrum is worth looking at."""

_HINT_IF_TOLD = 1.5  # the same where the width is known
_CORRECTIONS = 4
_POOR_PROFILE = 0.1  # relative misfit of a profile that predicts nothing
_SPARE_MEMBERS = 2  # beyond the rank, so that its end is seen


@dataclass(frozen=True)
class Lattice:
    """How the jets were taken: the step in their coordinates, and whether on both sides."""

    step: float
    mirrored: bool


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


def lattice_span(jets: LatticeJets, width: int | None) -> LatticeSpan | None:
    """The span of ``jets``, or None if it has no end, or beyond what so many directions can show."""
    members = jets.members()
    span = hessian_span(members)
    rank, gap = width_shown(span, width)
    if gap < HINT_OF_GAP and width is not None and span.gap(width) >= _HINT_IF_TOLD:
        rank, gap = width, span.gap(width)
    enough = len(members) >= rank + _SPARE_MEMBERS and len(jets) >= FEWEST_SITES
    if (
        gap < (HINT_OF_GAP if rank != width else _HINT_IF_TOLD)
        or rank > most_units(jets.sites.shape[1])
        or not enough
    ):
        return None
    return LatticeSpan(jets, span, rank, gap)


class LatticeDirections:
    """Looks for the rank-one members of spans."""

    def __init__(
        self,
        width: int | None,
        journal: Journal,
        rng: np.random.Generator,
        options: PowerMethodOptions | None = None,
        executor: Executor | None = None,
    ) -> None:
        self._width, self._journal, self._rng = width, journal, rng
        self._options, self._executor = options, executor

    def find(self, seen: LatticeSpan, known: Array | None = None) -> RankOneDirections:
        """Members of the span, besides the ``known`` ones; there may be fewer than its dimension."""
        options = self._options or PowerMethodOptions()
        found = self._search(seen, options, known)
        if len(found) < seen.rank and self._options is None:
            # Weak units lie farther from the span than most, but still within its own error.
            loose = replace(options, min_objective=1 - acceptance_threshold(seen.gap))
            more = self._search(seen, loose, found.directions)
            found = replace(more, restarts=found.restarts + more.restarts)
        return found

    def _search(
        self, seen: LatticeSpan, options: PowerMethodOptions, known: Array | None
    ) -> RankOneDirections:
        return find_directions(
            seen.span, seen.rank, seen.dimension, self._journal, self._rng, options, known, self._executor
        )

    def sharpened(
        self, seen: LatticeSpan, found: RankOneDirections, activation: Activation, lattice: Lattice
    ) -> tuple[LatticeSpan, RankOneDirections]:
        """Span and members without the truncation that units along ``found`` predict.

        What does not get clearer is left as it is.
        """
        best, rows = seen, found
        for _ in range(_CORRECTIONS):
            samples = jet_samples(rows.directions, seen.jets.sites, best.jets.hessians, best.jets.thirds)
            profiles = fit_jet_profiles(samples, activation)
            predicting = profiles.residuals <= _POOR_PROFILE
            if not predicting.any():
                break
            model = model_of(rows.directions, profiles, activation).keep(predicting)
            corrected = self.corrected(seen.jets, model, lattice)
            if corrected is None or corrected.gap <= best.gap or corrected.rank < best.rank:
                break
            best, rows = corrected, self._moved(corrected, rows.directions)
        return best, rows

    def completed(
        self, jets: LatticeJets, model: NetworkParameters, lattice: Lattice
    ) -> tuple[LatticeSpan, RankOneDirections] | None:
        """Span and members without the truncation of a ``model`` that lacks units; None if none show."""
        cleared = without_lattice_truncation(jets, model, lattice.step, lattice.mirrored)
        span = hessian_span(cleared.members())
        # Below the units there is only rounding now, without gaps of its own: the last gap is their number,
        # even if a larger one parts the strong from the weak.
        most = min(most_units(jets.sites.shape[1]), len(span.singular_values) - _SPARE_MEMBERS)
        ranks = [rank for rank in range(model.width + 1, most + 1) if span.gap(rank) >= CLEAR_GAP]
        if not ranks:
            return None
        corrected = LatticeSpan(cleared, span, ranks[-1], span.gap(ranks[-1]))
        directions = (model.weights[0] / np.linalg.norm(model.weights[0], axis=0)).T
        return corrected, self._moved(corrected, directions)

    def corrected(self, jets: LatticeJets, model: NetworkParameters, lattice: Lattice) -> LatticeSpan | None:
        """The span of ``jets`` without the truncation of ``model``."""
        return lattice_span(
            without_lattice_truncation(jets, model, lattice.step, lattice.mirrored), self._width
        )

    def _moved(self, seen: LatticeSpan, directions: Array) -> RankOneDirections:
        """Known directions moved into a better span, and those found there besides."""
        refined = refine_directions(seen.span, seen.rank, directions, seen.dimension)
        distances = members_space(seen).misalignment(refined)
        return self.find(seen, refined[distances <= acceptance_threshold(seen.gap)])


def members_space(seen: LatticeSpan) -> RankOneSpace:
    """The span as a subspace of Sym(d)."""
    return RankOneSpace(seen.span.basis(seen.rank), symmetric_packing(seen.dimension))
