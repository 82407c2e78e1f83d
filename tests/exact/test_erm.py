"""Exact empirical risk minimisation: equals brute force, certifies what it says, ends as it says."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from math import comb

import numpy as np
import pytest
from planted_units import brute_force, planted, planted_elsewhere

import unweave
from unweave.exact import Huber, SearchInterrupted, Squared, Stop, cover_count, enumerate_optima, exact_erm

CASES = [(1, 8, 1), (2, 8, 1), (3, 8, 1), (1, 5, 2), (2, 5, 2)]


def holds(optimum, network, x):
    """Whether a network has the patterns and signs of an optimum, in some order of its units."""
    active = (x @ network.weights[0] + network.biases[0] > 0).T
    units = {(sign, tuple(row)) for sign, row in zip(network.weights[1][:, 0], active, strict=True)}
    return units == {(sign, tuple(row)) for sign, row in zip(optimum.signs, optimum.patterns, strict=True)}


def recomputed(fit, x, y):
    return float(np.sum((fit.network(x)[:, 0] - y) ** 2))


def equals_brute_force(inputs, samples, width, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((samples, inputs)), rng.standard_normal(samples)
    fit = exact_erm(x, y, width)
    assert fit.certified
    assert fit.loss == recomputed(fit, x, y)
    # The certificate's own gap is 1e-9 of |y|^2.
    assert fit.loss == pytest.approx(brute_force(x, y, width), abs=1e-9 * y @ y)


@pytest.mark.parametrize(("inputs", "samples", "width"), CASES)
def test_equals_brute_force(inputs, samples, width):
    equals_brute_force(inputs, samples, width, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1001, 1005))
@pytest.mark.parametrize(
    ("inputs", "samples", "width"), [(1, 8, 1), (2, 8, 1), (1, 7, 2), (2, 6, 2), (2, 7, 2)]
)
def test_equals_brute_force_larger(inputs, samples, width, seed):
    equals_brute_force(inputs, samples, width, seed)


@pytest.mark.parametrize(("inputs", "samples", "width"), [(1, 30, 1), (1, 60, 2), (2, 40, 2), (3, 30, 1)])
def test_noise_is_fitted_at_least_as_well_as_by_the_truth(inputs, samples, width):
    truth, x, y = planted(inputs, width, samples, 0.1, 1000)
    fit = exact_erm(x, y, width)
    assert fit.certified
    assert fit.stop is Stop.EXHAUSTED
    assert fit.n_unresolved == 0
    assert fit.loss <= np.sum((truth(x)[:, 0] - y) ** 2)
    assert fit.gap <= 1e-9 * y @ y
    assert fit.n_patterns == cover_count(samples, inputs) - 1
    assert fit.n_tuples == comb(fit.n_patterns + width - 1, width)
    assert fit.network.hidden == (width,)


@pytest.mark.parametrize("seed", range(1000, 1005))
def test_planted_network_is_found_exactly(seed):
    truth, x, y = planted(2, 2, 20, 0.0, seed)
    fit = exact_erm(x, y, 2)
    assert (fit.certified, fit.stop) == (True, Stop.ZERO_LOSS)
    assert fit.loss <= 1e-22 * y @ y
    if unweave.compare(truth, fit.network).parameter_error > 1e-9:
        # Another network fits as well, and the list of all optima says so.
        found = enumerate_optima(x, y, 2)
        assert found.complete
        assert not found.decided
        assert any(holds(one, truth, x) for one in found.optima)


def test_figure_of_an_independent_program():
    # The optimum that an independent program certified for this planting.
    rng = np.random.default_rng(1)
    _, _, x, y = planted_elsewhere(100, rng)
    y = y + 0.1 * rng.standard_normal(100)
    fit = exact_erm(x, y, 2)
    assert fit.certified
    assert fit.loss == pytest.approx(0.7512320295846996, abs=1e-9 * y @ y)


def test_local_search_alone_is_not_enough():
    # Random labels: a poor start must not change the optimum, only the work.
    rng = np.random.default_rng(1001)
    x, y = rng.standard_normal((11, 2)), rng.standard_normal(11)
    poor, good = exact_erm(x, y, 2, starts=1), exact_erm(x, y, 2, starts=60, seed=3)
    assert poor.certified
    assert good.certified
    assert poor.local_loss > 1.05 * poor.loss
    assert poor.loss == pytest.approx(good.loss, abs=2e-9 * y @ y)


def test_wider_is_no_worse():
    rng = np.random.default_rng(1002)
    x, y = rng.standard_normal((9, 1)), rng.standard_normal(9)
    fits = [exact_erm(x, y, width) for width in (1, 2, 3)]
    assert all(fit.certified for fit in fits)
    assert fits[0].loss > fits[1].loss > fits[2].loss


@pytest.mark.parametrize("name", ["absolute", "huber", "logistic"])
def test_other_losses(name):
    rng = np.random.default_rng(1003)
    _, x, y = planted(1, 2, 7, 0.5, 1003)
    y = np.where(y + 0.3 * rng.standard_normal(7) > np.median(y), 1.0, -1.0) if name == "logistic" else y
    one, two = (exact_erm(x, y, width, loss=name) for width in (1, 2))
    assert one.certified
    assert two.certified
    assert two.loss <= one.loss + one.gap
    assert one.lower_bound <= one.loss
    # Local search from many other starts finds nothing better.
    assert exact_erm(x, y, 1, loss=name, seed=7, starts=300).local_loss >= one.lower_bound


def test_huber_with_a_large_threshold_is_half_the_squared_loss():
    _, x, y = planted(2, 1, 15, 0.3, 1004)
    squared = exact_erm(x, y, 1, loss=Squared())
    huber = exact_erm(x, y, 1, loss=Huber(1e3), tolerance=1e-8)
    assert huber.certified
    assert huber.loss == pytest.approx(squared.loss / 2, abs=1e-8 * y @ y)


def test_affine_maps_of_the_inputs_change_nothing():
    rng = np.random.default_rng(1005)
    _, x, y = planted(2, 2, 15, 0.3, 1005)
    plain = exact_erm(x, y, 2)
    moved = exact_erm((x @ rng.standard_normal((2, 2)) + 30) * [1e-5, 1e4], y, 2)
    assert moved.certified
    assert moved.loss == pytest.approx(plain.loss, abs=2e-9 * y @ y)


def test_time_limit_returns_the_best_so_far():
    rng = np.random.default_rng(1006)
    x, y = rng.standard_normal((50, 2)), rng.standard_normal(50)
    fit = exact_erm(x, y, 2, time_limit=0.3)
    assert (fit.certified, fit.stop) == (False, Stop.TIME_LIMIT)
    assert 0 <= fit.lower_bound < fit.loss < y @ y
    assert fit.loss == recomputed(fit, x, y)
    assert "not certified" in str(fit)


@pytest.mark.parametrize("stage", ["dichotomies", "local search", "patterns", "programs"])
def test_interrupt_keeps_the_best_so_far(stage):
    rng = np.random.default_rng(1007)
    x, y = rng.standard_normal((9, 2)), rng.standard_normal(9)
    best = exact_erm(x, y, 2)

    def interrupt(progress):
        if progress.stage == stage:
            raise KeyboardInterrupt

    with pytest.raises(SearchInterrupted) as caught:
        exact_erm(x, y, 2, progress=interrupt)
    left = caught.value.result
    assert isinstance(caught.value, KeyboardInterrupt)
    assert (left.certified, left.stop) == (False, Stop.INTERRUPTED)
    assert left.lower_bound <= best.loss <= left.loss + 1e-9 * y @ y
    assert left.loss == pytest.approx(recomputed(left, x, y))


def test_progress_names_every_stage():
    told = []
    rng = np.random.default_rng(1008)
    exact_erm(rng.standard_normal((10, 2)), rng.standard_normal(10), 2, progress=told.append)
    assert list(dict.fromkeys(one.stage for one in told)) == [
        "dichotomies",
        "local search",
        "patterns",
        "programs",
    ]
    assert all(0 <= one.done <= one.total for one in told)
    losses = [one.loss for one in told]
    assert losses == sorted(losses, reverse=True)


class Pickling:
    """Sends every task and result through pickle, as another process would need it."""

    def map(self, function, items, /):
        for item in items:
            task, argument = pickle.loads(pickle.dumps((function, item)))
            yield pickle.loads(pickle.dumps(task(argument)))


def test_executors_change_nothing():
    rng = np.random.default_rng(1009)
    x, y = rng.standard_normal((9, 2)), rng.standard_normal(9)
    here = exact_erm(x, y, 2)
    sent = exact_erm(x, y, 2, executor=Pickling())
    with ThreadPoolExecutor(2) as threads:
        shared = exact_erm(x, y, 2, executor=threads)
    for fit in (sent, shared):
        assert fit.network == here.network
        assert (fit.n_bounded, fit.n_programs) == (here.n_bounded, here.n_programs)


def test_unresolved_programs_are_not_certified(monkeypatch):
    rng = np.random.default_rng(1010)
    x, y = rng.standard_normal((6, 1)), rng.standard_normal(6)
    best = exact_erm(x, y, 2)
    monkeypatch.setattr("unweave.exact.cone_program.project_on_cone", lambda a, b, c: None)
    fit = exact_erm(x, y, 2)
    assert (fit.certified, fit.stop) == (False, Stop.UNRESOLVED)
    assert fit.n_unresolved > 0
    assert fit.lower_bound <= best.loss < fit.loss
