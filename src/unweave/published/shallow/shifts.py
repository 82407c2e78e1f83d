"""Signs and shifts of units whose directions are known ([identification] Alg. 3.3), and their refinement.

The derivatives of f(x) = sum_k g(w_k . x + tau_k) at the origin along an estimate what_k = s_k w_k are

    T_n,k = sum_l <what_k, w_l>^n g^(n)(tau_l),    so    G_n^{-1} T_n = ( s_k^n g^(n)(tau_k) )_k

with G_n the n-th elementwise power of What^T What. The second derivative gives the shift where g'' is
invertible, the third the sign. Gradient descent on

    J(t) = 1/(2N) sum_i ( sum_k g(<w_k, X_i> + t_k) - f(X_i) )^2

then refines the shifts with the weights frozen; it converges linearly down to the floor that the weights'
error sets (`unweave.diagnose.weight_error_terms`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.derivatives.stencils import directional_derivatives
from unweave.errors import InvalidInput
from unweave.networks.activations import Activation
from unweave.numerics.clock import out_of_time
from unweave.published.shallow.options import PublishedOptions

_TRAINING_ROWS = 4096  # rows of N x m arrays formed at once: limits memory
_NORM_STEPS = 100  # power steps for ||K||, whose error the margin covers
_NORM_MARGIN = 1.05  # factor on ||K|| that covers the power steps and the subsample


@dataclass(frozen=True, eq=False)
class SignsAndShifts:
    """Result of [identification] Alg. 3.3, from two derivatives per unit."""

    signs: Array
    """(m,) +1 or -1: s_k what_k is the weight."""
    shifts: Array
    """(m,) of the correctly signed units."""
    second: Array
    """(m,) estimates of g''(tau_k)."""
    third: Array
    """(m,) estimates of s_k g'''(tau_k); near zero the sign is not to be trusted."""


@dataclass(frozen=True, eq=False)
class RefinedShifts:
    """End point of gradient descent on the shifts."""

    shifts: Array
    """(m,)"""
    training_mse: tuple[float, ...]
    """Mean squared training error at the start and after every step (gradient) or epoch (sgd)."""
    seconds: float
    converged: bool
    """Whether the tolerance was reached."""


def signs_and_shifts(
    function: Callable[[Array], Array],
    directions: Array,
    activation: Activation,
    options: PublishedOptions | None = None,
) -> SignsAndShifts:
    """Signs and initial shifts from second and third derivatives at the origin ([identification] Alg. 3.3).

    ``directions`` (m, D): unit rows, each a weight up to sign. Rows asked: 4 m + 1. Error, (3.62):
    sqrt(m) eps + m^{3/2} (log m / D)^{3/4} max_k |w_k - s_k what_k| up to a constant that grows with
    cond(G2) and with 1 / min |g'''| over the interval.
    """
    options = options or PublishedOptions()
    half_width = shift_interval(activation, options.interval)
    second, third = directional_derivatives(
        function, directions, second_step=options.step, third_step=options.step
    )
    gram = directions @ directions.T
    second = scipy.linalg.solve(gram**2, second[:, 0], assume_a="sym")
    third = scipy.linalg.solve(gram**3, third[:, 0], assume_a="sym")
    # g'' is monotone, so the point of [-T, T] nearest to a value outside its range is the nearer end.
    shifts = np.clip(activation.inverse_second(second), -half_width, half_width)
    orientation = np.sign(activation.jet(np.zeros(1), 3)[3][0])
    signs = np.where(third * orientation < 0, -1.0, 1.0)
    return SignsAndShifts(signs, shifts, second, third)


def shift_interval(activation: Activation, interval: float | None) -> float:
    """T: as given, or a little less than where g'' is monotone."""
    widest = activation.monotone_second
    if widest is None:
        raise InvalidInput(
            f"activation must have a second derivative that is monotone around 0. Got {activation.name!r} "
            "instead. The default route fits every unit's profile and needs no such interval."
        )
    if interval is None:
        return 0.6 if activation.name == "tanh" else float(min(0.9 * widest, 1e6))
    if not 0 < interval <= widest:
        raise InvalidInput(
            f"interval must be in (0, {widest:.4f}], where g'' of {activation.name} is monotone. "
            f"Got {interval} instead."
        )
    return interval


def refine_shifts(
    inputs: Array,
    answers: Array,
    weights: Array,
    shifts: Array,
    activation: Activation,
    rng: np.random.Generator,
    options: PublishedOptions | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> RefinedShifts:
    """Refine ``shifts`` (m,) of the units ``weights`` (D, m) on ``inputs`` (N, D) and ``answers`` (N,).

    ``options.refinement`` "gradient" takes all samples in every step, of length 1/||K|| unless a learning
    rate is given, K = (1/N) sum_i g'(z_i) g'(z_i)^T; "sgd" takes them in shuffled batches. Both stop at
    ``options.tolerance`` or after ``options.seconds``. Cost of a pass: 2 N D m flops and 2 N m evaluations
    of g.
    """
    options = options or PublishedOptions()
    problem = _ShiftProblem(inputs, answers, weights, activation)
    if options.refinement == "none":
        mse = problem.mse(shifts)
        return RefinedShifts(shifts, (mse,), 0.0, mse <= options.tolerance)
    begin = clock()
    t, history = shifts.copy(), []
    if options.refinement == "gradient":
        rate = options.learning_rate or 1 / (_NORM_MARGIN * problem.gram_norm(shifts, rng))
    else:
        rate = options.learning_rate or 1e-3
    while True:
        mse, gradient = problem.mse_and_gradient(t)
        history.append(mse)
        elapsed = clock() - begin
        if mse <= options.tolerance or elapsed >= options.seconds or not np.isfinite(mse) or out_of_time():
            return RefinedShifts(t, tuple(history), elapsed, mse <= options.tolerance)
        if options.refinement == "gradient":
            t = t - rate * gradient
        else:
            t = problem.epoch(
                t, rate, options.batch, rng, lambda: clock() - begin >= options.seconds or out_of_time()
            )


class _ShiftProblem:
    """J(t) over a fixed training set, a block of rows at a time."""

    def __init__(self, inputs: Array, answers: Array, weights: Array, activation: Activation) -> None:
        if answers.shape != (len(inputs),):
            raise InvalidInput(
                f"answers must be of shape ({len(inputs)},), one per input. Got {answers.shape} instead."
            )
        self._inputs = inputs
        self._answers = answers
        self._weights = weights
        self._activation = activation

    def mse(self, t: Array) -> float:
        """Mean of (fhat - f)^2."""
        return self.mse_and_gradient(t)[0]

    def mse_and_gradient(self, t: Array) -> tuple[float, Array]:
        """Mean of (fhat - f)^2 and the gradient of its half, (m,)."""
        total, gradient = 0.0, np.zeros_like(t)
        for start in range(0, len(self._inputs), _TRAINING_ROWS):
            rows = slice(start, start + _TRAINING_ROWS)
            error, slopes = self._errors(self._inputs[rows], self._answers[rows], t)
            total += float(error @ error)
            gradient += error @ slopes
        return total / len(self._inputs), gradient / len(self._inputs)

    def gram_norm(self, t: Array, rng: np.random.Generator) -> float:
        """||K|| at ``t``, by power iteration on a subsample of at most ``_TRAINING_ROWS`` rows.

        The sampling error of the largest eigenvalue is a few percent, which the caller's margin covers.
        """
        rows = self._inputs if len(self._inputs) <= _TRAINING_ROWS else self._inputs[:_TRAINING_ROWS]
        slopes = self._activation.jet(rows @ self._weights + t, 1)[1]
        vector, norm = rng.standard_normal(len(t)), 1.0
        for _ in range(_NORM_STEPS):
            image = slopes.T @ (slopes @ vector) / len(rows)
            norm = float(np.linalg.norm(image))
            vector = image / norm
        return norm

    def epoch(
        self, t: Array, rate: float, batch: int, rng: np.random.Generator, expired: Callable[[], bool]
    ) -> Array:
        """One pass of stochastic gradients of the mean squared error over shuffled batches."""
        order = rng.permutation(len(self._inputs))
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            error, slopes = self._errors(self._inputs[rows], self._answers[rows], t)
            t = t - (2 * rate / len(error)) * (error @ slopes)
            if expired():
                break
        return t

    def _errors(self, inputs: Array, answers: Array, t: Array) -> tuple[Array, Array]:
        value, slopes = self._activation.jet(inputs @ self._weights + t, 1)
        return value.sum(axis=1) - answers, slopes
