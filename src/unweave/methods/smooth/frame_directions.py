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
from unweave.execution.executor import Executor
from unweave.methods.smooth.evidence import FoundSoFar, SmoothReason
from unweave.methods.smooth.frame_target import FrameTarget
from unweave.methods.smooth.options import SmoothOptions
from unweave.search import GaveUp, Journal, Request
from unweave.subspace.collector import RankOneDirections
from unweave.subspace.hessian_span import CLEAR_GAP, HessianSpan, hessian_span
from unweave.subspace.joint_diagonal import jointly_diagonalise
from unweave.subspace.power_method import (
    ROUNDING_MISALIGNMENT,
    PowerMethodOptions,
    newton_ascent,
    subspace_power_method,
)
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing

SURPLUS = 1.15
"""Hessians per unit: at 1.0 the span is just reached, from 1.1 on its smallest singular value is good."""

_GROWTH = 1.1  # sites are added in these proportions while the width is not yet seen
_SITES_PER_CALL = 64  # so that progress is seen and a deadline is met
_SAFETY = 10.0  # of the squared subspace error, for accepting a direction


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
    ) -> None:
        self._source = source
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
            self.count += batch
            self._journal.tell(self.count, expected or sites, "Hessians")

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
        """(N K, p) packed Hessians of all outputs."""
        hessians = self.jets.hessians
        assert hessians is not None
        return hessians.reshape(-1, hessians.shape[2])


def sample_until_span_ends(sampler: HessianSampler, outputs: int, d: int, width: int | None) -> SampledSpan:
    """Add Hessians until a gap in their spectrum shows the width, with ``SURPLUS`` Hessians per unit.

    Without a gap after enough Hessians to fill Sym(d) the span is returned with the gap it has.
    """
    full = symmetric_packing(d).size
    fewest = sampler.fewest_sites
    most = max(fewest, int(np.ceil(SURPLUS * full / outputs)) + 2)
    goal = fewest if width is None else max(fewest, int(np.ceil(SURPLUS * width / outputs)))
    while True:
        sampler.extend_to(min(goal, most), None if width is None else goal)
        span = hessian_span(sampler.columns(), sampler.truncation)
        rank, gap = width_shown(span, width)
        if gap >= CLEAR_GAP:
            enough = int(np.ceil(SURPLUS * rank / outputs))
            if sampler.count >= min(enough, most):
                return SampledSpan(sampler.jets, span, rank, gap)
            goal = enough
        elif sampler.count >= most:
            return SampledSpan(sampler.jets, span, rank, gap)
        else:
            goal = max(sampler.count + 2, int(np.ceil(_GROWTH * sampler.count)))


def width_shown(span: HessianSpan, width: int | None) -> tuple[int, float]:
    """The width that the spectrum shows, and its gap; a width that was given only has to be clear."""
    if width is not None and width < len(span.singular_values) and span.gap(width) >= CLEAR_GAP:
        return width, span.gap(width)
    return span.clearest_rank()


def acceptance_threshold(gap: float) -> float:
    """Largest 1 - Phi of a true direction in a span whose error is estimated by 1/gap."""
    return max(ROUNDING_MISALIGNMENT, min(0.1, _SAFETY / gap**2))


def find_directions(
    span: HessianSpan,
    rank: int,
    d: int,
    journal: Journal,
    rng: np.random.Generator,
    options: PowerMethodOptions,
    known: Array | None = None,
    executor: Executor | None = None,
) -> RankOneDirections:
    """The rank-one members of the span of dimension ``rank``, or those besides the ``known`` ones."""
    space = RankOneSpace(span.basis(rank), symmetric_packing(d))
    return subspace_power_method(
        space,
        rng,
        acceptance_threshold(span.gap(rank)),
        options,
        known=known,
        on_round=lambda found, wanted, _: journal.tell(found, wanted, "units"),
        executor=executor,
    )


def refine_directions(span: HessianSpan, rank: int, directions: Array, d: int) -> Array:
    """Move known directions to the maximisers of Phi in a corrected span, by Newton."""
    space = RankOneSpace(span.basis(rank), symmetric_packing(d))
    refined: Array = newton_ascent(space, directions, steps=6, tolerance=1e-14)
    return refined


_PENCIL_HESSIANS = 3
_PENCIL_HESSIANS_SMALL = 6  # in few dimensions three matrices are easily diagonalised by accident
_SMALL_DIMENSION = 8
_PENCIL_RESIDUAL = 0.03  # above it there are more units than dimensions: then it is of order one
_SAME_DIRECTION = 1e-8  # 1 - |cos| of directions that are one
_LARGE = 400  # units from which the power steps run in single precision


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
        request: Request,
        options: SmoothOptions,
        found: FoundSoFar,
        journal: Journal,
        rng: np.random.Generator,
        executor: Executor | None,
    ) -> None:
        self._target, self._found = target, found
        self._width, self._power_method = request.width, options.power_method
        self._journal, self._rng, self._executor = journal, rng, executor
        self._sampler = HessianSampler(target.source, target.sample, journal)

    @property
    def jets(self) -> Jets:
        """All Hessians so far."""
        return self._sampler.jets

    def by_pencils(self) -> Directions | None:
        """As many units as dimensions: their directions from a few Hessians, or None if there are more."""
        d, width = self._target.dimension, self._width
        if width is not None and width > d and not self._target.reduced:
            return None
        with self._journal.stage("pencils") as stage:
            self._sampler.extend_to(_PENCIL_HESSIANS_SMALL if d <= _SMALL_DIMENSION else _PENCIL_HESSIANS)
            pencil = jointly_diagonalise(self._sampler.columns(), d, self._rng)
            if pencil is None:
                stage.figures["result"] = "more units than dimensions"
                return None
            stage.figures["residual"] = pencil.residual
        if pencil.residual > _PENCIL_RESIDUAL:
            return None
        hessians = self._sampler.count * self._target.outputs
        self._found.note(width=d, found=d, hessians=hessians)
        return Directions(pencil.directions, None)

    def by_span(self) -> Directions:
        """More units than dimensions: the rank-one members of the span of many Hessians."""
        d = self._target.dimension
        with self._journal.stage("Hessians") as stage:
            sampled = sample_until_span_ends(self._sampler, self._target.outputs, d, self._width)
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
        """Directions (m, d) in the span: the known ones, in their order, and those that are found besides."""
        options = self._power_method or PowerMethodOptions(single_precision=rank >= _LARGE)
        d = self._target.dimension
        result = find_directions(span, rank, d, self._journal, self._rng, options, known, self._executor)
        self._found.note(
            found=len(result),
            restarts=self._found.evidence.restarts + result.restarts,
            misalignment=result.misalignment,
            rejected=result.rejected,
        )
        if known is None:
            return result.directions
        new = np.abs(result.directions @ known.T).max(axis=1) < 1 - _SAME_DIRECTION
        return np.concatenate([known, result.directions[new]])
