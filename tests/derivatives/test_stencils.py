from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from unweave.derivatives.entangled import network_gradients, network_hessians
from unweave.derivatives.gradient_rules import power_gradient, power_jacobian
from unweave.derivatives.stencils import Jets, gradient_jets, hessian_jets
from unweave.errors import InvalidInput
from unweave.networks.random import random_network
from unweave.subspace.symmetric import symmetric_packing

SCHEMES = ("compact", "four-point", "richardson")
ROWS = {"compact": 4**2 + 4 + 1, "four-point": 2 * 4**2 + 1, "richardson": 2 * (4**2 + 4 + 1)}
EPS = np.finfo(np.float64).eps


def target():
    return random_network([4, 9, 2], seed=1000, outer="normal", norms=(0.5, 1.5))


def hessian_error(scheme: str, step: float) -> float:
    network = target()
    sites = np.random.default_rng(1001).standard_normal((6, 4))
    exact = symmetric_packing(4).pack(network_hessians(network, sites))
    return float(np.abs(hessian_jets(network, sites, step, scheme).hessians - exact).max())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_quadratics_are_differentiated_exactly(scheme: str) -> None:
    rng = np.random.default_rng(1002)
    matrices = rng.standard_normal((3, 5, 5))
    matrices = matrices + matrices.transpose(0, 2, 1)
    slope, constant = rng.standard_normal((5, 3)), rng.standard_normal(3)

    def quadratic(x: np.ndarray) -> np.ndarray:
        return np.einsum("ni,kij,nj->nk", x, matrices, x) / 2 + x @ slope + constant

    sites = rng.standard_normal((4, 5))
    step = 0.5  # nothing but rounding, eps |f| / h^2
    jets = hessian_jets(quadratic, sites, step, scheme)
    scale = 200 * EPS * np.abs(quadratic(2 * np.abs(sites) + 2)).max() / step**2
    expected = symmetric_packing(5).pack(matrices)
    assert_allclose(jets.hessians, np.broadcast_to(expected, (4, 3, 15)), atol=scale)
    assert_allclose(jets.gradients, np.einsum("kij,nj->nki", matrices, sites) + slope.T, atol=scale)
    assert_array_equal(jets.values, quadratic(sites))


@pytest.mark.parametrize(("scheme", "order"), [("compact", 2), ("four-point", 2), ("richardson", 4)])
def test_the_error_falls_with_the_order_of_the_scheme(scheme: str, order: int) -> None:
    coarse, fine = hessian_error(scheme, 0.08), hessian_error(scheme, 0.04)
    assert_allclose(np.log2(coarse / fine), order, atol=0.15)


