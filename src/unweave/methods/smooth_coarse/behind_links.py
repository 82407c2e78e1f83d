"""Hessians behind the last transformation, when it is not known which one that is.

For a wrong inverse what is left is some T(f), whose Hessians T' Hess f + T'' grad f grad f^T fill the space;
for the right one they span as many dimensions as there are neurons. So all links that the answers' range
allows are undone on the same rows, and the one that shows the fewest neurons is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.coarse_answers.rows import AnsweredRows
from unweave.methods.smooth_coarse.contrasts import likeliest_contrasts
from unweave.methods.smooth_coarse.rotated_hessians import RotatedHessians, random_rotations, rotated_hessians
from unweave.methods.smooth_coarse.width import NoisySpan, noisy_span
from unweave.networks.activations import SOFTMAX
from unweave.networks.links import Link
from unweave.subspace.symmetric import symmetric_packing

_FIRST_SITES = 12
_WELL_SEEN = 1.3  # singular value of the weakest neuron over the noise from which more sites are not needed
_FOR_CLARITY = 2.0  # times these Hessians are taken if the weakest neuron is not well seen
_GROWTH = 1.3
_ALL_SEEN = 0.9  # of the Hessians: a width beyond may be larger still
_MOST_SITES = 1.2  # times the dimension of all symmetric matrices
_RULED_OUT = (1.3, 2)  # a link that shows so many times, and so many, more neurons than another is wrong
_SITES_DRAWN = 4  # rows asked per site that is wanted, where the link must not be saturated
_DRAWS, _NEARER_FROM, _NEARER = 8, 4, 0.5  # attempts at that; from the fifth on nearer to the centre


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
        self, rows: AnsweredRows, links: list[Link], rng: np.random.Generator, tell: Callable[[int], None]
    ) -> None:
        self._rows, self._links, self._rng, self._tell = rows, links, rng, tell
        self._taken: dict[str, list[RotatedHessians]] = {}

    def behind(self, link: Link) -> Callable[[Array], Array]:
        """The target without ``link``: (n, D) -> (n, K)."""
        return lambda points: link.undo(self._rows.view(points), self._rows.largest_sigma)

    def sites(self, count: int, margin: float, links: list[Link]) -> Array:
        """``count`` sites (count, D) whose stencils stay in the box, where none of ``links`` is saturated."""
        region, rng = self._rows.region, self._rng
        saturating = [link for link in links if link.name != "identity"]
        if not saturating:
            return region.sample(count, rng, margin=margin)
        found: list[Array] = []
        have = 0
        for attempt in range(_DRAWS):
            drawn = region.sample(_SITES_DRAWN * (count - have), rng, margin=margin)
            if attempt >= _NEARER_FROM:
                drawn *= _NEARER  # most of the region is saturated
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
        """Sites until the spectrum shows all neurons, behind the link that shows the fewest.

        ``surplus`` Hessians per neuron at least, of which there are ``told`` if not None, and ``known`` at
        least; those of earlier calls are kept. Cost: 2 D^2 + 1 rows per site, and those asked to find sites.
        """
        per_site = self._columns_per_site(self._links[-1])
        count = sum(len(part) for part in self._taken.get(self._links[0].name, []))
        goal = max(_FIRST_SITES, count + 1, int(np.ceil(surplus * known / per_site)))
        most = (
            int(np.ceil(_MOST_SITES * symmetric_packing(self._rows.n_inputs).size / per_site)) + _FIRST_SITES
        )
        while True:
            self._take(self.sites(goal - count, radius, self._links), radius)
            self._tell(goal)
            count = goal
            seen = [self._seen(link) for link in self._links]
            best = min(seen, key=lambda each: each.span.width)
            shown = max(best.span.width, told or 0)
            columns = count * per_site
            enough = columns >= surplus * shown + 2
            clear = best.span.gap >= _WELL_SEEN or columns >= _FOR_CLARITY * surplus * shown
            if (enough and clear and best.span.width > 0) or count >= most:
                return best
            factor, more = _RULED_OUT
            # For good: with fewer sites than the others a wrong link would show fewer neurons.
            likely = [each.link for each in seen if each.span.width <= factor * best.span.width + more]
            self._links = likely
            wanted = int(np.ceil((surplus * shown + 3) / per_site))
            if wanted <= count or shown > _ALL_SEEN * columns:
                wanted = max(wanted, int(np.ceil(_GROWTH * count)))  # more than these Hessians can show
            goal = min(wanted, most)

    def _take(self, sites: Array, radius: float) -> None:
        """Hessians at ``sites`` behind all links."""
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

    def _columns_per_site(self, link: Link) -> int:
        if self._sees_contrasts(link):
            return 1
        return max(1, self._rows.n_outputs - (link.name == SOFTMAX))

    def _sees_contrasts(self, link: Link) -> bool:
        """Whether only the likely classes are seen: floating-point probabilities are precise in all."""
        return link.name == SOFTMAX and self._rows.noise.kind in ("rounded", "noisy")
