"""From a network on a slice to all inputs: one linear system for every direction outside.

A network that is known on the slice y -> f(E y) lacks the weights' components u_kj = w_k . q_j along the
directions q_j outside. A step t along q_j from a point y_i of the slice,

    f(E y_i + t q_j) - f(E y_i) = sum_k a_k [g(z_ik + t u_kj) - g(z_ik)] + t s_j,        z_ik known,

gives one equation per output for the m unknowns u_.j (and s_j, a skip's components). The network predicts
f(E y_i) itself, so every row is an equation. The same sites serve all directions: to first order they share
one matrix G with rows a_k g'(z_ik), chosen well conditioned among many candidates before anything is asked.
Gauss-Newton with G solves the equations exactly; where it is too slow, each direction gets its own Jacobian.

Cost: about (m + K)/K rows per direction, no more than there are parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.linalg

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.smooth.random_slice import RandomSlice, SliceOptions
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.least_squares import LevenbergMarquardtOptions, Steps, minimise
from unweave.numerics.least_squares.full_steps import take_full_steps


@dataclass(frozen=True, kw_only=True)
class ExtensionOptions:
    """How the components outside the slice are found."""

    shift: float = 0.02
    """Step t along a direction outside, times 1 / sqrt(D): how far it moves a unit of norm one."""
    candidates_per_unknown: int = 20
    """Points per unknown of a direction among which sites are chosen; none of them is asked yet."""
    fewest_candidates: int = 200
    """Such points at least."""
    well_conditioned: float = 1e4
    """Condition of G, its columns of norm one, at which no more sites are added."""
    growth: float = 1.05
    """Factor by which sites are added until G is well conditioned."""
    most_sites: float = 1.5
    """Sites at most, in multiples of those that the number of unknowns needs."""
    schedule: LevenbergMarquardtOptions = field(
        default_factory=lambda: LevenbergMarquardtOptions.undamped(40, needed=0.99)
    )
    """Gauss-Newton steps, each of which must gain a hundredth."""
    settled: float = 3.0
    """Residual of a direction, in standard deviations of an answer, that nothing can be gained from."""
    negligible_skip: float = 1e-9
    """Skip relative to the weights' contribution to slopes that is taken for rounding."""


@dataclass(frozen=True, eq=False)
class Extension:
    """A network in all inputs, and how well the equations beside the slice determine it."""

    model: NetworkParameters
    residual: float
    """Root mean square of what the equations leave."""
    condition: float
    """Of G with columns of norm one."""
    error_bar: float
    """Largest standard error of a component outside the slice."""
    prediction_error: float
    """Standard error of a prediction from these components, at typical points."""
    sites: int


@dataclass(frozen=True, eq=False)
class _Sites:
    points: Array
    """(n, d) slice coordinates"""
    slopes: Array
    """G (n K, m + K)"""
    typical: Array
    """Rows of G at many other points, for what a prediction makes of an error."""


def extend(
    model: NetworkParameters,
    slices: RandomSlice,
    noise: float,
    options: ExtensionOptions,
    slice_options: SliceOptions,
) -> Extension:
    """Extend the network that is ``model`` on a slice to all inputs.

    Parameters
    ----------
    model
        In slice coordinates y (not rescaled), exact up to rounding.
    noise
        Standard deviation of an answer.
    """
    d, inputs = len(model.weights[0]), len(slices.frame)
    if d == inputs:  # the slice is the whole space: the model only has to be turned
        nothing = np.zeros((0, model.width + model.n_outputs))
        whole = _joined(model, nothing, slices, nothing, options.negligible_skip)
        return Extension(whole, residual=0.0, condition=1.0, error_bar=0.0, prediction_error=0.0, sites=0)
    needed = slice_options.sites_beside(model.width, model.n_outputs)
    sites = _choose_sites(model, slices, needed, options)
    step = options.shift * float(np.sqrt(inputs))
    known = model.values(sites.points)
    change = slices.ask_beside(sites.points, step) - known[:, None]  # (n, D - d, K)
    equations = change.transpose(1, 0, 2).reshape(inputs - d, known.size)
    components, left = _solve(model, sites, equations, step, noise, options)
    norms = np.linalg.norm(sites.slopes, axis=0)
    scaled = sites.slopes / norms
    inverse = np.linalg.pinv(scaled)
    sensitivity = np.linalg.norm(inverse, axis=1) / norms
    carried = (sites.typical / norms) @ inverse
    residual = float(np.sqrt(np.mean(left**2))) if left.size else 0.0
    per_direction = float(np.sqrt(np.mean(np.einsum("nk,nk->n", carried, carried))))
    outside = np.sqrt(inputs - d)
    return Extension(
        model=_joined(model, components, slices, sites.slopes, options.negligible_skip),
        residual=residual,
        condition=float(np.linalg.cond(scaled)),
        error_bar=noise / step * float(sensitivity.max()),
        prediction_error=noise / step * per_direction * float(outside),
        sites=len(sites.points),
    )