def test_gradients_are_of_second_order() -> None:
    network = target()
    sites = np.random.default_rng(1003).standard_normal((6, 4))
    exact = network_gradients(network, sites)
    errors = [np.abs(gradient_jets(network, sites, h).gradients - exact).max() for h in (0.04, 0.02)]
    assert_allclose(np.log2(errors[0] / errors[1]), 2, atol=0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_small_steps_reach_the_exact_hessian(scheme: str) -> None:
    # At h = 1e-3 truncation is h^2/12 times fourth derivatives, rounding eps |f| / h^2 about 1e-9.
    assert hessian_error(scheme, 1e-3) < (1e-8 if scheme == "richardson" else 1e-5)


def test_four_point_and_compact_agree_on_the_diagonal() -> None:
    network = target()
    sites = np.random.default_rng(1004).standard_normal((3, 4))
    packing = symmetric_packing(4)
    diagonal = packing.rows == packing.columns
    compact, four = (
        hessian_jets(network, sites, 0.1, scheme).hessians for scheme in ("compact", "four-point")
    )
    assert_allclose(compact[:, :, diagonal], four[:, :, diagonal], atol=1e-12)
    assert np.abs(compact - four).max() > 1e-4


@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_asked_are_the_stated_ones(scheme: str) -> None:
    asked = []

    def counting(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        return x.sum(axis=1, keepdims=True)

    hessian_jets(counting, np.zeros((3, 4)), 0.1, scheme)
    assert sum(asked) == 3 * ROWS[scheme]
    asked.clear()
    gradient_jets(counting, np.zeros((3, 4)), 0.1)
    assert sum(asked) == 3 * (2 * 4 + 1)


def test_long_lists_of_sites_are_split_without_a_trace() -> None:
    network = target()
    sites = np.random.default_rng(1005).standard_normal((7, 4))
    whole = hessian_jets(network, sites, 0.1)
    split = hessian_jets(network, sites, 0.1, rows_per_call=2 * ROWS["compact"])
    assert len(split) == 7
    assert_allclose(split.hessians, whole.hessians, atol=1e-12)
    assert_array_equal(split.sites, whole.sites)


def test_a_four_point_stencil_contains_the_gradient_stencil() -> None:
    network = target()
    sites = np.random.default_rng(1006).standard_normal((3, 4))
    whole, own = hessian_jets(network, sites, 0.1, "four-point"), gradient_jets(network, sites, 0.1)
    assert_allclose(whole.gradients, own.gradients, atol=1e-13)
    assert whole.rule == own.rule == "axes"


def test_a_compact_stencil_gives_the_least_squares_gradient_of_all_its_odd_differences() -> None:
    network = target()
    site = np.random.default_rng(1007).standard_normal((1, 4))
    step = 0.1
    e = np.eye(4)
    offsets = np.array([*e, *(e[i] + e[j] for i in range(4) for j in range(i + 1, 4))])
    slopes = (network(site + step * offsets) - network(site - step * offsets)) / (2 * step)
    expected = np.linalg.lstsq(offsets, slopes, rcond=None)[0].T
    jets = hessian_jets(network, site, step)
    assert jets.rule == "pairs"
    assert_allclose(jets.gradients[0], expected, atol=1e-13)


def test_a_compact_stencil_in_one_dimension_has_no_pairs() -> None:
    jets = hessian_jets(np.sin, np.array([[0.3], [1.0]]), 1e-3)
    assert jets.rule == "axes"
    assert_allclose(jets.gradients[:, 0], np.cos(jets.sites), atol=1e-6)
    assert_allclose(jets.hessians[:, 0], -np.sin(jets.sites), atol=1e-6)


@pytest.mark.parametrize("rule", ["axes", "pairs"])
@pytest.mark.parametrize("power", [1, 3, 5])
def test_odd_powers_are_seen_as_predicted(rule: str, power: int) -> None:
    w = np.random.default_rng(1008).standard_normal((4, 2))

    def powers(x: np.ndarray) -> np.ndarray:
        return (x @ w) ** power

    scheme = "compact" if rule == "pairs" else "four-point"
    step = 0.5
    seen = hessian_jets(powers, np.zeros((1, 4)), step, scheme).gradients[0].T
    assert_allclose(seen, step ** (power - 1) * power_gradient(w, power, rule), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rule", ["axes", "pairs"])
@pytest.mark.parametrize("power", [1, 3, 5])
def test_the_derivative_of_odd_powers(rule: str, power: int) -> None:
    w = np.random.default_rng(1011).standard_normal((4, 3))
    jacobian = power_jacobian(w, power, rule)
    assert jacobian.shape == (3, 4, 4)
    h = 1e-5  # truncation h^2 and rounding eps/h, both 1e-10 of terms of size 100
    for axis in range(4):
        e = h * np.eye(4)[:, [axis]]
        slope = power_gradient(w + e, power, rule) - power_gradient(w - e, power, rule)
        assert_allclose(jacobian[:, :, axis].T, slope / (2 * h), atol=1e-7)


@pytest.mark.parametrize("scheme", ["compact", "four-point"])
def test_the_noise_of_the_gradients_is_the_stated_one(scheme: str) -> None:
    rng = np.random.default_rng(1009)
    jets = hessian_jets(lambda x: rng.standard_normal((len(x), 1)), np.zeros((2000, 6)), 0.3, scheme)
    # pairs: the diagonal of the inverse normal matrix is (1 - 1/(2d-1))/(d-1), stated without its bracket
    assert_allclose(np.std(jets.gradients), jets.gradient_noise, rtol=0.1)


def test_concatenation_keeps_the_order_and_drops_hessians_unless_all_have_them() -> None:
    network = target()
    sites = np.random.default_rng(1010).standard_normal((4, 4))
    parts = [hessian_jets(network, sites[:1], 0.1), hessian_jets(network, sites[1:], 0.1)]
    joined = Jets.concatenate(parts)
    assert_allclose(joined.hessians, hessian_jets(network, sites, 0.1).hessians, atol=1e-12)
    assert joined.rule == "pairs"
    four = hessian_jets(network, sites[:1], 0.1, "four-point")
    mixed = Jets.concatenate([four, gradient_jets(network, sites[1:], 0.1)])
    assert mixed.hessians is None
    assert_array_equal(mixed.sites, sites)


def test_unknown_schemes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="scheme must be"):
        hessian_jets(target(), np.zeros((1, 4)), 0.1, "forward")  # type: ignore[arg-type]
