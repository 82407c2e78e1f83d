"""Gauss-Newton on all parameters of a network of kinked units, and how well its rows determine them.

Away from every unit's surface f is a polynomial of its parameters, so a few steps of

    min_delta |w (y - f - J delta)|

end at the rounding of the answers. The length of every hidden unit's weights is free (what reads it makes
up for it): the weight that matters most is held. Rows far out are weighted by 1 / (1 + |x|), as their
rounding grows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.shared.kinked.copies import COPIES_OF_JACOBIAN
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.clock import check
from unweave.numerics.least_squares import LevenbergMarquardtOptions
from unweave.numerics.least_squares.full_steps import take_full_steps
from unweave.numerics.memory import require


@dataclass(frozen=True, kw_only=True)
class DeepPolishOptions:
    """How all parameters are fitted, and when rows determine one."""

    steps: int = 8
    """Gauss-Newton steps at most."""
    last_ratio: float = 0.5
    """Ratio of residuals after and before a step beyond which it was the last one."""
    rows_per_weight: float = 2.0
    """Rows on either side of a unit, for each number it is made of."""
    clear: float = 1e-5
    """Distance from every kink, relative to 1 + |x|, at which a row's pattern is certain."""
    rank: float = 1e-11
    """Singular values of J, relative to the largest one, below which a direction is not determined."""
    certain: float = 1e-6
    """Smallest diagonal of the Cholesky factor of J^T J with which squaring J loses nothing that counts."""
    apart: float = 1e-4
    """Distance of a column of J from the span of others, both of size one, up from which normal equations
    tell them apart."""
    refinements: int = 3
    """Times that the rest of the other columns is computed anew from what the last time left."""
    open_share: float = 1e-3
    """Share of a parameter's unit vector in the null space of J above which the parameter is open."""
    places: int = 60_000
    """Points among which those are taken where an open parameter acts."""
    place_spreads: tuple[float, ...] = (1.0, 3.0, 10.0, 100.0)
    """Their standard deviations."""
    places_beside: int = 500
    """Further ones per unit with an open parameter, near points on its rarer side."""
    beside: float = 0.3
    """Their largest distance from these, relative to the distance from the origin."""
    rows_per_open: int = 5
    """Rows that are asked for every open parameter."""


DEFAULT_DEEP_POLISH_OPTIONS = DeepPolishOptions()


@dataclass(frozen=True, eq=False)
class Polished:
    """A network after Gauss-Newton."""

    network: Network
    history: tuple[float, ...]
    """Weighted root mean square residual, the start first."""
    error_bars: Array
    """(P,) standard errors in the order of `NetworkParameters`: zero if held, infinite if open."""

    @property
    def error_bar(self) -> float:
        """The largest."""
        return float(self.error_bars.max(initial=0.0))


def polish(
    network: Network, points: Array, answers: Array, options: DeepPolishOptions = DEFAULT_DEEP_POLISH_OPTIONS
) -> Polished:
    """Fit ``network`` to answers (n, K) at points (n, d); it never gets worse."""
    clear = clear_of_kinks(network, points, options.clear)
    points, answers = points[clear], answers[clear]
    weights = 1 / (1 + np.linalg.norm(points, axis=1) / np.sqrt(points.shape[1]))
    model = NetworkParameters.from_network(network)
    factors = np.repeat(weights[:, None], answers.shape[1], axis=1)

    def residual(candidate: NetworkParameters) -> Array:
        return np.asarray((factors * (answers - candidate.values(points))).reshape(-1))

    # So near the end that one Jacobian serves all steps.
    require(COPIES_OF_JACOBIAN * answers.size * model.size, "the Jacobian of the polish")
    jacobian = ValueJacobian(model, points, factors).dense()
    free = _free_parameters(model, np.linalg.norm(jacobian, axis=0))
    solver = _Solver(jacobian[:, free], options)

    def move(candidate: NetworkParameters, left: Array) -> NetworkParameters:
        step = np.zeros(candidate.size)
        step[free] = solver.solve(left)
        return candidate.from_vector(candidate.to_vector() + step)

    schedule = LevenbergMarquardtOptions.undamped(options.steps, last_ratio=options.last_ratio)
    path = take_full_steps(model, residual, move, schedule)
    model, history = path.point.state, path.history
    bars = np.zeros(model.size)
    roots = solver.covariance_roots()
    bars[free] = np.where(np.isinf(roots), np.inf, history[-1] * np.where(np.isinf(roots), 0.0, roots))
    return Polished(model.to_network(), history, bars)


