"""The error of the answers is classified, and its size agrees with the truth."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.probing.noise import decimal_grid, difference_noise, estimate_noise
from unweave.targets import NormalisedQueries, Queries, Region

EPS = np.finfo(np.float64).eps
SEEDS = (1000, 1001, 1002)


def network(n_inputs, width, n_outputs=1, seed=1000, activation=np.tanh):
    """Return f(x, dtype): a random one-hidden-layer network evaluated in that number format."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((n_inputs, width)) / np.sqrt(n_inputs)
    bias = rng.uniform(-0.5, 0.5, width)
    outer = rng.choice([-1.0, 1.0], (width, n_outputs)) * rng.uniform(0.5, 2.0, (width, n_outputs))

    def answer(x, dtype=np.float64):
        x = x.astype(dtype)
        return activation(x @ weights.astype(dtype) + bias.astype(dtype)) @ outer.astype(dtype)

    return answer


def relu(z):
    return np.maximum(z, 0)


def noise_of(function, n_inputs, seed=1000, region=None):
    queries = Queries(function, n_inputs)
    view = NormalisedQueries(queries, Region.standard(n_inputs) if region is None else region)
    noise = estimate_noise(view, np.random.default_rng(seed))
    assert queries.sent <= 250
    return noise


@pytest.mark.parametrize("activation", [np.tanh, relu])
@pytest.mark.parametrize("shape", [(20, 40, 1), (5, 10, 3), (100, 100, 1)])
@pytest.mark.parametrize(("kind", "dtype"), [("float64", np.float64), ("float32", np.float32)])
@pytest.mark.parametrize("seed", SEEDS)
def test_rounding_of_an_evaluation_is_measured(activation, shape, kind, dtype, seed):
    net = network(*shape, seed=seed, activation=activation)
    x = np.random.default_rng(seed + 1).standard_normal((400, shape[0]))
    truth = np.sqrt(np.mean((net(x, dtype) - net(x, np.longdouble)) ** 2, axis=0)).astype(np.float64)
    noise = noise_of(lambda x: net(x, dtype), shape[0], seed)
    assert noise.kind == kind
    assert noise.repeatable
    assert noise.decimals is None
    # A median over some twenty tables of eight points: a factor of three is beyond chance.
    assert truth.max() / 3 <= noise.sigma <= 3 * truth.max()
    assert noise.sigma == noise.sigma_per_output.max()
    np.testing.assert_allclose(noise.relative, noise.sigma / noise.scale)
    spread = np.sqrt(np.mean(np.var(net(x), axis=0)))
    assert spread / 2 <= noise.scale <= 2 * spread


@pytest.mark.parametrize("decimals", [-1, 0, 1, 2, 4, 6])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_decimals_are_counted(decimals, dtype):
    net = network(8, 30)
    size = 100.0 if decimals < 0 else 1.0
    if dtype == np.float32 and decimals > 4:
        decimals = 4  # a finer grid than float32 itself resolves
    noise = noise_of(lambda x: np.round(size * net(x).astype(dtype), decimals), 8)
    assert (noise.kind, noise.decimals) == ("rounded", decimals)
    assert noise.sigma == pytest.approx(10.0**-decimals / np.sqrt(12.0))


@pytest.mark.parametrize("sigma", [1e-1, 1e-4, 1e-9])
@pytest.mark.parametrize("seed", SEEDS)
def test_noise_is_measured(sigma, seed):
    net, source = network(10, 20, 2), np.random.default_rng(seed)
    noise = noise_of(lambda x: net(x) + sigma * source.standard_normal((len(x), 2)), 10, seed)
    assert noise.kind == "noisy"
    assert not noise.repeatable
    # 36 degrees of freedom: the estimate has a relative standard deviation of 12 %.
    np.testing.assert_allclose(noise.sigma_per_output, sigma, rtol=0.5)


@pytest.mark.parametrize("seed", SEEDS)
def test_other_grids_count_as_repeatable_noise(seed):
    net = network(10, 20)
    noise = noise_of(lambda x: np.round(net(x) * 255) / 255, 10, seed)
    assert (noise.kind, noise.repeatable, noise.decimals) == ("noisy", True, None)
    assert noise.sigma == pytest.approx(1 / 255 / np.sqrt(12), rel=0.7)


