"""Jets by differences and by autodiff, in frames: the same but for the truncation of the differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import unweave
from unweave import Network, Queries
from unweave.derivatives import network_gradients, network_hessians
from unweave.derivatives.active_subspace import active_subspace
from unweave.derivatives.gradient_rules import power_gradient, power_jacobian
from unweave.derivatives.jet_sources import (
    LARGEST_MISMATCH,
    AutodiffJets,
    derivative_mismatch,
    difference_steps,
)
from unweave.derivatives.stencils import Jets
from unweave.methods.smooth.frame_target import FrameTarget
from unweave.search.journal import Journal
from unweave.subspace.symmetric import symmetric_packing
from unweave.targets import NormalisedQueries, Region, as_queries

D, OUTPUTS = 6, 2
SCALE = np.array([2.0, 0.5])
ROUNDING = 1e-13
NOISE = 1e-16


def planted(inputs: int = D, width: int = 9, outputs: int = OUTPUTS) -> Network:
    return unweave.random_network([inputs, width, outputs], seed=1000, outer="normal")


def target(network: Network, frame: np.ndarray, autodiff: bool) -> tuple[FrameTarget, Queries]:
    queries = as_queries(network, differentiable=True)
    queries(np.zeros((1, network.n_inputs)))
    region = Region.standard(network.n_inputs)
    view = NormalisedQueries(queries, region)
    scale, rng = SCALE[: network.n_outputs], np.random.default_rng(1002)
    return FrameTarget(view, region, scale, frame, NOISE, Journal(queries), rng, autodiff=autodiff), queries


def frame_of(d: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(1001).standard_normal((D, d)))[0]


@pytest.mark.parametrize("frame", [np.eye(D), frame_of(3)], ids=["all inputs", "subspace"])
def test_autodiff_jets_are_the_derivatives_in_the_frame(frame):
    network = planted()
    exact, queries = target(network, frame, autodiff=True)
    d = exact.dimension
    sites = exact.sample(4, 0.0)
    before = queries.sent
    jets = exact.source.hessians(sites)
    assert queries.sent - before == 4 * (1 + OUTPUTS * (1 + d))
    inputs = sites @ frame.T
    assert_allclose(jets.values, network(inputs) / SCALE, atol=ROUNDING)
    gradients = network_gradients(network, inputs) @ frame / SCALE[:, None]
    assert_allclose(jets.gradients, gradients, atol=ROUNDING)
    hessians = frame.T @ network_hessians(network, inputs) @ frame / SCALE[:, None, None]
    assert_allclose(jets.hessians, symmetric_packing(d).pack(hessians), atol=ROUNDING)
    assert (jets.rule, jets.step, jets.gradient_noise) == ("exact", 0.0, 1.0)
    assert_array_equal(exact.source.gradients(sites).gradients, jets.gradients)
    assert queries.sent - before == 4 * (1 + OUTPUTS * (1 + d)) + 4 * (1 + OUTPUTS)


def test_differences_differ_by_their_truncation_alone():
    network = planted()
    exact, _ = target(network, np.eye(D), autodiff=True)
    differences, _ = target(network, np.eye(D), autodiff=False)
    sites = exact.sample(5, 0.0)
    by_backward, by_answers = exact.source.hessians(sites), differences.source.hessians(sites)
    off = np.abs(by_answers.hessians - by_backward.hessians).max()
    size = np.abs(by_backward.hessians).max()
    assert 1e-9 < off / size < 10 * differences.source.hessian_error(D)
    assert exact.source.hessian_error(D) == 0.0
    assert_allclose(by_answers.gradients, by_backward.gradients, atol=1e-5)


def test_another_frame_keeps_the_source():
    exact, _ = target(planted(), np.eye(D), autodiff=True)
    assert isinstance(exact.seen_through(frame_of(2)).source, AutodiffJets)
    differences, _ = target(planted(), np.eye(D), autodiff=False)
    assert not differences.seen_through(frame_of(2)).source.exact


def test_exact_gradients_see_no_higher_power():
    w = np.random.default_rng(1003).standard_normal((4, 3))
    assert_array_equal(power_gradient(w, 1, "exact"), w)
    assert_array_equal(power_gradient(w, 3, "exact"), 0.0)
    assert_array_equal(power_jacobian(w, 3, "exact"), 0.0)
    assert_array_equal(power_jacobian(w, 1, "exact"), power_jacobian(w, 1, "axes"))


def test_there_is_no_truncation_to_predict():
    exact, _ = target(planted(), np.eye(D), autodiff=True)
    jets = exact.source.hessians(exact.sample(3, 0.0))
    assert_array_equal(exact.source.hessian_truncation(None, jets), np.zeros_like(jets.hessians))


def test_exact_gradients_end_at_the_active_dimension():
    network = planted(inputs=30, width=5, outputs=1)
    exact, _ = target(network, np.eye(30), autodiff=True)
    active = active_subspace(exact.gradients(None, 8), NOISE)
    assert (active.dimension, active.complete) == (5, True)
    left = network.weights[0] - active.frame @ (active.frame.T @ network.weights[0])
    assert np.abs(left).max() < 1e-12


@pytest.mark.parametrize(("share", "agree"), [(1.0, True), (0.7, False), (0.0, False), (-1.0, False)])
def test_derivatives_that_are_not_those_of_the_answers_are_seen(share, agree):
    exact, _ = target(planted(), np.eye(D), autodiff=True)
    step = difference_steps(NOISE, D).gradient
    jets = exact.gradients(None, 3)
    jets = Jets(jets.sites, jets.values, share * jets.gradients, 0.0, rule="exact")
    mismatch = derivative_mismatch(exact.ask, jets, step, np.random.default_rng(1004))
    assert (mismatch <= LARGEST_MISMATCH) == agree
    if agree:
        assert mismatch < 1e-3
    else:
        assert_allclose(mismatch, 1 - share, rtol=1e-2)
