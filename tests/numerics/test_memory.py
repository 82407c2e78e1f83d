"""A limit on memory chooses the linear algebra."""

from __future__ import annotations

import math

import numpy as np
import pytest

import unweave
from unweave import InvalidInput, Status
from unweave.errors import OutOfMemory
from unweave.methods.smooth_coarse.fit import ScaleFit, fit_scales
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFit
from unweave.numerics import memory
from unweave.numerics.least_squares import levenberg_marquardt
from unweave.numerics.least_squares.formed_jacobian import FormedJacobian
from unweave.numerics.memory import allowed_bytes, memory_limit, require


def test_the_limit_holds_inside_and_ends_outside() -> None:
    assert allowed_bytes() == math.inf
    with memory_limit(1000):
        with memory_limit(None):
            assert allowed_bytes() == 1000
        with memory_limit(10):
            assert allowed_bytes() == 10
        assert allowed_bytes() == 1000
    assert allowed_bytes() == math.inf


def test_fits_that_would_take_more_run_without_a_matrix() -> None:
    network = unweave.random_network([6, 5, 1], seed=1000, outer="normal")
    x = np.random.default_rng(1).standard_normal((200, 6))
    parameters = NetworkParameters.from_network(network)
    problem = ValueFit(parameters, x, network(x))
    start = parameters.to_vector() * (1 + 1e-4)
    formed = levenberg_marquardt(problem, start)
    with memory_limit(100):
        free = levenberg_marquardt(problem, start)
    assert formed.inner_iterations == 0 < free.inner_iterations
    np.testing.assert_allclose(free.vector, formed.vector, atol=1e-9)


@pytest.mark.parametrize("layers", [[6, 4, 1], [8, 5, 3, 1]])
def test_a_recovery_keeps_to_it(layers: list[int]) -> None:
    network = unweave.random_network(layers, seed=1000, outer="normal")
    result = unweave.recover(network, max_memory=1e4)
    assert result.status is Status.RECOVERED, result.message
    assert unweave.compare(network, result.network).parameter_error < 1e-8


def test_bytes_are_a_positive_number() -> None:
    with pytest.raises(InvalidInput, match="max_memory must be a positive number of bytes"):
        unweave.recover(unweave.random_network([3, 2, 1]), max_memory=0)


def test_what_does_not_fit_is_refused_before_it_is_made() -> None:
    with memory_limit(1e9), pytest.raises(OutOfMemory, match=r"rows must fit into 1 GB. Got 80 GB instead"):
        require(1e10, "rows")
    with memory_limit(1e9):
        require(1e8, "rows")


def test_a_small_limit_still_allows_what_any_run_takes() -> None:
    with memory_limit(1):
        require(1e6, "rows")


def test_half_of_what_is_free_is_the_default(tmp_path, monkeypatch) -> None:
    def written(name: str, text: str):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    files = (
        written("meminfo", "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n"),
        written("max", "6000000000\n"),
        written("current", "5000000000\n"),
        written("stat", "anon 1\ninactive_file 1000000000\n"),
    )
    monkeypatch.setattr(memory, "_MEMINFO", files[0])
    monkeypatch.setattr(memory, "_CGROUPS", (files[1:],))
    assert memory.default_limit() == 1e9  # what the container leaves, and the files that it may drop
    files[1].write_text("max\n")
    assert memory.default_limit() == 4.096e9
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "missing")
    assert 0 < memory.default_limit() < math.inf


def test_a_recovery_without_room_says_so() -> None:
    network = unweave.random_network([3000, 2, 1], activation="relu", seed=1000, outer="normal")
    result = unweave.recover(network, max_memory=1e8, method="relu", domain=(-3, 3))
    assert result.status is Status.FAILED
    assert "must fit into 100 MB" in result.message
    assert "Raise max_memory" in result.message


def test_the_jacobian_of_scales_need_not_be_formed() -> None:
    network = unweave.random_network([5, 4, 2], seed=1000, outer="normal")
    x = np.random.default_rng(1).standard_normal((60, 5))
    model = NetworkParameters.from_network(network)
    scales = np.linalg.norm(model.weights[0], axis=0)
    problem = ScaleFit(model, model.weights[0] / scales, x, network(x), np.ones((1, 2)))
    vector = np.concatenate([scales, model.biases[0], model.to_vector()[model.ends[0] :]])
    formed = problem.linearise(vector)
    with memory_limit(1e3):
        free = problem.linearise(vector)
    assert isinstance(formed, FormedJacobian)
    assert not isinstance(free, FormedJacobian)
    rng = np.random.default_rng(2)
    v, r = rng.standard_normal(len(vector)), rng.standard_normal(120)
    np.testing.assert_allclose(free.apply(v), formed.apply(v), atol=1e-12)
    np.testing.assert_allclose(free.adjoint(r), formed.adjoint(r), atol=1e-12)
    np.testing.assert_allclose(free.dense(), formed.dense(), atol=1e-12)
    with memory_limit(1e3):
        moved = fit_scales(model.from_vector(model.to_vector() * 1.01), x, network(x), np.ones((1, 2)))
    assert np.abs(moved.values(x) - network(x)).max() < np.abs(network(x)).max() * 1e-2
