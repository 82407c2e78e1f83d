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


def test_units_met_again_and_dead_ones_go():
    rng = np.random.default_rng(1001)
    x = rng.standard_normal((400, 6))
    true = rng.standard_normal((7, 10))
    y = np.abs(x @ true[:-1] + true[-1]) @ rng.uniform(0.5, 1.5, (10, 1))
    rough = true + 1e-3 * rng.standard_normal(true.shape)
    dead = np.vstack([rng.standard_normal((6, 3)), np.full(3, 100.0)])
    units = np.hstack([rough, -rough[:, :5], dead, rough[:, 5:] * (1 + 1e-12)])
    left = without_useless(ProjectedProblem(x, y - y.mean(axis=0)), units, 0.3)
    assert left.shape[1] == 10
    assert np.linalg.matrix_rank(left / np.linalg.norm(left, axis=0), tol=1e-6) == 7
    lengths = np.linalg.norm(left[:-1], axis=0)
    np.testing.assert_allclose(np.sort(lengths), np.sort(np.linalg.norm(rough[:-1], axis=0)), rtol=1e-9)
