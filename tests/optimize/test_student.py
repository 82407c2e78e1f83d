"""A student finds its teacher from many samples, and not from too few."""

from __future__ import annotations

import numpy as np
import pytest

from unweave import InvalidInput, random_network
from unweave.optimize.classifier import ClassifierOptions, glorot_network, train_classifier
from unweave.optimize.student import StudentOptions, train_student


def pair():
    return [random_network([4, 2, 1], "tanh", seed=seed, outer="ones") for seed in (1000, 1001)]


def test_a_teacher_is_found_and_records_are_kept():
    teacher, start = pair()
    seen = []
    options = StudentOptions(samples=2000, steps=20_000, rate=0.05, records=(1, 10))
    found = train_student(teacher, start, options, np.random.default_rng(0), lambda n, _: seen.append(n))
    assert found.loss <= 1e-8
    assert found.steps < options.steps
    assert seen == [1, 10]
    x = np.random.default_rng(1).standard_normal((100, 4))
    assert np.abs(found.network(x) - teacher(x)).max() < 1e-3
    assert np.array_equal(found.network.weights[1], start.weights[1])  # the output keeps its values


def test_samples_that_do_not_fit_in_memory_are_drawn_anew():
    teacher, start = pair()
    options = StudentOptions(samples=2000, steps=5000, rate=0.05, most_numbers=100)
    assert train_student(teacher, start, options, np.random.default_rng(0)).loss < 1e-3


def test_a_step_too_long_ends_with_the_start():
    teacher, start = pair()
    options = StudentOptions(samples=100, steps=2000, rate=1e200)
    with np.errstate(all="ignore"):
        found = train_student(teacher, start, options, np.random.default_rng(0))
    assert found.network is start or np.isfinite(found.loss)


def test_options_are_checked():
    teacher, start = pair()
    with pytest.raises(InvalidInput, match="batch at most samples"):
        train_student(teacher, start, StudentOptions(samples=10, steps=5), np.random.default_rng(0))


def test_a_classifier_learns_and_keeps_no_biases():
    rng = np.random.default_rng(1000)
    x = rng.standard_normal((300, 4))
    y = (x[:, 0] + x[:, 1] > 0).astype(np.int64)
    start = glorot_network([4, 30, 2], rng)
    end = train_classifier(start, x, y, ClassifierOptions(epochs=60), 0)
    assert np.mean(end(x).argmax(axis=1) == y) > 0.95 > np.mean(start(x).argmax(axis=1) == y)
    assert not any(bias.any() for bias in end.biases)
