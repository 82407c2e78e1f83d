from __future__ import annotations

import numpy as np
import pytest

from unweave import Queries, random_network
from unweave.derivatives.jet_sources import FEWEST_SITES, DifferenceJets, Steps
from unweave.methods.smooth.hessian_route import (
    SURPLUS,
    HessianSampler,
    acceptance_threshold,
    find_directions,
    refine_directions,
    sample_until_span_ends,
    width_shown,
)
from unweave.search.journal import Journal
from unweave.subspace.hessian_span import CLEAR_GAP, hessian_span
from unweave.subspace.power_method import PowerMethodOptions
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing

D, M = 8, 14
STEPS = Steps(hessian=2e-3, gradient=1e-2, scheme="compact")


def network(outputs: int = 1, seed: int = 1000):
    return random_network([D, M, outputs], seed=seed, outer="signed")


def sampler_of(function, d: int = D) -> tuple[HessianSampler, Queries]:
    queries, rng = Queries(function, d), np.random.default_rng(1001)
    source = DifferenceJets(queries, STEPS)
    return HessianSampler(source, lambda n, margin: rng.standard_normal((n, d)), Journal(queries)), queries


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("width", [None, M])
def test_the_span_ends_at_the_width(outputs: int, width: int | None) -> None:
    sampler, _ = sampler_of(network(outputs))
    sampled = sample_until_span_ends(sampler, outputs, D, width)
    assert sampled.rank == M
    assert sampled.gap >= CLEAR_GAP
    assert len(sampled.jets) * outputs >= SURPLUS * M


def test_sampling_stops_when_the_space_of_matrices_is_full() -> None:
    sampler, queries = sampler_of(lambda x: np.prod(np.sin(x + 0.3), axis=1), d=4)
    sampled = sample_until_span_ends(sampler, 1, 4, None)
    assert sampled.gap < CLEAR_GAP or sampled.rank > 6
    assert sampler.count <= max(FEWEST_SITES, int(np.ceil(SURPLUS * 10)) + 2)
    assert queries.sent == sampler.count * (4**2 + 4 + 1)


def test_sites_already_taken_are_not_taken_again() -> None:
    sampler, queries = sampler_of(network())
    sampler.extend_to(5)
    first = sampler.columns()
    sampler.extend_to(3)
    assert sampler.count == 5
    sampler.extend_to(9)
    assert queries.sent == 9 * (D**2 + D + 1)
    np.testing.assert_array_equal(sampler.columns()[:5], first)


@pytest.mark.parametrize("outputs", [1, 3])
def test_every_profile_has_enough_sites(outputs: int) -> None:
    # In few dimensions the span is full after a handful of sites, but a neuron's profile is fitted on them.
    small = random_network([5, 9, outputs], "sine", seed=1051, outer="signed")
    sampler, _ = sampler_of(small, d=5)
    sample_until_span_ends(sampler, outputs, 5, 9)
    assert sampler.count >= min(FEWEST_SITES, int(np.ceil(SURPLUS * 15)) + 2)


def test_directions_are_those_of_the_neurons() -> None:
    target = network()
    sampler, _ = sampler_of(target)
    sampled = sample_until_span_ends(sampler, 1, D, None)
    rng = np.random.default_rng(1002)
    found = find_directions(sampled.span, M, D, Journal(Queries(target, D)), rng, PowerMethodOptions())
    assert len(found) == M
    cosines = np.abs(found.directions @ target.weights[0] / np.linalg.norm(target.weights[0], axis=0))
    # Every neuron is met; the span is off by the truncation h^2/12 times what the smallest gap magnifies.
    np.testing.assert_allclose(cosines.max(axis=0), 1, atol=1e-6)
    rates = RankOneSpace(sampled.span.basis(M), symmetric_packing(D)).contraction_rates(found.directions)
    assert ((rates > 0) & (rates < 1)).all()
    moved = found.directions + 1e-3 * rng.standard_normal(found.directions.shape)
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    again = refine_directions(sampled.span, M, moved, D)
    np.testing.assert_allclose(np.abs(np.einsum("nd,nd->n", again, found.directions)), 1, atol=1e-9)


def test_known_directions_are_kept_and_the_missing_one_is_found() -> None:
    target = network()
    sampler, _ = sampler_of(target)
    sampled = sample_until_span_ends(sampler, 1, D, None)
    journal, rng = Journal(Queries(target, D)), np.random.default_rng(1003)
    found = find_directions(sampled.span, M, D, journal, rng, PowerMethodOptions()).directions
    again = find_directions(sampled.span, M, D, journal, rng, PowerMethodOptions(), known=found[1:])
    assert np.abs(again.directions @ found[0]).max() > 1 - 1e-9


def test_a_width_that_was_given_only_has_to_be_clear() -> None:
    rng = np.random.default_rng(1004)
    left, right = (np.linalg.qr(rng.standard_normal((n, 10)))[0] for n in (20, 10))
    values = np.array([100.0, 90.0, 1.0, 0.9, *6 * [1e-6]])
    span = hessian_span((left * values) @ right.T)
    assert width_shown(span, None)[0] == 4
    assert width_shown(span, 2) == (2, pytest.approx(90.0))
    assert width_shown(span, 3)[0] == 4  # no gap there


def test_directions_are_accepted_by_the_error_of_the_span() -> None:
    thresholds = [acceptance_threshold(gap) for gap in (10.0, 1e3, 1e5, 1e12)]
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[0] == pytest.approx(0.1)
    assert thresholds[1] == pytest.approx(1e-5)
    assert thresholds[2] > 0
