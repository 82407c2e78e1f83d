"""One clock for all loops: it ends computations, and what they hold by then is handed back."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import unweave
from unweave import BudgetExhausted
from unweave.errors import OutOfTime
from unweave.networks.error_bars import standard_errors
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFit, fit_values
from unweave.numerics.clock import check, out_of_time, remaining_seconds, time_limit
from unweave.numerics.least_squares import LevenbergMarquardtOptions, levenberg_marquardt
from unweave.numerics.sign_search import lattice_search, narrowed_signs
from unweave.subspace.power_method import subspace_power_method
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing


def after(looks: int):
    """Time that is over after so many looks."""
    seen = iter([1.0] * looks)
    return lambda: next(seen, 0.0)


def test_without_a_limit_there_is_all_the_time() -> None:
    assert remaining_seconds() == math.inf
    assert not out_of_time()
    check(1e30)
    with time_limit(lambda: None):
        check(1e30)


def test_the_limit_holds_inside_and_ends_outside() -> None:
    with time_limit(lambda: 0.0):
        assert out_of_time()
        with pytest.raises(OutOfTime, match="Raise deadline"):
            check()
        with time_limit(None):
            check()
    check()


def test_running_out_of_time_is_running_out_of_budget() -> None:
    error = OutOfTime()
    assert isinstance(error, BudgetExhausted)
    assert error.reason == "deadline"


def test_what_cannot_be_interrupted_does_not_begin_late() -> None:
    with time_limit(lambda: 1.0):
        check(1e6)
        with pytest.raises(OutOfTime):
            check(1e16)


def test_a_look_costs_less_than_two_microseconds() -> None:
    began, looks = time.process_time(), 100_000
    with time_limit(lambda: 1.0):
        for _ in range(looks):
            out_of_time()
    assert time.process_time() - began < 2e-6 * looks


def fit_to(network: unweave.Network) -> tuple[ValueFit, NetworkParameters]:
    x = np.random.default_rng(1).standard_normal((300, network.n_inputs))
    parameters = NetworkParameters.from_network(network)
    return ValueFit(parameters, x, network(x)), parameters


@pytest.mark.parametrize("solver", ["dense", "gram", "conjugate gradients"])
def test_a_fit_hands_back_where_it_stands(solver) -> None:
    problem, parameters = fit_to(unweave.random_network([6, 5, 1], seed=1000, outer="normal"))
    start = parameters.to_vector() * 1.3
    first = float(np.sqrt(np.mean(problem.residual(start) ** 2)))
    sizes = []
    for looks in (0, 3, 30):
        with time_limit(after(looks)):
            sizes.append(levenberg_marquardt(problem, start, LevenbergMarquardtOptions(solver=solver)).rms)
    assert sizes[0] == first
    assert sizes[2] < first
    assert sorted(sizes, reverse=True) == sizes


def test_error_bars_are_left_out_when_the_time_is_over() -> None:
    network = unweave.random_network([4, 3, 1], seed=1000, outer="normal")
    x = np.random.default_rng(1).standard_normal((200, 4))
    model, weights = NetworkParameters.from_network(network), np.ones((200, 1))
    assert standard_errors(model, x, weights) is not None
    with time_limit(lambda: 0.0):
        assert standard_errors(model, x, weights) is None
        assert fit_values(model, x, network(x)).error_bar is None


def test_a_search_for_directions_ends() -> None:
    rng, packing = np.random.default_rng(0), symmetric_packing(6)
    directions = rng.standard_normal((4, 6))
    basis = np.linalg.qr(packing.outer(directions / np.linalg.norm(directions, axis=1, keepdims=True)).T)[0]
    with time_limit(after(5)), pytest.raises(OutOfTime):
        subspace_power_method(RankOneSpace(basis, packing), rng)


def test_signs_are_not_looked_for_when_the_time_is_over() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((10, 40))
    right = matrix @ rng.choice([-1.0, 1.0], 40)
    with time_limit(lambda: 0.0):
        assert lattice_search(matrix, right, 1e-13).block == 0
        assert not narrowed_signs(matrix[:, :18], right, rng).any()
