"""Units of a smooth network from the Hermite coefficients of its samples."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.errors import InvalidInput
from unweave.methods.samples_smooth.moments import (
    active_span,
    disagreement,
    sample_moments,
    scalar_choices,
    term_sizes,
    unit_directions,
)
from unweave.networks.activations import get_activation

ROWS = 20_000


def sampled(activation="tanh", inputs=6, width=3, bias=1.0, outputs=1, seed=1000):
    outer = "signed" if outputs == 1 else "normal"
    net = unweave.random_network(
        [inputs, width, outputs], activation=activation, seed=seed, outer=outer, bias=bias
    )
    x = np.random.default_rng(seed + 77).standard_normal((ROWS, inputs))
    y = net(x)
    return net, x, (y - y.mean(axis=0)) / y.std(axis=0), y.std(axis=0)


def unit_vectors(net):
    return net.weights[0] / np.linalg.norm(net.weights[0], axis=0)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "softplus", "sine"])
def test_span_and_width_stand_out(activation):
    net, x, y, _ = sampled(activation)
    span = active_span(sample_moments(x, y))
    assert span.width == 3
    basis = span.basis[:, :3]
    outside = unit_vectors(net) - basis @ (basis.T @ unit_vectors(net))
    # Perturbation of singular vectors: about noise over signal, and every signal is twice the noise.
    assert np.linalg.norm(outside, axis=0).max() < 0.1


@pytest.mark.parametrize("outputs", [1, 2])
def test_directions_of_units(outputs):
    net, x, y, _ = sampled(outputs=outputs)
    basis = active_span(sample_moments(x, y)).basis[:, :3]
    moments = sample_moments(x, y, basis)
    found = basis @ unit_directions(moments)
    assert disagreement(unit_vectors(net), found) < 0.1
    halves = [unit_directions(moments, half) for half in (0, 1)]
    assert 0 < disagreement(*halves) < 0.1


def test_odd_units_without_bias_are_seen_by_the_third_coefficient():
    net, x, y, _ = sampled(bias=0.0)
    basis = active_span(sample_moments(x, y)).basis[:, :3]
    moments = sample_moments(x, y, basis)
    assert moments.estimates[0].coefficients.norm(2) < 0.02  # E tanh'' = 0: nothing but noise
    assert disagreement(unit_vectors(net), basis @ unit_directions(moments)) < 0.1


def test_factors_and_scalars_of_known_directions():
    net, x, y, spread = sampled(inputs=3)
    moments = sample_moments(x, y)
    directions = unit_vectors(net)
    sizes = term_sizes(moments, directions)[:, 0]
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    slopes = 1 - np.tanh(nodes[:, None] + net.biases[0]) ** 2
    first = (weights / weights.sum()) @ slopes * net.weights[1][:, 0] / spread
    # Errors of T_1 are those of the residual's mean, enlarged by directions that are far from orthogonal.
    worst = 5 * moments.deviations[0][1] / np.linalg.svd(directions, compute_uv=False)[-1]
    assert worst < 0.02
    np.testing.assert_allclose(sizes[0], first, atol=worst)
    scales, biases = scalar_choices(moments, directions, get_activation("tanh"), 1)[:, 0].T
    np.testing.assert_allclose(scales, 1.0, rtol=0.16)  # one cell of the grid
    np.testing.assert_allclose(biases, net.biases[0], atol=0.16)


def test_orientation_of_units_that_are_neither_odd_nor_even():
    net, x, y, _ = sampled("softplus", inputs=3)
    choices = scalar_choices(sample_moments(x, y), -unit_vectors(net), get_activation("softplus"), 1)
    assert (choices[:, 0, 0] < 0).all()


def test_too_few_rows_are_refused():
    _, x, y, _ = sampled()
    with pytest.raises(InvalidInput, match="samples must number at least 56"):
        sample_moments(x[:30], y[:30])
