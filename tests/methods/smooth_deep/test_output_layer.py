from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.errors import InvalidInput
from unweave.methods.smooth_deep.search import OUTPUTS, possible_outputs
from unweave.networks.activations import get_activation
from unweave.networks.value_fit import OutputFit, fit_output

RNG = np.random.default_rng(1000)
STATES = np.tanh(RNG.standard_normal((40, 4)))
WEIGHTS, BIASES = RNG.standard_normal((4, 2)), np.array([0.3, -0.2])


def answers_through(name: str) -> np.ndarray:
    return get_activation(name).jet(STATES @ WEIGHTS + BIASES, 0)[0]


def assert_exact(fit: OutputFit) -> None:
    assert fit.residual < 1e-13
    assert_allclose(fit.weights, WEIGHTS, atol=1e-12)
    assert_allclose(fit.biases, BIASES, atol=1e-12)


@pytest.mark.parametrize("name", list(OUTPUTS))
def test_the_right_output_fits_exactly_and_the_others_do_not(name: str) -> None:
    answers = answers_through(name)
    assert_exact(fit_output(STATES, answers, OUTPUTS[name]))
    for other in possible_outputs(answers, None):
        if other.name != name:
            assert fit_output(STATES, answers, other).residual > 1e-3


@pytest.mark.parametrize("name", list(OUTPUTS))
def test_undo_is_the_inverse(name: str) -> None:
    z = np.linspace(-3, 3, 13)[:, None]
    assert_allclose(OUTPUTS[name].inverse(get_activation(name).jet(z, 0)[0]), z, atol=1e-12)


def test_answers_tell_which_outputs_are_possible() -> None:
    def names(low: float, high: float) -> list[str]:
        return [output.name for output in possible_outputs(np.array([[low], [high]]), None)]

    assert names(0.2, 0.9) == ["identity", "tanh", "sigmoid"]
    assert names(-0.2, 0.9) == ["identity", "tanh"]
    assert names(-0.2, 1.1) == ["identity"]
    assert names(0.0, 0.5) == ["identity", "tanh"]


def test_what_the_user_says_counts() -> None:
    assert [output.name for output in possible_outputs(np.array([[0.5]]), "tanh")] == ["tanh"]
    with pytest.raises(InvalidInput, match=r"output_activation must be one of identity, tanh, sigmoid.*relu"):
        possible_outputs(np.array([[0.5]]), "relu")


def test_saturated_rows_are_not_used() -> None:
    sigmoid = OUTPUTS["sigmoid"]
    rows = np.array([[0.5, 0.5], [0.5, 1 - 1e-9], [1e-9, 0.5], [2e-6, 0.5]])
    assert sigmoid.unsaturated(rows).tolist() == [True, False, False, True]
    assert OUTPUTS["identity"].unsaturated(np.array([[1e30, -1e30]])).all()
    answers = answers_through("sigmoid")
    answers[:5, 0] = 1.0  # an infinite pre-activation
    assert_exact(fit_output(STATES, answers, sigmoid))


def test_nothing_usable_is_no_fit() -> None:
    fit = fit_output(STATES, np.ones((40, 2)), OUTPUTS["sigmoid"])
    assert fit.residual == np.inf


def test_a_constant_is_no_fit_to_be_proud_of() -> None:
    fit = fit_output(STATES, np.full((40, 1), 0.25), OUTPUTS["identity"])
    assert fit.residual == np.inf
    assert_allclose(fit.biases, 0.25)


def test_the_residual_is_relative() -> None:
    noise = np.random.default_rng(1001).standard_normal((40, 2))
    answers = answers_through("identity") + 1e-3 * noise
    one, two = (fit_output(STATES, scale * answers, OUTPUTS["identity"]).residual for scale in (1.0, 1e9))
    assert one == pytest.approx(two, rel=1e-9)
    assert 1e-4 < one < 3e-3
