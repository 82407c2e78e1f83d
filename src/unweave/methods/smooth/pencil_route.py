"""One smooth hidden layer from very few queries: a pencil of two Hessians on a random slice.

Where the units are no more than the directions of a slice, two Hessians there determine the directions of all
units (Jennrich): H_s = U diag(c_s) U^T. Gradients and Hessians together are samples of every unit's profile,

    a_k s_k g'(s_k t + b_k)   and   a_k s_k^2 g''(s_k t + b_k)         at t = u_k . x_s,

four equations for s_k, b_k, a_k at two sites. From there on a fit of values ends at rounding, and the
components outside the slice follow (`slice_route`).

    rows   about  (d+1)(d+2)  +  1.1 m (d + 2)  +  1.1 m (D - d)        with d = m + 1

The Hessians are good to five digits only. So a weak unit may be missed, and units that bend alike at both
sites are mixed up: a failure adds a site. While the Hessians fill the slice, it is widened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.curvature_lattices import Curvatures, CurvatureSampler, curvature_rows
from unweave.methods.smooth.evidence import SmoothEvidence
from unweave.methods.smooth.jet_profiles import curvature_samples
from unweave.methods.smooth.random_slice import SliceOptions
from unweave.methods.smooth.slice_fit import ChoosingFitter
from unweave.methods.smooth.slice_route import SliceResult, SliceRoute, SliceRouteOptions
from unweave.networks.value_fit import ValueFitResult
from unweave.numerics.clock import check
from unweave.search import Journal
from unweave.subspace.joint_diagonal import jointly_diagonalise
from unweave.subspace.symmetric import symmetric_packing
from unweave.targets.region import Region


@dataclass(frozen=True, kw_only=True)
class PencilOptions:
    """How many sites a pencil has, and what counts as a direction of its Hessians."""

    first_sites: int = 2
    """Sites of the first attempt."""
    most_sites: int = 5
    """Sites of the last one."""
    spare_directions: int = 1
    """Directions of a slice beyond the units: they show that there are no more."""
    fewest_directions: int = 4
    """Directions of the first slice, where the width is not known."""
    wider: int = 2
    """Directions that are added to a slice which the Hessians fill."""
    clear: float = 10.0
    """Singular value of the Hessians, in errors of these, that shows a direction."""
    weak: float = 3.0
    """The same that may show one: it does where so many units were told, or others explain too little."""
    determined: float = 1e-5
    """Largest standard error of a parameter; a unit too many has larger ones."""

    def step(self, noise: float) -> float:
        """Return the step at which truncation and rounding of a Hessian are alike."""
        return float(np.cbrt(4 * noise))

    def rows(self, slices: SliceOptions, inputs: int, width: int, outputs: int) -> int:
        """Return the rows of a search that succeeds at its first attempt."""
        d = min(inputs, width + self.spare_directions)
        values = slices.values_needed(width, d, outputs)
        beside = slices.sites_beside(width, outputs) * (inputs - d)
        return self.first_sites * curvature_rows(d) + values + beside


@dataclass(frozen=True, eq=False)
class _Seen:
    """Hessians of a slice and the directions they show."""

    curvatures: Curvatures
    axes: Array
    """(d, d) orthonormal columns"""
    clear: int
    """Number of directions that are clearly there."""
    possible: int
    """Number of directions that may be there."""


class PencilRoute(SliceRoute):
    """Searches once; ``run`` returns None if the target shows no more than ``width`` units, and why not."""

    def __init__(
        self,
        ask: Callable[[Array], Array],
        region: Region,
        outputs: int,
        noise: float,
        width: int | None,
        activations: tuple[str, ...],
        journal: Journal,
        rng: np.random.Generator,
        route: SliceRouteOptions,
        options: PencilOptions,
    ) -> None:
        super().__init__(ask, region, outputs, noise, activations, journal, rng, route)
        self._width, self._pencils = width, options
        self._step = options.step(self._noise)
        self._sampler = CurvatureSampler(self._slices.ask, self._step)
        self.units_seen = 0
        """Units that the Hessians have shown at least."""

    def run(self) -> SliceResult | None:
        """Return the network, or None."""
        if not self._slices.has_room(self._slices.least_margin):
            return None
        options, sites, dimension = self._pencils, self._pencils.first_sites, self._first_dimension()
        while sites <= options.most_sites:
            check()
            seen = self._sample(sites, dimension)
            filled = seen.possible if self._width is None else seen.clear
            if filled == dimension < self._inputs:
                dimension = min(dimension + options.wider, self._inputs)
                continue
            for rank in self._ranks(seen):
                fitted = self._fit(seen, rank)
                result = None if fitted is None else self._extend(fitted)
                if result is not None:
                    return result
            if seen.clear == self._inputs and self._width != self._inputs:
                return None  # more units than inputs are likelier than as many
            sites += 1
        return None

    def _first_dimension(self) -> int:
        options = self._pencils
        wanted = options.fewest_directions if self._width is None else self._width + options.spare_directions
        return min(wanted, self._inputs)

    def _ranks(self, seen: _Seen) -> list[int]:
        """Return the numbers of units to try."""
        if self._width is not None and seen.clear <= self._width <= seen.possible:
            return [self._width]
        return [rank for rank in (seen.clear, seen.clear + 1) if 0 < rank <= seen.possible]

    def _sample(self, sites: int, dimension: int) -> _Seen:
        """Take Hessians and see how many directions they have."""
        options = self._pencils
        with self._journal.stage("Hessians") as stage:
            self._sampler.widen_to(dimension)
            while len(self._sampler) < sites:
                self._sampler.add(self._slices.draw(1, dimension)[0])
            unit = self._slices.length_scale(dimension)
            curvatures = self._sampler.curvatures().rescaled(unit)
            full = np.asarray(symmetric_packing(dimension).unpack(curvatures.hessians))
            axes, values, _ = np.linalg.svd(np.concatenate(list(full.reshape(-1, dimension, dimension)), 1))
            error = self._step * values[0]
            clear, possible = (int((values > n * error).sum()) for n in (options.clear, options.weak))
            stage.figures.update(sites=sites, directions=dimension, width=clear)
        self.units_seen = max(self.units_seen, clear)
        return _Seen(curvatures, axes, clear, possible)

    def _fit(self, seen: _Seen, rank: int) -> ValueFitResult | None:
        """Return the network of ``rank`` units on the slice, if one comes down to rounding."""
        curvatures, basis = seen.curvatures, seen.axes[:, :rank]
        dimension = len(basis)
        with self._journal.stage("pencil") as stage:
            full = np.asarray(symmetric_packing(dimension).unpack(curvatures.hessians))
            inside = (basis.T @ full @ basis).reshape(-1, rank, rank)
            packed = np.asarray(symmetric_packing(rank).pack(inside))
            pencil = jointly_diagonalise(packed, rank, self._rng)
            stage.figures["residual"] = np.inf if pencil is None else pencil.residual
            if pencil is None:
                return None
        directions = pencil.directions @ basis.T
        samples = curvature_samples(directions, curvatures.sites, curvatures.gradients, curvatures.hessians)
        options = self._options
        fitter = ChoosingFitter(directions, samples, self._noise, options.fit, options.profiles)
        with self._journal.stage("activation") as stage:
            residuals = fitter.rank_activations(self._activations, self._rng)
            stage.figures["best"] = next(iter(residuals))
        self._evidence = SmoothEvidence(width=rank, found=rank, hessians=len(packed))
        for name in self._likely(residuals):
            fit = self._fit_values(fitter, rank, dimension, name, options.hopeless_start)
            # A unit too many fits as well, and is not determined.
            if fit is not None and self._fits(fit) and (fit.error_bar or np.inf) <= self._pencils.determined:
                self._evidence = replace(self._evidence, activation_residuals=residuals)
                return fit
        return None

    def _values(self, width: int, d: int, skip: bool = False) -> tuple[Array, Array]:
        """Return the rows of the lattices, too: they are equations like others."""
        points, answers = super()._values(width, d, skip)
        lattice, known = self._sampler.rows()
        scaled = lattice / self._slices.length_scale(d)
        return np.concatenate([points, scaled]), np.concatenate([answers, known])