def _choose_sites(
    model: NetworkParameters, slices: RandomSlice, needed: int, options: ExtensionOptions
) -> _Sites:
    """Choose points of the slice whose slopes determine all components well; ask nothing."""
    (d, m), outputs = model.weights[0].shape, model.weights[1].shape[1]
    unknowns = m + outputs
    count = max(options.fewest_candidates, options.candidates_per_unknown * unknowns // outputs)
    points = slices.draw(count, d)
    rows = _slopes(model, points @ model.weights[0] + model.biases[0])
    # Pivoting takes the most independent rows first; the sites are taken in the order of their first row.
    pivots = scipy.linalg.qr(rows.reshape(-1, unknowns).T, mode="r", pivoting=True, check_finite=False)[1]
    order = _first_occurrences(np.asarray(pivots) // outputs)
    size = min(needed, count)
    while size < min(options.most_sites * needed, count):
        chosen = rows[order[:size]].reshape(-1, unknowns)
        norms = np.maximum(np.linalg.norm(chosen, axis=0), np.finfo(np.float64).tiny)
        if np.linalg.cond(chosen / norms) <= options.well_conditioned:
            break
        size = int(np.ceil(options.growth * size)) + 1
    first, rest = order[:size], order[size : size + count // 2]
    return _Sites(points[first], rows[first].reshape(-1, unknowns), rows[rest].reshape(-1, unknowns))


def _slopes(model: NetworkParameters, z: Array) -> Array:
    """Return (n, K, m + K): how every output's slope changes with every component and with a skip.

    ``z`` (n, m) are the pre-activations.
    """
    slope, outputs = model.activation.jet(z, 1)[1], model.n_outputs
    by_skip = np.broadcast_to(np.eye(outputs), (len(z), outputs, outputs))
    return np.concatenate([slope[:, None, :] * model.weights[1].T, by_skip], axis=2)


def _first_occurrences(values: IntArray) -> IntArray:
    """Return the distinct ``values`` in the order in which they occur first."""
    _, first = np.unique(values, return_index=True)
    return np.asarray(values[np.sort(first)])


def _solve(
    model: NetworkParameters,
    sites: _Sites,
    equations: Array,
    step: float,
    noise: float,
    options: ExtensionOptions,
) -> tuple[Array, Array]:
    """Solve for components (D - d, m + K); return them and the residuals of the equations (D - d, n K)."""
    beside = _Beside(model, sites.points, step)
    shared = _SharedSteps(beside, equations, np.linalg.svd(sites.slopes, full_matrices=False))
    start = shared.at(np.zeros((len(equations), sites.slopes.shape[1])))
    end = minimise(shared, start, options.schedule).point
    components, left = end.components, end.left
    for j in np.flatnonzero(np.sqrt(np.mean(left**2, axis=1)) > options.settled * noise):
        components[j], left[j] = _own_steps(beside, components[j], equations[j], options.schedule)
    return components, left


class _Beside:
    """Computes how the outputs change when every unit moves by a component outside the slice."""

    def __init__(self, model: NetworkParameters, points: Array, step: float) -> None:
        self._model, self.step = model, step
        self._z = points @ model.weights[0] + model.biases[0]
        self._value = model.activation(self._z)
        self.typical = float(np.sqrt(np.mean(model.weights[0] ** 2)))
        """Size of a component: those inside the slice are drawn alike."""

    def change(self, components: Array) -> Array:
        """Return the changes (directions, n K) for components (directions, m + K)."""
        m = self._model.width
        moved = self._model.activation(self._z + self.step * components[:, None, :m]) - self._value
        result = moved @ self._model.weights[1] + self.step * components[:, None, m:]
        return np.asarray(result.reshape(len(components), -1))

    def slopes(self, components: Array) -> Array:
        """Return G (n K, m + K) at the components (m + K,) of one direction."""
        m = self._model.width
        slopes = _slopes(self._model, self._z + self.step * components[:m])
        return slopes.reshape(-1, slopes.shape[2])


def _damped(factors: tuple[Array, Array, Array], left: Array, step: float, typical: float) -> Array:
    """Solve step G u = ``left`` for u (directions, m + K), with a ridge as large as ``left`` itself.

    In the first steps, what bending leaves would throw weak units far off. The ridge, measured in typical
    components, holds them until the residual has come down to what they contribute.
    """
    vectors, values, right = factors
    ridge = np.sqrt(np.mean(left**2, axis=1, keepdims=True)) / (step * typical)
    filtered = values / (values**2 + ridge**2 + np.finfo(np.float64).tiny)
    return np.asarray((left @ vectors) * filtered @ right / step)


@dataclass(frozen=True, eq=False)
class _Extensions:
    """All directions at once."""

    components: Array  # (directions, m + K)
    left: Array  # of the equations, (directions, n K)
    size: Array  # norms of what is left, (directions,)


class _SharedSteps(Steps[_Extensions]):
    """Steps with the Jacobian of the slice, whose factors serve all directions."""

    def __init__(self, beside: _Beside, equations: Array, factors: tuple[Array, Array, Array]) -> None:
        self._beside, self._equations, self._factors = beside, equations, factors

    def at(self, components: Array) -> _Extensions:
        left = self._equations - self._beside.change(components)
        return _Extensions(components, left, np.linalg.norm(left, axis=1))

    def trial(self, point: _Extensions, damping: float | Array) -> _Extensions:
        step = _damped(self._factors, point.left, self._beside.step, self._beside.typical)
        return self.at(point.components + step)

    def accepted(self, better: bool | BoolArray, trial: _Extensions, point: _Extensions) -> _Extensions:
        rows = np.asarray(better)[:, None]
        return _Extensions(
            np.where(rows, trial.components, point.components),
            np.where(rows, trial.left, point.left),
            np.where(better, trial.size, point.size),
        )


def _own_steps(
    beside: _Beside, start: Array, equations: Array, schedule: LevenbergMarquardtOptions
) -> tuple[Array, Array]:
    """Run Gauss-Newton for one direction; return its components (m + K,) and residuals (n K,)."""

    def residual(components: Array) -> Array:
        return np.asarray(equations - beside.change(components[None])[0])

    def move(components: Array, left: Array) -> Array:
        factors = np.linalg.svd(beside.slopes(components), full_matrices=False)
        return np.asarray(components + _damped(factors, left[None], beside.step, beside.typical)[0])

    end = take_full_steps(start, residual, move, schedule).point
    return end.state, end.residual


def _joined(
    model: NetworkParameters, components: Array, slices: RandomSlice, slopes: Array, negligible_skip: float
) -> NetworkParameters:
    """Join the slice and the components outside in the target's normalised inputs."""
    d, m = model.weights[0].shape
    frame = slices.frame
    weights = frame[:, :d] @ model.weights[0] + frame[:, d:] @ components[:, :m]
    outside = components[:, m:]
    size = float(np.abs(slopes[:, :m] @ components[:, :m].T).max(initial=0.0))
    inside = np.zeros((d, outside.shape[1])) if model.skip is None else model.skip
    skip = None
    if model.skip is not None or np.abs(outside).max(initial=0.0) > negligible_skip * max(size, 1.0):
        skip = frame[:, :d] @ inside + frame[:, d:] @ outside
    return replace(model, weights=(weights, model.weights[1]), skip=skip)
