"""Bias-free networks from Gaussian samples: tensor start, then descent, then Gauss-Newton.

The start uses all samples. The refinement needs some twenty per parameter; the residual on the others shows
whether it succeeded. Descent takes steps 1/M0; the Gauss-Newton finish replaces thousands of them.

    W <- W - (1/M0) grad f_S(W),      grad_W f_S = (1/n) X^T [ g'(X W) * v * (g(X W) v - y) ],

M0 the largest eigenvalue of the Gauss-Newton matrix at the iterate, taken anew every few steps. Near the
truth |W - W*|_F^2 falls by (1 - m0/M0)^2 a step (`unweave.tensor_start.bias_free`). Gauss-Newton,
here with Levenberg-Marquardt damping, ends at rounding in three to ten steps from the same starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.numerics.least_squares import Fit, LevenbergMarquardtOptions, levenberg_marquardt
from unweave.tensor_start.bias_free import BiasFreeFit, LocalConvexity, bias_free_parts, local_convexity
from unweave.tensor_start.initialization import TensorStart, tensor_start

_STEPS_PER_M0 = 50  # steps between computations of M0, which changes slowly
_DIVERGED_RISE = 1e3  # residual over that of the start: above, descent has diverged
_FIT_ROUNDING = 20.0  # residual of a fit to noise-free labels, in eps times the size of the labels


@dataclass(frozen=True)
class DescentOptions:
    """Stopping rules of the descent."""

    steps: int = 5000
    tolerance: float = 1e-12
    """Root mean square residual, relative to that of the labels."""


@dataclass(frozen=True, eq=False)
class Descent:
    """End point of the descent."""

    network: Network
    history: Array
    """(steps + 1,) root mean square residual, relative to that of the labels, before every step and at the
    end."""
    step: float
    """The last step length, 1/M0."""
    converged: bool
    """Whether the tolerance was reached."""


def gradient_descent(
    start: Network,
    x: Array,
    y: Array,
    options: DescentOptions | None = None,
    on_step: Callable[[int, Array], None] | None = None,
) -> Descent:
    """Descend from ``start`` on samples x (n, d), y (n,); output weights are fixed.

    ``on_step`` is called with (steps made, W (d, k)), first at the start.
    """
    options = options or DescentOptions()
    weights, problem = _problem(start, x, y)
    vector, size = problem.vector(weights), _rms(problem.y) or 1.0
    history: list[float] = []
    step, converged = np.nan, False
    for count in range(options.steps + 1):
        residual = problem.residual(vector)
        history.append(_rms(residual) / size)
        if on_step is not None:
            on_step(count, problem.weights(vector))
        converged = history[-1] <= options.tolerance
        if converged or count == options.steps or not history[-1] <= _DIVERGED_RISE * history[0]:
            break
        linear = problem.linearise(vector)
        if count % _STEPS_PER_M0 == 0:
            gram, last = np.asarray(linear.gram(), dtype=np.float64), vector.size - 1
            step = len(x) / float(scipy.linalg.eigvalsh(gram, subset_by_index=[last, last])[0])
        vector = vector + step / len(x) * linear.adjoint(residual)
    return Descent(problem.network(vector), np.array(history), float(step), bool(converged))


def gauss_newton(start: Network, x: Array, y: Array, steps: int = 60) -> tuple[Network, Fit]:
    """Least squares in W from ``start``, output weights fixed; ends at rounding if the labels allow it."""
    weights, problem = _problem(start, x, y)
    floor = _FIT_ROUNDING * float(np.finfo(np.float64).eps) * _rms(problem.y)
    options = LevenbergMarquardtOptions(steps=steps, rounding=floor)
    fit = levenberg_marquardt(problem, problem.vector(weights), options)
    return problem.network(fit.vector), fit


def _problem(start: Network, x: Array, y: Array) -> tuple[Array, BiasFreeFit]:
    weights, outer, activation = bias_free_parts(start)
    return weights, BiasFreeFit(activation, outer, np.asarray(x, dtype=np.float64), np.asarray(y).reshape(-1))


def _rms(values: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sqrt(np.mean(values**2)))


@dataclass(frozen=True, eq=False)
class TensorRecovery:
    """The result of every stage."""

    network: Network
    start: TensorStart
    descent: Descent | None
    """None without descent options."""
    fit: Fit
    """Of the Gauss-Newton finish; its rms is that of the labels' own unit."""
    convexity: LocalConvexity
    """At the result, on the samples of the refinement."""
    held_out_error: float
    """Largest error on the other samples relative to their largest label; nan if there are none."""


def recover_from_tensors(
    x: Array,
    y: Array,
    width: int,
    activation: str,
    descent: DescentOptions | None = None,
    rows_per_parameter: int = 20,
    held_out: float = 0.2,
) -> TensorRecovery:
    """Recover sum_i v_i g(w_i . x), v_i = +-1, from samples x (n, d) ~ N(0, I), y (n,); width <= d.

    Gradient descent runs only if ``descent`` is given: Gauss-Newton needs none. If the start is too far (few
    samples, ill-conditioned weights), the fit ends elsewhere and ``held_out_error`` shows it. The fit uses
    ``rows_per_parameter`` samples per weight, at most a share 1 - ``held_out`` of all.

    Example:
        >>> import unweave
        >>> net = unweave.random_network([6, 3, 1], activation="squared_relu", seed=1000, bias=0)
        >>> x = np.random.default_rng(1001).standard_normal((4000, 6))
        >>> found = recover_from_tensors(x, net(x), 3, "squared_relu")
        >>> unweave.compare(net, found.network).is_same
        True
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64).reshape(-1)
    start = tensor_start(x, y, width, activation)
    rows = min(rows_per_parameter * width * x.shape[1], int(np.ceil((1 - held_out) * len(x))))
    inner_x, inner_y = x[:rows], y[:rows]
    network, went = start.network, None
    if descent is not None:
        went = gradient_descent(network, inner_x, inner_y, descent)
        network = went.network
    network, fit = gauss_newton(network, inner_x, inner_y)
    outside = slice(rows, None)
    error = np.nan
    if len(x) > rows:
        error = float(np.abs(network(x[outside])[:, 0] - y[outside]).max() / np.abs(y[outside]).max())
    return TensorRecovery(network, start, went, fit, local_convexity(network, inner_x), error)
