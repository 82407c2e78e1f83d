"""Hessians behind the last transformation, when it is not known which one that is.

For a wrong inverse what is left is some T(f), whose Hessians T' Hess f + T'' grad f grad f^T fill the space;
for the right one they span as many dimensions as there are units. So all links that the answers' range
allows are undone on the same rows, and the one that shows the fewest units is taken.

An error sigma of a probability p_k is one of sigma / p_k in log p_k. So behind a softmax of rounded or noisy
probabilities only the likely classes are seen, and of them only differences: at each site the contrast

    log p_i - log p_j = sum_m (a_mi - a_mj) g(w_m . x + b_m) + const        (i, j its two likeliest classes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.coarse_answers.rows import AnsweredRows
from unweave.methods.smooth_coarse.noisy_hessians import (
    NoisySpan,
    RotatedHessians,
    noisy_span,
    random_rotations,
    rotated_hessians,
)
from unweave.networks.activations import SOFTMAX
from unweave.networks.links import Link
from unweave.numerics.clock import check
from unweave.numerics.memory import require
from unweave.subspace.symmetric import symmetric_packing

_COPIES_OF_HESSIANS = 8  # of rotations, rows and second differences, each more than once


@dataclass(frozen=True, kw_only=True)
class SiteOptions:
    """At how many sites Hessians are taken, and where."""

    first: int = 12
    """Sites of the first look."""
    clear_gap: float = 1.3
    """Ratio of the weakest unit's singular value to the noise that makes more sites unnecessary."""
    factor_for_clarity: float = 2.0
    """Factor on the number of Hessians where the weakest unit is not seen that clearly."""
    growth: float = 1.3
    """Ratio of successive numbers of sites where these show as many units as they can."""
    all_seen_share: float = 0.9
    """Width over the number of Hessians beyond which the width may be larger still."""
    most: float = 1.2
    """Most Hessians, over the dimension of all symmetric matrices."""
    ruled_out_ratio: float = 1.3
    """A link is wrong that shows more units than this times those of another ..."""
    ruled_out_more: int = 2
    """... and this many."""
    drawn_per_site: int = 4
    """Rows asked per site that is wanted, where the link must not be saturated."""
    draws: int = 8
    """Attempts to find such sites."""
    near_draw: int = 4
    """Number of attempts before sites are drawn nearer to the center ..."""
    nearer: float = 0.5
    """... by this factor, because most of the region is saturated."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Hessians behind a link and the directions they span."""

    link: Link
    taken: RotatedHessians
    span: NoisySpan
    weights: Array
    """(K,) of the outputs in the span: one over their noise where that is the same everywhere"""


