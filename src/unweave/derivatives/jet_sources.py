"""Where the route takes its gradients and Hessians from: differences of answers, or the target's autodiff.

Both are asked in coordinates v of a frame E (D, d) for jets of v -> f(E v), every output of unit spread.

                    differences (default)          autodiff
    gradient        2d + 1 rows                    1 + K queries
    Hessian         d^2 + d + 1 rows               1 + K (1 + d) queries
    error           truncation and sigma/h^2       rounding

Queries of autodiff are forward and backward passes (`unweave.targets.differentiation`).

Steps follow from the noise floor sigma, in normalised inputs, where weights have norms of order one and their
entries are of order d^{-1/2}; steps along coordinate axes therefore grow like sqrt(d).

Hessians. Truncation costs h^2/d, round-off sigma/h^2; their balance h ~ sigma^(1/4) is the best step when
nothing else is known. Here the truncation is predicted and removed once a first network stands
(`unweave.derivatives.truncation`), so a larger step is better as long as the first network is found at all.

Gradients. The polish compares difference quotients with difference quotients, so truncation only blurs its
Jacobian, and round-off sigma/h wants h large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.stencils import Jets, Scheme, gradient_jets, hessian_jets
from unweave.derivatives.truncation import hessian_truncation
from unweave.networks.parameters import NetworkParameters
from unweave.subspace.symmetric import symmetric_packing

if TYPE_CHECKING:
    from unweave.targets.region import NormalisedQueries

FEWEST_SITES = 24
"""Hessians by differences at least, whatever the width: each unit's profile is fitted on them."""
FEWEST_EXACT_SITES = 12
"""The same where they are exact, so that fewer tell the profiles of different activations apart."""

LARGEST_MISMATCH = 0.1
"""Of the slopes: what a step that is short for typical units leaves even for steep ones; a part that is
missing from the backward pass leaves its share of the answers."""

_HESSIAN_STEP = 8e-4  # times sqrt(d): truncation of about 1e-6 where the target is float64
_HESSIAN_NOISE_STEP = 1.0  # times sqrt(d) sigma^(1/4), the balance for noisy answers
_GRADIENT_STEP = 3e-3  # times sqrt(d)
_GRADIENT_NOISE_STEP = 0.5  # times sqrt(d) sigma^(1/6)
_LONGEST_STEP = 0.35  # times sqrt(d): beyond it the Taylor series of a unit with |w| = 1 means little
_NOISY_ANSWERS = 1e-6  # relative noise above which halving the variance beats halving the rows


@dataclass(frozen=True)
class Steps:
    """Steps and stencil for a function of ``d`` normalised inputs."""

    hessian: float
    gradient: float
    scheme: Scheme


def difference_steps(relative_noise: float, d: int) -> Steps:
    """Steps for answers whose error has standard deviation ``relative_noise`` times their spread."""
    root = np.sqrt(d)
    hessian = np.clip(_HESSIAN_NOISE_STEP * relative_noise**0.25, _HESSIAN_STEP, _LONGEST_STEP)
    gradient = np.clip(_GRADIENT_NOISE_STEP * relative_noise ** (1 / 6), _GRADIENT_STEP, _LONGEST_STEP)
    scheme: Scheme = "four-point" if relative_noise > _NOISY_ANSWERS else "compact"
    return Steps(float(root * hessian), float(root * gradient), scheme)


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


def derivative_mismatch(
    ask: Callable[[Array], Array], jets: Jets, step: float, rng: np.random.Generator
) -> float:
    """Root mean square difference of slopes by answers and by the gradients of ``jets``, relative to them.

    A module may hide a part from its backward pass, or bring a backward pass of its own. Along a random unit
    direction q the answers say (f(x + h q) - f(x - h q)) / 2h, up to a truncation of order h^2; the gradient
    says q . grad f(x). Two rows per site.
    """
    directions = rng.standard_normal(jets.sites.shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    moves = step * directions
    ahead, behind = np.split(ask(np.concatenate([jets.sites + moves, jets.sites - moves])), 2)
    by_answers = (ahead - behind) / (2 * step)
    by_gradients = np.einsum("nkd,nd->nk", jets.gradients, directions)
    size = max(float(np.linalg.norm(by_answers)), float(np.finfo(np.float64).tiny))
    return float(np.linalg.norm(by_gradients - by_answers)) / size
