"""Find one more unit in what the others leave once they have adapted to its absence.

Units that are fitted without one that is missing bend towards it, and what they leave of the answers then
looks like no unit at all. But as far as the fit is linear, all that they can do is known: it is the span of
their Jacobian J. So a unit is sought whose shape, projected onto the complement of that span, explains what
is left there: with r = (I - Q Q^T) (answers - model), Q an orthonormal basis of J,

    minimise over (w, b)   min_a  | r - (I - Q Q^T) (g(w . x + b) a) |^2,

d + 1 parameters however wide the layer is. A grid of lengths and biases along many directions gives the
starts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFit
from unweave.numerics.clock import check
from unweave.numerics.least_squares.formed_jacobian import FormedJacobian
from unweave.numerics.least_squares.levenberg_marquardt import LevenbergMarquardtOptions
from unweave.numerics.least_squares.solved_steps import levenberg_marquardt


@dataclass(frozen=True, kw_only=True)
class MissingUnitOptions:
    """How widely a unit is sought, in inputs of unit variance."""

    directions: int = 300
    """Random directions, besides those that are given, ..."""
    flops: float = 3e10
    """... fewer where the grids along all of them would take more than this."""
    refined: int = 16
    """Best starts that are refined, ..."""
    enough: float = 0.01
    """... until this part of the norm is left."""
    lengths: tuple[float, ...] = tuple(np.geomspace(0.1, 5.0, 10))
    """Lengths of the unit's weights, of either sign."""
    biases: tuple[float, ...] = tuple(np.linspace(-4.0, 4.0, 27))
    """Its biases."""


@dataclass(frozen=True, eq=False)
class MissingUnit:
    """A unit and how much of what was left it explains."""

    weights: Array
    """(d,)"""
    bias: float
    outgoing: Array
    """(K,)"""
    left: float
    """Part of the norm of what was left that stays."""

    def added_to(self, model: NetworkParameters) -> NetworkParameters:
        """Return ``model``, of one hidden layer, with this unit last."""
        return replace(
            model,
            weights=(
                np.hstack([model.weights[0], self.weights[:, None]]),
                np.vstack([model.weights[1], self.outgoing]),
            ),
            biases=(np.append(model.biases[0], self.bias), model.biases[1]),
        )


DEFAULTS = MissingUnitOptions()


def missing_unit(
    model: NetworkParameters,
    points: Array,
    answers: Array,
    rng: np.random.Generator,
    along: Array | None = None,
    options: MissingUnitOptions = DEFAULTS,
    *,
    frozen: bool = False,
) -> MissingUnit | None:
    """Return the unit that explains most of what ``model`` leaves of ``answers`` (n, K) at ``points`` (n, d).

    ``model`` has one hidden layer and is fitted to them already. ``along`` (d, k) are directions that are
    tried first. ``frozen`` says that the other units are right as they are, and have not adapted. Returns
    None where the equations are no more than the parameters, or nothing is left.
    """
    if answers.size <= model.size + model.n_inputs + model.n_outputs:
        return None
    problem = _OneUnit.beside(model, points, answers, frozen)
    if not problem.size > 0:
        return None
    per_direction = 4 * len(options.lengths) * len(options.biases) * answers.size * model.size
    count = int(np.clip(options.flops / per_direction, 1, options.directions))
    drawn = rng.standard_normal((model.n_inputs, count))
    every = drawn if along is None else np.hstack([along, drawn])
    every = every / np.linalg.norm(every, axis=0)
    starts = []
    for direction in every.T:
        check()
        starts.append(problem.best_along(direction, options))
    starts.sort(key=lambda start: -start[0])
    found = None
    for _, start in starts[: options.refined]:
        fit = levenberg_marquardt(problem, start, LevenbergMarquardtOptions())
        left = fit.rms * np.sqrt(answers.size) / problem.size
        if found is None or left < found.left:
            found = MissingUnit(fit.vector[:-1], float(fit.vector[-1]), problem.outgoing(fit.vector), left)
        if found.left <= options.enough:
            break
    return found


