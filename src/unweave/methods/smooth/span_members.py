"""Rank-one members of a span of Hessians: the units' directions.

Hessians of a sum of units lie in span{w_k w_k^T}. Its members of rank one are the w_k w_k^T themselves.
Phi(u) is the squared length of the projection of u u^T onto the span: 1 at a unit's direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.execution.executor import Executor
from unweave.search import Journal
from unweave.subspace.collector import RankOneDirections
from unweave.subspace.hessian_span import CLEAR_GAP, HessianSpan
from unweave.subspace.power_method import (
    ROUNDING_MISALIGNMENT,
    PowerMethodOptions,
    newton_ascent,
    subspace_power_method,
)
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing


@dataclass(frozen=True, kw_only=True)
class MemberOptions:
    """Which directions count as members of a span."""

    power_method: PowerMethodOptions | None = None
    """Search for the members; None for the usual one."""
    accepted_error: float = 10.0
    """Largest 1 - Phi of a direction, in squared errors of the span: 1 / gap estimates its error."""
    largest_misalignment: float = 0.1
    """Largest 1 - Phi of a direction, however large the error of the span is."""
    newton_steps: int = 6
    """Newton steps that move known directions into a corrected span."""
    newton_tolerance: float = 1e-14
    """Movement of a direction at which these steps end."""

    def threshold(self, gap: float) -> float:
        """Return the largest 1 - Phi of a true direction in a span whose error is estimated by 1 / gap."""
        return max(ROUNDING_MISALIGNMENT, min(self.largest_misalignment, self.accepted_error / gap**2))


@dataclass(frozen=True, eq=False)
class MemberFinder:
    """Finds the members of spans and moves known ones into better spans."""

    options: MemberOptions
    journal: Journal
    rng: np.random.Generator
    executor: Executor | None = None

    def find(
        self,
        span: HessianSpan,
        rank: int,
        d: int,
        power_method: PowerMethodOptions,
        known: Array | None = None,
    ) -> RankOneDirections:
        """Find the members of the span of dimension ``rank``, or those besides the ``known`` ones (m, d)."""
        return subspace_power_method(
            space_of(span, rank, d),
            self.rng,
            self.options.threshold(span.gap(rank)),
            power_method,
            known=known,
            on_round=lambda found, wanted, _: self.journal.tell(found, wanted, "units"),
            executor=self.executor,
        )

    def move(self, span: HessianSpan, rank: int, directions: Array, d: int) -> Array:
        """Move directions (m, d) to the maximizers of Phi in another span, by Newton's method."""
        options = self.options
        moved: Array = newton_ascent(
            space_of(span, rank, d),
            directions,
            steps=options.newton_steps,
            tolerance=options.newton_tolerance,
        )
        return moved


def space_of(span: HessianSpan, rank: int, d: int) -> RankOneSpace:
    """Return the leading ``rank`` dimensions of ``span`` as a subspace of Sym(d)."""
    return RankOneSpace(span.basis(rank), symmetric_packing(d))


def width_shown(span: HessianSpan, width: int | None) -> tuple[int, float]:
    """Return the width that the spectrum shows, and its gap; a width that was given only has to be clear."""
    if width is not None and width < len(span.singular_values) and span.gap(width) >= CLEAR_GAP:
        return width, span.gap(width)
    return span.clearest_rank()
