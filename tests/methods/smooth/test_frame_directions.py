from __future__ import annotations

import numpy as np
import pytest

from unweave import Queries, random_network
from unweave.derivatives.jet_sources import FEWEST_SITES, DifferenceJets, Steps
from unweave.methods.smooth.frame_directions import (
    DirectionOptions,
    HessianSampler,
    sample_until_span_ends,
)
from unweave.methods.smooth.span_members import MemberFinder, MemberOptions, space_of
from unweave.search.journal import Journal
from unweave.subspace.hessian_span import CLEAR_GAP
from unweave.subspace.power_method import PowerMethodOptions

D, M = 8, 14
OPTIONS = DirectionOptions()
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
    sampled = sample_until_span_ends(sampler, outputs, D, width, OPTIONS)
    assert sampled.rank == M
    assert sampled.gap >= CLEAR_GAP
    assert len(sampled.jets) * outputs >= OPTIONS.surplus * M


def test_sampling_stops_when_the_space_of_matrices_is_full() -> None:
    sampler, queries = sampler_of(lambda x: np.prod(np.sin(x + 0.3), axis=1), d=4)
    sampled = sample_until_span_ends(sampler, 1, 4, None, OPTIONS)
    assert sampled.gap < CLEAR_GAP or sampled.rank > 6
    assert sampler.count <= max(FEWEST_SITES, int(np.ceil(OPTIONS.surplus * 10)) + 2)
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
    # In few dimensions the span is full after a handful of sites, but a unit's profile is fitted on them.
    small = random_network([5, 9, outputs], "sine", seed=1051, outer="signed")
    sampler, _ = sampler_of(small, d=5)
    sample_until_span_ends(sampler, outputs, 5, 9, OPTIONS)
    assert sampler.count >= min(FEWEST_SITES, int(np.ceil(OPTIONS.surplus * 15)) + 2)


def test_directions_are_those_of_the_units() -> None:
    target = network()
    sampler, _ = sampler_of(target)
    sampled = sample_until_span_ends(sampler, 1, D, None, OPTIONS)
    rng = np.random.default_rng(1002)
    finder = MemberFinder(MemberOptions(), Journal(Queries(target, D)), rng)
    found = finder.find(sampled.span, M, D, PowerMethodOptions())
    assert len(found) == M
    cosines = np.abs(found.directions @ target.weights[0] / np.linalg.norm(target.weights[0], axis=0))
    # Every unit is met; the span is off by the truncation h^2/12 times what the smallest gap magnifies.
    np.testing.assert_allclose(cosines.max(axis=0), 1, atol=1e-6)
    rates = space_of(sampled.span, M, D).contraction_rates(found.directions)
    assert ((rates > 0) & (rates < 1)).all()
    moved = found.directions + 1e-3 * rng.standard_normal(found.directions.shape)
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    again = finder.move(sampled.span, M, moved, D)
    np.testing.assert_allclose(np.abs(np.einsum("nd,nd->n", again, found.directions)), 1, atol=1e-9)


def test_known_directions_are_kept_and_the_missing_one_is_found() -> None:
    target = network()
    sampler, _ = sampler_of(target)
    sampled = sample_until_span_ends(sampler, 1, D, None, OPTIONS)
    finder = MemberFinder(MemberOptions(), Journal(Queries(target, D)), np.random.default_rng(1003))
    found = finder.find(sampled.span, M, D, PowerMethodOptions()).directions
    again = finder.find(sampled.span, M, D, PowerMethodOptions(), known=found[1:])
    assert np.abs(again.directions @ found[0]).max() > 1 - 1e-9
