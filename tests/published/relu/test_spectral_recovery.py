"""Algorithms 1 to 6 on exact coefficients and on samples."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.errors import InvalidInput
from unweave.numerics.hermite.contractions import SampleContractions, directional_coefficients
from unweave.numerics.hermite.estimated_coefficients import in_batches
from unweave.numerics.hermite.tensors import hermite_polynomial, normal_density
from unweave.numerics.whitening import Whitening
from unweave.published.relu.gaussian_samples import GaussianSampleOptions, recover_from_gaussian_samples
from unweave.published.relu.jennrich import jennrich, pencil_directions
from unweave.published.relu.published_depth2 import count_units, published_directions
from unweave.published.relu.regression import (
    RegressionBounds,
    learn_by_regression,
    regress_on_units,
    without_affine_part,
)
from unweave.published.relu.relu_units import ReLUUnits, hermite_coefficients
from unweave.published.relu.spectral_recovery import overcomplete_directions, recover_from_coefficients
from unweave.published.relu.unit_scalars import (
    fix_signs,
    fix_signs_by_affine_rest,
    hermite_sequence_solution,
    recover_scalars,
    scalars_from_terms,
    term_weights,
    term_weights_from_contractions,
)


def planted(dimension, width, seed, special=(), offset=0.0):
    """Random units; ``special`` replaces the first biases."""
    rng = np.random.default_rng(seed)
    outer = rng.choice([-1.0, 1.0], width) * rng.uniform(0.5, 1.5, width)
    biases = rng.uniform(-1, 1, width)
    units = ReLUUnits.normalised(rng.standard_normal((dimension, width)), biases, outer, offset)
    biases = np.concatenate([np.asarray(special, dtype=float), biases[len(special) :]])
    return ReLUUnits(units.weights, biases, units.outer, offset)


def direction_errors(truth, found):
    """Distance of every true direction to the nearest found one, up to sign."""
    return np.sqrt(np.maximum(2 - 2 * np.abs(truth.T @ found).max(axis=1), 0))


@pytest.mark.parametrize("directions", ["published", "pencil"])
@pytest.mark.parametrize("published_signs", [True, False])
@pytest.mark.parametrize(("dimension", "width"), [(10, 5), (10, 10), (20, 10), (20, 20)])
def test_full_rank_from_exact_coefficients(dimension, width, directions, published_signs):
    for seed, special in ((1000, ()), (1001, (0.0, 1.0))):
        units = planted(dimension, width, seed, special, offset=0.3)
        found = recover_from_coefficients(
            hermite_coefficients(units, 4),
            np.random.default_rng(seed),
            directions=directions,
            published_signs=published_signs,
        )
        assert found.signs_known
        comparison = unweave.compare(units.to_network(), found.to_network())
        # Rounding, amplified by two inversions of the directions and by the eigenvalue gap of the pencil.
        assert comparison.parameter_error < 1e-9 * np.linalg.cond(units.weights) ** 2 / 10
        assert comparison.parameter_error < 1e-9


@pytest.mark.parametrize("directions", ["published", "power"])
@pytest.mark.parametrize(("dimension", "width"), [(8, 12), (8, 16), (10, 20)])
def test_more_units_than_inputs_from_exact_coefficients(dimension, width, directions):
    for seed, special in ((1000, ()), (1001, (0.0, 1.0, np.sqrt(3)))):
        units = planted(dimension, width, seed, special)
        found = recover_from_coefficients(
            hermite_coefficients(units, 6), np.random.default_rng(seed), order=2, directions=directions
        )
        assert found.signs_known
        assert unweave.compare(units.to_network(), found.to_network()).parameter_error < 1e-11


@pytest.mark.parametrize("first", [0, 1, 2, 3])
def test_hermite_sequence_determines_its_argument(first):
    rng = np.random.default_rng(1002)
    z, xi = rng.uniform(-2.5, 2.5, 200), rng.choice([-1.0, 1.0], 200)
    beta = rng.choice([-1.0, 1.0], 200) * rng.uniform(0.1, 2, 200)
    orders = range(first, first + 4)
    sequence = np.stack([(-1) ** j * xi**j * beta * hermite_polynomial(j, z) for j in orders])
    found, scale = hermite_sequence_solution(sequence, first)
    np.testing.assert_allclose(found, xi * z, atol=1e-12)
    np.testing.assert_allclose(scale, beta, atol=1e-12)


def test_scalars_with_wrong_signs_of_directions():
    units = planted(6, 5, 1003, (0.0, 1.0))
    flips = np.array([1.0, -1.0, -1.0, 1.0, -1.0])
    exact = hermite_coefficients(units, 6)
    for order in (1, 2):
        scalars = recover_scalars(exact, units.weights * flips, order)
        np.testing.assert_allclose(scalars.outer, units.outer, atol=1e-11)
        np.testing.assert_allclose(scalars.biases, units.biases * flips, atol=1e-11)
    for rule, margin in ((fix_signs, 0.1), (fix_signs_by_affine_rest, 1 - 1e-9)):
        fixed = rule(exact.at(1), units.weights * flips, scalars)
        np.testing.assert_array_equal(fixed.signs, flips)
        assert fixed.determined
        assert fixed.margin > margin


def test_term_weights_two_ways():
    units = planted(6, 4, 1004)
    exact = hermite_coefficients(units, 3)
    for order in (2, 3):
        expected = term_weights(exact, order, units.weights)
        found = term_weights_from_contractions(exact.along(order, units.weights), order, units.weights)
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_jennrich_on_a_planted_tensor():
    rng = np.random.default_rng(1005)
    vectors = rng.standard_normal((6, 4))
    vectors /= np.linalg.norm(vectors, axis=0)
    tensor = np.einsum("m,im,jm,km->ijk", rng.uniform(1, 2, 4), vectors, vectors, rng.standard_normal((3, 4)))
    terms = jennrich(tensor, 4, rng)
    assert terms.real
    assert direction_errors(vectors, terms.vectors).max() < 1e-7  # arccos loses half of the digits
    assert terms.singular_values[4] < 1e-14 < terms.singular_values[3]
    assert jennrich(tensor, 0, rng).vectors.shape == (6, 0)
    with pytest.raises(InvalidInput, match="rank must be between"):
        jennrich(tensor, 7, rng)
    with pytest.raises(InvalidInput, match="independent terms"):
        jennrich(np.zeros((3, 3, 2)), 2, rng)


def test_units_are_counted_without_and_with_noise():
    units = planted(8, 5, 1006, (0.0, 1.0))
    exact = hermite_coefficients(units, 5)
    assert count_units(exact) == 5
    assert count_units(exact, order=2) == 5
    faint = ReLUUnits(units.weights, units.biases, units.outer * np.array([1e-6, 1, 1, 1, 1]))
    coefficients = hermite_coefficients(faint, 4)
    assert count_units(coefficients) == 5
    assert count_units(coefficients, noise={2: 1e-3, 3: 1e-3}) == 4
    found = published_directions(coefficients, np.random.default_rng(0), noise=dict.fromkeys((2, 3, 4), 1e-3))
    assert found.weights.shape == (8, 4)
    # b = 1 is seen by the third order only, b = 0 by the fourth only.
    assert 3 in found.orders


def test_orders_that_are_too_low_are_refused():
    exact = hermite_coefficients(planted(4, 3, 1007), 3)
    with pytest.raises(InvalidInput, match="must reach order 4"):
        published_directions(exact, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="width must be between"):
        overcomplete_directions(exact, 10, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="order must be 1"):
        recover_from_coefficients(exact, np.random.default_rng(0), width=3, order=2, directions="pencil")


def test_flips_that_leave_the_function_alone_are_reported():
    """Claim 4.8: b = 0 and sum a_i w_i = 0, so that flipping every unit changes nothing."""
    rng = np.random.default_rng(1008)
    weights = rng.standard_normal((3, 5))
    weights /= np.linalg.norm(weights, axis=0)
    outer = np.linalg.svd(weights)[2][-1]
    units = ReLUUnits(weights, np.zeros(5), outer)
    flipped = ReLUUnits(-weights, np.zeros(5), outer)
    x = rng.standard_normal((1000, 3))
    np.testing.assert_allclose(units(x), flipped(x), atol=1e-14)
    found = recover_from_coefficients(
        hermite_coefficients(units, 6), rng, order=2, width=5, directions="published"
    )
    assert not found.signs_known
    patterns = [found.signs, *found.alternatives]
    assert len(patterns) >= 2
    assert any((a == -b).all() for a in patterns for b in patterns)
    np.testing.assert_allclose(found.to_network()(x)[:, 0], units(x), atol=1e-10)
    dependent = fix_signs(np.zeros(3), weights, scalars_from_terms(outer, np.zeros(5)))
    assert not dependent.determined


def test_samples_of_few_units_in_many_inputs():
    units = planted(30, 3, 1009)
    x = np.random.default_rng(1010).standard_normal((60_000, 30))
    found = recover_from_gaussian_samples(in_batches(x, units(x)), np.random.default_rng(0))
    assert found.basis is not None
    assert found.recovery.figures["width"] == 3  # counted
    errors = direction_errors(units.weights, found.recovery.units.weights)
    assert errors.max() < 0.2  # T_2 alone leaves about sqrt(d / N) / (a phi(b)) = 0.1
    signs = np.abs(units.weights.T @ found.recovery.units.weights).argmax(axis=1)
    assert (np.sum(units.weights * found.recovery.units.weights[:, signs], axis=0) > 0).all()


def test_pencil_from_contractions_alone():
    """O(d^2) memory: directions, then scalars from T_k[w, .., w], never a tensor."""
    units = planted(5, 3, 1011)
    x = np.random.default_rng(1012).standard_normal((200_000, 5))
    y = units(x)
    samples = SampleContractions(x, y)

    def contraction(vector, matrix):
        return samples.third(vector) + samples.fourth(matrix) / np.sqrt(5)

    found = pencil_directions(samples.second, contraction, 3, np.random.default_rng(0), draws=5)
    errors = direction_errors(units.weights, found.weights)
    assert errors.max() < 0.5  # raw moments, so several times the error with the low degrees taken off
    terms = [
        term_weights_from_contractions(directional_coefficients(x, y, units.weights, k), k, units.weights)
        for k in (2, 3)
    ]
    scalars = scalars_from_terms(*terms)
    expected = units.outer * normal_density(units.biases)
    np.testing.assert_allclose(terms[0], expected, atol=0.1)  # about 10 / sqrt(N) each
    assert np.abs(scalars.biases - units.biases).max() < 0.5


def test_sampled_overcomplete_start():
    units = planted(5, 7, 1013)
    x = np.random.default_rng(1014).standard_normal((200_000, 5))
    options = GaussianSampleOptions(order=2)
    found = recover_from_gaussian_samples(in_batches(x, units(x)), np.random.default_rng(0), 7, options)
    assert np.median(direction_errors(units.weights, found.recovery.form.weights)) < 0.15


def test_regression_with_the_true_directions_is_exact():
    units = planted(6, 4, 1015, offset=0.2)
    flips = np.array([1.0, -1.0, 1.0, -1.0])
    x = np.random.default_rng(1016).standard_normal((200, 6))
    fit = regress_on_units(x, units(x), units.weights * flips, units.biases * flips)
    assert fit.residual < 1e-13
    network = fit.to_network()
    assert network.hidden == (6,)
    assert network.biases[1] == 0
    fresh = np.random.default_rng(1017).standard_normal((500, 6))
    np.testing.assert_allclose(network(fresh)[:, 0], units(fresh), atol=1e-12)


def test_affine_pair_without_a_slope():
    units = planted(3, 2, 1018)
    x = np.random.default_rng(1019).standard_normal((100, 3))
    fit = regress_on_units(x, units(x), units.weights, units.biases)
    form = fit.form
    flat = type(form)(form.weights, form.biases, form.heights, form.weights @ form.heights, form.offset)
    np.testing.assert_allclose(without_affine_part(flat)(x), flat(x), atol=1e-13)


def test_regression_bounds():
    units = planted(4, 3, 1020)
    x = np.random.default_rng(1021).standard_normal((400, 4))
    y = units(x)
    free = regress_on_units(x, y, units.weights, units.biases)
    wide = RegressionBounds.published(3, 4, 3, 2.0, 0.01)
    same = regress_on_units(x, y, units.weights, units.biases, wide)
    assert same.rows == 400
    np.testing.assert_allclose(same.form.heights, free.form.heights, atol=1e-12)
    tight = regress_on_units(x, y, units.weights, units.biases, RegressionBounds(4.0, 0.5))
    length = np.sqrt(
        sum(float(np.sum(part**2)) for part in (tight.form.heights, tight.form.slope, tight.form.offset))
    )
    assert length == pytest.approx(0.5, rel=1e-9)
    assert tight.rows < 400
    assert tight.residual > free.residual
    with pytest.raises(InvalidInput, match="usable rows"):
        regress_on_units(x[:5], y[:5], units.weights, units.biases)


def test_learning_by_regression_predicts():
    units = planted(6, 3, 1022)
    rng = np.random.default_rng(1023)
    x, fresh = rng.standard_normal((100_000, 6)), rng.standard_normal((2_000, 6))
    learned = learn_by_regression(x, units(x), rng, 3)
    assert learned.network.hidden == (5,)
    error = np.sqrt(np.mean((learned.network(fresh)[:, 0] - units(fresh)) ** 2)) / units(fresh).std()
    assert error < 0.1
    assert learned.regression.residual == pytest.approx(
        error * units(fresh).std() / np.sqrt(np.mean(units(fresh) ** 2)), rel=0.3
    )


def test_units_on_whitened_inputs_come_back():
    rng = np.random.default_rng(1000)
    mixing = rng.standard_normal((5, 5))
    mean, covariance = rng.standard_normal(5), mixing @ mixing.T + 0.1 * np.eye(5)
    rng = np.random.default_rng(1001)
    truth = ReLUUnits.normalised(
        rng.standard_normal((5, 3)), rng.uniform(-1, 1, 3), np.array([1.0, -0.5, 2.0])
    )
    whitening = Whitening.known(mean, covariance)
    x = rng.multivariate_normal(mean, covariance, size=200)
    seen = ReLUUnits.normalised(
        np.linalg.cholesky(covariance).T @ truth.weights, truth.biases + mean @ truth.weights, truth.outer
    )
    np.testing.assert_allclose(seen(whitening(x)), truth(x), atol=1e-12)
    found = recover_from_coefficients(hermite_coefficients(seen, 4), rng).units
    back = found.unwhitened(whitening)
    assert unweave.compare(truth.to_network(), back.to_network()).parameter_error < 1e-9


def drawn(units, rows, seed):
    x = np.random.default_rng([seed, 3]).standard_normal((rows, units.dimension))
    return x, units(x)


@pytest.mark.parametrize("bias", [2.5, 5.0])
def test_a_unit_without_a_kink_stays_in_the_affine_part(bias):
    units = planted(6, 4, 1000, special=(bias, 0.0, 0.7, -0.4))
    x, y = drawn(units, 200_000, 1000)
    learner = learn_by_regression(x, y, np.random.default_rng(0))
    found = learner.recovery.form.weights
    # Bent to explain order 1, directions are 0.1 to 0.9 off.
    assert direction_errors(units.weights[:, 1:], found).max() < 0.1
    if found.shape[1] == 3:
        assert not learner.recovery.signs_known
    fresh, expected = drawn(units, 10_000, 1001)
    error = learner.network(fresh)[:, 0] - expected
    assert np.sqrt(np.mean(error**2)) < 0.05 * expected.std()


def test_units_that_the_rank_misses_are_counted_by_what_they_explain():
    units = planted(5, 8, 1000)
    x, y = drawn(units, 300_000, 1000)
    options = GaussianSampleOptions(order=2)
    batches, rng = in_batches(x, y), np.random.default_rng(0)
    by_rank = recover_from_gaussian_samples(
        batches, rng, options=GaussianSampleOptions(order=2, most_added=0)
    )
    assert by_rank.recovery.form.width < 8
    recovery = recover_from_gaussian_samples(batches, rng, options=options).recovery
    assert recovery.form.width == 8
    assert direction_errors(units.weights, recovery.form.weights).max() < 0.15
