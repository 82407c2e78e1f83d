"""Sums of ridge functions: fitted, answering, saved, and handed back where no kind of unit explains."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.errors import InvalidInput
from unweave.networks.ridge_sum import RidgeSum, fit_ridge_sum

RNG = np.random.default_rng(1000)


def planted(inputs: int = 6, units: int = 8, outputs: int = 2):
    """Profiles of two kinds."""
    net = unweave.random_network([inputs, units, outputs], seed=1000, outer="normal")
    (incoming, outgoing), (biases, offset) = net.weights, net.biases
    half = units // 2

    def target(x: np.ndarray) -> np.ndarray:
        z = x @ incoming + biases
        return np.hstack([np.tanh(z[:, :half]), 1 / (1 + z[:, half:] ** 2)]) @ outgoing + offset

    return target, incoming / np.linalg.norm(incoming, axis=0)


@pytest.fixture(scope="module")
def fitted() -> RidgeSum:
    target, directions = planted()
    x = RNG.standard_normal((1500, 6))
    return fit_ridge_sum(directions, x, target(x), 20)


def test_profiles_answer_where_they_were_fitted(fitted):
    target, _ = planted()
    x = np.random.default_rng(1001).standard_normal((2000, 6))
    inside = (np.abs(x @ fitted.directions) < 2).all(axis=1)
    assert inside.sum() > 300
    spread = target(x).std()
    assert np.abs(fitted(x) - target(x))[inside].max() < 1e-3 * spread
    np.testing.assert_array_equal(fitted(x[0]), fitted(x[:1])[0])


def test_profiles_are_straight_beyond_their_knots(fitted):
    low, high = fitted.knots[0, 0], fitted.knots[0, -1]
    for end, way in ((low, -1.0), (high, 1.0)):
        values = fitted.profile(0, end + way * np.array([0.0, 1.0, 2.0, 3.0]))
        np.testing.assert_allclose(np.diff(values, n=2, axis=0), 0, atol=1e-10 * np.abs(values).max())


@pytest.mark.parametrize("ending", [".npz", ".json"])
def test_it_is_saved_and_loaded_bit_for_bit(fitted, tmp_path, ending):
    path = tmp_path / f"sum{ending}"
    fitted.save(path)
    loaded = unweave.load(path)
    assert type(loaded).__name__ == "RidgeSum"
    x = RNG.standard_normal((20, 6))
    np.testing.assert_array_equal(loaded(x), fitted(x))
    assert loaded.n_parameters == fitted.n_parameters


def test_what_it_cannot_do_is_said(fitted, tmp_path):
    with pytest.raises(InvalidInput, match=r"\.npz or \.json"):
        fitted.save(tmp_path / "sum.onnx")
    with pytest.raises(InvalidInput, match="splines"):
        fitted.to_torch()
    with pytest.raises(InvalidInput, match="Network"):
        unweave.compare(unweave.random_network([6, 8, 2], seed=1), fitted)
    with pytest.raises(InvalidInput, match="shape"):
        RidgeSum(fitted.directions, fitted.knots, fitted.coefficients, fitted.slope[:3], fitted.offset)


def test_units_of_unknown_kinds_come_back_as_profiles(tmp_path):
    target, directions = planted(outputs=1)
    result = unweave.recover(target, input_dim=6)
    assert type(result.network).__name__ == "RidgeSum"
    assert result.status is unweave.Status.APPROXIMATE
    assert result.error <= 0.05
    overlap = np.abs(directions.T @ result.network.directions).max(axis=1)
    np.testing.assert_allclose(overlap, 1, atol=1e-6)
    assert "splines" in result.message
    result.save(tmp_path / "run.npz")
    again = unweave.Recovery.load(tmp_path / "run.npz")
    x = RNG.standard_normal((5, 6))
    np.testing.assert_array_equal(again.network(x), result.network(x))
    result.save_report(tmp_path / "report.html")
    assert "ridge functions" in (tmp_path / "report.html").read_text()
    assert result.to_dict()["kind"] == "RidgeSum"
