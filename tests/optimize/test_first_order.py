"""NAG, RMSProp and ADAM: their iterates, and the steps that are certified for them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.optimize.first_order import Adam, NesterovGradient, RMSProp, corrected, descend
from unweave.optimize.first_order_steps import CertifiedStep, certified_step

DIMENSION = 6
SMOOTHNESS = 2.0
# max of 2 x/(1+x^2)^2 is 3 sqrt(3)/8, at x = 1/sqrt(3).
GRADIENT_BOUND = math.sqrt(DIMENSION) * 3 * math.sqrt(3) / 8


def value(x: np.ndarray) -> float:
    return float(np.sum(x**2 / (1 + x**2)))


def slope(x: np.ndarray) -> np.ndarray:
    return 2 * x / (1 + x**2) ** 2


def planted_start() -> np.ndarray:
    return np.random.default_rng(1000).standard_normal(DIMENSION)


def test_nag_by_hand() -> None:
    x, v = np.array([1.0, -2.0]), np.zeros(2)
    method = NesterovGradient(0.1, 0.5)
    state = method.begin(x)
    for _ in range(3):
        g = 2 * x
        v = 0.5 * v + g
        x = x - 0.1 * (g + 0.5 * v)
        state = method.step(state, 2 * state.x)
        np.testing.assert_allclose(state.x, x, rtol=1e-14)
    assert state.time == 3


def test_rmsprop_by_hand() -> None:
    method = RMSProp(0.1, beta2=0.8, shift=0.5)
    x, v = np.array([1.0, -2.0, 0.0]), np.zeros(3)
    state = method.begin(x)
    for _ in range(3):
        g = 2 * x
        v = 0.8 * v + 0.2 * (g**2 + 0.5)
        x = x - 0.1 * g / np.sqrt(v)
        state = method.step(state, 2 * state.x)
        np.testing.assert_allclose(state.x, x, rtol=1e-14)


def test_adam_by_hand() -> None:
    x, m, v = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    method = Adam(corrected(0.1, 0.6, 0.8), 0.6, 0.8, 0.5)
    state = method.begin(x)
    for t in range(1, 4):
        g = 2 * x
        m = 0.6 * m + 0.4 * g
        v = 0.8 * v + 0.2 * g**2
        x = x - 0.1 * math.sqrt(1 - 0.8**t) / (1 - 0.6**t) * m / (np.sqrt(v) + 0.5)
        state = method.step(state, 2 * state.x)
        np.testing.assert_allclose(state.x, x, rtol=1e-13)


@pytest.mark.parametrize("method", [RMSProp(0.1, shift=0.0), Adam(0.1, shift=0.0)])
def test_a_coordinate_without_gradient_stays(method: RMSProp | Adam) -> None:
    found = descend(lambda x: np.array([2 * x[0], 0.0]), np.array([1.0, 3.0]), method, 5)
    assert found.x[1] == 3.0
    assert found.x[0] < 1


def assert_descends_as_certified(
    found: CertifiedStep, start: np.ndarray, accuracy: float, steps: int
) -> None:
    """Every step goes down, and the accuracy is reached no later than promised."""
    values: list[float] = []
    run = descend(
        slope, start, found.method(), steps, accuracy, lambda state, norm: values.append(value(state.x))
    )
    assert (np.diff(values) < 0).all()
    assert run.reached is not None
    assert run.reached <= found.steps


@pytest.mark.parametrize("shift", [1.0, 0.1])
@pytest.mark.parametrize("sharper", [False, True])
def test_certified_rmsprop_always_descends_and_arrives(shift: float, sharper: bool) -> None:
    start, accuracy = planted_start(), 0.05
    given = ("rmsprop", SMOOTHNESS, GRADIENT_BOUND, value(start), accuracy)
    found = certified_step(*given, beta2=0.9, shift=shift, sharper=sharper)
    assert_descends_as_certified(found, start, accuracy, 20_000)
    published = certified_step(*given, beta2=0.9, shift=shift, sharper=False)
    ratio = published.steps / found.steps
    assert ratio == pytest.approx(10 if sharper else 1)


def test_certified_decrease_of_every_step() -> None:
    # RMSProp: at least xi |g|^2/(2 L s^2), from which T follows.
    start, shift = planted_start(), 0.3
    found = certified_step("rmsprop", SMOOTHNESS, GRADIENT_BOUND, value(start), 1e-3, shift=shift)
    points: list[np.ndarray] = []
    descend(slope, start, found.method(), 300, 0.0, lambda state, norm: points.append(state.x))
    values = np.array([value(x) for x in points])
    squares = np.array([np.sum(slope(x) ** 2) for x in points])
    promised = shift * squares / (2 * SMOOTHNESS * (GRADIENT_BOUND**2 + shift))
    assert (values[:-1] - values[1:] >= promised[:-1] * (1 - 1e-9)).all()


@pytest.mark.parametrize("sharper", [False, True])
def test_certified_adam_descends_while_the_gradient_is_large(sharper: bool) -> None:
    start, accuracy = planted_start(), 0.3
    found = certified_step("adam", SMOOTHNESS, GRADIENT_BOUND, value(start), accuracy, sharper=sharper)
    assert_descends_as_certified(found, start, accuracy, 20_000)


def test_the_sharper_adam_needs_fewer_steps() -> None:
    start, accuracy = planted_start(), 0.3
    runs = [
        certified_step("adam", SMOOTHNESS, GRADIENT_BOUND, value(start), accuracy, sharper=sharper)
        for sharper in (True, False)
    ]
    edge = accuracy + 2 * GRADIENT_BOUND
    # (9/2) e^4/eps^6 over 18 e^2/eps^4.
    assert runs[1].steps / runs[0].steps == pytest.approx(edge**2 / (4 * accuracy**2))
    counts = [descend(slope, start, run.method(), 20_000, accuracy).reached for run in runs]
    assert counts[0] is not None
    assert counts[1] is not None
    assert counts[0] < counts[1]


@pytest.mark.parametrize(("beta1", "shift"), [(0.0, 0.1), (0.05, 5.0), (0.1, 20.0)])
def test_adam_is_certified_for_other_averages(beta1: float, shift: float) -> None:
    start, accuracy = planted_start(), 0.4
    found = certified_step(
        "adam", SMOOTHNESS, GRADIENT_BOUND, value(start), accuracy, beta1=beta1, shift=shift
    )
    assert_descends_as_certified(found, start, accuracy, 30_000)


def test_rmsprop_without_shift_and_gradient_descent() -> None:
    start, accuracy = planted_start(), 0.2
    for kind, more in (("rmsprop without shift", {"dimension": DIMENSION}), ("gradient descent", {})):
        found = certified_step(kind, SMOOTHNESS, GRADIENT_BOUND, value(start), accuracy, **more)
        run = descend(slope, start, found.method(), 30_000, accuracy)
        assert run.reached is not None
        assert run.reached <= found.steps


def test_stochastic_rmsprop_in_one_orthant() -> None:
    # Components with gradients of one sign: f_i(x) = softplus-like in c_i x, c_i > 0, which only decreases.
    rng = np.random.default_rng(1001)
    scales = rng.uniform(0.5, 1.0, (20, 3))
    start = np.zeros(3)

    def component(x: np.ndarray) -> np.ndarray:
        c = scales[rng.integers(20)]
        return -c / (1 + np.exp(c @ x))

    def whole(x: np.ndarray) -> np.ndarray:
        return np.mean([-c / (1 + np.exp(c @ x)) for c in scales], axis=0)

    bound = float(np.linalg.norm(scales, axis=1).max())
    accuracy, gap = 0.3, math.log(2)
    found = certified_step("stochastic rmsprop", bound**2 / 4, bound, gap, accuracy, beta2=0.5, shift=1.0)
    least = np.inf

    def watch(state: object, norm: float) -> None:
        nonlocal least
        least = min(least, float(np.linalg.norm(whole(state.x))))

    descend(component, start, found.method(), math.ceil(found.steps), 0.0, watch)
    assert least <= accuracy


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NesterovGradient(-0.1), "step_size must be a finite number above 0"),
        (lambda: NesterovGradient(0.1, 1.0), "momentum must be at least 0 and below 1"),
        (lambda: RMSProp(0.1, beta2=1.0), "beta2 must be at least 0 and below 1"),
        (lambda: RMSProp(0.1, shift=-1.0), "shift must be finite and at least 0"),
        (lambda: Adam(float("nan")), "step_size must be a finite number above 0"),
        (lambda: Adam(0.1, beta1=-0.1), "beta1 must be"),
        (lambda: corrected(0.0, 0.9, 0.99), "step_size must be"),
        (lambda: descend(slope, np.zeros((2, 2)), Adam(0.1), 3), "start must be a finite vector"),
        (lambda: descend(slope, np.array([np.nan]), Adam(0.1), 3), "start must be a finite vector"),
        (lambda: descend(slope, np.ones(2), Adam(0.1), 0), "steps must be at least 1"),
        (lambda: descend(lambda x: x[:1], np.ones(2), Adam(0.1), 3), "gradient must return shape"),
        (
            lambda: descend(lambda x: np.inf * x, np.ones(2), Adam(0.1), 9),
            "step_size must keep the gradient finite",
        ),
        (lambda: certified_step("magic", 1, 1, 1, 1), "kind must be one of"),
        (lambda: certified_step("rmsprop", -1, 1, 1, 1), "smoothness must be a finite number above 0"),
        (lambda: certified_step("rmsprop", 1, np.nan, 1, 1), "gradient_bound must be"),
        (lambda: certified_step("rmsprop", 1, 1, 1, 1, shift=0.0), "shift must be finite and above 0"),
        (lambda: certified_step("rmsprop without shift", 1, 1, 1, 1), "dimension must be given"),
        (lambda: certified_step("adam", 1, 1, 1, 0.1, beta1=0.5), "beta1 must be below eps"),
        (lambda: certified_step("adam", 1, 1, 1, 0.1, shift=-1.0), "shift above 0"),
        (lambda: certified_step("adam", 1, 1, 1, 0.1, beta1=0.1, sharper=False), "must be left out"),
    ],
)
def test_bad_input(call, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()
