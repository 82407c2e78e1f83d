"""The subspace power method: all rank-one members of a subspace of Sym(D) ([identification] Alg. 2.2).

Maximize Phi(u) = ||P(u u^T)||_F^2 on the sphere by

    u <- normalize( u + 2 gamma P(u u^T) u ),        gamma = inf: u <- normalize( P(u u^T) u ),

from many starts at once. Close to a maximizer the power step contracts by rho < 1, which tends to one as
the rank approaches D(D-1)/2; a saddle-free Newton step on the sphere (the eigenvalues of the Riemannian
Hessian replaced by their negative moduli) converges quadratically instead and also leaves saddles, so a
few power steps are followed by Newton steps on the rows that have not converged.

Departures from the published algorithm, each of them optional: Newton after power steps; starts taken
from what is missing (leading eigenvectors of random members of the subspace orthogonal to what was
found), which needs about 2 m starts where uniform ones need Theta(m log m); and acceptance by the
distance of u u^T to the subspace measured against the subspace's own error, because spurious maximizers
reach Phi = 0.9996 near the limit while true ones stay within delta^2 of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from array_api_compat import array_namespace

from unweave.arrays import AnyArray, Array, in_numpy
from unweave.execution.executor import Executor, SerialExecutor
from unweave.numerics.clock import check
from unweave.subspace.collector import Collector, CollectorOptions, RankOneDirections
from unweave.subspace.rank_one_space import RankOneSpace

ROUNDING_MISALIGNMENT = 1e-9
"""1 - Phi accepted whatever the subspace's error: the square of a direction error that any later least
squares repairs, and six orders below the spurious maximizers that were ever seen."""

_MISALIGNMENT_SPREAD = 1e3  # largest over median 1 - Phi of true directions
_ROWS_PER_NEWTON_STEP = 256  # rows whose D x D Hessians are formed at once: limits memory
_NEWTON_ROUNDING = 100.0  # multiple of eps at which steps in any precision are rounding
_MANY_DIMENSIONS = 400  # of a subspace, from which float32 saves more than it costs to convert
_SINGLE_STEP = 1e-3  # length of a step in float32 after which Newton's need no eigenvalues or no float32
_SINGLE_STEPS = 1.5  # times as many power steps in float32, where a Newton step with eigenvalues costs twenty
_CHORD_STEPS = 5  # in float64 with Hessians in float32: three are enough near a maximizer
_STARTS_PER_TASK = 256  # fixed: the rounding of a matrix product depends on its number of rows
_LONGEST_NEWTON_STEP = 0.5  # radians: longer steps from far away overshoot
_LEAST_RELATIVE_CURVATURE = 1e-3  # over the largest: flatter directions are treated as this curved
_NEWTON_RIDGE = 1e-13  # keeps the Hessian invertible where Phi is flat (the whole of Sym(D))
_TRUSTED_MISALIGNMENT = 1e-3  # below it the Riemannian Hessian is definite: solve instead of eigh


@dataclass(frozen=True)
class PowerMethodOptions(CollectorOptions):
    """Options of [identification] Alg. 2.2. ``published()`` gives the source's settings."""

    gamma: float = np.inf
    """Step of the power iteration."""
    power_steps: int = 60
    power_tolerance: float = 1e-6
    """A start is retired once a power step moves it by less than this."""
    newton_steps: int = 100
    newton_tolerance: float = 1e-13
    """A start is retired once a Newton step is shorter than this."""
    residual_starts: bool = True
    """Start from members of the subspace orthogonal to what was found, instead of uniformly."""
    single_precision: bool | None = None
    """Power steps and the first Newton steps in float32 (half the time); the last Newton steps stay in the
    subspace's precision. None: where the subspace has many dimensions."""
    device: str | None = None
    """Device on which torch makes the steps, for instance "cuda"; None: where the subspace is."""

    @staticmethod
    def published(min_objective: float = 0.9) -> PowerMethodOptions:
        """Power steps of gamma = 2 alone, uniform starts, a fixed threshold on Phi."""
        power = PowerMethodOptions(gamma=2.0, power_steps=3000, power_tolerance=1e-8, newton_steps=0)
        return replace(power, residual_starts=False, min_objective=min_objective, angle=4.5e-2)


