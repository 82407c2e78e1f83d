"""Held-out rows choose units only where they pay, and only the weighted set of rows counts."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.tables.penalised_fit import Setting, averaged, fit_table, without_idle_units
from unweave.tables.selection import SelectionOptions, choose_model
from unweave.tables.weighted_rows import Standardized, WeightedRows


def rows(seed: int, curved: bool, noise: float = 0.3) -> WeightedRows:
    rng = np.random.default_rng(seed)
    x = 5 + 100 * rng.standard_normal((300, 3))
    z = (x - 5) / 100
    y = z @ [1.0, -2.0, 0.5] + (3 * np.abs(z[:, 0]) if curved else 0) + noise * rng.standard_normal(300)
    return WeightedRows.of(x, y[:, None])


@pytest.mark.parametrize(("seed", "curved"), [(1000, False), (1001, False), (1000, True), (1001, True)])
def test_units_only_where_they_pay(seed: int, curved: bool) -> None:
    standardized = Standardized.of(rows(seed, curved), "squares")
    choice = choose_model(standardized.table, SelectionOptions(folds=3, members=2), 0)
    assert choice.best is not None
    assert (choice.best.setting.width > 0) == curved
    affine = min(each.loss for each in choice.scored if each.setting.width == 0)
    # The absolute value holds most of the variance of the curved answers; otherwise only noise is left.
    assert (choice.best.loss < 0.5 * affine) == curved


def test_the_network_is_in_own_units() -> None:
    given = rows(1002, True)
    standardized = Standardized.of(given, "squares")
    rng = np.random.default_rng(0)
    model = fit_table(
        standardized.table, Setting(skip_ridge=1e-3, activation="tanh", width=4, ridge=1e-3), rng
    )
    expected = model.values(standardized.table.x) * standardized.spread + standardized.center
    np.testing.assert_allclose(standardized.network(model)(given.x), expected, rtol=1e-12)


def test_averages_are_one_network() -> None:
    table = Standardized.of(rows(1003, True), "squares").table
    setting = Setting(skip_ridge=1e-3, activation="relu", width=3, ridge=1e-3)
    models = [fit_table(table, setting, np.random.default_rng(seed)) for seed in range(3)]
    mean = np.mean([model.values(table.x) for model in models], axis=0)
    np.testing.assert_allclose(averaged(models).values(table.x), mean, rtol=0, atol=1e-12)


def test_a_strong_ridge_leaves_no_unit() -> None:
    table = Standardized.of(rows(1004, False), "squares").table
    setting = Setting(skip_ridge=1e-2, activation="tanh", width=5, ridge=10.0)
    model = without_idle_units(fit_table(table, setting, np.random.default_rng(0)))
    assert model.depth == 1


def test_weights_are_repeated_rows_in_any_order() -> None:
    rng = np.random.default_rng(1005)
    x, y, weights = rng.standard_normal((40, 2)), rng.standard_normal((40, 1)), rng.integers(0, 4, 40)
    repeated = rng.permutation(np.repeat(np.arange(40), weights))
    one, other = WeightedRows.of(x, y, weights.astype(float)), WeightedRows.of(x[repeated], y[repeated])
    for name in ("x", "y", "weights"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_constant_inputs_get_no_weight() -> None:
    rng = np.random.default_rng(1006)
    x = np.column_stack([rng.standard_normal(50), np.full(50, 0.1)])
    standardized = Standardized.of(WeightedRows.of(x, x[:, :1]), "squares")
    model = fit_table(standardized.table, Setting(skip_ridge=1e-9), rng)
    network = standardized.network(model)
    assert isinstance(network, unweave.Network)
    assert network.weights[0][1, 0] == 0.0
