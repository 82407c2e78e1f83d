"""The neurons' directions in a frame, from Hessians there.

As many neurons as dimensions: matrix pencils on a handful of Hessians. More: the span of about 1.15 m of them
and its rank-one members.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.stencils import Jets
from unweave.execution.executor import Executor
from unweave.methods.smooth.found_so_far import FoundSoFar
from unweave.methods.smooth.frame_target import FrameTarget
from unweave.methods.smooth.hessian_route import (
    HessianSampler,
    SampledSpan,
    find_directions,
    sample_until_span_ends,
)
from unweave.methods.smooth.options import SmoothOptions
from unweave.methods.smooth.reasons import SmoothReason
from unweave.search import GaveUp, Journal, Request
from unweave.subspace.hessian_span import CLEAR_GAP, HessianSpan
from unweave.subspace.joint_diagonal import jointly_diagonalise
from unweave.subspace.power_method import PowerMethodOptions

_PENCIL_HESSIANS = 3
_PENCIL_HESSIANS_SMALL = 6  # in few dimensions three matrices are easily diagonalised by accident
_SMALL_DIMENSION = 8
_PENCIL_RESIDUAL = 0.03  # above it there are more neurons than dimensions: then it is of order one
_SAME_DIRECTION = 1e-8  # 1 - |cos| of directions that are one
_LARGE = 400  # neurons from which the power steps run in single precision


@dataclass(frozen=True, eq=False)
class Directions:
    """Unit directions of the neurons in the frame, rows (m, d)."""

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
        """As many neurons as dimensions: their directions from a few Hessians, or None if there are more."""
        d, width = self._target.dimension, self._width
        if width is not None and width > d and not self._target.reduced:
            return None
        with self._journal.stage("pencils") as stage:
            self._sampler.extend_to(_PENCIL_HESSIANS_SMALL if d <= _SMALL_DIMENSION else _PENCIL_HESSIANS)
            pencil = jointly_diagonalise(self._sampler.columns(), d, self._rng)
            if pencil is None:
                stage.figures["result"] = "more neurons than dimensions"
                return None
            stage.figures["residual"] = pencil.residual
        if pencil.residual > _PENCIL_RESIDUAL:
            return None
        hessians = self._sampler.count * self._target.outputs
        self._found.note(width=d, found=d, hessians=hessians)
        return Directions(pencil.directions, None)

    def by_span(self) -> Directions:
        """More neurons than dimensions: the rank-one members of the span of many Hessians."""
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
