"""Units that are nowhere near a true one are left out before a fit."""

from __future__ import annotations

import numpy as np

from unweave.numerics.variable_projection.problem import ProjectedProblem
from unweave.numerics.variable_projection.prune import without_useless


def test_rough_units_stay_and_others_go():
    rng = np.random.default_rng(1000)
    x = rng.standard_normal((400, 6))
    true = rng.standard_normal((7, 10))
    y = np.abs(x @ true[:-1] + true[-1]) @ rng.uniform(0.5, 1.5, (10, 1))
    rough = true + 1e-3 * rng.standard_normal(true.shape)
    units = np.hstack([rough, rng.standard_normal((7, 8))])
    left = without_useless(ProjectedProblem(x, y - y.mean(axis=0)), units, 0.3)
    kept = [int(np.argmin(np.abs(units - unit[:, None]).sum(axis=0))) for unit in left.T]
    assert set(range(10)) <= set(kept)
    assert len(kept) <= 14  # half of the others
