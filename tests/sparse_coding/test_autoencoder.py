"""Gradient and proxy of the weight-tied autoencoder, descent on it, criticality."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.sparse_coding import (
    SparseModel,
    atom_cosines,
    autoencoder_gradient,
    autoencoder_loss,
    autoencoder_network,
    gaussian_dictionary,
    loss_slice,
    measure_criticality,
    near_dictionary,
    proxy_gradient,
    refine_dictionary,
    sparse_autoencoder_fit,
    spikes_and_waves,
    support_rates,
    training_bias,
)


def proxy_by_enumeration(encoder: np.ndarray, model: SparseModel, bias: float) -> np.ndarray:
    """The definition: all supports, values through three-point Gauss quadrature of [low, high]^k.

    The proxy is a polynomial of degree two in every value, which that integrates exactly.
    """
    nodes, weights = np.polynomial.legendre.leggauss(3)
    values = (model.low + model.high) / 2 + (model.high - model.low) / 2 * nodes
    total = np.zeros_like(encoder)
    supports = list(itertools.combinations(range(model.n_atoms), model.sparsity))
    for support in supports:
        chosen = list(support)
        for picks in itertools.product(range(3), repeat=model.sparsity):
            probability = np.prod(weights[list(picks)] / 2)
            y = model.dictionary[:, chosen] @ values[list(picks)]
            before = encoder[chosen] @ y - bias
            error = before @ encoder[chosen] - y
            total[chosen] += probability * (np.outer(before, error) + np.outer(encoder[chosen] @ error, y))
    return total / len(supports)


@pytest.mark.parametrize("sparsity", [1, 2, 3, 4])
@pytest.mark.parametrize("atoms", [4, 6])
def test_the_proxy_is_its_definition(sparsity: int, atoms: int) -> None:
    rng = np.random.default_rng(1000)
    model = SparseModel(gaussian_dictionary(5, atoms, rng), sparsity, 0.5, 2.0)
    encoder = rng.standard_normal((atoms, 5))
    found = proxy_gradient(encoder, model, 0.7)
    expected = proxy_by_enumeration(encoder, model, 0.7)
    np.testing.assert_allclose(found.gradient, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    parts = (
        found.along_encoder[:, None] * encoder
        - found.along_atom[:, None] * model.dictionary.T
        + found.remainder
    )
    np.testing.assert_allclose(parts, found.gradient, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_the_parts_of_the_proxy_are_those_of_the_support() -> None:
    # One atom per signal: nothing but W_i and A_i can appear.
    rng = np.random.default_rng(1001)
    model = SparseModel(gaussian_dictionary(5, 8, rng), 1, 1.0, 3.0)
    found = proxy_gradient(rng.standard_normal((8, 5)), model, 0.3)
    np.testing.assert_allclose(found.remainder, 0, atol=1e-12)


def test_the_gradient_is_the_derivative_of_the_loss() -> None:
    rng = np.random.default_rng(1002)
    model = SparseModel(gaussian_dictionary(6, 9, rng), 2, 1.0, 2.0)
    signals = model.signals(model.codes(20, rng))
    encoder, bias, step = rng.standard_normal((9, 6)), 0.4, 1e-6
    gradient = autoencoder_gradient(encoder, signals, bias)
    for _ in range(5):
        direction = rng.standard_normal(encoder.shape)
        ahead = autoencoder_loss(encoder + step * direction, signals, bias)
        behind = autoencoder_loss(encoder - step * direction, signals, bias)
        slope = (ahead - behind) / (2 * step)
        # Central differences: step^2 of truncation, eps/step of rounding; no kink is that near.
        assert np.sum(gradient * direction) == pytest.approx(slope, rel=1e-6)


def test_the_gradient_is_that_of_torch() -> None:
    import torch

    rng = np.random.default_rng(1003)
    encoder, signals, bias = rng.standard_normal((7, 4)), rng.standard_normal((30, 4)), 0.2
    w = torch.tensor(encoder, requires_grad=True)
    y = torch.tensor(signals)
    loss = ((torch.relu(y @ w.T - bias) @ w - y) ** 2).sum(1).mean() / 2
    loss.backward()
    assert autoencoder_loss(encoder, signals, bias) == pytest.approx(loss.item(), rel=1e-14)
    np.testing.assert_allclose(autoencoder_gradient(encoder, signals, bias), w.grad.numpy(), atol=1e-13)
    network = autoencoder_network(encoder, bias)
    np.testing.assert_allclose(
        network(signals), (torch.relu(y @ w.T - bias) @ w).detach().numpy(), rtol=0, atol=1e-13
    )


def test_near_the_dictionary_the_proxy_is_the_gradient() -> None:
    rng = np.random.default_rng(1004)
    model = SparseModel(spikes_and_waves(64), 2, 8.0, 10.0)
    signals = model.signals(model.codes(20_000, rng))
    bias = 4.5  # inside the certified interval, [2.5, 6.75)
    encoder = near_dictionary(model.dictionary, 0.01, rng).T
    gradient = autoencoder_gradient(encoder, signals, bias)
    proxy = proxy_gradient(encoder, model, bias).gradient
    # A unit is met 20 000 k/h = 312 times: the mean of so many is good to about 6 %.
    difference = np.linalg.norm(gradient - proxy) / np.linalg.norm(proxy)
    assert difference < 0.12
    found = measure_criticality(model, 0.01, bias, signals, 3, rng)
    assert found.gap < 0.12 * found.each
    assert found.proxy == pytest.approx(found.each, rel=0.05)
    assert found.scale == pytest.approx(model.mean_square * 2 / 128)


def test_the_dictionary_becomes_critical_as_the_coherence_falls() -> None:
    rng = np.random.default_rng(1005)
    sizes = []
    for inputs in (16, 64, 256):
        model = SparseModel(spikes_and_waves(inputs), 2, 8.0, 10.0)
        signals = model.signals(model.codes(1, rng))
        sizes.append(measure_criticality(model, 0.0, training_bias(model), signals, 1, rng).proxy)
    # The bias is proportional to the coherence, which halves each time; the gradient follows in the limit.
    assert sizes[1] < 0.8 * sizes[0]
    assert sizes[2] < 0.65 * sizes[1]


def test_the_loss_is_least_near_the_dictionary() -> None:
    rng = np.random.default_rng(1009)
    model = SparseModel(spikes_and_waves(64), 2, 8.0, 10.0)
    signals = model.signals(model.codes(500, rng))
    losses = loss_slice(model, 2.5, signals, np.array([-0.5, 0.0, 0.5]), rng)
    assert losses[1] < min(losses[0], losses[2])


@pytest.mark.parametrize("distance", [0.1, 0.5])
def test_descent_finds_the_dictionary(distance: float) -> None:
    rng = np.random.default_rng(1006)
    model = SparseModel(spikes_and_waves(16), 1, 8.0, 10.0)
    codes = model.codes(800, rng)
    signals, bias = model.signals(codes), training_bias(model)
    start = near_dictionary(model.dictionary, distance, rng).T
    found = sparse_autoencoder_fit(signals, start, bias)
    assert (np.diff(found.losses) <= 0).all()
    cosines, matching = atom_cosines(found.atoms, model.dictionary)
    assert (matching == np.arange(32)).all()
    assert cosines.min() > 0.99
    assert support_rates(found.encoder, signals, codes, bias).exact == 1
    np.testing.assert_allclose(np.linalg.norm(found.atoms, axis=0), 1)
    assert found.network.hidden == (32,)


def test_known_supports_make_the_atoms_exact() -> None:
    rng = np.random.default_rng(1010)
    model = SparseModel(spikes_and_waves(16), 2, 8.0, 10.0)
    codes = model.codes(600, rng)
    signals = model.signals(codes)
    near = near_dictionary(model.dictionary, 0.1, rng)
    found = refine_dictionary(signals, near, codes > 0)
    assert found.residual < 1e-14
    np.testing.assert_allclose(found.atoms, model.dictionary, rtol=0, atol=1e-13)
    np.testing.assert_allclose(found.codes, codes, rtol=0, atol=1e-12)
    # Signals of several sizes of support, and one of none.
    mixed = codes * (rng.random(codes.shape) < 0.7)
    again = refine_dictionary(model.signals(mixed), near, mixed > 0)
    assert again.residual < 1e-14
    np.testing.assert_allclose(again.atoms, model.dictionary, rtol=0, atol=1e-13)


def test_wrong_supports_leave_a_residual() -> None:
    rng = np.random.default_rng(1011)
    model = SparseModel(spikes_and_waves(16), 2, 8.0, 10.0)
    codes = model.codes(400, rng)
    found = refine_dictionary(model.signals(codes), model.dictionary, model.codes(400, rng) > 0)
    assert found.residual > 0.1
    unused = np.zeros((400, 32), dtype=bool)
    unused[:, :2] = True
    with pytest.raises(InvalidInput, match="supports must use every atom"):
        refine_dictionary(model.signals(codes), model.dictionary, unused)


def test_cosines_are_matched() -> None:
    rng = np.random.default_rng(1007)
    atoms = gaussian_dictionary(8, 12, rng)
    order = rng.permutation(12)
    cosines, matching = atom_cosines(3 * atoms[:, order], atoms)
    np.testing.assert_allclose(cosines, 1)
    np.testing.assert_array_equal(order[matching], np.arange(12))


def test_bad_input() -> None:
    rng = np.random.default_rng(1008)
    model = SparseModel(spikes_and_waves(4), 1, 8.0, 10.0)
    signals = model.signals(model.codes(10, rng))
    start = model.dictionary.T
    with pytest.raises(InvalidInput, match="start must have 4 columns"):
        sparse_autoencoder_fit(signals, start[:, :3], 1.0)
    with pytest.raises(InvalidInput, match="signals must be finite"):
        sparse_autoencoder_fit(np.full_like(signals, np.nan), start, 1.0)
    with pytest.raises(InvalidInput, match="bias must be finite and at least 0"):
        sparse_autoencoder_fit(signals, start, -1.0)
    with pytest.raises(InvalidInput, match="bias must let some unit fire"):
        sparse_autoencoder_fit(signals, start, 100.0)
    with pytest.raises(InvalidInput, match="encoder must be of shape"):
        proxy_gradient(start.T, model, 1.0)
    with pytest.raises(InvalidInput, match="at least 4 atoms"):
        proxy_gradient(np.eye(3), SparseModel(np.eye(3), 1, 1.0, 2.0), 0.1)
    with pytest.raises(InvalidInput, match="supports must be of shape"):
        refine_dictionary(signals, model.dictionary, np.ones((3, 8), dtype=bool))
    with pytest.raises(InvalidInput, match="supports must have at most 4 entries"):
        refine_dictionary(signals, model.dictionary, np.ones((10, 8), dtype=bool))
    twice = np.column_stack([start[0], start[0]])
    with pytest.raises(InvalidInput, match="independent on every support"):
        refine_dictionary(signals, twice, np.ones((10, 2), dtype=bool))
    with pytest.raises(InvalidInput, match="points must be at least 1"):
        measure_criticality(model, 0.1, 1.0, signals, 0, rng)
