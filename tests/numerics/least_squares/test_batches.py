"""The loop on batches of independent problems, and the steps that batches and full steps are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.numerics.least_squares import LevenbergMarquardtOptions, Steps, minimise
from unweave.numerics.least_squares.full_steps import take_full_steps
from unweave.numerics.least_squares.pair_steps import pair_steps

TIMES = np.linspace(0, 3, 30)
OPTIONS = LevenbergMarquardtOptions(steps=60, stalls=None, damping=1e-2, max_damping=1e6)


@dataclass(frozen=True)
class Decay:
    """a exp(-b t): amplitudes and rates, one of each per problem."""

    parameters: np.ndarray
    residual: np.ndarray
    size: float | np.ndarray


class DecaySteps(Steps[Decay]):
    def __init__(self, data: np.ndarray) -> None:
        self.data = data
        self.trials = 0

    def at(self, parameters: np.ndarray) -> Decay:
        residual = self.data - parameters[:, :1] * np.exp(-parameters[:, 1:] * TIMES)
        return Decay(parameters, residual, np.linalg.norm(residual, axis=1))

    def trial(self, point: Decay, damping: float | np.ndarray) -> Decay:
        self.trials += 1
        shape = np.exp(-point.parameters[:, 1:] * TIMES)
        first, second = shape, -point.parameters[:, :1] * TIMES * shape
        normal = [(a * b).sum(axis=1) for a, b in ((first, first), (first, second), (second, second))]
        gradient = [(a * point.residual).sum(axis=1) for a in (first, second)]
        return self.at(point.parameters + np.stack(pair_steps(normal, gradient, damping), axis=1))

    def accepted(self, better: bool | np.ndarray, trial: Decay, point: Decay) -> Decay:
        rows = np.asarray(better)[:, None]
        return Decay(
            np.where(rows, trial.parameters, point.parameters),
            np.where(rows, trial.residual, point.residual),
            np.where(better, trial.size, point.size),
        )


def decays(count: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True parameters, data with noise on half of the problems, and starts."""
    rng = np.random.default_rng(1000)
    true = rng.uniform(0.5, 2, (count, 2))
    noise = 1e-2 * rng.standard_normal((count, len(TIMES))) * (np.arange(count) % 2)[:, None]
    data = true[:, :1] * np.exp(-true[:, 1:] * TIMES) + noise
    return true, data, true * rng.uniform(0.4, 2, true.shape)


def test_every_problem_of_a_batch_is_solved() -> None:
    true, data, starts = decays()
    steps = DecaySteps(data)
    path = minimise(steps, steps.at(starts), OPTIONS)
    assert_allclose(path.point.parameters[::2], true[::2], atol=1e-10)
    assert_allclose(path.point.parameters[1::2], true[1::2], atol=0.1)
    assert (np.diff(path.history) <= 0).all()


def test_a_batch_is_what_its_problems_are_alone() -> None:
    _, data, starts = decays()
    options = replace(OPTIONS, steps=7)  # before any of them settles
    steps = DecaySteps(data)
    together = minimise(steps, steps.at(starts), options).point
    for i in range(len(data)):
        alone = DecaySteps(data[i : i + 1])
        single = minimise(alone, alone.at(starts[i : i + 1]), options).point
        assert_allclose(single.parameters[0], together.parameters[i], rtol=1e-12)


def test_a_batch_ends_when_all_have_settled() -> None:
    _, data, starts = decays()
    steps = DecaySteps(data)
    end = minimise(steps, steps.at(starts), OPTIONS).point
    assert steps.trials < OPTIONS.steps
    steps.trials = 0
    minimise(steps, end, replace(OPTIONS, damping=1e6))
    assert steps.trials < 5


def test_refused_trials_in_a_row_end_it_and_do_not_count() -> None:
    class Refused(DecaySteps):
        def trial(self, point: Decay, damping: float | np.ndarray) -> Decay:
            self.trials += 1
            self.damping = damping
            return replace(point, size=np.inf)

    _, data, starts = decays(1)
    steps = Refused(data)
    start = replace(steps.at(starts), size=1.0)
    options = LevenbergMarquardtOptions(
        steps=1, refusals=4, damping=1.0, damping_rise=2.0, rise_growth=3.0, max_damping=np.inf
    )
    path = minimise(steps, start, options)
    assert path.history == (1.0,)
    assert steps.trials == 4
    assert steps.damping == 2 * 6 * 18


def test_pairs_are_solved_and_singular_ones_stay() -> None:
    rng = np.random.default_rng(1001)
    columns = rng.standard_normal((5, 8, 2))
    columns[3] = 0
    gram, right = columns.transpose(0, 2, 1) @ columns, rng.standard_normal((5, 2))
    damping = rng.uniform(0, 1, 5)
    normal = gram[:, 0, 0], gram[:, 0, 1], gram[:, 1, 1]
    found = np.stack(pair_steps(normal, (right[:, 0], right[:, 1]), damping), axis=1)
    for i in range(5):
        damped = gram[i] + damping[i] * np.diag(np.diag(gram[i]))
        expected = np.zeros(2) if i == 3 else np.linalg.solve(damped, right[i])
        assert_allclose(found[i], expected, rtol=1e-10)


@pytest.mark.parametrize(("needed", "steps"), [(1.0, 20), (1e-3, 1)])
def test_full_steps_end_where_nothing_is_gained(needed: float, steps: int) -> None:
    # Newton's steps for sqrt(2), whose error squares.
    path = take_full_steps(
        1.5,
        lambda x: np.array([2 - x**2]),
        lambda x, left: x + float(left[0]) / (2 * x),
        LevenbergMarquardtOptions.undamped(20, needed=needed),
    )
    assert path.point.state == pytest.approx(np.sqrt(2), abs=1e-15 if needed == 1 else 1)
    assert len(path.history) <= steps + 1


def test_full_steps_end_after_one_that_gains_little() -> None:
    options = LevenbergMarquardtOptions.undamped(20, last_ratio=0.4)
    path = take_full_steps(1.0, lambda x: np.array([x]), lambda x, left: x / 2, options)
    assert path.history == (1.0, 0.5)
