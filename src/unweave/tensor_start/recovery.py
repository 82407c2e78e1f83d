"""Bias-free networks from Gaussian samples: tensor start, then descent, then Gauss-Newton.

The start uses all samples. The refinement needs some twenty per parameter; the residual on the others shows
whether it succeeded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.numerics.least_squares import Fit
from unweave.tensor_start.descent import Descent, DescentOptions, gauss_newton, gradient_descent
from unweave.tensor_start.initialization import TensorStart, tensor_start
from unweave.tensor_start.local_convexity import LocalConvexity, local_convexity


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
