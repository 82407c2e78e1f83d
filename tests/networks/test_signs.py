"""Signs of kinked units from the affine part: found, proven unique, or listed when there are several."""

from __future__ import annotations

import numpy as np
import pytest

from unweave import InvalidInput, Network, random_network
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.signs import (
    SignSolution,
    negative_slope,
    solve_sign_system,
    solve_signs,
    to_form,
    to_network,
)
from unweave.numerics.sign_search import SignOptions

ERROR = 1e-12  # of the affine part, as after a recovery


def planted(
    inputs: int, width: int, outputs: int = 1, slope: float = 0.0, seed: int = 1000, error: float = ERROR
) -> tuple[AbsoluteForm, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((inputs, width))
    weights /= np.linalg.norm(weights, axis=0)
    return form_of(weights, rng.standard_normal((width, outputs)), slope, rng, error)


def form_of(
    weights: np.ndarray, outer: np.ndarray, slope: float, rng: np.random.Generator, error: float = ERROR
) -> tuple[AbsoluteForm, np.ndarray]:
    width, outputs = outer.shape
    signs, biases = rng.choice([-1.0, 1.0], width), rng.standard_normal(width)
    half = (1 + slope) / 2
    affine = half * (weights * signs) @ outer + error * rng.standard_normal((len(weights), outputs))
    offset = half * (signs * biases) @ outer + rng.standard_normal(outputs)
    return AbsoluteForm(weights, biases, (1 - slope) / 2 * outer, affine, offset), signs


@pytest.mark.parametrize(
    ("inputs", "width", "outputs", "method"),
    [
        (10, 5, 1, "least squares"),
        (10, 25, 3, "least squares"),
        (10, 20, 1, "enumeration"),
        (1, 12, 1, "enumeration"),
        (30, 50, 1, "box center"),
        (20, 44, 1, "box center"),
        (8, 32, 1, "enumeration"),
    ],
)
@pytest.mark.parametrize("slope", [0.0, 0.01])
def test_the_signs_are_found_and_only_those(
    inputs: int, width: int, outputs: int, method: str, slope: float
) -> None:
    form, signs = planted(inputs, width, outputs, slope)
    found = solve_signs(form, slope)
    np.testing.assert_array_equal(found.signs, signs)
    assert (found.method, found.solved, found.unique, found.alternatives) == (method, True, True, ())
    assert found.residual < 100 * ERROR


def test_far_more_units_than_equations_by_lattice_reduction() -> None:
    form, signs = planted(10, 50)
    found = solve_signs(form)
    np.testing.assert_array_equal(found.signs, signs)
    assert (found.method, found.unique) == ("lattice reduction", True)


@pytest.mark.parametrize(("inputs", "width", "error"), [(10, 100, 1e-14), (4, 64, 1e-14), (4, 80, 1e-14)])
def test_the_signs_of_wide_layers_are_found_from_precise_equations(
    inputs: int, width: int, error: float
) -> None:
    form, signs = planted(inputs, width, error=error)
    found = solve_signs(form, error=error)
    np.testing.assert_array_equal(found.signs, signs)
    assert (found.method, found.solved, found.unique) == ("lattice reduction", True, True)
    assert found.beyond_chance


def test_equations_with_too_few_bits_are_counted() -> None:
    form, _ = planted(2, 60, error=1e-6)
    found = solve_signs(form, error=1e-6)
    assert not found.solved
    assert "2 equations carry" in found.reason
    assert found.reason.endswith("60 signs need at least 60")


def test_an_affine_part_of_its_own_has_no_signs_and_the_reason_names_the_limit() -> None:
    form, _ = planted(5, 45)
    other = AbsoluteForm(form.weights, form.biases, form.heights, form.slope + 0.1, form.offset)
    found = solve_signs(other, options=SignOptions(largest_block=12))
    assert (found.solved, found.unique, found.method) == (False, False, "none")
    assert "lattice reduction with blocks of up to 12 vectors did not find them" in found.reason


@pytest.mark.parametrize(("inputs", "width"), [(1, 12), (2, 16)])
def test_a_fit_that_chance_explains_is_not_called_beyond_it(inputs: int, width: int) -> None:
    form, _ = planted(inputs, width)
    # A right side that no pattern was planted in: the best of all 2^m patterns fits it to 2^-m or so.
    affine = np.random.default_rng(1003).standard_normal(form.slope.shape)
    other = AbsoluteForm(form.weights, form.biases, form.heights, affine, form.offset)
    found = solve_signs(other, tolerance=0.1)
    assert found.solved
    assert not found.beyond_chance
    assert solve_signs(form).beyond_chance


@pytest.mark.parametrize(("inputs", "width"), [(10, 5), (10, 20), (30, 50), (20, 44)])
def test_the_wrong_activation_has_no_signs(inputs: int, width: int) -> None:
    form, _ = planted(inputs, width, slope=0.01)
    assert not solve_signs(form, 0.0).solved
    assert solve_signs(form, 0.01).solved


@pytest.mark.parametrize("others", [0, 4, 10])
def test_two_patterns_that_fit_are_both_listed(others: int) -> None:
    # Outer weights from the null space of the weights: flipping these units changes nothing (Claim 4.8).
    rng = np.random.default_rng(1001)
    inputs = 4 if others < 10 else 24
    weights = rng.standard_normal((inputs, inputs + 1 + others))
    outer = rng.standard_normal((inputs + 1 + others, 1))
    outer[: inputs + 1, 0] = np.linalg.svd(weights[:, : inputs + 1])[2][-1]
    length = np.linalg.norm(weights, axis=0)
    form, signs = form_of(weights / length, outer * length[:, None], 0.0, rng)
    equal = np.ones(inputs + 1) * signs[0]  # one sign for all of them: only then is the flip invisible
    signs = np.concatenate([equal, signs[inputs + 1 :]])
    affine = (form.weights * signs) @ form.heights
    form = AbsoluteForm(form.weights, form.biases, form.heights, affine, form.offset)
    found = solve_signs(form)
    patterns = {tuple(pattern) for pattern in (found.signs, *found.alternatives)}
    assert found.solved
    assert not found.unique
    assert patterns == {tuple(signs), tuple(np.concatenate([-equal, signs[inputs + 1 :]]))}


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize("solved", [True, False])
def test_the_network_is_the_form(activation: str, solved: bool) -> None:
    slope = negative_slope(activation)
    form, signs = planted(6, 9, 2, slope, error=0.0)
    solution = SignSolution(signs if solved else -signs, 0.0, "planted", solved, solved)
    network = to_network(form, solution, activation)
    x = np.random.default_rng(1002).standard_normal((50, 6))
    np.testing.assert_allclose(network(x), form(x), atol=1e-13)
    assert (network.skip is None) == solved
    assert network.activations == (activation, "identity")


def test_a_form_without_units_is_affine() -> None:
    form = AbsoluteForm(np.zeros((3, 0)), np.zeros(0), np.zeros((0, 2)), np.ones((3, 2)), np.ones(2))
    network = to_network(form, solve_signs(form))
    assert network == Network([np.ones((3, 2))], [np.ones(2)], ["identity"])


def test_what_is_refused() -> None:
    form, _ = planted(4, 3)
    with pytest.raises(InvalidInput, match="negative_slope must lie between"):
        solve_signs(form, 1.0)
    with pytest.raises(InvalidInput, match="activation must be one of relu, leaky_relu"):
        to_network(form, solve_signs(form), "tanh")


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize("with_skip", [False, True])
def test_a_network_and_its_form_answer_alike(activation, with_skip):
    rng = np.random.default_rng(1000)
    network = random_network([4, 5, 2], activation, seed=1000, outer="normal", norms=(0.5, 2))
    skip = rng.standard_normal((4, 2)) if with_skip else None
    network = Network(network.weights, network.biases, network.activations, skip)
    form, x = to_form(network), 3 * rng.standard_normal((50, 4))
    np.testing.assert_allclose(form(x), network(x), rtol=0, atol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(form.weights, axis=0), 1, rtol=1e-14)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0, 0), (4, 3)])
def test_a_system_that_tells_no_sign(shape: tuple[int, int]) -> None:
    found = solve_sign_system(np.zeros(shape), np.zeros(shape[0]))
    assert found.solved
    assert found.unique is (shape[1] == 0)
    np.testing.assert_array_equal(found.signs, np.ones(shape[1]))
    if shape[0]:
        assert not solve_sign_system(np.zeros(shape), np.ones(shape[0])).solved


@pytest.mark.parametrize("count", [2, 4, 6])
def test_units_that_may_turn_together_are_told(count):
    rng = np.random.default_rng(1010)
    matrix, signs = rng.standard_normal((40, 60)), rng.choice([-1.0, 1.0], 60)
    matrix[:, 0] = -signs[0] * matrix[:, 1:count] @ signs[1:count]
    found = solve_sign_system(matrix, matrix @ signs)
    assert found.solved
    assert not found.unique
    (other,) = found.alternatives
    assert np.flatnonzero(other != found.signs).tolist() == list(range(count))
