from __future__ import annotations

from math import comb

import numpy as np
import pytest

from unweave import Network, Queries, get_activation, random_network
from unweave.arrays import Array
from unweave.derivatives.lattice_jets import LatticeJets, LatticeSampler, lattice_rows
from unweave.errors import InvalidInput
from unweave.subspace.symmetric import symmetric_packing


def exact(network: Network, sites: Array) -> LatticeJets:
    """The derivatives in closed form."""
    weights, biases, outgoing = network.weights[0], network.biases[0], network.weights[1]
    _, _, second, third = get_activation("tanh").jet(sites @ weights + biases, 3)
    squares = symmetric_packing(len(weights)).outer(weights.T)
    hessians = np.einsum("nm,mk,mp->nkp", second, outgoing, squares)
    thirds = np.einsum("nm,mk,jm,mp->nkjp", third, outgoing, weights, squares)
    return LatticeJets(sites, hessians, thirds, step=0.0, mirrored=True)


def sampled(network: Network, step: float, mirrored: bool, count: int = 2) -> LatticeSampler:
    sampler = LatticeSampler(network, step, mirrored)
    rng = np.random.default_rng(1000)
    for _ in range(count):
        sampler.add(rng.standard_normal(network.n_inputs))
    return sampler


def largest_error(network: Network, step: float, mirrored: bool) -> tuple[float, float]:
    jets = sampled(network, step, mirrored).jets()
    truth = exact(network, jets.sites)
    return (
        float(np.abs(jets.hessians - truth.hessians).max()),
        float(np.abs(jets.thirds - truth.thirds).max()),
    )


@pytest.mark.parametrize(("mirrored", "orders"), [(False, (2, 1)), (True, (2, 2))])
def test_errors_fall_with_the_order_of_the_module(mirrored: bool, orders: tuple[int, int]) -> None:
    network = random_network([5, 7, 2], seed=1000, outer="normal")
    coarse, fine = (largest_error(network, step, mirrored) for step in (4e-2, 2e-2))
    for first, second, order in zip(coarse, fine, orders, strict=True):
        assert np.log2(first / second) == pytest.approx(order, abs=0.35)


def test_a_cubic_is_differentiated_exactly() -> None:
    # All derivatives of a cubic are polynomials that the differences hold without truncation, if mirrored.
    def cubic(x: Array) -> Array:
        return np.stack([x[:, 0] * x[:, 1] * x[:, 2] + x[:, 0] ** 3, x[:, 1] ** 2 * x[:, 2]], axis=1)

    sampler = LatticeSampler(cubic, 0.5, mirrored=True)
    site = np.array([0.3, -1.0, 2.0])
    sampler.add(site)
    packing = symmetric_packing(3)
    jets = sampler.jets()
    x, y, z = site
    first = np.array([[6 * x, z, y], [z, 0, x], [y, x, 0]])
    second = np.array([[0, 0, 0], [0, 2 * z, 2 * y], [0, 2 * y, 0]])
    np.testing.assert_allclose(packing.unpack(jets.hessians[0]), [first, second], atol=1e-12)
    thirds = packing.unpack(jets.thirds[0])  # (K, k, i, j)
    assert thirds[0, 0, 0, 0] == pytest.approx(6)
    assert thirds[0, 2, 0, 1] == pytest.approx(1)
    assert thirds[1, 1, 1, 2] == thirds[1, 2, 1, 1] == pytest.approx(2)
    assert np.abs(thirds[1, 0]).max() < 1e-12


@pytest.mark.parametrize("d", [1, 2, 5, 9])
def test_one_row_per_multiset(d: int) -> None:
    assert lattice_rows(d) == comb(d + 3, 3)
    queries = Queries(lambda x: x.sum(axis=1), d)
    sampler = LatticeSampler(queries, 1e-2)
    sampler.add(np.zeros(d))
    assert queries.sent == lattice_rows(d)
    sampler.mirror()
    sampler.mirror()
    assert queries.sent == 2 * lattice_rows(d) - 1  # the centre is known


def test_growing_in_any_order_gives_the_same_and_costs_the_same() -> None:
    network = random_network([6, 8, 1], seed=1001, outer="normal")
    asked = []

    def slice_of(points: Array) -> Array:
        asked.append(len(points))
        padded = np.concatenate([points, np.zeros((len(points), 6 - points.shape[1]))], axis=1)
        return network(padded)

    sites = np.random.default_rng(1001).standard_normal((2, 4))
    grown = LatticeSampler(slice_of, 1e-2)
    grown.add(sites[0])
    grown.widen_to(6)
    grown.mirror()
    wide = np.concatenate([sites, np.zeros((2, 2))], axis=1)
    grown.add(wide[1])
    whole = LatticeSampler(network, 1e-2, mirrored=True)
    for site in wide:
        whole.add(site)
    assert sum(asked) == 4 * lattice_rows(6)
    assert grown.dimension == 6
    # Rows in other batches may be rounded otherwise, by some 1e-16, which differences divide by h^2 and h^3.
    np.testing.assert_allclose(grown.jets().hessians, whole.jets().hessians, atol=1e-11)
    np.testing.assert_allclose(grown.jets().thirds, whole.jets().thirds, atol=1e-8)


def test_members_lie_in_the_span_of_the_squares() -> None:
    network = random_network([6, 5, 2], seed=1002, outer="normal")
    jets = exact(network, np.random.default_rng(0).standard_normal((3, 6)))
    members = jets.members()
    assert members.shape == (3 * 2 * 7, 21)
    values = np.linalg.svd(members, compute_uv=False)
    assert values[4] > 1e-3 * values[0] > 1e9 * values[5]


def test_rescaled_jets_are_those_of_the_rescaled_function() -> None:
    network = random_network([4, 5, 1], seed=1003, outer="normal")
    scaled = Network(
        [2.5 * network.weights[0], network.weights[1]], network.biases, network.activations
    )  # the same in coordinates x / 2.5
    sites = np.random.default_rng(0).standard_normal((2, 4))
    here, there = exact(network, sites).rescaled(2.5), exact(scaled, sites / 2.5)
    np.testing.assert_allclose(here.sites, there.sites)
    np.testing.assert_allclose(here.hessians, there.hessians, rtol=1e-12)
    np.testing.assert_allclose(here.thirds, there.thirds, rtol=1e-12)


def test_sites_must_have_the_same_coordinates() -> None:
    sampler = LatticeSampler(lambda x: x[:, :1], 1e-2)
    sampler.add(np.zeros(3))
    with pytest.raises(InvalidInput, match="site must have 3 coordinates"):
        sampler.add(np.zeros(4))
