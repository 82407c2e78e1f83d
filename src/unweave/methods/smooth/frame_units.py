"""From the units' directions in a frame to a first network there.

One unit at a time: scale, bias and outgoing weights from its profile, for each possible activation. The
network predicts the truncation error of its own Hessians; with it removed, directions and units once more.

Directions do not depend on the activation, and neither do the samples of a unit's own profile. So when no
single activation explains all units, each can still be asked which one explains it: a layer that mixes them
is named, not fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.profiles.profiles import ProfileOptions, Profiles, fit_profiles
from unweave.methods.shared.profiles.unit_fits import (
    model_of,
    rank_activations,
    refit,
    typical_profile,
)
from unweave.methods.smooth.evidence import FoundSoFar
from unweave.methods.smooth.frame_directions import DirectionFinder, Directions, SampledSpan
from unweave.methods.smooth.frame_target import FrameTarget
from unweave.methods.smooth.span_members import MemberFinder, space_of, width_shown
from unweave.networks.activations import get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.subspace.hessian_span import CLEAR_GAP, hessian_span
from unweave.subspace.symmetric import rank_one_coefficients


@dataclass(frozen=True, kw_only=True)
class UnitOptions:
    """How the units' own profiles are sampled, fitted and corrected."""

    line_points: int = 17
    """Values on a line along which a single unit moves."""
    line_reach: float = 3.5
    """Reach of such a line, in standard deviations of u_k . x."""
    corrections: int = 4
    """Corrections for truncation at most."""
    settled: float = 1e-9
    """Change of the weights below which another correction is not worth its time."""
    explained: float = 0.02
    """Relative misfit of a profile that an activation explains, in a layer that mixes them."""
    clearly: float = 3.0
    """Factor by which the next best activation must be worse there."""
    named_share: float = 0.7
    """Share of the units that must be explained for a mixture to be named."""
    profiles: ProfileOptions = field(default_factory=ProfileOptions)


class ProfileSamples(NamedTuple):
    """Samples of the units' own profiles."""

    projections: Array
    """(n, m)"""
    samples: Array
    """(n, m, K)"""
    order: int
    """Of the derivative that was sampled."""


