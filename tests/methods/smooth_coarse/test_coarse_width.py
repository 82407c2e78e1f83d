"""The width from a spectrum, the radius from answers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import unweave
from coarse_targets import planted
from unweave.methods.smooth_coarse.noisy_hessians import (
    NoisySpan,
    RotatedHessians,
    choose_radius,
    noisy_span,
    random_rotations,
    rotated_hessians,
)
from unweave.subspace.symmetric import symmetric_packing


def synthetic(
    dimension: int, width: int, sites: int, level: float, seed: int, outputs: int = 1
) -> RotatedHessians:
    """Hessians of ``width`` unit units with random coefficients, noise of size ``level`` in every entry."""
    rng = np.random.default_rng(seed)
    units = rng.standard_normal((width, dimension))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    squares = symmetric_packing(dimension).outer(units)
    coefficients = rng.choice([-1, 1], (sites, outputs, width)) * rng.uniform(
        0.5, 1.5, (sites, outputs, width)
    )
    shape = (sites, outputs, squares.shape[1])
    noise, errors = level * rng.standard_normal((2, *shape))
    return RotatedHessians(rng.standard_normal((sites, dimension)), coefficients @ squares + noise, errors)


@pytest.mark.parametrize("seed", range(1000, 1005))
@pytest.mark.parametrize(("width", "level"), [(4, 1e-8), (12, 1e-3), (12, 0.05), (1, 0.05)])
def test_units_that_stand_out_are_counted(width: int, level: float, seed: int) -> None:
    span = noisy_span(synthetic(8, width, 40, level, seed), np.ones(1))
    assert span.width == width
    assert span.columns == 40
    assert span.gap > NoisySpan.stands_out


@pytest.mark.parametrize("seed", range(1000, 1010))
def test_pure_noise_has_no_units(seed: int) -> None:
    # The largest singular values of two independent samples differ by a few per cent.
    span = noisy_span(synthetic(8, 0, 40, 1.0, seed), np.ones(1))
    assert (span.width, span.gap) == (0, 0.0)


def test_a_multiple_of_the_identity_is_no_unit() -> None:
    taken = synthetic(6, 3, 30, 1e-3, 1000)
    identity = symmetric_packing(6).pack(np.eye(6))
    shifted = RotatedHessians(taken.sites, taken.hessians + 5 * identity, taken.errors)
    assert noisy_span(shifted, np.ones(1)).width == 3


def test_an_output_that_is_mostly_noise_does_not_hide_the_other() -> None:
    taken = synthetic(6, 3, 30, 1e-3, 1000, outputs=2)
    loud = np.array([1.0, 1e4])[:, None]
    shouted = RotatedHessians(taken.sites, taken.hessians * loud, taken.errors * loud)
    weights = np.array([1.0, 1e-4])
    assert noisy_span(shouted, weights).width == noisy_span(taken, np.ones(2)).width == 3


def test_the_basis_is_orthonormal_and_holds_the_units() -> None:
    taken = synthetic(6, 3, 30, 1e-9, 1001)
    basis = noisy_span(taken, np.ones(1)).with_identity(3)
    assert_allclose(basis.T @ basis, np.eye(4), rtol=0, atol=1e-13)
    clean = taken.hessians[:, 0]
    left = clean - clean @ basis @ basis.T
    assert np.abs(left).max() < 1e-7  # noise 1e-9, a few singular vectors


@pytest.mark.parametrize(("sigma", "norm"), [(1e-6, 1.0), (1e-4, 1.0), (1e-3, 2.0)])
def test_the_radius_is_near_the_best_one(sigma: float, norm: float) -> None:
    """Against Hessians in closed form: at the radius chosen the error is near the least over a ladder."""
    network = planted(8, 10, 1, 1000, norm=norm)
    rng = np.random.default_rng(1001)

    def ask(x: np.ndarray) -> np.ndarray:
        return network(x) + sigma * rng.standard_normal((len(x), 1))

    spread = float(network(rng.standard_normal((1000, 8))).std())
    radius = choose_radius(ask, lambda n, _: rng.standard_normal((n, 8)), sigma / spread, np.inf, rng)
    sites = rng.standard_normal((12, 8))
    second = -2 * np.tanh(sites @ network.weights[0] + network.biases[0])
    second *= 1 - (second / 2) ** 2
    squares = symmetric_packing(8).outer(np.ascontiguousarray(network.weights[0].T))
    exact = (second * network.weights[1][:, 0]) @ squares

    def error(at: float) -> float:
        taken = rotated_hessians(ask, sites, at, random_rotations(12, 8, rng))
        return float(np.linalg.norm(taken.hessians[:, 0] - exact))

    ladder = [error(radius * 1.6**step) for step in range(-4, 5)]
    # Two rungs of the ladder off the best radius cost (1.6^2)^2 = 6.6 in noise.
    assert error(radius) < 6.6 * min(ladder)


def test_the_radius_respects_its_bound_and_grids() -> None:
    network = planted(6, 4, 1, 1002)
    rng = np.random.default_rng(1003)

    def draw(count: int, margin: float) -> np.ndarray:
        assert margin <= 0.3
        return rng.standard_normal((count, 6))

    assert choose_radius(network, draw, 0.01, 0.3, rng) <= 0.3
    # Rounded to one decimal, short steps see differences that are mostly zero: those radii are no good.
    coarse = choose_radius(
        lambda x: np.round(network(x), 1), lambda n, _: rng.standard_normal((n, 6)), 0.02, np.inf, rng
    )
    assert coarse > 0.3


def test_every_output_counts_in_single_precision():
    """Sixteen outputs give sixteen equations per row: the rows of a fit are divided by them."""
    network = unweave.random_network([16, 24, 16], "gelu", seed=1000, outer="normal")
    weights, biases = (
        [part.astype(np.float32) for part in parts] for parts in (network.weights, network.biases)
    )
    gelu = unweave.get_activation("gelu")
    result = unweave.recover(
        lambda x: (
            gelu(x.astype(np.float32) @ weights[0] + biases[0]).astype(np.float32) @ weights[1] + biases[1]
        ),
        input_dim=16,
    )
    assert result.status is unweave.Status.RECOVERED
    assert unweave.compare(network, result.network).parameter_error < 1e-5
    fitted = next(stage for stage in result.stages if stage.name == "averaging").figures["rows"]
    assert fitted * network.n_outputs <= 10 * network.n_parameters
