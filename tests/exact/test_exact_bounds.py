"""Lower bounds of tuples of patterns: exact least squares, valid duals, a tree that loses nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from planted_units import planted

from unweave.exact import Absolute, Huber, Logistic, Squared, hyperplane_dichotomies
from unweave.exact.cone_program import cone_program, solve
from unweave.exact.pattern_bounds import ConvexBounds, all_signs, design, squared_bounds
from unweave.exact.pattern_tree import level_sizes, pattern_tree


def tree_of(inputs=2, samples=12, width=2, seed=1000, noise=0.3, **options):
    _, x, y = planted(inputs, 2, samples, noise, seed)
    z = np.column_stack([x, np.ones(samples)])
    order = np.random.default_rng(seed).permutation(samples)
    return pattern_tree(hyperplane_dichotomies(x), z, y, order, width, **options)


def labelled_level(samples, loss):
    level = tree_of(samples=samples, noise=1.0).last
    if isinstance(loss, Logistic):
        level.y[:] = np.sign(level.y)
    return level


@pytest.mark.parametrize(("inputs", "width"), [(1, 1), (1, 2), (2, 2), (2, 3), (3, 2)])
def test_squared_bounds_are_least_squares_values(inputs, width):
    tree = tree_of(inputs, 14, width)
    level = tree.last
    tuples = np.sort(np.random.default_rng(1000).integers(len(level.patterns), size=(300, width)), axis=1)
    tuples[:5] = tuples[:5, :1]  # one pattern several times: deficient rank
    found = squared_bounds(level).bounds(tuples)
    for matrix, bound in zip(design(level, tuples), found, strict=True):
        residual = level.y - matrix @ np.linalg.lstsq(matrix, level.y, rcond=1e-12)[0]
        # Elimination goes on with pivots down to 1e-6: rounding times 1e6, and the size of |y|^2.
        assert bound == pytest.approx(residual @ residual, abs=1e-9 * level.y @ level.y)


def test_sign_bounds_hold_and_help():
    tree = tree_of(samples=10)
    level = tree.last
    tuples = np.sort(np.random.default_rng(1000).integers(len(level.patterns), size=(60, 2)), axis=1)
    bounder = squared_bounds(level)
    plain = bounder.bounds(tuples)
    signed = bounder.sign_bounds(tuples, plain)
    scale = level.y @ level.y
    optima = np.empty_like(signed)
    for k, (units, signs) in enumerate(itertools.product(tuples, all_signs(2))):
        program = cone_program(level.patterns[units] == 1, signs, level.z, level.y)
        optima.flat[k] = solve(program, Squared(), 1e-9 * scale).loss
    assert np.all(signed <= optima + 1e-9 * scale)
    assert np.all(signed >= plain[:, None])
    assert np.mean(signed - plain[:, None]) > 0.1 * np.mean(optima - plain[:, None])


@pytest.mark.parametrize(
    "loss", [Squared(), Absolute(), Huber(0.5), Logistic()], ids=lambda loss: type(loss).__name__
)
def test_dual_bounds_hold(loss):
    level = labelled_level(10, loss)
    rng = np.random.default_rng(1000)
    tuples = np.sort(rng.integers(len(level.patterns), size=(100, 2)), axis=1)
    found = ConvexBounds(level, loss).bounds(tuples)
    for matrix, bound in zip(design(level, tuples), found, strict=True):
        # Any coefficients give an upper bound: random ones, and those of least squares.
        trials = [np.linalg.lstsq(matrix, level.y, rcond=None)[0], *rng.standard_normal((5, matrix.shape[1]))]
        least = min(float(np.sum(loss.value(matrix @ trial, level.y))) for trial in trials)
        assert 0 <= bound <= least + 1e-10
    if isinstance(loss, Squared):
        exact = squared_bounds(level).bounds(tuples)
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-9 * level.y @ level.y)


@pytest.mark.parametrize("loss", [Absolute(), Logistic()], ids=lambda loss: type(loss).__name__)
def test_sign_bounds_of_other_losses_hold(loss):
    level = labelled_level(8, loss)
    rng = np.random.default_rng(1001)
    tuples = np.sort(rng.integers(len(level.patterns), size=(8, 2)), axis=1)
    bounder = ConvexBounds(level, loss)
    plain = bounder.bounds(tuples)
    signed = bounder.sign_bounds(tuples, plain)
    scale = float(np.sum(loss.value(np.zeros(8), level.y)))
    assert np.any(signed > plain[:, None])
    for k, (units, signs) in enumerate(itertools.product(tuples, all_signs(2))):
        program = cone_program(level.patterns[units] == 1, signs, level.z, level.y)
        assert signed.flat[k] <= solve(program, loss, 1e-7 * scale).loss + 1e-9 * scale


@pytest.mark.parametrize("width", [1, 2, 3])
def test_tree_reaches_every_tuple_once(width):
    tree = tree_of(samples=7, width=width, root_tuples=30)
    assert len(tree.levels) > 1
    tuples = tree.roots()
    assert len(np.unique(tuples, axis=0)) == len(tuples)
    for number in range(len(tree.levels) - 1):
        below, parents = tree.children(number, tuples)
        size = len(tree.levels[number].y)
        before = tree.levels[number].patterns[tuples[parents]]
        np.testing.assert_array_equal(tree.levels[number + 1].patterns[below][:, :, :size], before)
        tuples = below
    count = len(tree.last.patterns)
    expected = np.array(list(itertools.combinations_with_replacement(range(count), width)))
    assert len(tuples) == tree.n_tuples
    np.testing.assert_array_equal(tuples[np.lexsort(tuples.T[::-1])], expected)


def test_bounds_grow_along_the_tree():
    tree = tree_of(samples=12, root_tuples=200)
    tuples = tree.roots()
    bounds = squared_bounds(tree.levels[0]).bounds(tuples)
    for number in range(len(tree.levels) - 1):
        some = np.random.default_rng(number).choice(len(tuples), size=min(50, len(tuples)), replace=False)
        below, parents = tree.children(number, tuples[some])
        raised = squared_bounds(tree.levels[number + 1]).bounds(below)
        assert np.all(raised >= bounds[some][parents] - 1e-9 * tree.last.y @ tree.last.y)
        tuples, bounds = below, raised


def test_levels_end_with_all_points():
    counts = np.array([2 * (n + 1) for n in range(500)])
    assert level_sizes(counts[:10], 2) == [10]
    sizes = level_sizes(counts, 2)
    assert sizes[-1] == 500
    assert sizes == sorted(set(sizes))
