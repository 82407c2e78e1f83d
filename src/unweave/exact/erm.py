"""Global empirical risk minimization of a small ReLU network, with a certificate.

    min over a_i, b_i, s_i = +-1 of   sum_j l( sum_i s_i relu(a_i . x_j + b_i), y_j ),      i = 1..w,

l convex in the prediction. Only finitely many patterns of active points are possible, and for each the
problem is convex. [mathematics] Thm. 2.4.1 enumerates all of them; here the enumeration is a branch and bound
(`unweave.exact.search`) with bounds that need no signs.

Departures from the published algorithm: the loss is applied to the sum of the units (as printed, each unit
fits the label alone); the number of dichotomies is Cover's; one input is treated like several.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np  # noqa: F401 (used by the example)
from numpy.typing import ArrayLike

from unweave.exact.branch_and_bound import ExactOptions, Search
from unweave.exact.linear_losses import PiecewiseLinear
from unweave.exact.losses import ConvexLoss, Squared, loss_named
from unweave.exact.result import ExactFit, ExactProgress
from unweave.exact.search import Executor, Serial


def exact_erm(
    x: ArrayLike,
    y: ArrayLike,
    width: int = 2,
    *,
    loss: str | ConvexLoss = "squared",
    tolerance: float | None = None,
    time_limit: float | None = None,
    starts: int = 60,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Callable[[ExactProgress], None] | None = None,
) -> ExactFit:
    """The network of ``width`` ReLU units with the least loss on samples x (N, d), y (N,).

    Args:
        width: hidden units, 1 to 3. A unit may turn out to be superfluous.
        loss: "squared", "absolute", "huber", "hinge" or "logistic" (labels -1 and 1), any `PiecewiseLinear`,
            or another `ConvexLoss`.
        tolerance: certified gap, relative to the loss of the zero network. 1e-9 for squared and piecewise
            linear losses, 1e-6 for others, whose optima may lie at infinity. Below 1e-10, rounding decides.
        time_limit: seconds after which the best so far is returned, with a lower bound, not certified.
        starts: starts of the local search that provides the first upper bound.
        executor: maps blocks of patterns and programs; in this process by default.
        progress: called with an `ExactProgress` after every block.

    An interrupt raises `SearchInterrupted`, whose ``result`` is the best so far. Lower bounds are computed in
    floating point, with elimination only where pivots are large; they are sharp to about 1e-10 of the loss
    of the zero network, but not a proof in exact arithmetic. Cost: (number of dichotomies)^width in the worst
    case, labels without structure; with little noise a small fraction of it.

    Example:
        >>> rng = np.random.default_rng(1000)
        >>> x = rng.standard_normal((30, 2))
        >>> y = np.maximum(x[:, 0], 0) - np.maximum(x[:, 1] - x[:, 0], 0) + 0.1 * rng.standard_normal(30)
        >>> fit = exact_erm(x, y, width=2)
        >>> fit.certified, fit.network.hidden
        (True, (2,))
    """
    kind = loss_named(loss)
    if tolerance is None:
        tolerance = 1e-9 if isinstance(kind, Squared | PiecewiseLinear) else 1e-6
    options = ExactOptions(tolerance, time_limit, starts, seed, executor or Serial(), progress)
    return Search(x, y, width, kind, options).run()
