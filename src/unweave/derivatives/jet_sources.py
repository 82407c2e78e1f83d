"""Where the route takes its gradients and Hessians from: differences of answers, or the target's autodiff.

Both are asked in coordinates v of a frame E (D, d) for jets of v -> f(E v), every output of unit spread.

                    differences (default)          autodiff
    gradient        2d + 1 rows                    1 + K queries
    Hessian         d^2 + d + 1 rows               1 + K (1 + d) queries
    error           truncation and sigma/h^2       rounding

Queries of autodiff are forward and backward passes (`unweave.targets.differentiation`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.stencils import Jets, gradient_jets, hessian_jets
from unweave.derivatives.steps import Steps
from unweave.derivatives.truncation import hessian_truncation
from unweave.networks.parameters import NetworkParameters
from unweave.subspace.symmetric import symmetric_packing

if TYPE_CHECKING:
    from unweave.targets.region import NormalisedQueries

FEWEST_SITES = 24
"""Hessians by differences at least, whatever the width: each unit's profile is fitted on them."""
FEWEST_EXACT_SITES = 12
"""The same where they are exact, so that fewer tell the profiles of different activations apart."""


class JetSource(Protocol):
    """Takes jets of a function of d coordinates."""

    exact: bool
    """Whether the jets are derivatives up to rounding, with no truncation to correct for."""
    gradient_reach: float
    """How far from its site a gradient asks."""
    hessian_reach: float
    """How far from its site a Hessian asks."""
    fewest_sites: int
    """Hessians at least, whatever the width."""

    def gradients(self, sites: Array) -> Jets:
        """Values and gradients at ``sites`` (n, d)."""

    def hessians(self, sites: Array) -> Jets:
        """Values, gradients and packed Hessians at ``sites`` (n, d)."""

    def hessian_error(self, d: int) -> float:
        """Size of the Hessians' truncation error relative to them, for weights of norm one."""

    def hessian_truncation(self, model: NetworkParameters, jets: Jets) -> Array:
        """What is wrong with the Hessians of ``jets`` (n, K, p), as far as ``model`` can predict it."""


class DifferenceJets:
    """Jets from answers alone, by central differences with ``steps``."""

    exact = False
    fewest_sites = FEWEST_SITES

    def __init__(self, ask: Callable[[Array], Array], steps: Steps) -> None:
        self._ask, self._steps = ask, steps
        self.gradient_reach, self.hessian_reach = steps.gradient, 2 * steps.hessian

    def gradients(self, sites: Array) -> Jets:
        """2d + 1 rows per site."""
        return gradient_jets(self._ask, sites, self._steps.gradient)

    def hessians(self, sites: Array) -> Jets:
        """d^2 + d + 1 rows per site, 2 d^2 + 1 for noisy answers."""
        return hessian_jets(self._ask, sites, self._steps.hessian, self._steps.scheme)

    def hessian_error(self, d: int) -> float:
        """h^2 / d."""
        return float(self._steps.hessian**2 / d)

    def hessian_truncation(self, model: NetworkParameters, jets: Jets) -> Array:
        """See `unweave.derivatives.truncation`."""
        return hessian_truncation(model, jets, self._steps.scheme)


class AutodiffJets:
    """Jets from forward and backward passes through the target, by the chain rule in the frame's coordinates.

    v -> f(E v) / s has the gradient E^T grad f / s and the Hessian E^T (H E) / s: d Hessian products, not D.
    """

    exact = True
    fewest_sites = FEWEST_EXACT_SITES
    gradient_reach = hessian_reach = 0.0

    def __init__(self, view: NormalisedQueries, output_scale: Array, frame: Array) -> None:
        self._view, self._scale, self._frame = view, output_scale, frame

    def gradients(self, sites: Array) -> Jets:
        """1 + K queries per site."""
        return self._jets(sites, None)

    def hessians(self, sites: Array) -> Jets:
        """1 + K (1 + d) queries per site."""
        return self._jets(sites, self._frame)

    def hessian_error(self, d: int) -> float:
        """None: rounding is what the spectrum's own floor stands for."""
        return 0.0

    def hessian_truncation(self, model: NetworkParameters, jets: Jets) -> Array:
        """Nothing."""
        assert jets.hessians is not None
        return np.zeros_like(jets.hessians)

    def _jets(self, sites: Array, directions: Array | None) -> Jets:
        found = self._view.differentiate(sites @ self._frame.T, directions)
        scale = self._scale[:, None]
        hessians = None
        if found.products is not None:
            packing = symmetric_packing(self._frame.shape[1])
            hessians = packing.pack(found.products @ self._frame) / scale
        gradients = found.gradients @ self._frame / scale
        return Jets(sites, found.values / self._scale, gradients, 0.0, hessians, "exact")
