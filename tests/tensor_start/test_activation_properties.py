from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from unweave.errors import InvalidInput
from unweave.networks.activations import Activation, get_activation
from unweave.tensor_start import activation_properties, rho

SIGMAS = (0.1, 1.0, 10.0)

# The published table, two entries corrected: squared ReLU is 0.2732 sigma^2 (printed 0.27 sigma), quadratic
# is -4 sigma^2 (printed 0). Its erf has the derivative exp(-z^2), ours 2/sqrt(pi) times that.
TABLE = {
    "relu": (0.09085, 0.09085, 0.09085),
    "leaky_relu": (0.08904, 0.08904, 0.08904),
    "squared_relu": (0.002732, 0.2732, 27.32),
    "erf": (1.885e-4 * 4 / math.pi, 5.241e-2 * 4 / math.pi, 2.475e-5 * 4 / math.pi),
    "tanh": (1.850e-4, 4.919e-2, 5.126e-5),
    "sigmoid": (7.66e-7, 2.144e-3, 4.822e-5),
    "identity": (0.0, 0.0, 0.0),
    "quadratic": (-0.04, -4.0, -400.0),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_table(name: str) -> None:
    # To the digits printed: half a unit of the last of three or four.
    np.testing.assert_allclose([rho(name, s).value for s in SIGMAS], TABLE[name], rtol=6e-4)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_closed_forms(sigma: float) -> None:
    relu, squared = rho("relu", sigma), rho("squared_relu", sigma)
    for term in (relu.variance, relu.weighted_variance, relu.product):
        assert term == pytest.approx(1 / 4 - 1 / (2 * math.pi), rel=1e-12)
    assert squared.value == pytest.approx((4 / math.pi - 1) * sigma**2, rel=1e-12)
    # g' = 3 sigma^2 z^2: a20 - a10^2 = 27 - 9.
    assert rho("cubic", sigma).value == pytest.approx(18 * sigma**4, rel=1e-12)
    # g' = cos(sigma z), a10 a12 = (1 - sigma^2) exp(-sigma^2).
    product = (1 - sigma**2) * math.exp(-(sigma**2))
    assert rho("sine", sigma).product == pytest.approx(product, abs=1e-12)


def test_softplus_against_adaptive_quadrature() -> None:
    slope = get_activation("softplus")
    for sigma in (0.5, 30.0):

        def moment(i: int, j: int, sigma: float = sigma) -> float:
            def integrand(z: float) -> float:
                return float(slope.jet(np.array(sigma * z), 1)[1]) ** i * z**j * math.exp(-z * z / 2)

            pieces = [-12, -1, -0.1, 0, 0.1, 1, 12]
            total = sum(quad(integrand, a, b, epsabs=1e-13)[0] for a, b in pairwise(pieces))
            return total / math.sqrt(2 * math.pi)

        found = rho("softplus", sigma)
        expected = moment(2, 0) - moment(1, 0) ** 2 - moment(1, 1) ** 2
        assert found.variance == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "squared_relu", "tanh", "sigmoid", "erf", "softplus"])
def test_activations_that_the_theory_covers(name: str) -> None:
    assert activation_properties(name).holds


@pytest.mark.parametrize(
    ("name", "fails"),
    [
        ("identity", {"P2"}),
        ("quadratic", {"P1", "P2"}),
        ("gelu", {"P1"}),
        ("swish", {"P1"}),
        ("sine", {"P1", "P2"}),
        ("cubic", {"P3"}),
    ],
)
def test_activations_that_it_does_not(name: str, fails: set[str]) -> None:
    found = activation_properties(name)
    checks = {"P1": found.bounded_slope, "P2": found.curved, "P3": found.smooth_enough}
    assert {key for key, holds in checks.items() if not holds} == fails
    assert not found.holds


def test_constants() -> None:
    squared, tanh, relu = (activation_properties(name) for name in ("squared_relu", "tanh", "relu"))
    assert (squared.growth, squared.slope_bound, squared.curvature_bound) == (1, 2.0, 2.0)
    # The grid meets the maxima to its own spacing, 0.5 %.
    assert tanh.slope_bound == pytest.approx(1, rel=1e-4)
    assert tanh.curvature_bound == pytest.approx(4 / (3 * math.sqrt(3)), rel=1e-4)
    assert relu.piecewise_linear
    assert relu.curvature_bound is None


def test_a_function_of_the_user() -> None:
    def jet(z: np.ndarray, order: int) -> tuple[np.ndarray, ...]:
        return (z + z**3, 1 + 3 * z**2, 6 * z, np.full_like(z, 6.0))[: order + 1]

    found = activation_properties(Activation("mixed", jet))
    # g' grows like z^2 but does not vanish at 0: no power of |z| bounds it.
    assert found.growth == 2
    assert not found.bounded_slope
    # a10 = 4, a20 = 1 + 6 + 27 = 34
    assert found.rho.variance == pytest.approx(34 - 16, rel=1e-12)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.inf, math.nan])
def test_bad_sigma_is_refused(sigma: float) -> None:
    with pytest.raises(InvalidInput, match="sigma must be positive"):
        rho("tanh", sigma)
