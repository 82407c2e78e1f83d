"""The units' directions in a frame, from Hessians there.

As many units as dimensions: matrix pencils on a handful of Hessians. More: the span of about 1.15 m of them
and its rank-one members.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.jet_sources import JetSource
from unweave.derivatives.stencils import Jets
from unweave.methods.smooth.evidence import FoundSoFar, SmoothReason
from unweave.methods.smooth.frame_target import FrameTarget
from unweave.methods.smooth.span_members import MemberFinder, width_shown
from unweave.numerics.clock import check
from unweave.search import GaveUp, Journal
from unweave.subspace.hessian_span import CLEAR_GAP, HessianSpan, hessian_span
from unweave.subspace.joint_diagonal import jointly_diagonalise
from unweave.subspace.power_method import PowerMethodOptions
from unweave.subspace.symmetric import symmetric_packing

_SITES_PER_CALL = 64  # so that progress is seen and a deadline is met


@dataclass(frozen=True, kw_only=True)
class DirectionOptions:
    """How many Hessians are taken, and when pencils of a few of them are enough."""

    surplus: float = 1.15
    """Hessians per unit: at 1.0 they just reach the span, at 1.1 and above its smallest singular value is
    good.
    """
    growth: float = 1.1
    """Factor by which sites are added while the width is not yet seen."""
    pencil_hessians: int = 3
    """Hessians of a pencil."""
    small_dimension: int = 8
    """Dimension up to which three matrices are easily diagonalized by accident, ..."""
    small_pencil_hessians: int = 6
    """... and Hessians of a pencil there."""
    pencil_residual: float = 0.03
    """Largest residual of a pencil; with more units than dimensions it is of order one."""
    largest_between_kinks: float = 15.0
    """Norm of a Hessian over the median from which it has met a kink, where kinks are expected."""
    same_direction: float = 1e-8
    """Largest 1 - |cos| between two directions that are one."""


@dataclass(frozen=True, eq=False)
class SampledSpan:
    """Hessians at random sites and the span in which they lie."""

    jets: Jets
    span: HessianSpan
    rank: int
    gap: float


class HessianSampler:
    """Takes Hessians from ``source`` (normalised, d inputs) site by site and keeps them."""

    def __init__(
        self,
        source: JetSource,
        draw_sites: Callable[[int, float], Array],
        journal: Journal,
        largest: float = np.inf,
    ) -> None:
        self._source, self._largest = source, largest
        self._draw_sites = draw_sites
        self._journal = journal
        self._parts: list[Jets] = []
        self.count = 0

    def extend_to(self, sites: int, expected: int | None = None) -> None:
        """Take Hessians until there are ``sites`` of them."""
        while self.count < sites:
            batch = min(_SITES_PER_CALL, sites - self.count)
            points = self._draw_sites(batch, self._source.hessian_reach)
            self._parts.append(self._source.hessians(points))
            self._leave_out_large()
            self.count = sum(len(part) for part in self._parts)
            self._journal.tell(self.count, expected or sites, "Hessians")

    def _leave_out_large(self) -> None:
        """Leave out Hessians that are far larger than most: across a kink they grow as steps get shorter."""
        hessians = self.jets.hessians
        if not np.isfinite(self._largest) or hessians is None:
            return
        size = np.linalg.norm(hessians.reshape(len(hessians), -1), axis=1)
        self._parts = [self.jets.keep(size <= self._largest * np.median(size))]

    @property
    def jets(self) -> Jets:
        """All Hessians so far."""
        if len(self._parts) > 1:
            self._parts = [Jets.concatenate(self._parts)]
        return self._parts[0]

    @property
    def fewest_sites(self) -> int:
        """Hessians at least, whatever the width."""
        return self._source.fewest_sites

    @property
    def truncation(self) -> float:
        """Size of the truncation error relative to the Hessians, for weights of norm one."""
        return self._source.hessian_error(self._parts[0].sites.shape[1])

    def columns(self) -> Array:
        """Return the packed Hessians of all outputs, (N K, p)."""
        hessians = self.jets.hessians
        assert hessians is not None
        return hessians.reshape(-1, hessians.shape[2])


def sample_until_span_ends(
    sampler: HessianSampler, outputs: int, d: int, width: int | None, options: DirectionOptions
) -> SampledSpan:
    """Add Hessians until a gap in their spectrum shows the width.

    If Hessians that fill Sym(d) show no gap, the span is returned with the gap it has.
    """
    full = symmetric_packing(d).size
    fewest, surplus = sampler.fewest_sites, options.surplus
    most = max(fewest, int(np.ceil(surplus * full / outputs)) + 2)
    goal = fewest if width is None else max(fewest, int(np.ceil(surplus * width / outputs)))
    while True:
        check()
        sampler.extend_to(min(goal, most), None if width is None else goal)
        span = hessian_span(sampler.columns(), sampler.truncation)
        rank, gap = width_shown(span, width)
        if gap >= CLEAR_GAP:
            enough = int(np.ceil(surplus * rank / outputs))
            if sampler.count >= min(enough, most):
                return SampledSpan(sampler.jets, span, rank, gap)
            goal = enough
        elif sampler.count >= most:
            return SampledSpan(sampler.jets, span, rank, gap)
        else:
            goal = max(sampler.count + 2, int(np.ceil(options.growth * sampler.count)))


@dataclass(frozen=True, eq=False)
class Directions:
    """Unit directions of the units in the frame, rows (m, d)."""

    rows: Array
    sampled: SampledSpan | None
    """The Hessian span they came from; None if they came from a pencil."""


class DirectionFinder:
    """Finds directions in the frame of ``target`` and writes to ``found`` what it saw."""

    def __init__(
        self,
        target: FrameTarget,
        width: int | None,
        found: FoundSoFar,
        finder: MemberFinder,
        options: DirectionOptions,
    ) -> None:
        self._target, self._width, self._found = target, width, found
        self._finder, self._options, self._journal = finder, options, finder.journal
        largest = options.largest_between_kinks if target.between_kinks else np.inf
        self._sampler = HessianSampler(target.source, target.sample, self._journal, largest)

    @property
    def jets(self) -> Jets:
        """All Hessians so far."""
        return self._sampler.jets

    @property
    def largest_hessian(self) -> float:
        """Norm of the largest Hessian over that of the median one; 0 without Hessians."""
        if not self._sampler.count:
            return 0.0
        size = np.linalg.norm(self._sampler.columns(), axis=1)
        return float(size.max() / max(np.median(size), np.finfo(np.float64).tiny))

    def by_pencils(self) -> Directions | None:
        """Find as many units as dimensions from a few Hessians; None if there are more."""
        d, width, options = self._target.dimension, self._width, self._options
        if width is not None and width > d and not self._target.reduced:
            return None
        with self._journal.stage("pencils") as stage:
            small = d <= options.small_dimension
            self._sampler.extend_to(options.small_pencil_hessians if small else options.pencil_hessians)
            pencil = jointly_diagonalise(self._sampler.columns(), d, self._finder.rng)
            if pencil is None:
                stage.figures["result"] = "more units than dimensions"
                return None
            stage.figures["residual"] = pencil.residual
        if pencil.residual > options.pencil_residual:
            return None
        hessians = self._sampler.count * self._target.outputs
        self._found.note(width=d, found=d, hessians=hessians)
        return Directions(pencil.directions, None)

    def by_span(self) -> Directions:
        """Find more units than dimensions: the rank-one members of the span of many Hessians."""
        d = self._target.dimension
        with self._journal.stage("Hessians") as stage:
            sampled = sample_until_span_ends(
                self._sampler, self._target.outputs, d, self._width, self._options
            )
            stage.figures.update(sites=self._sampler.count, width=sampled.rank, gap=sampled.gap)
        if sampled.gap < CLEAR_GAP:
            if self._found.evidence.width is None:  # nothing better is known: show what was seen
                spectrum, columns = sampled.span.singular_values, sampled.span.columns
                self._found.note(spectrum=spectrum, hessians=columns)
            raise GaveUp(
                SmoothReason.NO_GAP,
                columns=sampled.span.columns,
                gap=sampled.gap,
                clear=CLEAR_GAP,
                most=d * (d - 1) // 2,
            )
        if sampled.rank > d * (d - 1) // 2:
            raise GaveUp(SmoothReason.TOO_WIDE, rank=sampled.rank, inputs=d, most=d * (d - 1) // 2)
        self._found.note(
            spectrum=sampled.span.singular_values,
            width=sampled.rank,
            gap=sampled.gap,
            hessians=sampled.span.columns,
        )
        with self._journal.stage("power method") as stage:
            rows = self.search(sampled.span, sampled.rank, None)
            stage.figures.update(found=len(rows), needed=sampled.rank, restarts=self._found.evidence.restarts)
        if len(rows) == 0:
            raise GaveUp(SmoothReason.NO_RANK_ONE_MEMBER, rank=sampled.rank)
        return Directions(rows, sampled)

    def search(self, span: HessianSpan, rank: int, known: Array | None) -> Array:
        """Return directions (m, d) in the span: the known ones, in their order, then those found besides."""
        power_method = self._finder.options.power_method or PowerMethodOptions()
        result = self._finder.find(span, rank, self._target.dimension, power_method, known)
        self._found.note(
            found=len(result),
            restarts=self._found.evidence.restarts + result.restarts,
            misalignment=result.misalignment,
            rejected=result.rejected,
        )
        if known is None:
            return result.directions
        new = np.abs(result.directions @ known.T).max(axis=1) < 1 - self._options.same_direction
        return np.concatenate([known, result.directions[new]])
