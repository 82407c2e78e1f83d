"""Curvature along a descent, and the autoencoder of the experiments."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.errors import InvalidInput
from unweave.optimize.first_order import Adam, NesterovGradient, RMSProp, corrected, descend
from unweave.optimize.first_order_autoencoder import TiedAutoencoder
from unweave.optimize.first_order_tracking import curvature_range, gradient_differences, track


def model(depth: int = 2) -> tuple[TiedAutoencoder, np.ndarray]:
    rng = np.random.default_rng(1000)
    autoencoder = TiedAutoencoder(rng.random((12, 5)), 4, depth)
    x = autoencoder.start(rng)
    return autoencoder, x + 0.1 * rng.standard_normal(len(x))  # biases too


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_gradient_is_the_derivative_of_the_loss(depth: int) -> None:
    autoencoder, x = model(depth)
    rng = np.random.default_rng(1001)
    step = 1e-6
    gradient = autoencoder.gradient(x)
    for _ in range(3):
        v = rng.standard_normal(len(x))
        expected = (autoencoder.loss(x + step * v) - autoencoder.loss(x - step * v)) / (2 * step)
        assert gradient @ v == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_hessian_product_is_the_derivative_of_the_gradient(depth: int) -> None:
    autoencoder, x = model(depth)
    rng = np.random.default_rng(1002)
    v, w = rng.standard_normal((2, len(x)))
    exact = autoencoder.hessian_product(x, v)
    differences = gradient_differences(autoencoder.gradient)(x, v)
    # s^2 of truncation and eps/s of rounding, s about 6e-6.
    np.testing.assert_allclose(exact, differences, rtol=0, atol=1e-8 * np.abs(exact).max())
    assert exact @ w == pytest.approx(autoencoder.hessian_product(x, w) @ v, rel=1e-10)


@pytest.mark.parametrize("depth", [1, 3])
def test_the_network_is_the_autoencoder(depth: int) -> None:
    autoencoder, x = model(depth)
    network = autoencoder.network(x)
    assert network.hidden == (4,) * (2 * depth - 1)
    error = np.sum((network(autoencoder.images) - autoencoder.images) ** 2) / 12
    assert error == pytest.approx(autoencoder.loss(x), rel=1e-12)
    assert autoencoder.n_parameters == len(x)


def test_a_stack_is_its_members() -> None:
    rng = np.random.default_rng(1000)
    model = TiedAutoencoder(rng.uniform(0, 1, (9, 6)), 4, 2)
    rows = np.stack([model.start(rng) for _ in range(3)])
    steps = np.array([[1e-3], [1e-2], [1e-1]])
    together, alone = Adam(corrected(steps, 0.9, 0.999)), []
    for row, (step,) in zip(rows, steps, strict=True):
        method = Adam(corrected(float(step), 0.9, 0.999))
        alone.append(descend(model.gradient, row, method, 20).x)
    state = together.begin(rows)
    for _ in range(20):
        state = together.step(state, model.gradient(state.x))
    assert_allclose(state.x, alone, rtol=1e-9, atol=1e-12)
    assert_allclose(model.losses(state.x), [model.loss(x) for x in alone], rtol=1e-9)


def test_single_precision_stays_single() -> None:
    rng = np.random.default_rng(1001)
    model = TiedAutoencoder(rng.uniform(0, 1, (9, 6)).astype(np.float32), 4)
    state = RMSProp(0.1).begin(model.start(rng).astype(np.float32))
    state = RMSProp(0.1).step(state, model.gradient(state.x))
    assert state.x.dtype == state.second.dtype == np.float32


def test_start_is_glorot() -> None:
    autoencoder = TiedAutoencoder(np.ones((2, 30)), 20)
    x = autoencoder.start(np.random.default_rng(1003))
    limit = np.sqrt(6 / 50)
    assert np.abs(x[:600]).max() <= limit
    # Uniform: variance limit^2/3, known from 600 entries to about 4 %.
    assert x[:600].var() == pytest.approx(limit**2 / 3, rel=0.2)
    assert not x[600:].any()


def test_lowest_curvature_is_that_of_the_full_hessian() -> None:
    autoencoder, x = model(1)
    full = np.stack([autoencoder.hessian_product(x, v) for v in np.eye(len(x))])
    np.testing.assert_allclose(full, full.T, atol=1e-13)
    values = np.linalg.eigvalsh(full)
    low, high = curvature_range(autoencoder.hessian_product, x, np.random.default_rng(1004))
    assert low == pytest.approx(values[0], abs=1e-9 * values[-1])
    assert high == pytest.approx(values[-1], rel=1e-9)


def test_track_records_what_descend_does() -> None:
    autoencoder, x = model(1)
    found = track(
        autoencoder.gradient,
        x,
        NesterovGradient(0.01),
        31,
        every=10,
        hessian_product=autoencoder.hessian_product,
        measure=autoencoder.loss,
        rng=np.random.default_rng(1005),
    )
    assert found.times.tolist() == [0, 10, 20, 30]
    np.testing.assert_array_equal(found.norms, found.descent.norms[found.times])
    assert found.values[-1] < found.values[0] == autoencoder.loss(x)
    assert (found.lowest <= found.highest).all()
    plain = track(autoencoder.gradient, x, NesterovGradient(0.01), 12, every=5, curvature=False)
    assert plain.times.tolist() == [0, 5, 10, 11]
    assert np.isnan(plain.lowest).all()
    assert np.isnan(plain.values).all()
    np.testing.assert_array_equal(plain.descent.norms, found.descent.norms[:12])


def test_bad_input() -> None:
    autoencoder, x = model()
    with pytest.raises(InvalidInput, match="images must be finite"):
        TiedAutoencoder(np.ones(4), 3)
    with pytest.raises(InvalidInput, match="width and depth must be at least 1"):
        TiedAutoencoder(np.ones((4, 4)), 0)
    with pytest.raises(InvalidInput, match=f"x must be of shape \\({len(x)},\\)"):
        autoencoder.loss(x[:-1])
    with pytest.raises(InvalidInput, match="every must be at least 1"):
        track(autoencoder.gradient, x, NesterovGradient(0.1), 3, every=0)
    with pytest.raises(InvalidInput, match="rng must be given"):
        track(autoencoder.gradient, x, NesterovGradient(0.1), 3)