class HessiansBehindLinks:
    """Hessians taken so far, behind each link that is possible; all links see the same rows."""

    def __init__(
        self,
        rows: AnsweredRows,
        links: list[Link],
        rng: np.random.Generator,
        tell: Callable[[int], None],
        options: SiteOptions | None = None,
    ) -> None:
        self._options = options or SiteOptions()
        self._rows, self._links, self._rng, self._tell = rows, links, rng, tell
        self._taken: dict[str, list[RotatedHessians]] = {}

    def behind(self, link: Link) -> Callable[[Array], Array]:
        """Return the target without ``link``: (n, D) -> (n, K)."""
        return lambda points: link.undo(self._rows.view(points), self._rows.largest_sigma)

    def sites(self, count: int, margin: float, links: list[Link]) -> Array:
        """Draw ``count`` sites (count, D) with stencils in the box, where none of ``links`` is saturated."""
        region, rng, options = self._rows.region, self._rng, self._options
        saturating = [link for link in links if link.name != "identity"]
        if not saturating:
            return region.sample(count, rng, margin=margin)
        found: list[Array] = []
        have = 0
        for attempt in range(options.draws):
            drawn = region.sample(options.drawn_per_site * (count - have), rng, margin=margin)
            if attempt >= options.near_draw:
                drawn *= options.nearer
            answers = self._rows.view(drawn)
            well = np.all([link.sees_well(answers) for link in saturating], axis=0)
            found.append(drawn[well][: count - have])
            have += len(found[-1])
            if have == count:
                break
        if have < count:
            found.append(region.sample(count - have, rng, margin=margin))
        return np.concatenate(found)

    def sample(self, radius: float, surplus: float, told: int | None, known: int) -> Seen:
        """Take Hessians until their spectrum shows all units, behind the link that shows the fewest.

        At least ``surplus`` Hessians are taken per unit. ``told`` is the width that the caller gives, or
        None; ``known`` is the least number of units. Sites of earlier calls are kept.
        Cost: 2 D^2 + 1 rows per site, and those asked to find sites.
        """
        options, per_site = self._options, self._columns_per_site(self._links[-1])
        count = sum(len(part) for part in self._taken.get(self._links[0].name, []))
        goal = max(options.first, count + 1, int(np.ceil(surplus * known / per_site)))
        full = symmetric_packing(self._rows.n_inputs).size
        most = int(np.ceil(options.most * full / per_site)) + options.first
        while True:
            check()
            self._take(self.sites(goal - count, radius, self._links), radius)
            self._tell(goal)
            count = goal
            seen = [self._seen(link) for link in self._links]
            best = min(seen, key=self._preference)
            shown = max(best.span.width, told or 0)
            columns = count * per_site
            enough = columns >= surplus * shown + 2
            clear = (
                best.span.gap >= options.clear_gap or columns >= options.factor_for_clarity * surplus * shown
            )
            if (enough and clear and best.span.width > 0) or count >= most:
                return best
            # For good: with fewer sites than the others a wrong link would show fewer units.
            widest = options.ruled_out_ratio * best.span.width + options.ruled_out_more
            self._links = [each.link for each in seen if each.span.width <= widest]
            wanted = int(np.ceil((surplus * shown + 3) / per_site))
            if wanted <= count or shown > options.all_seen_share * columns:
                wanted = max(
                    wanted, int(np.ceil(options.growth * count))
                )  # more than these Hessians can show
            goal = min(wanted, most)

    def _take(self, sites: Array, radius: float) -> None:
        """Take Hessians at ``sites`` behind all links."""
        require(_COPIES_OF_HESSIANS * len(sites) * self._rows.n_inputs**2, "Hessians in all inputs")
        rotations = random_rotations(len(sites), self._rows.n_inputs, self._rng)
        for link in self._links:
            taken = rotated_hessians(self.behind(link), sites, radius, rotations)
            if self._sees_contrasts(link):
                taken = likeliest_contrasts(taken, self._rows.view(sites))
            self._taken.setdefault(link.name, []).append(taken)

    def _seen(self, link: Link) -> Seen:
        taken = RotatedHessians.concatenate(self._taken[link.name])
        weights = 1 / self._rows.sigma if link.name == "identity" else np.ones(taken.hessians.shape[1])
        return Seen(link, taken, noisy_span(taken, weights), weights)

    def _preference(self, seen: Seen) -> tuple[int, bool]:
        """The fewest units first; of as many, those behind a link where precise answers have none to see.

        One unit is one direction behind any link. Without a link, other methods see more of precise answers,
        and they have not found it.
        """
        precise = self._rows.noise.kind == "float64"
        return seen.span.width, precise and seen.link.name == "identity"

    def _columns_per_site(self, link: Link) -> int:
        if self._sees_contrasts(link):
            return 1
        return max(1, self._rows.n_outputs - (link.name == SOFTMAX))

    def _sees_contrasts(self, link: Link) -> bool:
        """Return whether only likely classes are seen: floating-point probabilities are precise in all."""
        return link.name == SOFTMAX and self._rows.noise.kind in ("rounded", "noisy")


def likeliest_contrasts(taken: RotatedHessians, probabilities: Array) -> RotatedHessians:
    """Return the Hessians (n, 1, p) of the contrast of each site's two likeliest classes, with its selector.

    ``taken`` holds those of the logs of all classes (any multiple of one added), ``probabilities`` (n, K) the
    answers at the sites.
    """
    order = np.argsort(probabilities, axis=1)
    rows = np.arange(len(order))
    selectors = np.zeros_like(probabilities)
    selectors[rows, order[:, -1]] = 1.0
    selectors[rows, order[:, -2]] = -1.0
    return replace(
        taken,
        hessians=np.einsum("nk,nkp->np", selectors, taken.hessians)[:, None],
        errors=np.einsum("nk,nkp->np", selectors, taken.errors)[:, None],
        selectors=selectors,
    )