def enough_rows(
    network: Network,
    points: Array,
    wanted: int,
    rng: np.random.Generator,
    rows_per_weight: float = DEFAULT_DEEP_POLISH_OPTIONS.rows_per_weight,
) -> IntArray:
    """Return the numbers of ``wanted`` points (n, d) at random, and of more on either side of rare units."""
    order = rng.permutation(len(points))
    chosen = np.zeros(len(points), dtype=bool)
    chosen[order[:wanted]] = True
    for layer, z in enumerate(_preactivations(network, points)):
        quota = int(rows_per_weight * (len(network.weights[layer]) + 1))
        for unit in range(z.shape[1]):
            for side in (z[order, unit] > 0, z[order, unit] <= 0):
                chosen[order[np.flatnonzero(side)[:quota]]] = True
    return np.flatnonzero(chosen)


def clear_of_kinks(
    network: Network, points: Array, distance: float = DEFAULT_DEEP_POLISH_OPTIONS.clear
) -> BoolArray:
    """Return (n,) which points are so far from all surfaces that errors cannot change their side."""
    size = 1 + np.linalg.norm(points, axis=1)
    result = np.ones(len(points), dtype=bool)
    for layer, z in enumerate(_preactivations(network, points)):
        length = np.linalg.norm(network.weights[layer], axis=0)
        result &= (np.abs(z) > distance * size[:, None] * length).all(axis=1)
    return result


def _preactivations(network: Network, points: Array) -> list[Array]:
    """Return z (n, m) of every hidden layer."""
    read = NetworkParameters.from_network(network).forward(points).inputs
    return [h @ w + b for h, w, b in zip(read[:-1], network.weights, network.biases, strict=False)]


def open_parameters(polished: Polished) -> list[tuple[int, int, int]]:
    """Return (layer, row, unit) of parameters that no row determines; the bias is the row after the last."""
    model = NetworkParameters.from_network(polished.network)
    found, start = [], 0
    for layer, (rows, columns) in enumerate(model.shapes):
        part = polished.error_bars[start : start + rows * columns].reshape(rows, columns)
        found += [(layer, int(row), int(unit)) for row, unit in zip(*np.nonzero(np.isinf(part)), strict=True)]
        start += rows * columns
    return found


def rows_for_open_parameters(
    polished: Polished,
    rng: np.random.Generator,
    options: DeepPolishOptions = DEFAULT_DEEP_POLISH_OPTIONS,
    around: Array | None = None,
) -> Array:
    """Return points (n, d) where the parameters that are open act, as far as there are any.

    A unit that is nearly always on, or off, is told by rows on its rarer side. They are looked for at random
    and ``around`` points (n, d) that are known to lie there.
    """
    wanted = open_parameters(polished)
    network = polished.network
    if not wanted:
        return np.zeros((0, network.n_inputs))
    points = rng.standard_normal((options.places, network.n_inputs))
    spreads = np.array(options.place_spreads)
    points *= spreads[rng.integers(len(spreads), size=options.places)][:, None]
    if around is not None:
        points = np.concatenate([points, *_beside(network, wanted, around, rng, options)])
    states = NetworkParameters.from_network(network).forward(points)
    sizes = 1 + np.linalg.norm(points, axis=1)
    chosen: set[int] = set()
    for layer, row, unit in wanted:
        read = states.inputs[layer]
        on = states.slopes[layer][:, unit] == 1
        acts = np.abs(states.slopes[layer][:, unit] * (read[:, row] if row < read.shape[1] else 1.0)) / sizes
        best = np.argsort(acts)[-options.rows_per_open :]
        chosen.update(int(index) for index in best if acts[index] > 0)
        rarer = np.flatnonzero(on if 2 * on.sum() < len(on) else ~on)
        chosen.update(rng.permutation(rarer)[: options.rows_per_open].tolist())
    return points[sorted(chosen)]


def _beside(
    network: Network,
    wanted: list[tuple[int, int, int]],
    around: Array,
    rng: np.random.Generator,
    options: DeepPolishOptions,
) -> list[Array]:
    """Return points near those on the rarer side of units with open parameters."""
    heights, found = _preactivations(network, around), []
    for layer, unit in sorted({(layer, unit) for layer, _, unit in wanted if layer < len(heights)}):
        on = heights[layer][:, unit] > 0
        rarer = np.flatnonzero(on if 2 * on.sum() < len(on) else ~on)
        if len(rarer):
            seeds = around[rng.choice(rarer, options.places_beside)]
            steps = rng.standard_normal(seeds.shape) * np.linalg.norm(seeds, axis=1, keepdims=True)
            found.append(seeds + options.beside * rng.random((len(seeds), 1)) * steps)
    return found


