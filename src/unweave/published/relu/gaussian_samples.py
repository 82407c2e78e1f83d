"""A ReLU network with one hidden layer from Gaussian samples, by moments ([hermite] Alg. 6 and its variants).

    1. T_2 from a first pass; the span of its leading eigenvectors holds the units (m < d: project onto it,
       and the noise of all other directions is gone);
    2. T_3, T_4 (order 2: T_5, and T_6 for Jennrich) there, from labels less a low-degree fit;
    3. directions, scalars and signs (`unweave.published.relu.spectral_recovery`);
    4. a fit of the units to all these coefficients at once, weighed by their noise
       (`unweave.published.relu.moment_fit`), and back to all the inputs.

The errors fall like N^{-1/2}: this is a start for an exact fit, or the answer where labels are noisy and
samples many. Inputs must be standard Gaussian: see `unweave.numerics.whitening` and
`unweave.numerics.hermite.gaussianity`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.numerics.hermite.estimated_coefficients import (
    Batches,
    EstimatedCoefficients,
    EstimateOptions,
    estimate_coefficients,
)
from unweave.numerics.hermite.symmetric_tensors import tensor_packing
from unweave.published.relu.jennrich import active_subspace
from unweave.published.relu.moment_fit import (
    MomentFit,
    fit_entries,
    fit_moments,
    fit_moments_with_restarts,
)
from unweave.published.relu.published_depth2 import SpectralOptions
from unweave.published.relu.relu_units import ReLUUnits
from unweave.published.relu.spectral_recovery import (
    DirectionMethod,
    SpectralRecovery,
    recover_from_coefficients,
    with_signs,
)
from unweave.published.relu.unit_scalars import UnitScalars

_MISFIT_ERRORS = 2.0  # standard errors of a root mean square above one up to which noise explains a misfit


@dataclass(frozen=True)
class GaussianSampleOptions:
    """Options of the recovery from moments."""

    order: int = 1
    """l: 1 for at most as many units as inputs, 2 for more."""
    directions: DirectionMethod | None = None
    estimate: EstimateOptions | None = None
    """Default: a polynomial of degree 2 (order 1) or 3 (order 2) is subtracted from the labels."""
    project: bool = True
    """Estimate the higher moments in the span of T_2 only (order 1)."""
    published_signs: bool = False
    sign_tolerance: float = 0.1
    """Misfit of the affine part, relative, that sampling may cause (order 2)."""
    fit: bool = True
    """Fit the units to the coefficients at the end: directions several times as good. False: as published."""
    rounds: int = 8
    """Repairs of a fit that does not explain the coefficients."""
    affine_misfit: float = 1.5
    """Misfit with order 1 over that without, above which the units do not explain the affine part. It then
    stays free, as [hermite] Alg. 5 has it: it belongs to units whose kinks lie outside the samples."""
    most_added: int = 12
    """Units beyond those that stand out of the noise, while that lowers the information criterion, where the
    width is not told (order 2)."""
    max_fit_entries: int = 20_000_000
    """Largest number of entries of the Jacobian (160 MB) for which the units are fitted."""
    max_quadratic_inputs: int = 60
    """Fit a quadratic in all inputs up to this number, else an affine function: d^4 flops per row."""
    spectral: SpectralOptions = field(default_factory=SpectralOptions)

    def estimate_options(self) -> EstimateOptions:
        """Options of the estimate, with the default resolved."""
        return self.estimate or EstimateOptions(degree=2 if self.order == 1 else 3)


@dataclass(frozen=True, eq=False)
class GaussianSampleRecovery:
    """The network that moments alone determine."""

    recovery: SpectralRecovery
    """Units on the inputs as given."""
    estimate: EstimatedCoefficients
    """The coefficients it was read off, in ``basis`` if there is one."""
    basis: Array | None
    """(d, m) span that the higher moments were estimated in."""


def recover_from_gaussian_samples(
    batches: Batches,
    rng: np.random.Generator,
    width: int | None = None,
    options: GaussianSampleOptions | None = None,
) -> GaussianSampleRecovery:
    """Recover up to sampling error from batches of standard Gaussian x (n, d) and y (n,).

    Cost: three passes; per row about 2 p_h^2 flops with p_h = C(r + h - 1, h), h = 2 (order 1) or 3 (order 2)
    and r the number of variables after projection.
    """
    options = options or GaussianSampleOptions()
    basis = None
    if options.order == 1 and options.project:
        basis, width = units_span(batches, width, options)
    by_power = options.directions == "power" or (options.directions is None and options.order > 1)
    highest = 5 if by_power else 2 * options.order + 2
    estimate = estimate_coefficients(batches, highest, options.estimate_options(), basis)
    recovery = recover_from_coefficients(
        estimate.coefficients,
        rng,
        width=width,
        order=options.order,
        directions=options.directions,
        noise=estimate.noise_levels(options.order),
        published_signs=options.published_signs,
        sign_tolerance=options.sign_tolerance,
        options=options.spectral,
    )
    entries = fit_entries(estimate.coefficients.dimension, recovery.form.width, highest)
    if options.fit and recovery.form.width and entries <= options.max_fit_entries:
        counted = width is None and options.order > 1
        recovery = fitted_recovery(estimate, recovery, highest, rng, options, add_units=counted)
    if basis is not None:
        form = recovery.form
        lifted = replace(form, weights=basis @ form.weights, slope=basis @ form.slope)
        recovery = replace(recovery, form=lifted)
    return GaussianSampleRecovery(recovery, estimate, basis)


def fitted_recovery(
    estimate: EstimatedCoefficients,
    recovery: SpectralRecovery,
    highest: int,
    rng: np.random.Generator,
    options: GaussianSampleOptions,
    *,
    add_units: bool = False,
) -> SpectralRecovery:
    """The recovery with its units fitted to orders 2 .. highest, and to order 1 once signs are known.

    With ``add_units``, their number is only the least one.
    """
    units = ReLUUnits(recovery.form.weights, recovery.form.biases, 2 * recovery.form.heights[:, 0])
    width = max(int(recovery.figures["width"]), units.width)
    coefficients, figures = estimate.coefficients, recovery.figures
    without_affine = estimate.deviations(*range(2, highest + 1))
    fit = fit_moments_with_restarts(coefficients, without_affine, units, width, rng, options.rounds)
    if add_units:
        fit = _with_more_units(estimate, fit, highest, rng, options)
    figures = {**figures, "width": float(fit.units.width), f"misfit of orders 2 to {highest}": fit.misfit}
    recovery = _signed(estimate, fit.units, figures, options)
    if not recovery.signs_known:
        return recovery
    whole = fit_moments(coefficients, estimate.deviations(*range(1, highest + 1)), recovery.units)
    figures = {**figures, f"misfit of orders 1 to {highest}": whole.misfit}
    if whole.misfit > options.affine_misfit * max(fit.misfit, 1.0):
        # Signs that do not explain the affine part were read off something else.
        return replace(recovery, figures=figures, signs_known=False)
    return _signed(estimate, whole.units, figures, options)


def _signed(
    estimate: EstimatedCoefficients,
    units: ReLUUnits,
    figures: dict[str, float],
    options: GaussianSampleOptions,
) -> SpectralRecovery:
    scalars = UnitScalars(units.outer, units.biases, np.abs(units.outer))
    return with_signs(
        estimate.coefficients,
        units.weights,
        scalars,
        figures,
        published_signs=options.published_signs,
        sign_tolerance=options.sign_tolerance,
    )


def _with_more_units(
    estimate: EstimatedCoefficients,
    fit: MomentFit,
    highest: int,
    rng: np.random.Generator,
    options: GaussianSampleOptions,
) -> MomentFit:
    """Add units until the coefficients are explained, as long as the Bayesian information criterion falls.

    A weak singular value drowns in the noise of a whole flattening, but not in that of the few numbers which
    its unit has. Where one unit more does not help, two may: fits end in local minima.
    """
    deviations = estimate.deviations(*range(2, highest + 1))
    dimension = estimate.coefficients.dimension
    equations = sum(tensor_packing(dimension, order).size for order in deviations)
    explained = 1 + _MISFIT_ERRORS / np.sqrt(2 * equations)
    price, best, last = (dimension + 1) * np.log(equations), fit, fit
    for width in range(fit.units.width + 1, fit.units.width + options.most_added + 1):
        if best.misfit <= explained or last.units.width > best.units.width + 1:
            break
        last = fit_moments_with_restarts(
            estimate.coefficients, deviations, last.units, width, rng, options.rounds
        )
        added = last.units.width - best.units.width
        if equations * (best.misfit**2 - last.misfit**2) > added * price:
            best = last
    return best


def units_span(
    batches: Batches, width: int | None, options: GaussianSampleOptions
) -> tuple[Array | None, int]:
    """Basis (d, m) of the leading eigenvectors of T_2, None if m = d, and m, counted if not given."""
    dimension = next(iter(batches()))[0].shape[1]
    if width is not None and width >= dimension:
        return None, width
    degree = 2 if dimension <= options.max_quadratic_inputs else 1
    first = options.estimate_options()
    if first.degree is not None:
        first = replace(first, degree=min(degree, first.degree))
    estimate = estimate_coefficients(batches, 2, first)
    second = estimate.coefficients.dense(2)
    if width is None:
        level = options.spectral.rank_factor * estimate.noise(1, 1)
        width = max(int(np.sum(np.abs(np.linalg.eigvalsh(second)) > level)), 1)
    if width >= dimension:
        return None, width
    return active_subspace(second, width)[0], width
