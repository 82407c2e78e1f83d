from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.numerics.least_squares.manifold_descent import descend


class Linear:
    """|A x - b|^2; counts how often it is asked."""

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self._a, self._b = a, b

    def residual(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self._a @ x - self._b)

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        return self._a

    def cost(self, x: np.ndarray) -> float:
        return float(np.sum(self.residual(x) ** 2))

    def normal_equations(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        j, r = self.jacobian(x), self.residual(x)
        return j.T @ j, j.T @ r, float(r @ r)

    def moved(self, x: np.ndarray, step: np.ndarray) -> np.ndarray:
        return np.asarray(x + step)


class Circle(Linear):
    """An angle whose point should be a given one: the state lives on a circle, steps on its tangent."""

    def __init__(self, angle: float) -> None:
        self._target = np.array([np.cos(angle), np.sin(angle)])

    def residual(self, x: np.ndarray) -> np.ndarray:
        return x - self._target

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        return np.array([[-x[1]], [x[0]]])

    def moved(self, x: np.ndarray, step: np.ndarray) -> np.ndarray:
        moved = x + step * np.array([-x[1], x[0]])
        return np.asarray(moved / np.linalg.norm(moved))


class Walled(Linear):
    """Not defined beyond a wall."""

    def cost(self, x: np.ndarray) -> float:
        return float("nan") if np.abs(x).max() > 2 else super().cost(x)


def planted(consistent: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1000)
    a, x = rng.standard_normal((12, 5)), rng.uniform(-1, 1, 5)
    return a, a @ x + (0 if consistent else rng.standard_normal(12)), x


def test_a_consistent_linear_problem() -> None:
    a, b, x = planted()
    found = descend(Linear(a, b), np.zeros(5))
    assert found.residual < 1e-13
    assert_allclose(found.state, x, atol=1e-13)
    assert found.history[0] == pytest.approx(np.linalg.norm(b))
    assert (np.diff(found.history) <= 0).all()
    assert found.history[-1] == found.residual


def test_least_squares_of_an_inconsistent_one() -> None:
    a, b, _ = planted(consistent=False)
    found = descend(Linear(a, b), np.zeros(5))
    expected = np.linalg.lstsq(a, b, rcond=None)[0]
    assert found.residual == pytest.approx(np.linalg.norm(a @ expected - b), rel=1e-9)
    assert_allclose(found.state, expected, atol=1e-5)


def test_a_state_that_is_not_a_vector() -> None:
    found = descend(Circle(2.0), np.array([1.0, 0.0]))
    assert_allclose(found.state, [np.cos(2.0), np.sin(2.0)], atol=1e-12)
    assert np.linalg.norm(found.state) == pytest.approx(1, abs=1e-14)


def test_it_never_steps_where_the_cost_is_no_number() -> None:
    a, b, _ = planted()
    problem = Walled(a, 100 * b)  # the minimum lies beyond the wall
    found = descend(problem, np.zeros(5))
    assert np.abs(found.state).max() <= 2
    assert np.isfinite(found.residual)
    assert found.residual < found.history[0]


def test_it_stops_when_nothing_is_defined_around_it() -> None:
    class Alone(Linear):
        def cost(self, x: np.ndarray) -> float:
            return float("nan")

    a, b, _ = planted()
    found = descend(Alone(a, b), np.zeros(5))
    assert_allclose(found.state, 0)
    assert len(found.history) == 1


def test_a_start_at_the_solution_stays() -> None:
    a, b, x = planted()
    found = descend(Linear(a, b), x)
    assert_allclose(found.state, x, atol=1e-14)
    assert len(found.history) <= 3


def test_no_more_steps_than_allowed() -> None:
    seen: list[tuple[int, float]] = []
    a, b, _ = planted()
    found = descend(Linear(a, b), np.zeros(5), steps=2, on_step=lambda *told: seen.append(told))
    assert [step for step, _ in seen] == [0, 1]
    assert len(found.history) == 3
    assert found.history[:2] == tuple(residual for _, residual in seen)
    assert found.residual == pytest.approx(np.sqrt(Linear(a, b).cost(found.state)))


def test_enough_is_enough() -> None:
    a, b, _ = planted()
    found = descend(Linear(a, b), np.zeros(5), enough=1e-3)
    assert 1e-14 < found.residual < 1e-3


def test_slow_progress_ends_it() -> None:
    a, b, _ = planted(consistent=False)
    patient, impatient = (descend(Linear(a, b), np.zeros(5), slow=slow) for slow in (1.0, 0.5))
    assert len(impatient.history) < len(patient.history)


def test_a_direction_that_nothing_depends_on() -> None:
    a, b, _ = planted()
    blind = np.c_[a, np.zeros(12)]
    found = descend(Linear(blind, b), np.zeros(6))
    assert found.residual < 1e-12
    assert abs(found.state[5]) < 1e-12