def subspace_power_method(
    space: RankOneSpace,
    rng: np.random.Generator,
    acceptance: float = ROUNDING_MISALIGNMENT,
    options: PowerMethodOptions | None = None,
    known: Array | None = None,
    on_round: Callable[[int, int, int], None] | None = None,
    executor: Executor | None = None,
) -> RankOneDirections:
    """Find all directions u with u u^T in the subspace, up to ``space.rank`` of them.

    Parameters
    ----------
    space
        The subspace, of dimension m.
    acceptance
        Largest 1 - Phi of an accepted direction; about 10 (sigma_{m+1}/sigma_m)^2 for a sampled span. The
        end points themselves sharpen it: most are true and lie much closer than that worst case.
    known : (k, D)
        Directions that are known already; the search is for the others.
    on_round
        Called after every batch of starts with (found, m, starts so far).
    executor
        Computes the ascents, block by block; in this process by default. The result does not depend on it.

    Cost per start: 4 p min(m, p - m, p/2) flops per power step; O(D^2 min(m, p - m) + D^3) per Newton step.
    """
    options, executor = options or PowerMethodOptions(), executor or SerialExecutor()
    if options.single_precision is None:
        options = replace(options, single_precision=space.rank >= _MANY_DIMENSIONS)
    if options.device is not None:
        space = space.on_device(options.device)
    dimension, wanted = space.packing.dimension, space.rank
    found = np.zeros((0, dimension)) if known is None else known
    misalignment = in_numpy(space.misalignment(space.asarray(found)))
    collector = Collector(wanted, found, misalignment, options, on_round)
    while collector.goes_on:
        check()
        found, first = collector.found, collector.restarts == 0
        count = wanted if first else min(wanted, max(2 * (wanted - len(found)), 16))
        if options.residual_starts and len(found):
            starts = residual_starts(space, found, count, rng)
        else:
            starts = uniform_starts(count, dimension, rng)
        ends, misalignment = _ascend_in_blocks(space, starts, options, executor)
        if first:
            acceptance = _sharpened(acceptance, misalignment)
        accepted = misalignment <= acceptance
        if options.min_objective is not None:
            accepted = 1 - misalignment >= options.min_objective
        collector.add(ends, misalignment, accepted)
    return collector.result()


def uniform_starts(count: int, dimension: int, rng: np.random.Generator) -> Array:
    """(count, D) uniform on the sphere."""
    starts = rng.standard_normal((count, dimension))
    return np.asarray(starts / np.linalg.norm(starts, axis=1, keepdims=True))


def residual_starts(space: RankOneSpace, found: Array, count: int, rng: np.random.Generator) -> Array:
    """(count, D) starts from random members of the subspace orthogonal to the squares found.

    One half are the leading eigenvectors of such matrices, the other half random combinations of their
    eigenvectors weighted by the eigenvalues: when little is missing the matrices are nearly always the
    same, and their leading eigenvector alone would be tried again and again.
    """
    basis = in_numpy(space.basis)
    known = scipy.linalg.qr(basis.T @ space.packing.outer(found).T, mode="economic")[0]
    coefficients = rng.standard_normal((count, space.rank))
    coefficients -= (coefficients @ known) @ known.T
    values, vectors = np.linalg.eigh(space.packing.unpack(coefficients @ basis.T))
    leading = np.argmax(np.abs(values), axis=1)
    starts = np.ascontiguousarray(vectors[np.arange(count), :, leading])
    mixed = count // 2
    weights = np.abs(values[:mixed]) * rng.standard_normal(values[:mixed].shape)
    starts[:mixed] = np.matmul(vectors[:mixed], weights[:, :, None])[:, :, 0]
    return np.asarray(starts / np.linalg.norm(starts, axis=1, keepdims=True))


def _sharpened(acceptance: float, misalignment: Array) -> float:
    """Acceptance lowered to what the end points of a first batch show of the true directions' level."""
    typical = float(np.median(misalignment))
    return min(acceptance, max(ROUNDING_MISALIGNMENT, _MISALIGNMENT_SPREAD * typical))


def _ascend_in_blocks(
    space: RankOneSpace, starts: Array, options: PowerMethodOptions, executor: Executor
) -> tuple[Array, Array]:
    """End points (n, D) and their 1 - Phi (n,), every block of starts being one task."""
    blocks = [starts[i : i + _STARTS_PER_TASK] for i in range(0, len(starts), _STARTS_PER_TASK)]
    key = ("power method", space.basis, space.representation, options)
    parts = list(executor.map(_ascend, blocks, shared=(space, options), key=key))
    return np.concatenate([ends for ends, _ in parts]), np.concatenate([left for _, left in parts])


