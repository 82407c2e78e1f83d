"""What the gate learners refuse, and how they say so."""

from __future__ import annotations

import numpy as np
import pytest
from planted_gates import planted_gate

from unweave.errors import InvalidInput
from unweave.gates import (
    GlmTron,
    NoisyDescent,
    NoisyDescentOptions,
    ReluGateLearner,
    ReluGateLeastSquares,
    gate_constants,
    glm_tron,
    noisy_gd_gate,
    poison,
    relu_gate_ols,
    relu_gate_sgd,
    relu_gate_sgd_robust,
)

TRUTH, X, Y = planted_gate(3, 60, 1000)
LEARNERS = {
    "sgd": relu_gate_sgd,
    "robust": lambda x, y: relu_gate_sgd_robust(x, y, 0.1),
    "ols": relu_gate_ols,
    "tron": glm_tron,
    "noisy": lambda x, y: noisy_gd_gate(x, y, np.zeros(3), np.random.default_rng(0)),
    "constants": gate_constants,
}


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X[:, 0], Y, "x must be of shape"),
        (X[None], Y, "x must be of shape"),
        (np.zeros((60, 0)), Y, "x must be of shape"),
        (X, Y[:-1], "y must be of shape"),
        (X, np.column_stack([Y, Y]), "y must be of shape"),
        (np.where(X > 2, np.nan, X), Y, "x must be finite. Got .* NaN"),
        (X, np.where(Y > 0, np.inf, Y), "y must be finite"),
        ([["a", "b", "c"]], [1.0], "x must be an array of real numbers"),
    ],
)
def test_bad_samples(learner: str, x: object, y: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        LEARNERS[learner](x, y)


@pytest.mark.parametrize("theta", [-0.1, np.nan, np.inf, "0.1", None])
def test_bad_theta(theta: float) -> None:
    calls = (
        lambda: relu_gate_sgd_robust(X, Y, theta),
        lambda: relu_gate_ols(X, Y, theta),
        lambda: glm_tron(X, Y, theta=theta),
        lambda: gate_constants(X, Y, theta),
        lambda: poison("random", theta, X, TRUTH, TRUTH, np.random.default_rng(0)),
    )
    for call in calls:
        with pytest.raises(InvalidInput, match="theta must be a finite number of at least 0"):
            call()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step": -1.0}, "step must be a finite number above 0"),
        ({"step": "fast"}, "step must be a number or one of"),
        ({"poisoned_fraction": 1.5}, "poisoned_fraction must be between 0 and 1"),
        ({"poisoned_fraction": float("nan")}, "poisoned_fraction must be between 0 and 1"),
        ({"radius": 0.0}, "radius must be a finite number above 0"),
        ({"truth": [1.0, np.nan, 0.0]}, "truth must be finite"),
        ({"truth": [[1.0, 2.0, 0.0]]}, "truth must be of shape"),
        ({"start": [1.0, 2.0], "truth": [1.0, 2.0, 3.0]}, "start must be of shape"),
        ({"theta": 0.1, "constants": gate_constants(X, Y)}, "constants must be those of theta 0.1"),
    ],
)
def test_bad_options(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ReluGateLearner(**arguments)


def test_samples_that_cannot_be_learnt_from() -> None:
    with pytest.raises(InvalidInput, match="y must have labels above"):
        relu_gate_sgd(X, np.zeros(60))
    with pytest.raises(InvalidInput, match="y must have labels above"):
        relu_gate_ols(X, Y, theta=100.0)
    flat = np.column_stack([X, X[:, 0]])
    flat[:, 3] = 0.0
    with pytest.raises(InvalidInput, match="x must span all 4 inputs"):
        relu_gate_sgd(flat, Y)
    with pytest.raises(InvalidInput, match="before fit"):
        ReluGateLearner().fit()
    with pytest.raises(InvalidInput, match="y must have labels above"):
        ReluGateLeastSquares().fit()


def test_blocks_of_other_widths() -> None:
    for learner in (ReluGateLearner(), ReluGateLeastSquares(), GlmTron(10.0)):
        learner.partial_fit(X, Y)
        with pytest.raises(InvalidInput, match=r"x must be of shape \(N, 3\)"):
            learner.partial_fit(X[:, :2], Y)


def test_bad_passes() -> None:
    with pytest.raises(InvalidInput, match="no longer than the radius"):
        GlmTron(0.1).partial_fit(X, Y)
    with pytest.raises(InvalidInput, match="activation must be monotone"):
        GlmTron(1.0, "sine")
    with pytest.raises(InvalidInput, match="passes and rows must be at least 1"):
        glm_tron(X, Y, passes=0)
    for learner in (GlmTron(1.0), NoisyDescent(np.zeros(3), 1.0, np.random.default_rng(0))):
        with pytest.raises(InvalidInput, match="before end_pass"):
            learner.end_pass()
        with pytest.raises(InvalidInput, match="before fit"):
            learner.fit()
    for options in (NoisyDescentOptions(steps=0), NoisyDescentOptions(diffusion=1.0)):
        with pytest.raises(InvalidInput, match="options must have"):
            noisy_gd_gate(X, Y, np.zeros(3), np.random.default_rng(0), options)
    with pytest.raises(InvalidInput, match="step must be above 0 and below"):
        noisy_gd_gate(X, Y, np.zeros(3), np.random.default_rng(0), NoisyDescentOptions(step=1.0))
    with pytest.raises(InvalidInput, match="attack must be one of"):
        poison("clever", 0.1, X, TRUTH, TRUTH, np.random.default_rng(0))
