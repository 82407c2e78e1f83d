from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.methods.shared.profiles.profiles import Profiles, fit_profiles, refine_profiles
from unweave.networks.activations import get_activation

NAMES = ("tanh", "sigmoid", "erf", "softplus", "gelu", "swish", "sine")
SCALES = np.array([0.3, 0.8, 1.0, 1.7, 3.0])
BIASES = np.array([0.2, -0.5, 1.1, -1.3, 0.4])


def outgoing(outputs: int) -> np.ndarray:
    return np.random.default_rng(1000).uniform(0.5, 2, (5, outputs)) * np.array([1, -1, 1, 1, -1])[:, None]


def curvature_samples(
    name: str, outputs: int = 1, n: int = 60, seed: int = 1001
) -> tuple[np.ndarray, np.ndarray]:
    t = np.random.default_rng(seed).standard_normal((n, 5))
    shape = SCALES**2 * get_activation(name).jet(SCALES * t + BIASES, 2)[2]
    return t, shape[:, :, None] * outgoing(outputs)


def shape_error(name: str, fit: Profiles, order: int) -> float:
    """Distance of the fitted from the true units as functions, which no symmetry of g affects."""
    t = np.linspace(-3, 3, 61)[:, None]
    g = get_activation(name)
    mine = fit.outgoing[:, 0] * fit.scales**order * g.jet(fit.scales * t + fit.biases, order)[order]
    true = outgoing(1)[:, 0] * SCALES**order * g.jet(SCALES * t + BIASES, order)[order]
    return float(np.abs(mine - true).max())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("outputs", [1, 3])
def test_scale_bias_and_outgoing_weights_are_recovered(name: str, outputs: int) -> None:
    t, samples = curvature_samples(name, outputs)
    fit = fit_profiles(t, samples, get_activation(name), 2, np.random.default_rng(1002))
    assert fit.residuals.max() < 1e-10
    assert fit.pooled_residual() <= fit.residuals.max()
    if name == "sine":  # only modulo pi in the bias
        turns = (fit.biases - BIASES) / np.pi
        assert_allclose(turns, np.round(turns), atol=1e-8)
        sign = np.where(np.round(turns) % 2 == 0, 1.0, -1.0)
        assert_allclose(fit.outgoing * sign[:, None], outgoing(outputs), rtol=1e-7)
    else:
        assert_allclose(fit.biases, BIASES, atol=1e-8)
        assert_allclose(fit.outgoing, outgoing(outputs), rtol=1e-7)
    assert_allclose(fit.scales, SCALES, rtol=1e-8)


@pytest.mark.parametrize("name", ["tanh", "softplus", "gelu"])
def test_values_along_lines_are_enough_up_to_an_affine_function(name: str) -> None:
    line = np.linspace(-3, 3, 25)
    t = np.broadcast_to(line[:, None], (25, 5)).copy()
    g = get_activation(name)
    affine = 0.7 - 1.3 * t
    samples = (outgoing(1)[:, 0] * g(SCALES * t + BIASES) + affine)[:, :, None]
    fit = fit_profiles(t, samples, g, 0, np.random.default_rng(1003))
    assert fit.residuals.max() < 1e-9
    assert shape_error(name, fit, 2) < 1e-5


def test_errors_in_the_samples_move_the_fit_in_proportion() -> None:
    t, samples = curvature_samples("tanh")
    noise = np.random.default_rng(1004).standard_normal(samples.shape)
    moved = []
    for size in (1e-6, 1e-4):
        fit = fit_profiles(t, samples + size * noise, get_activation("tanh"), 2, np.random.default_rng(1005))
        moved.append(np.abs(fit.biases - BIASES).max())
    assert 1e-8 < moved[0] < 1e-4
    assert_allclose(moved[1] / moved[0], 100, rtol=0.2)


def test_the_wrong_activation_leaves_a_residual() -> None:
    t, samples = curvature_samples("tanh")
    right = fit_profiles(t, samples, get_activation("tanh"), 2, np.random.default_rng(1006)).pooled_residual()
    for name in ("erf", "gelu", "sine", "softplus"):
        wrong = fit_profiles(t, samples, get_activation(name), 2, np.random.default_rng(1006))
        assert wrong.pooled_residual() > 1e6 * max(right, 1e-14)


def test_refinement_follows_corrected_samples() -> None:
    t, samples = curvature_samples("sigmoid")
    rough = fit_profiles(
        t,
        samples * (1 + 1e-3 * np.sin(5 * t))[:, :, None],
        get_activation("sigmoid"),
        2,
        np.random.default_rng(1007),
    )
    assert np.abs(rough.biases - BIASES).max() > 1e-5
    fine = refine_profiles(t, samples, get_activation("sigmoid"), 2, rough)
    assert_allclose(fine.biases, BIASES, atol=1e-8)
    assert_allclose(fine.scales, SCALES, rtol=1e-8)


def test_a_silent_unit_is_fitted_by_nothing_and_breaks_nothing() -> None:
    t, samples = curvature_samples("tanh")
    samples[:, 2] = 0.0
    fit = fit_profiles(t, samples, get_activation("tanh"), 2, np.random.default_rng(1008))
    assert_allclose(fit.outgoing[2], 0.0)
    others = [0, 1, 3, 4]
    assert_allclose(fit.biases[others], BIASES[others], atol=1e-8)


def test_an_update_replaces_what_it_improves_and_appends_what_is_new() -> None:
    t, samples = curvature_samples("tanh")
    g = get_activation("tanh")
    whole = fit_profiles(t, samples, g, 2, np.random.default_rng(1009))
    poor = Profiles(
        np.array([9.0, whole.scales[1]]),
        np.array([9.0, whole.biases[1]]),
        np.array([[9.0], whole.outgoing[1]]),
        np.array([1.0, 0.0]),
    )
    index = np.array([0, 1, 2, 3, 4])
    worse = Profiles(
        whole.scales,
        whole.biases + np.array([0, 5, 0, 0, 0]),
        whole.outgoing,
        whole.residuals + np.array([0, 1, 0, 0, 0]),
    )
    joined = poor.updated(index, worse)
    assert_allclose(joined.biases, whole.biases, atol=1e-8)
    assert_allclose(joined.scales, whole.scales, atol=1e-8)
    assert joined.outgoing.shape == (5, 1)
