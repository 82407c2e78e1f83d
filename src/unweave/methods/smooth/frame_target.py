"""The target as a function of the coordinates of an active subspace, every output of unit spread.

Everything after the active subspace is known happens in these coordinates: v -> f(E v) with an orthonormal
frame E (D, d) is a network with weights E^T w_k, exactly, whatever the error of E.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.derivatives.jet_sources import AutodiffJets, DifferenceJets, JetSource, difference_steps
from unweave.derivatives.stencils import Jets
from unweave.networks.parameters import NetworkParameters
from unweave.search.journal import Journal
from unweave.targets.placement import points_at_units
from unweave.targets.region import NormalisedQueries, Region

_SHRINK = 0.8  # factor by which points are drawn towards the centre until they lie in the box


class FrameTarget:
    """Answers, sites, gradients and Hessians in frame coordinates.

    ``noise`` is the answers' relative noise, which sets the steps of differences; ``autodiff`` takes the
    target's own derivatives instead.
    """

    def __init__(
        self,
        view: NormalisedQueries,
        region: Region,
        output_scale: Array,
        frame: Array,
        noise: float,
        journal: Journal,
        rng: np.random.Generator,
        autodiff: bool = False,
    ) -> None:
        self._view, self._region, self._scale = view, region, output_scale
        self._noise, self._journal, self._rng = noise, journal, rng
        self.frame = frame
        self.outputs = len(output_scale)
        self.source: JetSource
        """Where gradients and Hessians come from."""
        if autodiff:
            self.source = AutodiffJets(view, output_scale, frame)
        else:
            self.source = DifferenceJets(self.ask, difference_steps(noise, self.dimension))

    @property
    def dimension(self) -> int:
        """d"""
        return int(self.frame.shape[1])

    @property
    def reduced(self) -> bool:
        """Whether d < D."""
        return self.dimension < len(self.frame)

    def seen_through(self, frame: Array) -> FrameTarget:
        """The same target in another frame."""
        return FrameTarget(
            self._view,
            self._region,
            self._scale,
            frame,
            self._noise,
            self._journal,
            self._rng,
            autodiff=self.source.exact,
        )

    def ask(self, points: Array) -> Array:
        """Answers (n, K) at frame coordinates (n, d), in units of their spread."""
        inputs = points @ self.frame.T if self.reduced else points
        return self._view(inputs) / self._scale

    def sample(self, count: int, margin: float) -> Array:
        """Random sites (count, d) that stay inside the box, if there is one, when moved by ``margin``."""
        if not self.reduced:
            return self._region.sample(count, self._rng, margin=margin)
        if not self._region.has_box:
            return self._rng.standard_normal((count, self.dimension))
        sites = self._region.sample(count, self._rng, margin=margin) @ self.frame
        for _ in range(100):
            inside = self._stays_inside(sites, margin)
            if inside.all():
                break
            sites[~inside] *= _SHRINK
        return sites

    def _stays_inside(self, sites: Array, margin: float) -> BoolArray:
        inputs = sites @ self.frame.T
        reach = margin * np.sqrt(2) * np.sign(inputs)
        return self._region.contains(inputs + reach)

    def longest_reach(self, directions: Array, reach: float) -> float:
        """The part of ``reach`` that can be gone along every row of ``directions`` (n, d), both ways."""
        inputs = directions @ self.frame.T
        while not self._region.contains(np.concatenate([reach * inputs, -reach * inputs])).all():
            reach *= _SHRINK
        return reach

    def gradients(self, jets: Jets | None, goal: int) -> Jets:
        """``jets`` extended by gradients at random sites until there are ``goal`` of them."""
        missing = goal - (0 if jets is None else len(jets))
        if missing <= 0 and jets is not None:
            return jets
        new = self.source.gradients(self.sample(missing, self.source.gradient_reach))
        self._journal.tell(goal, None, "gradients")
        return new if jets is None else Jets.concatenate([jets, new])

    def gradients_at(self, model: NetworkParameters, neurons: IntArray) -> Jets:
        """Gradients at one site per neuron, where it acts; only in the full frame."""
        margin = self.source.gradient_reach
        sites = points_at_units(
            model.weights[0], model.biases[0], neurons, self._region, self._rng, margin=margin
        )
        return self.source.gradients(sites)
