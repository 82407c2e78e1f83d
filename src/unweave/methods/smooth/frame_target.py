"""The target in the coordinates of an active subspace, and the way back to all inputs.

Once the active subspace is known, everything happens in its coordinates, with every output scaled to unit
spread: v -> f(E_0 v) with an orthonormal frame E_0 (D, d) is a network with weights E_0^T w_k, exactly,
whatever the error of E_0.

What is missing at the end is where in R^D the subspace really lies. The centered gradients span it up to the
truncation of their differences, which the network found so far predicts. With that removed, their leading
singular vectors E are exact up to rounding, and

    w_k = E (E_0^T E)^{-1} (E_0^T w_k).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.derivatives.jet_sources import AutodiffJets, DifferenceJets, JetSource, difference_steps
from unweave.derivatives.stencils import Jets
from unweave.derivatives.truncation import difference_gradients
from unweave.networks.parameters import NetworkParameters
from unweave.search.journal import Journal
from unweave.targets.placement import points_at_units
from unweave.targets.region import NormalisedQueries, Region

SHORT_STEPS = 0.1
"""Times the usual steps of Hessians: a tenth of the kinks are met, and rounding leaves six digits."""
_SHRINK_INTO_BOX = 0.8  # factor by which points and ways are shortened until they lie in the box


@dataclass(frozen=True, kw_only=True)
class LiftOptions:
    """How a network in a subspace is carried over to all inputs, and when that counts as failed."""

    rounds: int = 3
    """Times that the truncation is predicted and the subspace located again."""
    skip_seen: float = 1e-6
    """Skip outside the subspace, relative to the gradients: far above what rounding leaves."""
    as_good: float = 2.0
    """Residual of the gradients without a skip over that with one, up to which there is none."""
    residual_over_floor: float = 1e4
    """Residual of the gradients in all inputs, in multiples of their noise: far above what lifting loses,
    far below what a missing direction leaves.
    """


@dataclass(frozen=True, eq=False)
class FrameTarget:
    """Answers, sites, gradients and Hessians in frame coordinates."""

    view: NormalisedQueries
    region: Region
    output_scale: Array
    """(K,) spread of every output."""
    frame: Array | None
    """(D, d) with orthonormal columns; None for all inputs."""
    noise: float
    """Noise of the answers relative to their spread, which sets the steps of differences."""
    journal: Journal
    rng: np.random.Generator
    autodiff: bool = False
    """Whether to take the target's own derivatives instead."""
    between_kinks: bool = False
    """Whether Hessians are taken over short steps, and those that met a kink all the same are left out."""

    @cached_property
    def source(self) -> JetSource:
        """Where gradients and Hessians come from."""
        if self.autodiff:
            frame = np.eye(self.region.n_inputs) if self.frame is None else self.frame
            return AutodiffJets(self.view, self.output_scale, frame)
        steps = difference_steps(self.noise, self.dimension)
        if self.between_kinks:
            steps = replace(steps, hessian=SHORT_STEPS * steps.hessian)
        return DifferenceJets(self.ask, steps)

    @property
    def outputs(self) -> int:
        """K"""
        return len(self.output_scale)

    @property
    def dimension(self) -> int:
        """d"""
        return self.region.n_inputs if self.frame is None else int(self.frame.shape[1])

    @property
    def reduced(self) -> bool:
        """Whether d < D."""
        return self.frame is not None

    def seen_through(self, frame: Array | None) -> FrameTarget:
        """Return the same target in another frame."""
        return replace(self, frame=frame)

    def ask(self, points: Array) -> Array:
        """Ask for answers (n, K) at frame coordinates (n, d), in units of their spread."""
        inputs = points if self.frame is None else points @ self.frame.T
        return self.view(inputs) / self.output_scale

    def sample(self, count: int, margin: float) -> Array:
        """Draw sites (count, d) that stay inside the box, if there is one, when moved by ``margin``."""
        if self.frame is None:
            return self.region.sample(count, self.rng, margin=margin)
        if not self.region.has_box:
            return self.rng.standard_normal((count, self.dimension))
        sites = self.region.sample(count, self.rng, margin=margin) @ self.frame
        for _ in range(100):
            inside = self._stays_inside(sites @ self.frame.T, margin)
            if inside.all():
                break
            sites[~inside] *= _SHRINK_INTO_BOX
        return sites

    def _stays_inside(self, inputs: Array, margin: float) -> BoolArray:
        reach = margin * np.sqrt(2) * np.sign(inputs)
        return self.region.contains(inputs + reach)

    def longest_reach(self, directions: Array, reach: float) -> float:
        """Return the part of ``reach`` that stays inside along both ways of all ``directions`` (n, d)."""
        inputs = directions if self.frame is None else directions @ self.frame.T
        while not self.region.contains(np.concatenate([reach * inputs, -reach * inputs])).all():
            reach *= _SHRINK_INTO_BOX
        return reach

    def gradients(self, jets: Jets | None, goal: int) -> Jets:
        """Extend ``jets`` by gradients at random sites until there are ``goal`` of them."""
        missing = goal - (0 if jets is None else len(jets))
        if missing <= 0 and jets is not None:
            return jets
        new = self.source.gradients(self.sample(missing, self.source.gradient_reach))
        self.journal.tell(goal, None, "gradients")
        return new if jets is None else Jets.concatenate([jets, new])

    def gradients_at(self, model: NetworkParameters, units: IntArray) -> Jets:
        """Take gradients at one site per unit, where it acts; only in the full frame."""
        margin = self.source.gradient_reach
        sites = points_at_units(
            model.weights[0], model.biases[0], units, self.region, self.rng, margin=margin
        )
        return self.source.gradients(sites)