class UnitFitter:
    """Fits units along directions and writes to ``found`` the network they make."""

    def __init__(
        self,
        target: FrameTarget,
        width: int | None,
        activations: tuple[str, ...],
        directions: DirectionFinder,
        found: FoundSoFar,
        finder: MemberFinder,
        options: UnitOptions,
    ) -> None:
        self._target, self._width, self._names = target, width, activations
        self._directions, self._found, self._options = directions, found, options
        self._finder, self._journal, self._rng = finder, finder.journal, finder.rng

    def rank_activations(self, directions: Directions) -> tuple[ProfileSamples, list[str]]:
        """Sample the units' profiles and rank the activations by how well they explain them."""
        names = self._names
        with self._journal.stage("activation") as stage:
            profiles = self._profile_samples(directions)
            residuals = rank_activations(
                names,
                *profiles,
                self._rng,
                on_name=lambda done: self._journal.tell(done, len(names), "activations"),
                executor=self._finder.executor,
                options=self._options.profiles,
            )
            ranking = sorted(residuals, key=lambda name: residuals[name])
            stage.figures["best"] = ranking[0]
        self._found.note(activation_residuals=residuals)
        return profiles, ranking

    def fit(self, directions: Directions, samples: ProfileSamples, name: str) -> None:
        """Make the network of one activation; remove its truncation if the directions came from a span."""
        with self._journal.stage("units") as stage:
            activation = get_activation(name)
            profiles = fit_profiles(
                samples.projections,
                samples.samples,
                activation,
                samples.order,
                self._rng,
                self._options.profiles,
            )
            model = self._found.model = model_of(directions.rows, profiles, activation)
            stage.figures["residual"] = profiles.pooled_residual()
        self._note_profile(samples, profiles, model)
        if directions.sampled is not None:
            self._correct_truncation(model, directions.rows, directions.sampled, profiles)

    def _profile_samples(self, directions: Directions) -> ProfileSamples:
        if directions.sampled is None:
            return self._line_samples(directions.rows)
        jets = directions.sampled.jets
        assert jets.hessians is not None
        coefficients = rank_one_coefficients(directions.rows, jets.hessians)
        return ProfileSamples(jets.sites @ directions.rows.T, coefficients, 2)

    def _line_samples(self, rows: Array) -> ProfileSamples:
        """Ask values on lines through the center along which a single unit moves (the dual directions)."""
        duals = np.asarray(np.linalg.inv(rows).T, dtype=np.float64)
        count = self._options.line_points
        reach = self._target.longest_reach(duals, self._options.line_reach)
        t = reach * np.sin(np.linspace(-np.pi / 2, np.pi / 2, count))
        points = (t[:, None, None] * duals).reshape(-1, duals.shape[1])
        samples = self._target.ask(points).reshape(count, len(duals), -1)
        return ProfileSamples(np.broadcast_to(t[:, None], samples.shape[:2]), samples, 0)

    def _note_profile(self, samples: ProfileSamples, profiles: Profiles, model: NetworkParameters) -> None:
        example = typical_profile(
            samples.projections, samples.samples, profiles, model.activation, samples.order
        )
        self._found.note(**example)

    def _correct_truncation(
        self, model: NetworkParameters, rows: Array, sampled: SampledSpan, profiles: Profiles
    ) -> None:
        """Refine directions and units on Hessians less their predicted truncation.

        Weak units that the truncation had hidden come out of the corrected spectrum and are added.
        """
        assert sampled.jets.hessians is not None
        options = self._options
        d, rank, jets, source = self._target.dimension, sampled.rank, sampled.jets, self._target.source
        with self._journal.stage("refinement" if source.exact else "truncation") as stage:
            for done in range(options.corrections):
                corrected = sampled.jets.hessians - source.hessian_truncation(model, jets)
                span = hessian_span(corrected.reshape(-1, corrected.shape[2]))
                seen, gap = width_shown(span, self._width)
                if gap >= CLEAR_GAP and rank < seen <= d * (d - 1) // 2:
                    rank = seen
                rows = self._finder.move(span, rank, rows, d)
                if len(rows) < rank:
                    rows = self._directions.search(span, rank, rows)
                samples = ProfileSamples(jets.sites @ rows.T, rank_one_coefficients(rows, corrected), 2)
                profiles = refit(*samples[:2], model.activation, profiles, self._rng, options.profiles)
                previous, model = model, model_of(rows, profiles, model.activation)
                self._journal.tell(done + 1, options.corrections, "corrections")
                if previous.width == model.width:
                    change = float(np.abs(model.weights[0] - previous.weights[0]).max())
                    stage.figures["change"] = change
                    if change < options.settled:
                        break
            rates = space_of(span, rank, d).contraction_rates(rows)
            stage.figures.update(width=rank, gap=span.gap(rank), residual=profiles.pooled_residual())
            stage.figures["slowest rate"] = float(rates.max())
        self._found.model = model
        self._note_profile(samples, profiles, model)
        self._found.note(
            width=rank,
            found=len(rows),
            gap=span.gap(rank),
            spectrum=span.singular_values,
            rates=rates,
        )


def activations_seen(
    names: tuple[str, ...], profiles: ProfileSamples, rng: np.random.Generator, options: UnitOptions
) -> dict[str, int]:
    """Count the units that each activation explains best, and clearly; leave out those that none explains.

    Example: ``{"tanh": 6, "sine": 6}`` for a layer of twelve that mixes two kinds.
    """
    projections, samples, order = profiles
    fits = (
        fit_profiles(projections, samples, get_activation(name), order, rng, options.profiles)
        for name in names
    )
    residuals = np.stack([fit.residuals for fit in fits])
    sorted_residuals = np.sort(residuals, axis=0)
    clear = sorted_residuals[0] <= options.explained
    if len(names) > 1:
        clear &= sorted_residuals[1] > options.clearly * sorted_residuals[0]
    best = np.argmin(residuals, axis=0)[clear]
    counts = {name: int(np.sum(best == i)) for i, name in enumerate(names)}
    return {name: count for name, count in counts.items() if count}