def _ascend(shared: tuple[RankOneSpace, PowerMethodOptions], starts: Array) -> tuple[Array, Array]:
    space, options = shared
    xp = array_namespace(space.basis)
    power_space = space.astype(xp.float32) if options.single_precision else space
    steps, closeness = options.power_steps, options.power_tolerance
    if options.single_precision and options.newton_steps:
        steps, closeness = round(_SINGLE_STEPS * steps), max(closeness, _SINGLE_STEP)
    directions = power_iterations(power_space, power_space.asarray(starts), options.gamma, steps, closeness)
    tolerance = max(options.newton_tolerance, _NEWTON_ROUNDING * float(xp.finfo(space.basis.dtype).eps))
    if options.single_precision and options.newton_steps:
        directions = newton_ascent(power_space, directions, options.newton_steps, _SINGLE_STEP)
        directions, ended = chord_ascent(space, power_space, directions, tolerance)
        rest = ~ended
        directions[rest] = newton_ascent(space, directions[rest], options.newton_steps, tolerance)
    elif options.newton_steps:
        directions = newton_ascent(space, directions, options.newton_steps, tolerance)
    elif options.single_precision:
        directions = unit_rows(xp.astype(directions, space.basis.dtype))
    ends = in_numpy(directions)
    if space.basis.dtype != xp.float64:
        ends = unit_rows(ends)  # rows of length one in float32 would be taken for different ones
    return ends, in_numpy(space.misalignment(directions))


def power_iterations(
    space: RankOneSpace, directions: AnyArray, gamma: float, steps: int, tolerance: float
) -> AnyArray:
    """Power steps on unit rows (n, D); a row that moved by less than ``tolerance`` is retired."""
    xp = array_namespace(directions)
    result = xp.asarray(directions, copy=True)
    active = xp.arange(result.shape[0], device=result.device)
    shrink = 1.0 if np.isinf(gamma) else 2 * gamma / (1 + 2 * gamma)
    for _ in range(steps):
        check()
        current = xp.take(result, active, axis=0)
        _, image = space.objective_and_image(current)
        moved = unit_rows(image if np.isinf(gamma) else current + 2 * gamma * image)
        change = xp.linalg.vector_norm(moved - current, axis=1)
        result[active] = moved
        active = active[change >= tolerance * shrink]
        if active.shape[0] == 0:
            break
    return result


def newton_ascent(space: RankOneSpace, directions: AnyArray, steps: int, tolerance: float) -> AnyArray:
    """Saddle-free Newton steps on the sphere from unit rows (n, D); converged rows are retired.

    On the tangent space the Riemannian Hessian of Phi/4 is C - Phi I with C of
    `RankOneSpace.curvature`; the step is |C - Phi I|^{-1} times the Riemannian gradient.
    """
    xp = array_namespace(directions)
    result = xp.asarray(directions, copy=True)
    active = xp.arange(result.shape[0], device=result.device)
    for _ in range(steps):
        if active.shape[0] == 0:
            break
        keep = []
        for start in range(0, active.shape[0], _ROWS_PER_NEWTON_STEP):
            check()
            rows = active[start : start + _ROWS_PER_NEWTON_STEP]
            moved, length = _newton_step(space, xp.take(result, rows, axis=0))
            result[rows] = moved
            keep.append(rows[length >= tolerance])
        active = xp.concat(keep)
    return result