def lift(model: NetworkParameters, frame: Array, gradients: Jets, options: LiftOptions) -> NetworkParameters:
    """Carry ``model`` over to all D inputs, by ``gradients`` in all inputs that were taken anyway.

    Without a skip all of every gradient lies in the subspace, its mean too, which locates it best.
    """
    through, affine = (_lifted(model, frame, gradients, options, centred) for centred in (False, True))
    if model.skip is None and affine.skip is not None:
        left = [float(np.sqrt(np.mean(_unexplained(each, gradients) ** 2))) for each in (through, affine)]
        if left[0] <= options.as_good * left[1]:
            return replace(through, skip=None)
    return affine


def _lifted(
    model: NetworkParameters, frame: Array, gradients: Jets, options: LiftOptions, centred: bool
) -> NetworkParameters:
    """Locate the subspace by the gradients, or by how they vary, and what they show of a skip outside it."""
    d = frame.shape[1]
    weights = frame @ model.weights[0]
    for _ in range(options.rounds):
        lifted = replace(model, weights=(weights, model.weights[1]), skip=None)
        exact = gradients.gradients - _truncation(lifted, gradients)
        spanned = (exact - exact.mean(axis=0) if centred else exact).reshape(-1, len(frame))
        basis = np.linalg.svd(spanned, full_matrices=False)[2][:d].T
        weights = basis @ np.linalg.solve(frame.T @ basis, model.weights[0])
    lifted = replace(model, weights=(weights, model.weights[1]), skip=None)
    return replace(lifted, skip=_skip(lifted, model, frame, gradients, options.skip_seen))


def _unexplained(model: NetworkParameters, jets: Jets) -> Array:
    """Return (n, K, D): what ``model`` leaves of the gradients."""
    left = jets.gradients - difference_gradients(replace(model, skip=None), jets.sites, jets.step, jets.rule)
    return left if model.skip is None else left - model.skip.T


def _truncation(model: NetworkParameters, jets: Jets) -> Array:
    """Return what the differences of ``jets`` add to the gradients of ``model``: (n, K, D)."""
    differences = difference_gradients(model, jets.sites, jets.step, jets.rule)
    return differences - difference_gradients(model, jets.sites, 0.0, jets.rule)


def _skip(
    lifted: NetworkParameters, reduced: NetworkParameters, frame: Array, jets: Jets, skip_seen: float
) -> Array | None:
    """Join the skip found inside the subspace and what the gradients show of it outside; None without any."""
    mean = _unexplained(lifted, jets).mean(axis=0).T  # (D, K)
    outside: Array = mean - frame @ (frame.T @ mean)
    size = float(np.sqrt(np.mean(jets.gradients**2)))
    if np.abs(outside).max() <= skip_seen * size:
        outside = np.zeros_like(outside)
    if reduced.skip is not None:
        return np.asarray(outside + frame @ reduced.skip)
    return outside if outside.any() else None
