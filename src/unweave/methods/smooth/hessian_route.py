"""From answers to the neurons' directions: Hessians until their span ends, then its rank-one members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.jet_sources import JetSource
from unweave.derivatives.stencils import Jets
from unweave.execution.executor import Executor
from unweave.search.journal import Journal
from unweave.subspace.collector import RankOneDirections
from unweave.subspace.hessian_span import CLEAR_GAP, HessianSpan, hessian_span
from unweave.subspace.power_method import (
    ROUNDING_MISALIGNMENT,
    PowerMethodOptions,
    newton_ascent,
    subspace_power_method,
)
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing

SURPLUS = 1.15
"""Hessians per neuron: at 1.0 the span is just reached, from 1.1 on its smallest singular value is good."""

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
    """Add Hessians until a gap in their spectrum shows the width, with ``SURPLUS`` Hessians per neuron.

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
        on_round=lambda found, wanted, _: journal.tell(found, wanted, "neurons"),
        executor=executor,
    )


def refine_directions(span: HessianSpan, rank: int, directions: Array, d: int) -> Array:
    """Move known directions to the maximisers of Phi in a corrected span, by Newton."""
    space = RankOneSpace(span.basis(rank), symmetric_packing(d))
    refined: Array = newton_ascent(space, directions, steps=6, tolerance=1e-14)
    return refined
