"""Tests, bounds and reductions around spans of rank-one matrices: [identification] chapters 1 to 3."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unweave.arrays import Array
from unweave.diagnose import (
    derivative_gram,
    distance_guarantee,
    incoherence,
    slope_bounds,
    spectral_optimality,
    subspace_error,
)
from unweave.experiments.experiment import (
    DERIVED,
    Figure,
    Progress,
    at_least,
    at_most,
    equal,
    shown,
    vanishes,
)
from unweave.networks.activations import get_activation
from unweave.numerics.hermite.passive import mixture_scores, passive_derivatives
from unweave.subspace import (
    RankOneSpace,
    along_duals,
    dual_profiles,
    orthonormal_basis,
    symmetric_packing,
    whiten,
)
from unweave.subspace.power_method import newton_ascent, power_iterations, uniform_starts
from unweave.subspace.spectral_ascent import SpectralAscentOptions, ascend_spectral_norm


def run_local_maximizers(seed: int, progress: Progress) -> Iterator[Figure]:
    """[identification] Thms. 2.3 and 2.6 and Remark 3.5: tests and bounds of the linear regime.

    Where ascent on the spectral norm ends, both tests of Thm. 2.3 hold, and the second derivative is the one
    of differences; half-way between two weights the first holds and the second does not. Maximizers of Phi in
    a span that is off by delta are within the distance that (2.33) knows beforehand. The smallest
    eigenvalue of the slopes' matrix exceeds (3.94) for every R.
    """
    rng = np.random.default_rng(seed)
    progress("second-order test")
    weights = unit_rows(rng.standard_normal((8, 6)))
    space = span_of(weights)
    ends = ascend_spectral_norm(space, rng.standard_normal((12, 8)), SpectralAscentOptions(tolerance=1e-12))
    found = [spectral_optimality(space, np.outer(u, u)) for u in ends]
    called = sum(f.is_maximizer() for f in found)
    yield equal("ends of the ascent that both tests call maximizers", 12, called)
    errors = [
        abs(f.eigenvalue * (f.ratio - 1) - steepest_curvature(space, np.outer(u, u)))
        for f, u in zip(found[:3], ends[:3], strict=True)
    ]
    yield at_most("second derivative beside differences, largest error", 1e-4, max(errors), origin=DERIVED)
    c, s = np.cos(0.7), np.sin(0.7)
    pair = span_of(np.array([[c, s, 0.0], [c, -s, 0.0], [0.0, 0.0, 1.0]]))
    middle = pair.packing.unpack(pair.project(pair.packing.outer(np.eye(3)[:1])))[0]
    between = spectral_optimality(pair, middle)
    yield vanishes("between two weights: stationarity", between.stationarity, 1e-12)
    yield equal("between two weights: maximizer", False, between.is_maximizer())
    progress("distance before the search")
    frame = unit_rows(np.linalg.qr(rng.standard_normal((6, 6)))[0] + 5e-4 * rng.standard_normal((6, 6)))
    nu = incoherence(frame.T).frame_constant
    exact = span_of(frame).basis
    moved = orthonormal_basis(exact + 1e-3 * rng.standard_normal(exact.shape))
    off = RankOneSpace(moved, symmetric_packing(6))
    bound = distance_guarantee(nu, subspace_error(moved, exact))
    starts = uniform_starts(100, 6, rng)
    tops = newton_ascent(off, power_iterations(off, starts, np.inf, 100, 1e-8), 50, 1e-13)
    tops = tops[off.objective(tops) > 0.5]
    far = np.sqrt(2 * np.maximum(1 - np.abs(tops @ frame.T).max(axis=1), 0)).max()
    yield equal("hypotheses of Thm. 2.6 hold", True, bound.holds)
    yield at_most("largest distance of a maximizer to its weight", bound.distance_at_most, float(far))
    yield at_most("bound, which is not trivial", 1.0, bound.distance_at_most, origin=DERIVED)
    progress("any R")
    tanh = get_activation("tanh")
    many = unit_rows(rng.standard_normal((20, 200)))
    shifts = rng.uniform(-0.5, 0.5, 20)
    least = float(np.linalg.eigvalsh(derivative_gram(many.T, shifts, tanh, 1))[0])
    bounds = slope_bounds(many.T, shifts, tanh, range(2, 7))
    for order, value in zip(range(2, 7), bounds, strict=True):
        yield at_least(f"smallest eigenvalue, R = {order}", float(value), least)
    yield at_least("best of these bounds", 1e-3, float(bounds.max()), "says something", origin=DERIVED)


def run_whitened_weights(seed: int, progress: Progress) -> Iterator[Figure]:
    """[identification] sec. 1.5: whitening, and profiles along the dual basis.

    Six independent weights in six and nine dimensions with profiles tanh, sine and square in turn. A positive
    definite member of the span of squares makes the weights orthonormal; their directions follow from one
    eigenproblem; one line each shows the profiles, and the function is rebuilt without any fit.
    """
    kinds = (np.tanh, np.sin, np.square) * 2
    for dimension in (6, 9):
        cell = f"D = {dimension}"
        progress(cell)
        rng = np.random.default_rng([seed, dimension])
        weights = unit_rows(rng.standard_normal((6, dimension)))
        shifts = rng.uniform(-0.5, 0.5, 6)

        def function(x: Array, weights: Array = weights, shifts: Array = shifts) -> Array:
            z = x @ weights.T + shifts
            return np.asarray(sum(g(z[:, k]) for k, g in enumerate(kinds)))

        space = span_of(weights)
        found = whiten(space)
        whitened = unit_rows((found.transform @ weights.T).T)
        skew = float(np.abs(whitened @ whitened.T - np.eye(6)).max())
        # Rounding, magnified by the condition of the weights.
        rounding = 1e-12 * float(np.linalg.cond(weights)) ** 2
        yield vanishes(f"{cell}: largest product of whitened weights", skew, rounding)
        if dimension == 6:
            printed = unit_rows(weights @ found.transform)
            skewed = float(np.abs(printed @ printed.T - np.eye(6)).max())
            note = "corrected: f(T y), as printed, has weights that are not orthonormal"
            yield shown(f"{cell}: the same for the transform as printed", 0, skewed, note)
        rows = found.directions(space, rng)
        overlap = np.abs(rows @ weights.T)
        near = set(overlap.argmax(axis=1)[overlap.max(axis=1) > 1 - 1e-9])
        yield equal(f"{cell}: weights found", 6, len(near))
        times = np.linspace(-2, 2, 9)
        profiles = dual_profiles(function, weights, times)
        wanted = np.array([g(times + s) - g(s) for g, s in zip(kinds, shifts, strict=True)])
        yield vanishes(f"{cell}: profiles", float(np.abs(profiles - wanted).max()), rounding)
        x = rng.standard_normal((200, dimension))
        rebuilt = float(np.abs(along_duals(function, rows)(x) - function(x)).max())
        yield at_most(f"{cell}: the function rebuilt, largest error", 1e-6, rebuilt, origin=DERIVED)


def run_passive_derivatives(seed: int, progress: Progress) -> Iterator[Figure]:
    """[identification] (1.17): mean gradients and Hessians from labels, for a law that is no Gaussian.

    A tanh network with 4 inputs and 5 units, inputs from a mixture of two Gaussians. Labels weighted by the
    derivatives of the density give the mean derivatives of the network, up to their standard errors; errors
    fall like N^-1/2.
    """
    rng = np.random.default_rng(seed)
    inputs, units = 4, 5
    weights, outer = unit_rows(rng.standard_normal((units, inputs))), rng.uniform(0.5, 1.5, units)
    shifts = rng.uniform(-0.5, 0.5, units)
    shares, means = np.array([0.4, 0.6]), rng.standard_normal((2, inputs))
    covariances = np.array([np.eye(inputs), 0.5 * np.eye(inputs) + 0.3])
    roots = np.linalg.cholesky(covariances)
    errors: dict[str, list[float]] = {"gradient": [], "Hessian": []}
    for samples in (20_000, 320_000):
        progress(f"{samples:,} samples")
        which = rng.choice(2, samples, p=shares)
        x = means[which] + np.einsum("nab,nb->na", roots[which], rng.standard_normal((samples, inputs)))
        z = np.tanh(x @ weights.T + shifts)
        found = passive_derivatives(x, z @ outer, *mixture_scores(x, shares, means, covariances))
        slopes, bends = (1 - z**2) * outer, -2 * z * (1 - z**2) * outer
        true_gradient = slopes.mean(axis=0) @ weights
        true_hessian = (weights.T * bends.mean(axis=0)) @ weights
        for name, value, error, true in (
            ("gradient", found.gradient, found.gradient_error, true_gradient),
            ("Hessian", found.hessian, found.hessian_error, true_hessian),
        ):
            most = float(np.max(np.abs(value - true) / error))
            cell = f"N = {samples:,}: {name}, largest error in standard errors"
            yield at_most(cell, 5.0, most, origin=DERIVED)
            errors[name].append(float(np.linalg.norm(value - true)) / float(np.linalg.norm(true)))
    for name, (few, many) in errors.items():
        yield at_most(f"{name}: relative error at N = 320,000", 0.3, many, origin=DERIVED)
        yield shown(f"{name}: error at 20,000 over that at 320,000", 4, few / many)


def unit_rows(rows: Array) -> Array:
    """Rows of length one."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def span_of(weights: Array) -> RankOneSpace:
    """The span of the squares of rows (m, D)."""
    packing = symmetric_packing(weights.shape[1])
    return RankOneSpace(orthonormal_basis(packing.outer(weights).T), packing)


def steepest_curvature(space: RankOneSpace, matrix: Array) -> float:
    """Largest second difference of ||M + a X|| / ||M + a X||_F over X in the span, orthogonal to M."""
    basis = space.packing.unpack(space.basis.T)
    center = np.einsum("jab,ab->j", basis, matrix)
    center /= np.linalg.norm(center)
    others, step = np.linalg.svd(center[None])[2][1:], 1e-4

    def value(shift: Array) -> float:
        member = np.einsum("j,jab->ab", center + shift, basis)
        return float(np.abs(np.linalg.eigvalsh(member)).max() / np.linalg.norm(member))

    signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
    hessian = [
        [sum(s * t * value(step * (s * x + t * y)) for s, t in signs) / (4 * step**2) for y in others]
        for x in others
    ]
    return float(np.linalg.eigvalsh(np.array(hessian))[-1])