def _free_parameters(model: NetworkParameters, effects: Array) -> IntArray:
    """Return all but one weight of every hidden unit: the one that matters most, given effects (P,)."""
    held, start = [], 0
    for layer, (_, columns) in enumerate(model.shapes[:-1]):
        weights = model.weights[layer]
        part = effects[start : start + weights.size].reshape(weights.shape)
        largest = np.abs(weights * part).argmax(axis=0)
        held.append(start + largest * columns + np.arange(columns))
        start = model.ends[layer]
    return np.setdiff1d(np.arange(model.size), np.concatenate(held))


class _Solver:
    """Least squares with one Jacobian (n, P), its columns scaled to one.

    Columns A that are far from each other's span are solved by their normal equations. What the others, B,
    add to them is told by the singular values of R = B - A C with C = A^+ B, refined until it is as precise
    as B: a direction v of B beyond rounding is determined if |R v| is, relative to |(C v, v)|.
    """

    def __init__(self, jacobian: Array, options: DeepPolishOptions) -> None:
        self._options = options
        size = np.linalg.norm(jacobian, axis=0)
        self._size = np.where(size > 0, size, 1.0)
        scaled = jacobian / self._size
        check(jacobian.size * jacobian.shape[1])
        gram = scipy.linalg.blas.dsyrk(1.0, scaled.T, lower=1)
        everything = np.arange(len(gram))
        try:
            factor = scipy.linalg.cholesky(gram, lower=True, check_finite=False)
            if np.diag(factor).min() > options.certain:
                self._split(scaled, everything, everything[:0], factor)
                return
        except scipy.linalg.LinAlgError:
            pass
        factor, order, rank, _ = scipy.linalg.lapack.dpstrf(gram, tol=options.apart**2, lower=1)
        self._split(scaled, order[:rank] - 1, order[rank:] - 1, np.tril(factor[:rank, :rank]))
        self._rest(options, float(np.sqrt(np.linalg.norm(gram + np.tril(gram, -1).T, np.inf))))

    def _split(self, scaled: Array, apart: IntArray, others: IntArray, factor: Array) -> None:
        self._apart, self._others, self._factor = apart, others, factor
        self._first, self._second = scaled[:, apart], scaled[:, others]
        self._made = np.zeros((len(apart), 0))
        """C V for the determined directions V of B"""
        self._ways = np.zeros((len(others), 0))
        """V"""
        self._images = np.zeros((len(scaled), 0))
        """R V / s^2, with the singular values s of R"""
        self._values = np.zeros(0)
        """s"""
        self._open = np.zeros((len(self._size), 0))
        """(P, k) orthonormal directions that nothing determines"""

    def _rest(self, options: DeepPolishOptions, largest: float) -> None:
        """Find which directions of B are determined; ``largest`` bounds the singular values of J."""
        rest, made = self._second, np.zeros((len(self._apart), len(self._others)))
        for _ in range(options.refinements):
            check(2 * self._first.size * len(self._others))
            more = self._normal(self._first.T @ rest)
            rest, made = rest - self._first @ more, made + more
        left, values, right = np.linalg.svd(rest, full_matrices=False)
        values = np.append(values, np.zeros(len(right) - len(values)))
        lengths = np.sqrt(1 + ((made @ right.T) ** 2).sum(axis=0))
        seen = values > options.rank * largest * lengths
        self._ways, self._values = right[seen].T, values[seen]
        self._made = made @ self._ways
        self._images = left[:, seen] / self._values
        beyond = np.zeros((len(self._size), int((~seen).sum())))
        beyond[self._apart], beyond[self._others] = -made @ right[~seen].T, right[~seen].T
        self._open = np.linalg.qr(beyond)[0]

    def _normal(self, right: Array) -> Array:
        return np.asarray(scipy.linalg.cho_solve((self._factor, True), right, check_finite=False))

    def solve(self, residual: Array) -> Array:
        """Return the step (P,); what is not determined does not move but with what it acts like."""
        step = np.zeros(len(self._size))
        amounts = self._images.T @ residual
        step[self._others] = self._ways @ amounts
        step[self._apart] = self._normal(self._first.T @ residual) - self._made @ amounts
        step -= self._open @ (self._open.T @ step)
        return np.asarray(step / self._size)

    def covariance_roots(self) -> Array:
        """Return (P,) roots of the diagonal of (J^T J)^-1; infinite for what is open."""
        inverse = scipy.linalg.solve_triangular(
            self._factor, np.eye(len(self._factor)), lower=True, check_finite=False
        )
        squares = np.zeros(len(self._size))
        squares[self._others] = ((self._ways / self._values) ** 2).sum(axis=1)
        squares[self._apart] = (inverse**2).sum(axis=0) + ((self._made / self._values) ** 2).sum(axis=1)
        roots = np.sqrt(squares) / self._size
        roots[(self._open**2).sum(axis=1) > self._options.open_share**2] = np.inf
        return np.asarray(roots)
