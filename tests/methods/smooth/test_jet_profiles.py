from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unweave import get_activation
from unweave.methods.smooth.jet_profiles import (
    JetProfileOptions,
    JetSamples,
    fit_jet_profiles,
    jet_samples,
    refit_jet_profiles,
)
from unweave.subspace.symmetric import symmetric_packing

OPTIONS = JetProfileOptions()


def planted(activation: str, sites: int, outputs: int, units: int = 12) -> tuple[JetSamples, ...]:
    rng = np.random.default_rng(1000)
    scales, biases = rng.uniform(0.2, 2.0, units), rng.uniform(-1.5, 1.5, units)
    outgoing = rng.choice([-1, 1], (units, outputs)) * rng.uniform(0.5, 2.0, (units, outputs))
    t = rng.standard_normal((sites, units))
    _, _, second, third = get_activation(activation).jet(scales * t + biases, 3)
    samples = JetSamples(
        t,
        {2: (scales**2 * second)[:, :, None] * outgoing, 3: (scales**3 * third)[:, :, None] * outgoing},
    )
    return samples, scales, biases, outgoing


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("activation", ["tanh", "erf", "softplus", "sine"])
def test_four_sites_give_scale_bias_and_outgoing_weights(activation: str, outputs: int) -> None:
    samples, scales, biases, outgoing = planted(activation, 4, outputs)
    found = fit_jet_profiles(samples, get_activation(activation), OPTIONS)
    assert found.residuals.max() < 1e-6
    np.testing.assert_allclose(found.scales, scales, rtol=1e-4)
    if activation != "sine":  # whose bias is only known modulo 2 pi, and with the sign of a modulo pi
        signs = np.sign(found.biases * biases)  # even and odd second derivatives leave the sign open
        np.testing.assert_allclose(found.biases * signs, biases, atol=1e-4)
        np.testing.assert_allclose(np.abs(found.outgoing), np.abs(outgoing), rtol=1e-3)


@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_known_profiles_are_refined_and_lost_ones_found_again(activation: str) -> None:
    samples, *_ = planted(activation, 6, 2)
    found = fit_jet_profiles(samples, get_activation(activation), OPTIONS)
    moved = replace(found, scales=1.02 * found.scales, biases=found.biases + 0.01)
    moved.scales[3] *= 5.0  # far off: another valley
    again = refit_jet_profiles(samples, get_activation(activation), OPTIONS, moved)
    assert again.residuals.max() < 1e-6
    np.testing.assert_allclose(np.abs(again.scales), np.abs(found.scales), rtol=1e-4)


def test_units_near_their_inflection_are_found() -> None:
    # There the ratio of the two derivatives is steep in b, and a coarse grid falls into another valley.
    t = np.random.default_rng(1001).uniform(-1.2, 1.2, (4, 3))
    scales, biases = np.array([0.12, 0.13, 0.3]), np.array([0.15, -0.24, 0.05])
    _, _, second, third = get_activation("tanh").jet(scales * t + biases, 3)
    samples = JetSamples(t, {2: (scales**2 * second)[..., None], 3: (scales**3 * third)[..., None]})
    found = fit_jet_profiles(samples, get_activation("tanh"), OPTIONS)
    np.testing.assert_allclose(found.scales, scales, rtol=1e-3)
    np.testing.assert_allclose(np.abs(found.biases), np.abs(biases), atol=1e-3)


def test_another_activation_does_not_fit() -> None:
    samples, *_ = planted("tanh", 5, 1)
    right, wrong = (fit_jet_profiles(samples, get_activation(name), OPTIONS) for name in ("tanh", "softplus"))
    assert np.median(wrong.residuals) > 1e4 * np.median(right.residuals)


def test_samples_are_the_coefficients_of_the_powers() -> None:
    rng = np.random.default_rng(1002)
    u = rng.standard_normal((6, 5))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    second, third = rng.standard_normal((2, 3, 6, 2))
    squares = symmetric_packing(5).outer(u)
    sites = rng.standard_normal((3, 5))
    samples = jet_samples(
        u,
        sites,
        np.einsum("nmk,mp->nkp", second, squares),
        np.einsum("nmk,mj,mp->nkjp", third, u, squares),
    )
    np.testing.assert_allclose(samples.derivatives[2], second, atol=1e-10)
    np.testing.assert_allclose(samples.derivatives[3], third, atol=1e-10)
    np.testing.assert_allclose(samples.projections, sites @ u.T)
    assert samples.only(np.array([4, 1])).derivatives[3].shape == (3, 2, 2)


def test_a_unit_that_does_not_act_is_no_exception() -> None:
    samples, *_ = planted("tanh", 4, 1)
    dead = JetSamples(samples.projections, {order: 0 * part for order, part in samples.derivatives.items()})
    assert np.isfinite(fit_jet_profiles(dead, get_activation("tanh"), OPTIONS).outgoing).all()
