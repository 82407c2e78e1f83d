from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment

from unweave.diagnose import shift_problem
from unweave.errors import InvalidInput, UnweaveError
from unweave.networks.activations import get_activation
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.published.shallow.options import PublishedOptions
from unweave.published.shallow.pipeline import PublishedRecovery, recover_published, recover_weights
from unweave.published.shallow.shifts import refine_shifts, shift_interval, signs_and_shifts
from unweave.targets import Queries

QUICK = PublishedOptions(refinement="none")


def matched(network: Network, found: PublishedRecovery) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weight errors, initial and refined shift errors of every unit, signs included."""
    distances = np.linalg.norm(network.weights[0][:, :, None] - found.weights[:, None, :], axis=0)
    rows, columns = linear_sum_assignment(distances)
    true = network.biases[0][rows]
    return distances[rows, columns], true - found.initial_shifts[columns], true - found.shifts[columns]


def test_the_figures_of_a_wide_network_are_reproduced() -> None:
    # D = 20, m = 100: weight error about 1e-5 and initial shifts about 5e-4 (Euclidean), all signs right.
    network = random_network([20, 100, 1], seed=1000)
    found = recover_published(network, 20, 100, seed=1001, options=QUICK)
    weights, initial, _ = matched(network, found)
    assert found.complete
    assert 3e-6 < weights.max() < 3e-5
    assert 1e-4 < np.linalg.norm(initial) < 1.5e-3
    assert found.misalignment.max() < 1e-8
    assert found.queries["hessians"] == 300 * (20**2 + 20 + 1)
    assert found.gap > 1e3


@pytest.mark.parametrize("refinement", ["gradient", "sgd"])
def test_the_whole_pipeline_on_a_small_network(refinement: str) -> None:
    network = random_network([8, 12, 1], seed=1002)
    options = PublishedOptions(refinement=refinement, training_samples=600, tolerance=1e-9, seconds=20.0)
    queries = Queries(network, 8)
    found = recover_published(queries, 8, 12, seed=1003, options=options)
    weights, initial, refined = matched(network, found)
    assert weights.max() < 1e-4
    assert np.linalg.norm(refined) < np.linalg.norm(initial)
    assert found.training_mse[-1] <= 1e-9 < found.training_mse[0]
    points = np.random.default_rng(1004).standard_normal((1000, 8))
    assert np.abs(found.network(points) - network(points)).max() < 1e-3
    assert found.queries["derivatives"] == 4 * 12 + 1
    assert found.queries["training"] == 600
    assert queries.sent <= sum(found.queries.values())
    assert set(found.seconds) == {
        "hessians and span",
        "directions",
        "signs and shifts",
        "training answers",
        "refinement",
    }


@pytest.mark.parametrize("name", ["sigmoid", "erf", "sine"])
def test_other_activations_with_a_monotone_second_derivative(name: str) -> None:
    network = random_network([8, 14, 1], activation=name, seed=1005)
    found = recover_published(network, 8, 14, activation=name, seed=1006, options=QUICK)
    weights, initial, _ = matched(network, found)
    assert weights.max() < 1e-3
    assert np.abs(initial).max() < 2e-2


def test_the_same_seed_gives_the_same_answer() -> None:
    network = random_network([6, 7, 1], seed=1007)
    first, second = (recover_published(network, 6, 7, seed=1008, options=QUICK) for _ in range(2))
    assert_array_equal(first.weights, second.weights)
    assert_array_equal(first.shifts, second.shifts)


def test_weights_are_of_second_order_in_the_step() -> None:
    network = random_network([8, 16, 1], seed=1009)
    errors = []
    for step in (2e-2, 1e-2):
        options = PublishedOptions(step=step, power_tolerance=1e-12)
        found = recover_weights(network, 8, 16, np.random.default_rng(1010), options)
        overlap = np.abs(network.weights[0].T @ found.directions.directions.T)
        sine = np.sqrt(2 * np.maximum(0, 1 - overlap.max(axis=1)))
        errors.append(sine.max())
    assert_allclose(np.log2(errors[0] / errors[1]), 2, atol=0.2)


def test_four_point_differences_are_more_accurate_and_dearer() -> None:
    network = random_network([8, 16, 1], seed=1011)
    results = []
    for scheme in ("compact", "four-point"):
        found = recover_weights(network, 8, 16, np.random.default_rng(1012), PublishedOptions(scheme=scheme))
        overlap = np.abs(network.weights[0].T @ found.directions.directions.T).max(axis=1)
        results.append((1 - overlap.min(), found.queries))
    assert results[1][0] < results[0][0]
    assert results[1][1] > 1.5 * results[0][1]


def test_signs_and_shifts_are_read_off_exact_directions() -> None:
    network = random_network([10, 20, 1], seed=1013)
    flips = np.random.default_rng(1014).choice([-1.0, 1.0], 20)
    directions = network.weights[0].T * flips[:, None]
    found = signs_and_shifts(network, directions, get_activation("tanh"), PublishedOptions(step=1e-3))
    assert_array_equal(found.signs, flips)
    assert_allclose(found.shifts, network.biases[0], atol=1e-4)
    _, _, second, third = get_activation("tanh").jet(network.biases[0], 3)
    assert_allclose(found.second, second, atol=1e-4)
    assert_allclose(found.third, flips * third, atol=1e-2)


def test_shifts_outside_the_interval_go_to_its_end() -> None:
    rng = np.random.default_rng(1015)
    weights = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    biases = np.array([0.1, -0.64, 0.64, 0.3, -0.2])
    network = Network([weights, np.ones((5, 1))], [biases, np.zeros(1)], ["tanh", "identity"])
    found = signs_and_shifts(network, weights.T, get_activation("tanh"))
    assert_allclose(found.shifts, np.clip(biases, -0.6, 0.6), atol=1e-3)
    assert found.shifts[1] == -0.6
    assert found.shifts[2] == 0.6


def test_the_interval_is_checked_against_the_activation() -> None:
    tanh = get_activation("tanh")
    assert shift_interval(tanh, None) == 0.6
    assert shift_interval(get_activation("sigmoid"), None) < np.log(2 + np.sqrt(3))
    with pytest.raises(InvalidInput, match="interval must be in"):
        shift_interval(tanh, 0.7)
    with pytest.raises(InvalidInput, match="monotone around 0"):
        shift_interval(get_activation("gelu"), None)


def refinement_problem(seed: int = 1016) -> tuple[Network, np.ndarray, np.ndarray, np.ndarray]:
    network = random_network([6, 8, 1], seed=seed)
    rng = np.random.default_rng(seed + 1)
    inputs = rng.standard_normal((400, 6))
    start = network.biases[0] + 0.02 * rng.standard_normal(8)
    return network, inputs, network(inputs)[:, 0], start


@pytest.mark.parametrize("refinement", ["gradient", "sgd"])
def test_refinement_with_exact_weights_goes_to_the_true_shifts(refinement: str) -> None:
    network, inputs, answers, start = refinement_problem()
    rate = 2e-2 if refinement == "sgd" else None
    options = PublishedOptions(refinement=refinement, learning_rate=rate, tolerance=1e-14, seconds=20.0)
    rng, g = np.random.default_rng(1018), get_activation("tanh")
    found = refine_shifts(inputs, answers, network.weights[0], start, g, rng, options)
    assert found.converged
    assert_allclose(found.shifts, network.biases[0], atol=1e-5)
    assert found.training_mse[-1] <= 1e-14


def test_gradient_descent_falls_at_least_at_the_predicted_rate() -> None:
    network, inputs, answers, start = refinement_problem()
    options = PublishedOptions(refinement="gradient", tolerance=1e-16, seconds=20.0)
    g = get_activation("tanh")
    found = refine_shifts(inputs, answers, network.weights[0], start, g, np.random.default_rng(1019), options)
    history = np.array(found.training_mse)
    assert (np.diff(history) < 0).all()
    # The last stretch is governed by the smallest eigenvalue of K; the training error squares the rate.
    predicted = shift_problem(network.weights[0], network.biases[0], g, inputs).rate
    late = history[-1] / history[-11]
    assert late ** (1 / 20) <= predicted + 0.02


def test_time_ends_the_refinement() -> None:
    network, inputs, answers, start = refinement_problem()
    ticks = itertools.count()
    for refinement in ("gradient", "sgd"):
        options = PublishedOptions(refinement=refinement, tolerance=0.0, seconds=30.0)
        found = refine_shifts(
            inputs,
            answers,
            network.weights[0],
            start,
            get_activation("tanh"),
            np.random.default_rng(1020),
            options,
            clock=lambda: float(next(ticks)),
        )
        assert not found.converged
        assert found.seconds >= 30
        assert found.training_mse[-1] < found.training_mse[0]


def test_defaults_are_the_published_ones() -> None:
    options = PublishedOptions()
    assert options.hessian_count(50, 1000) == int(np.ceil(np.log(50) * 1000))
    assert options.accepted_objective(50, 100) == 0.9
    assert options.accepted_objective(50, 1000) == 0.99
    assert options.start_count(20, 100) == int(np.ceil(500 * np.log(20)))
    assert options.sample_count(20, 100) == 40_000
    assert (options.step, options.gamma, options.batch, options.tolerance, options.seconds) == (
        1e-2,
        2.0,
        64,
        1e-8,
        180.0,
    )


def test_what_cannot_be_recovered_is_refused_with_a_reason() -> None:
    network = random_network([5, 6, 2], seed=1021, outer="normal")
    with pytest.raises(InvalidInput, match=r"\(n, 1\)"):
        recover_published(network, 5, 6)
    scalar = random_network([5, 6, 1], seed=1022)
    with pytest.raises(InvalidInput, match="width must be"):
        recover_published(scalar, 5, 15)
    with pytest.raises(InvalidInput, match="step must be positive"):
        PublishedOptions(step=0.0)


def test_a_width_that_is_too_small_leaves_no_rank_one_matrix() -> None:
    network = random_network([6, 14, 1], seed=1023)
    options = PublishedOptions(refinement="none", threshold=0.99, max_restarts=20)
    with pytest.raises(UnweaveError, match="rank-one"):
        recover_published(network, 6, 3, options=options)


def test_missing_directions_are_reported() -> None:
    # One start cannot find three units, and no more are allowed.
    network = random_network([6, 3, 1], seed=1024)
    options = PublishedOptions(refinement="none", restarts=1 / 3, max_restarts=1 / 3)
    found = recover_published(network, 6, 3, options=options)
    assert not found.complete
    assert found.restarts == 1
    assert found.network.hidden == (1,)