def test_significant_digits_are_no_decimals():
    net = network(10, 20)
    noise = noise_of(lambda x: [float(f"{value:.3g}") for value in 30 * net(x)[:, 0]], 10)
    assert (noise.kind, noise.decimals) == ("noisy", None)


def test_labels_are_rounded_to_integers():
    net = network(10, 20)
    noise = noise_of(lambda x: net(x)[:, 0] > 0, 10)
    assert (noise.kind, noise.decimals) == ("rounded", 0)


@pytest.mark.parametrize("value", [0.0, 3.7, -1e200, 1e-200])
def test_constant_functions_have_a_floor(value):
    noise = noise_of(lambda x: np.full(len(x), value), 4)
    assert 0 < noise.sigma <= max(float(np.finfo(np.float32).eps) * abs(value), 1e-300)
    assert noise.scale == 0
    assert noise.relative == np.inf


def test_affine_functions():
    noise = noise_of(lambda x: x @ np.arange(1.0, 5.0) + 0.3, 4)
    assert noise.kind == "float64"
    assert 0.03 * EPS <= noise.relative <= EPS


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_estimate_scales_with_the_answers(unit):
    net = network(10, 20)
    plain, scaled = noise_of(net, 10), noise_of(lambda x: unit * net(x), 10)
    assert scaled.kind == "float64"
    # Multiplying rounds once more, which adds about as much again.
    assert scaled.sigma / unit == pytest.approx(plain.sigma, rel=1.0)


def test_difference_in_a_box_stays_inside():
    low, high = np.array([0.0, -5.0, 100.0]), np.array([1.0, 5.0, 101.0])

    def guarded(x):
        assert (x >= low).all()
        assert (x <= high).all()
        return np.tanh(x[:, 0] + 0.1 * x[:, 1] + x[:, 2] - 100)

    noise = noise_of(guarded, 3, region=Region.from_domain(low, high, 3))
    assert noise.kind == "float64"
    assert EPS / 30 <= noise.sigma <= 300 * EPS  # inputs near 100 are themselves rounded to 64 eps


def test_difference_tables_of_pure_noise():
    tables = [0.3 * np.random.default_rng(seed).standard_normal((12, 8, 2)) for seed in SEEDS]
    np.testing.assert_allclose(difference_noise(tables), 0.3, rtol=0.5)
    np.testing.assert_array_equal(difference_noise([np.ones((5, 8, 1))]), [0.0])


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([0.1, 0.25], 2),
        ([1.0, 0.0], 0),
        ([10.0, 20.0, 30.0, 70.0], -1),
        ([1 / 3, 0.5], None),
        ([0.5, 0.5], None),
    ],
)
def test_decimal_grid(values, decimals):
    assert decimal_grid(np.array(values)[:, None], EPS) == decimals


@pytest.mark.parametrize(("dtype", "bits", "name"), [(np.float16, 11, "float16"), (None, 8, "bfloat16")])
def test_half_precisions_are_as_coarse_as_noise(dtype, bits, name):
    net = network(5, 6, 2)

    def target(x):
        if dtype is not None:
            return net(x).astype(dtype)
        scale = np.exp2(np.frexp(net(x))[1] - 8.0)
        return np.round(net(x) / scale) * scale

    noise = noise_of(target, 5)
    assert (noise.kind, noise.format, noise.repeatable) == ("noisy", name, True)
    largest = np.abs(net(np.random.default_rng(0).standard_normal((2000, 5)))).max()
    assert largest * 2.0**-bits / 8 <= noise.sigma <= largest * 2.0**-bits


def test_significant_digits_are_named():
    net = network(5, 6)
    noise = noise_of(lambda x: np.vectorize(lambda y: float(f"{y:.3g}"))(net(x)), 5)
    assert (noise.kind, noise.format) == ("noisy", "3 significant digits")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precise_answers_have_no_format(dtype):
    net = network(5, 6)
    assert noise_of(lambda x: net(x, dtype), 5).format is None