def chord_ascent(
    space: RankOneSpace, rough: RankOneSpace, directions: AnyArray, tolerance: float
) -> tuple[AnyArray, AnyArray]:
    """Newton steps from unit rows (n, D) near maximizers, and which of them ended within ``tolerance``.

    The Hessians are those of ``rough``, the same space in single precision, at the beginning: from
    an error of 1e-6 every step gains five digits or so, and costs no more than a power step.
    """
    xp = array_namespace(directions)
    _, _, hessian = _on_tangent_space(rough, directions)
    current = unit_rows(xp.astype(directions, space.basis.dtype))
    length = xp.full_like(current[:, 0], xp.inf)
    try:
        inverse = xp.linalg.inv(_with_ridge(hessian))
    except np.linalg.LinAlgError:
        return current, length < tolerance
    for _ in range(_CHORD_STEPS):
        check()
        gradient = xp.astype(space.gradient(current), directions.dtype)
        step = -xp.matmul(inverse, gradient[:, :, None])[:, :, 0]
        step = xp.astype(step - directions * xp.sum(step * directions, axis=1)[:, None], current.dtype)
        length = xp.linalg.vector_norm(step, axis=1)
        current = unit_rows(current + step)
        if bool(xp.all(length < tolerance)):
            break
    return current, length < tolerance


def _on_tangent_space(space: RankOneSpace, current: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Phi (n,), its gradient and its Hessian on the sphere, over 4, at unit rows (n, D)."""
    xp = array_namespace(current)
    image, curvature = space.curvature(current)
    objective = xp.sum(image * current, axis=1)
    gradient = image - objective[:, None] * current
    # Restrict C - Phi I to the tangent space and pin the normal direction at -1: definite near a maximum.
    identity = xp.eye(current.shape[1], dtype=current.dtype, device=current.device)
    hessian = curvature - objective[:, None, None] * identity
    along = xp.matmul(hessian, current[:, :, None])[:, :, 0]
    normal = xp.sum(along * current, axis=1)
    cross = current[:, :, None] * along[:, None, :]
    outer = current[:, :, None] * current[:, None, :]
    tangential = hessian - cross - xp.permute_dims(cross, (0, 2, 1)) + (normal - 1)[:, None, None] * outer
    return objective, gradient, tangential


def _newton_step(space: RankOneSpace, current: AnyArray) -> tuple[AnyArray, AnyArray]:
    """One step from unit rows (n, D): the new rows and the lengths of the steps."""
    xp = array_namespace(current)
    objective, gradient, tangential = _on_tangent_space(space, current)
    # Eigenvalues cost five times as much as a solve: only where the Hessian may be indefinite.
    trusted = 1 - objective < _TRUSTED_MISALIGNMENT
    if bool(xp.all(trusted)):
        step = _definite_step(tangential, gradient)
    elif not bool(xp.any(trusted)):
        step = _saddle_free_step(tangential, gradient)
    else:
        step = xp.empty_like(gradient)
        step[trusted] = _definite_step(tangential[trusted], gradient[trusted])
        step[~trusted] = _saddle_free_step(tangential[~trusted], gradient[~trusted])
    step = step - current * xp.sum(step * current, axis=1)[:, None]
    length = xp.linalg.vector_norm(step, axis=1)
    longest = xp.full_like(length, _LONGEST_NEWTON_STEP)
    return unit_rows(current + step * (longest / xp.maximum(length, longest))[:, None]), length


def _definite_step(hessian: AnyArray, gradient: AnyArray) -> AnyArray:
    """-H^{-1} g for rows whose Hessians are negative definite."""
    xp = array_namespace(gradient)
    return -xp.linalg.solve(_with_ridge(hessian), gradient[:, :, None])[:, :, 0]


def _with_ridge(hessian: AnyArray) -> AnyArray:
    """Negative definite Hessians, invertible where Phi is flat."""
    xp = array_namespace(hessian)
    identity = xp.eye(hessian.shape[1], dtype=hessian.dtype, device=hessian.device)
    return hessian - max(_NEWTON_RIDGE, float(xp.finfo(hessian.dtype).eps)) * identity


def _saddle_free_step(hessian: AnyArray, gradient: AnyArray) -> AnyArray:
    """|H|^{-1} g for any rows."""
    xp = array_namespace(gradient)
    values, vectors = xp.linalg.eigh(hessian)
    modulus = xp.abs(values)
    modulus = xp.maximum(modulus, _LEAST_RELATIVE_CURVATURE * xp.max(modulus, axis=1)[:, None])
    coordinates = xp.matmul(gradient[:, None, :], vectors)[:, 0, :] / modulus
    return xp.matmul(vectors, coordinates[:, :, None])[:, :, 0]


def unit_rows(rows: AnyArray) -> AnyArray:
    """Rows (n, D) scaled to length one."""
    xp = array_namespace(rows)
    return rows / xp.linalg.vector_norm(rows, axis=1)[:, None]
