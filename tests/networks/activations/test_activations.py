from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from unweave.errors import InvalidInput
from unweave.networks.activations import (
    Activation,
    Reflection,
    activation_names,
    get_activation,
    hermite_polynomials,
    register_activation,
)

NAMES = (
    "tanh",
    "sigmoid",
    "erf",
    "softplus",
    "gelu",
    "swish",
    "mish",
    "elu",
    "selu",
    "softsign",
    "arctan",
    "gaussian",
    "sine",
    "relu",
    "leaky_relu",
    "hard_tanh",
    "relu6",
    "hard_sigmoid",
    "squared_relu",
    "quadratic",
    "cubic",
    "identity",
)
POINTS = np.array([-4.2, -2.3, -1.1, -0.37, -0.02, 0.013, 0.29, 0.83, 1.7, 2.9, 5.1])
EPS = np.finfo(np.float64).eps


def test_the_built_in_names_are_known() -> None:
    assert activation_names()[: len(NAMES)] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_derivative_is_the_derivative_of_the_one_before(name: str) -> None:
    g = get_activation(name)
    h = 1e-3
    at = {k: g.jet(POINTS + k * h, 3) for k in (-2, -1, 0, 1, 2)}
    for n in range(3):
        slope = (8 * (at[1][n] - at[-1][n]) - (at[2][n] - at[-2][n])) / (12 * h)
        # truncation h^4/30 |g^(n+5)| <= 1e-11, rounding eps/h |g|
        assert_allclose(at[0][n + 1], slope, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_shorter_jets_are_the_beginning_of_longer_ones(name: str) -> None:
    g = get_activation(name)
    full = g.jet(POINTS, 3)
    assert len(full) == 4
    for order in range(3):
        short = g.jet(POINTS, order)
        assert len(short) == order + 1
        for got, expected in zip(short, full, strict=False):
            assert_array_equal(got, expected)
    assert_array_equal(g(POINTS), full[0])
    in_place = POINTS.copy()
    g.apply_in_place(in_place)
    assert_array_equal(in_place, full[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("order", range(4))
def test_jets_neither_warn_nor_give_nan_at_huge_arguments(name: str, order: int) -> None:
    z = np.array([-1e308, -1e160, -1e5, -800.0, 0.0, 800.0, 1e5, 1e160, 1e308])
    before = z.copy()
    for values in get_activation(name).jet(z, order):
        assert values.shape == z.shape
        assert not np.isnan(values).any()
    assert_array_equal(z, before)  # the argument is not written to


def test_tails_keep_relative_accuracy() -> None:
    z = 30.0
    e = math.exp(-2 * z)
    _, first, second, third = (float(d[0]) for d in get_activation("tanh").jet(np.array([z]), 3))
    # expansions in e^{-2z}: the next terms are 1e-26 relative to these
    assert_allclose([first, second, third], [4 * e, -8 * e, 16 * e], rtol=1e-13)
    e = math.exp(-z)
    _, first, second, third = (float(d[0]) for d in get_activation("sigmoid").jet(np.array([z]), 3))
    assert_allclose([first, second, third], [e, -e, e], rtol=1e-12)
    assert_allclose(get_activation("softplus")(-z), e, rtol=1e-12)
    assert_allclose(get_activation("gelu")(-10.0), -10 * 7.619853024160527e-24, rtol=1e-12)
    assert_allclose(
        get_activation("erf").jet(np.array([5.0]), 2)[2], -20 / math.sqrt(math.pi) * math.exp(-25)
    )
    tiny = np.array([1e-9, -3e-12])
    assert_allclose(get_activation("tanh").jet(tiny, 2)[2], -2 * tiny, rtol=1e-15)
    assert_allclose(get_activation("sigmoid").jet(tiny, 2)[2], -tiny / 8, rtol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_declared_symmetries_hold(name: str) -> None:
    g = get_activation(name)
    if g.reflection is None:
        assert name in ("squared_relu", "mish", "elu", "selu", "relu6")
    else:
        rule = g.reflection
        expected = rule.sign * g(POINTS) + rule.constant + rule.slope * POINTS
        assert_allclose(g(-POINTS), expected, rtol=1e-14, atol=1e-14)
    if g.homogeneity is not None:
        assert_allclose(g(3.7 * POINTS), 3.7**g.homogeneity * g(POINTS), rtol=1e-14)


def test_parity_and_smoothness_flags() -> None:
    odd = {name for name in NAMES if get_activation(name).is_odd}
    even = {name for name in NAMES if get_activation(name).is_even}
    kinked = {name for name in NAMES if not get_activation(name).smooth}
    assert odd == {"tanh", "erf", "sine", "cubic", "identity", "softsign", "arctan", "hard_tanh"}
    assert even == {"quadratic", "gaussian"}
    assert kinked == {"relu", "leaky_relu", "squared_relu", "hard_tanh", "relu6", "hard_sigmoid"}


@pytest.mark.parametrize("name", NAMES)
def test_kinks_are_where_second_derivatives_jump(name: str) -> None:
    g, step = get_activation(name), 1e-9
    grid = np.linspace(-7, 7, 57)  # every whole number, and between
    slopes = [g.jet(grid + side * step, 2)[1:] for side in (-1, 1)]
    jumps = sum(np.abs(left - right) for left, right in zip(*slopes, strict=True)) > 1e-3
    assert tuple(grid[jumps]) == g.kinks


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "erf", "sine", "arctan"])
def test_second_derivative_is_monotone_just_up_to_the_stated_width(name: str) -> None:
    g = get_activation(name)
    assert g.monotone_second is not None
    inside = np.linspace(-g.monotone_second, g.monotone_second, 1001)[1:-1]
    assert (g.jet(inside, 3)[3] < 0).all()
    beyond = g.jet(np.array([1.01 * g.monotone_second]), 3)[3]
    assert (beyond > 0).all()


@given(
    name=st.sampled_from(["tanh", "sigmoid", "erf", "sine"]),
    fraction=st.floats(-0.98, 0.98, allow_subnormal=False),
)
@settings(deadline=None, max_examples=100)
def test_inverse_second_inverts(name: str, fraction: float) -> None:
    g = get_activation(name)
    z = np.array([fraction * (g.monotone_second or 0)])
    _, _, second, third = g.jet(z, 3)
    # the rounding of g'' is divided by g''', which goes to zero like the distance to the end
    relative = 8 * EPS * (1 + np.abs(second / third))
    # (bisection and a Newton step: relative precision down to 1e-30, absolute below)
    error = np.abs(g.inverse_second(second) - z)
    assert (error <= (4 * EPS + relative) * np.abs(z) + 1e-30).all()


def test_inverse_second_clips_to_the_nearer_end() -> None:
    for name in ("tanh", "sigmoid", "erf", "sine"):
        g = get_activation(name)
        assert g.monotone_second is not None
        assert_array_equal(g.inverse_second([-9.0, 9.0]), [g.monotone_second, -g.monotone_second])
        assert g.inverse_second(0.0) == 0
    assert_array_equal(get_activation("cubic").inverse_second([[6.0, -12.0]]), [[1.0, -2.0]])
    with pytest.raises(InvalidInput, match="monotone around 0"):
        get_activation("gelu").inverse_second(0.1)


def test_bisection_agrees_with_the_closed_form() -> None:
    tanh = get_activation("tanh")
    plain = Activation("tanh_by_bisection", tanh.jet, monotone_second=tanh.monotone_second)
    c = np.linspace(-0.75, 0.75, 31)  # the range ends at 4/(3 sqrt 3) = 0.77
    assert_allclose(plain.inverse_second(c), tanh.inverse_second(c), rtol=0, atol=2e-15)


def test_hermite_polynomials_are_orthonormal() -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    h = hermite_polynomials(nodes, 8)
    gram = (h * weights) @ h.T / math.sqrt(2 * math.pi)
    assert_allclose(gram, np.eye(8), atol=1e-12)


def test_hermite_coefficients_of_known_functions() -> None:
    assert_allclose(get_activation("cubic").hermite_coefficients(5), [0, 3, 0, math.sqrt(6), 0], atol=1e-12)
    tau = 0.7
    expected = [tau**2 + 1, 2 * tau, math.sqrt(2), 0]
    assert_allclose(get_activation("quadratic").hermite_coefficients(4, shift=tau), expected, atol=1e-12)
    # relu: 1/sqrt(2 pi), 1/2, 1/sqrt(4 pi), 0
    expected = [1 / math.sqrt(2 * math.pi), 0.5, 1 / math.sqrt(4 * math.pi), 0]
    assert_allclose(get_activation("relu").hermite_coefficients(4), expected, atol=1e-14)
    # E sin(Z + tau) h_r(Z) = e^{-1/2} sin(tau + r pi/2) / sqrt(r!)
    r = np.arange(6)
    expected = math.exp(-0.5) * np.sin(tau + r * math.pi / 2) / np.sqrt([math.factorial(k) for k in r])
    assert_allclose(get_activation("sine").hermite_coefficients(6, shift=tau), expected, atol=1e-14)


def test_relu_second_derivative_is_a_point_mass() -> None:
    tau = np.array([-1.5, 0.0, 0.4])
    density = np.exp(-(tau**2) / 2) / math.sqrt(2 * math.pi)
    expected = density[:, None] * hermite_polynomials(-tau, 4).T
    assert_allclose(get_activation("relu").hermite_coefficients(4, tau, derivative=2), expected, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_integration_by_parts_links_the_coefficients_of_derivatives(name: str, n: int) -> None:
    g = get_activation(name)
    shifts = np.array([[-0.8, 0.0], [0.3, 2.1]])
    r = np.arange(5)
    factor = np.sqrt([math.factorial(k + n) / math.factorial(k) for k in r])
    expected = factor * g.hermite_coefficients(5 + n, shifts)[..., n:]
    got = g.hermite_coefficients(5, shifts, derivative=n)
    assert got.shape == (2, 2, 5)
    assert_allclose(got, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "squared_relu", "tanh"])
def test_hermite_coefficients_do_not_depend_on_the_number_of_nodes(name: str) -> None:
    g = get_activation(name)
    few = g.hermite_coefficients(10, [-3.0, 0.6, 40.0])
    many = g.hermite_coefficients(10, [-3.0, 0.6, 40.0], nodes=300)
    assert_allclose(few, many, rtol=1e-11, atol=1e-11)


def test_unreasonable_hermite_arguments_are_refused() -> None:
    with pytest.raises(InvalidInput, match="derivative 0 to 3"):
        get_activation("tanh").hermite_coefficients(3, derivative=4)
    with pytest.raises(InvalidInput, match="order"):
        get_activation("tanh").hermite_coefficients(0)


def test_aliases_and_unknown_names() -> None:
    assert get_activation("logistic") is get_activation("sigmoid")
    assert get_activation("linear") is get_activation("identity")
    with pytest.raises(InvalidInput, match=r"one of tanh, sigmoid.*'tahn'"):
        get_activation("tahn")
    with pytest.raises(InvalidInput, match="output activation only"):
        get_activation("softmax")


def _scaled_tanh(z: np.ndarray, order: int) -> tuple[np.ndarray, ...]:
    jets = get_activation("tanh").jet(2 * z, order)
    return tuple(2**n * d for n, d in enumerate(jets))


def test_a_registered_activation_is_found_by_name() -> None:
    mine = Activation("tanh_of_2z", _scaled_tanh, Reflection(-1), monotone_second=0.3)
    register_activation(mine)
    assert get_activation("tanh_of_2z") is mine
    assert "tanh_of_2z" in activation_names()
    z = np.array([0.1, -0.2])
    assert_allclose(mine.inverse_second(mine.jet(z, 2)[2]), z, rtol=1e-14)
    register_activation(mine)  # one's own may be replaced


@pytest.mark.parametrize(
    ("activation", "message"),
    [
        (Activation("tanh", _scaled_tanh), "must be new"),
        (Activation("logistic", _scaled_tanh), "must be new"),
        (Activation("softmax", _scaled_tanh), "must be new"),
        (
            Activation("w1", lambda z, n: (z, 2 * np.ones_like(z), 0 * z, 0 * z)[: n + 1]),
            "derivative 1 of 'w1'",
        ),
        (Activation("w2", lambda z, n: (z**2, 2 * z, z, 0 * z)[: n + 1]), "derivative 2 of 'w2'"),
        (Activation("w3", _scaled_tanh, Reflection(1)), "reflection"),
        (Activation("w4", _scaled_tanh, Reflection(2)), "-1 or 1"),
        (Activation("w5", _scaled_tanh, homogeneity=1), "homogeneity"),
        (Activation("w6", lambda z, n: (z,) * (n + 2)), "must give 4 arrays"),
        (Activation("w7", lambda z, n: _scaled_tanh(z, 3)), "must give 1 arrays"),
    ],
)
def test_wrong_declarations_are_refused(activation: Activation, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        register_activation(activation)
    assert activation.name not in activation_names() or activation.name == "tanh"
