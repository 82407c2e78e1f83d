"""Directions along which samples curve hold the units of a wide layer, and large searches begin there."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.arrays import Array
from unweave.numerics.variable_projection import search as unit_search
from unweave.numerics.variable_projection.curvature import curved_directions, shows_curvature
from unweave.numerics.variable_projection.features import SQUARED_KINK
from unweave.numerics.variable_projection.problem import ProjectedProblem
from unweave.numerics.variable_projection.search import SearchOptions, search_units

INPUTS, WIDTH = 12, 3


def planted(rows: int, outputs: int = 1) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(1000)
    weights = rng.standard_normal((INPUTS, WIDTH))
    weights /= np.linalg.norm(weights, axis=0)
    x = rng.standard_normal((rows, INPUTS))
    heights = rng.choice([-1.0, 1.0], (WIDTH, outputs)) * rng.uniform(1, 2, (WIDTH, outputs))
    return x, np.maximum(x @ weights + rng.uniform(-0.5, 0.5, WIDTH), 0) @ heights, weights


@pytest.mark.parametrize("outputs", [1, 2])
def test_curved_directions_hold_the_units(outputs: int) -> None:
    x, y, weights = planted(2000, outputs)
    directions = curved_directions(ProjectedProblem(x, y), WIDTH)
    np.testing.assert_allclose(directions.T @ directions, np.eye(WIDTH), atol=1e-12)
    held = np.linalg.norm(directions.T @ weights, axis=0)
    assert held.min() > 0.9  # a random subspace of this dimension holds a half of each


def test_few_rows_and_quadratic_polynomials_show_no_curvature() -> None:
    x, y, _ = planted(2000)
    assert shows_curvature(ProjectedProblem(x, y))
    assert not shows_curvature(ProjectedProblem(x[:150], y[:150]))
    assert not shows_curvature(ProjectedProblem(x, y, SQUARED_KINK))


def searched(monkeypatch: pytest.MonkeyPatch, least: int) -> tuple[list[int], float]:
    """Return the numbers of inputs of all problems that a search made, and its residual."""
    x, y, _ = planted(800)
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    seen: list[int] = []

    class Watched(ProjectedProblem):
        def minimise(self, units, *rest, **named):  # type: ignore[no-untyped-def]
            seen.append(len(units) - 1)
            return super().minimise(units, *rest, **named)

    monkeypatch.setattr(unit_search, "ProjectedProblem", Watched)
    options = SearchOptions(curved_parameters=least)
    found = search_units(x, y, WIDTH, floor=1e-12, rng=np.random.default_rng(1), options=options)
    assert found.exact
    assert found.fit.units.shape == (INPUTS + 1, WIDTH)
    return seen, found.fit.residual


def test_large_starts_begin_where_answers_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, residual = searched(monkeypatch, least=0)
    assert seen[1] == WIDTH  # the first fit of units
    assert seen.count(WIDTH) == 1
    assert residual < 1e-12


def test_small_starts_see_all_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, _ = searched(monkeypatch, least=10**6)
    assert set(seen) == {INPUTS}


def test_an_interrupt_in_the_first_fit_keeps_its_units() -> None:
    x, y, _ = planted(800)
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    taken: list[float] = []

    def stop(steps: int, residual: float) -> None:
        taken.append(residual)
        if len(taken) == 3:
            raise KeyboardInterrupt

    options = SearchOptions(curved_parameters=0)
    rng = np.random.default_rng(1)
    found = search_units(x, y, WIDTH, floor=1e-12, rng=rng, options=options, on_step=stop)
    assert found.interrupted
    assert not found.exact
    assert found.fit.units.shape[0] == INPUTS + 1
    assert found.fit.units.shape[1] == 4  # a quarter more than were told