class _OneUnit:
    """Least squares in the weights and bias of one unit; all that is linear is projected out."""

    def __init__(self, model: NetworkParameters, points: Array, left: Array, basis: Array) -> None:
        self._activation, self._points = model.activation, points
        self._left, self._basis = left, basis  # (n, K) and (n, K, p)
        self.size = float(np.linalg.norm(left))

    @classmethod
    def beside(cls, model: NetworkParameters, points: Array, answers: Array, frozen: bool) -> _OneUnit:
        """Project out what the parameters of ``model`` can do; only output biases if it is ``frozen``."""
        fit = ValueFit(model, points, answers)
        vector = model.to_vector()
        outputs = answers.shape[1]
        jacobian = np.tile(np.eye(outputs), (len(answers), 1)) if frozen else fit.linearise(vector).dense()
        length = np.linalg.norm(jacobian, axis=0)
        basis = np.linalg.qr(jacobian / np.where(length > 0, length, 1.0))[0]
        residual = fit.residual(vector)
        for _ in range(2):  # twice: once leaves the rounding of the first projection
            residual = residual - basis @ (basis.T @ residual)
        return cls(model, points, residual.reshape(answers.shape), basis.reshape(*answers.shape, -1))

    @property
    def n_equations(self) -> int:
        """Number of rows n K."""
        return int(self._left.size)

    def best_along(self, direction: Array, options: MissingUnitOptions) -> tuple[float, Array]:
        """Return the part of what is left that the best unit of the grid explains, and that unit."""
        lengths = np.array(options.lengths)
        scales = np.repeat(np.concatenate([lengths, -lengths]), len(options.biases))
        shifts = np.tile(options.biases, 2 * len(lengths))
        shapes = self._activation((self._points @ direction)[:, None] * scales + shifts)  # (n, g)
        overlap, gram = self._normal_equations(shapes)
        outgoing = np.linalg.solve(gram, overlap[..., None])[..., 0]
        explained = np.einsum("gk,gk->g", overlap, outgoing)
        best = int(np.argmax(np.where(np.isfinite(explained), explained, -np.inf)))
        return float(explained[best]), np.append(scales[best] * direction, shifts[best])

    def _normal_equations(self, shapes: Array) -> tuple[Array, Array]:
        """Return overlaps (g, K) with what is left and Gram matrices (g, K, K) of projected ``shapes``."""
        inside = np.einsum("ng,nkp->gkp", shapes, self._basis, optimize=True)
        squares = np.einsum("ng,ng->g", shapes, shapes)
        gram = squares[:, None, None] * np.eye(self._left.shape[1]) - inside @ inside.transpose(0, 2, 1)
        # A shape that the others can do leaves nothing but rounding, which must not count as a fit.
        rounding = 1e-10 * squares[:, None] + np.finfo(np.float64).tiny
        gram += rounding[..., None] * np.eye(gram.shape[1])
        return shapes.T @ self._left, gram

    def outgoing(self, vector: Array) -> Array:
        """Return the outgoing weights (K,) that fit best."""
        overlap, gram = self._normal_equations(self._shape(vector)[:, None])
        return np.asarray(np.linalg.solve(gram[0], overlap[0]))

    def _shape(self, vector: Array) -> Array:
        return np.asarray(self._activation(self._points @ vector[:-1] + vector[-1]))

    def _projected(self, columns: Array) -> Array:
        """Return columns (n, K, c) without what the others can do, as (n K, c)."""
        basis = self._basis.reshape(self.n_equations, -1)
        flat = columns.reshape(self.n_equations, -1)
        return np.asarray(flat - basis @ (basis.T @ flat))

    def residual(self, vector: Array) -> Array:
        """What stays left beside the unit (n K,)."""
        explained = self._shape(vector)[:, None] * self.outgoing(vector)
        return self._left.reshape(-1) - self._projected(explained[..., None])[:, 0]

    def linearise(self, vector: Array) -> FormedJacobian:
        """Derivatives of the explained part: outgoing weights follow, as far as they are linear."""
        outgoing = self.outgoing(vector)
        slope = self._activation.jet(self._points @ vector[:-1] + vector[-1], 1)[1]
        reads = np.concatenate([self._points, np.ones((len(self._points), 1))], axis=1) * slope[:, None]
        moved = self._projected(reads[:, None, :] * outgoing[:, None])
        outputs = np.eye(len(outgoing))
        shape = self._shape(vector)[:, None, None] * outputs
        own = np.linalg.qr(self._projected(shape))[0]
        return FormedJacobian(moved - own @ (own.T @ moved))
