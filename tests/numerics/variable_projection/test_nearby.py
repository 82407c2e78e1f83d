"""Units near the right ones: missing ones are found, surplus ones left out, in answers with noise."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.numerics.variable_projection.nearby import NearbyOptions, search_nearby

NOISE = 1e-7


def samples(seed, rows=1500, inputs=5, width=12, weak=1e-3):
    """Random inputs, units (d + 1, m) of which the last is weak, and answers with noise."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, inputs))
    units = np.vstack([rng.standard_normal((inputs, width)), rng.uniform(-0.5, 0.5, width)])
    units /= np.linalg.norm(units[:-1], axis=0)
    heights = rng.choice([-1.0, 1.0], width) * np.append(rng.uniform(0.3, 1, width - 1), weak)
    y = np.abs(x @ units[:-1] + units[-1]) @ heights[:, None]
    return rng, x, units, (y + NOISE * rng.standard_normal(y.shape)) / y.std()


def distances(units, found):
    """How far each unit is from the nearest one found, as hyperplanes."""
    a, b = (each / np.linalg.norm(each, axis=0) for each in (units, found))
    return np.sqrt(np.maximum(2 - 2 * np.abs(a.T @ b), 0)).min(axis=1)


@pytest.mark.parametrize("seed", [1000, 1001, 1002])
def test_rough_units_with_one_missing_and_two_too_many(seed):
    rng, x, units, y = samples(seed)
    rough = units[:, :-1] + 1e-3 * rng.standard_normal((len(units), units.shape[1] - 1))
    twin = rough[:, :1] + 1e-2 * rng.standard_normal((len(units), 1))
    start = np.hstack([rough, twin, rng.standard_normal((len(units), 1))])
    found = search_nearby(x, y, start, floor=10 * NOISE, rng=rng)
    assert found.exact
    assert found.fit.units.shape == units.shape
    apart = distances(units, found.fit.units)
    assert apart[:-1].max() < 1e-6
    assert apart[-1] < 1e-3  # the weak unit, to its share of the precision


def test_what_units_cannot_explain_is_not_called_exact():
    rng, x, units, y = samples(1000)
    wrong = y + 1e-2 * np.sin(3 * x[:, :1])
    found = search_nearby(x, wrong, units, floor=10 * NOISE, rng=rng, options=NearbyOptions(repairs=2))
    assert not found.exact
    assert found.exact_width is None
