"""Derivatives of a target by its own backward passes: right, counted, and refused where there are none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import unweave
from unweave import InvalidInput, Queries, TargetError
from unweave.derivatives import network_gradients, network_hessians
from unweave.errors import BudgetExhausted
from unweave.targets import NormalisedQueries, as_queries
from unweave.targets.adapters.torch_target import TorchTarget
from unweave.targets.differentiation import NetworkDerivatives, passes
from unweave.targets.region import Region

nn = torch.nn
D, OUTPUTS = 5, 3
RNG = np.random.default_rng(1000)
ROWS, DIRECTIONS = RNG.standard_normal((7, D)), RNG.standard_normal((D, 2))
ROUNDING = 1e-13
"""Far above the rounding of some sums of a dozen terms of order one, far below any error of a formula."""


def planted(outputs: int = OUTPUTS, activation: str = "tanh") -> unweave.Network:
    return unweave.random_network([D, 6, outputs], activation, seed=1000, outer="normal")


def ledger(outputs: int = OUTPUTS, **budget: float) -> Queries:
    return as_queries(planted(outputs).to_torch(), differentiable=True, **budget)


class Wrapped(nn.Module):
    """A module with ``change`` applied to its answer."""

    def __init__(self, change) -> None:
        super().__init__()
        self.inner, self.change = planted().to_torch(), change

    def forward(self, x):
        return self.change(self.inner(x))


@pytest.mark.parametrize("activation", ["tanh", "softplus", "sine"])
@pytest.mark.parametrize("outputs", [1, OUTPUTS])
def test_backward_passes_give_the_derivatives_in_closed_form(activation, outputs):
    network = planted(outputs, activation)
    found = TorchTarget(network.to_torch()).differentiate(ROWS, DIRECTIONS)
    assert_allclose(found.values, network(ROWS), atol=ROUNDING)
    assert_allclose(found.gradients, network_gradients(network, ROWS), atol=ROUNDING)
    assert_allclose(found.products, DIRECTIONS.T @ network_hessians(network, ROWS), atol=ROUNDING)
    closed = NetworkDerivatives(network)(ROWS, DIRECTIONS)
    assert_allclose(found.products, closed.products, atol=ROUNDING)
    assert_allclose(found.gradients, closed.gradients, atol=ROUNDING)


@pytest.mark.parametrize("target", [lambda m: m, lambda m: m.forward, lambda m: TorchTarget(m)])
def test_a_module_its_method_and_its_adapter_are_the_same(target):
    network = planted(1)
    queries = as_queries(target(network.to_torch()), differentiable=True, input_dim=D)
    assert_allclose(queries.differentiate(ROWS).gradients, network_gradients(network, ROWS), atol=ROUNDING)


def test_one_answer_per_row_is_one_output():
    module = Wrapped(lambda y: y[:, 0])
    found = as_queries(module, differentiable=True).differentiate(ROWS, DIRECTIONS)
    assert found.values.shape == (7, 1)
    assert found.gradients.shape == (7, 1, D)
    assert found.products.shape == (7, 1, 2, D)


@pytest.mark.parametrize(
    "module",
    [
        nn.Linear(D, 2).double(),
        nn.Sequential(nn.Linear(D, 4), nn.ReLU(), nn.Linear(4, 2)).double(),
        nn.Sequential(nn.ReLU(inplace=True), nn.Linear(D, 2)).double(),
    ],
)
def test_straight_pieces_have_no_curvature(module):
    found = TorchTarget(module).differentiate(ROWS, np.eye(D))
    assert_array_equal(found.products, 0.0)
    assert np.abs(found.gradients).max() > 0


def test_single_precision_is_the_modules_own():
    network = planted()
    found = TorchTarget(network.to_torch().float()).differentiate(ROWS, DIRECTIONS)
    error = np.abs(found.products - DIRECTIONS.T @ network_hessians(network, ROWS)).max()
    assert 1e-9 < error < 1e-5


def test_the_module_is_left_as_it_was():
    module = nn.Sequential(nn.Linear(D, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 2)).double()
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    with torch.no_grad():
        first = TorchTarget(module).differentiate(ROWS, DIRECTIONS)
        assert not torch.is_grad_enabled()
    with torch.inference_mode():
        second = TorchTarget(module).differentiate(ROWS, DIRECTIONS)
        assert torch.is_inference_mode_enabled()
    assert_array_equal(first.products, second.products)  # no dropout
    assert all(layer.training for layer in module.modules())
    assert all(bool((parameter.grad == 1).all()) for parameter in module.parameters())


# -- counting ------------------------------------------------------------------------------------------


def test_every_pass_of_every_row_counts():
    assert (passes(1), passes(OUTPUTS), passes(OUTPUTS, 2)) == (2, 4, 10)
    queries = ledger()
    queries(ROWS)
    queries.differentiate(ROWS)
    assert (queries.sent, queries.derivative_queries) == (7 + 7 * 4, 7 * 4)
    queries.differentiate(ROWS, DIRECTIONS)
    assert (queries.sent, queries.derivative_queries) == (7 + 7 * 14, 7 * 14)
    assert queries.seconds_in_target > 0


def test_the_budget_holds_before_anything_is_asked():
    queries = ledger(max_queries=7 + 7 * 4 - 1)
    queries(ROWS)
    with pytest.raises(BudgetExhausted):
        queries.differentiate(ROWS)
    assert (queries.sent, queries.derivative_queries) == (7, 0)
    queries.differentiate(ROWS[:6])
    assert queries.remaining == 3


def test_the_deadline_holds():
    queries = ledger()
    queries(ROWS)
    queries.reset_budget(deadline=0)
    with pytest.raises(BudgetExhausted, match="deadline"):
        queries.differentiate(ROWS)


def test_a_long_list_goes_out_in_pieces():
    two_rows = 8 * OUTPUTS * 3 * D * 2
    whole, target = NetworkDerivatives(planted())(ROWS, DIRECTIONS), TorchTarget(planted().to_torch())
    pieces = Queries(target, D, differentiate=target.differentiate, call_bytes=two_rows)
    pieces(ROWS[:1])
    found = pieces.differentiate(ROWS, DIRECTIONS)
    assert pieces.calls == 1 + 4  # two rows each
    assert_allclose(found.products, whole.products, atol=ROUNDING)


# -- coordinates ---------------------------------------------------------------------------------------


def test_normalised_coordinates_follow_the_chain_rule():
    region = Region.from_domain(np.arange(D) - 3.0, np.arange(D) + 2.0 ** np.arange(D), D)
    view = NormalisedQueries(ledger(), region)
    u = region.sample(4, np.random.default_rng(1001), margin=0.1)
    found, step = view.differentiate(u, DIRECTIONS), 1e-4
    for i in range(D):
        slope = (view(u + step * np.eye(D)[i]) - view(u - step * np.eye(D)[i])) / (2 * step)
        assert_allclose(found.gradients[:, :, i], slope, atol=1e-5)
        ahead, behind = (view.differentiate(u + s * step * np.eye(D)[i]).gradients for s in (1, -1))
        assert_allclose(found.products[..., i], (ahead - behind) / (2 * step) @ DIRECTIONS, atol=1e-4)
    with pytest.raises(InvalidInput, match="box"):
        view.differentiate(100 * u)


# -- refusals ------------------------------------------------------------------------------------------


def test_what_has_no_backward_pass_is_refused():
    message = 'torch module.*derivatives="autodiff".*Got function instead.*"queries"'
    with pytest.raises(InvalidInput, match=message):
        as_queries(lambda x: x[:, 0], input_dim=2, differentiable=True)
    with pytest.raises(InvalidInput, match="may only be asked for answers"):
        as_queries(planted().to_torch()).differentiate(ROWS)
    with pytest.raises(InvalidInput, match="ledger of a run that took no derivatives"):
        as_queries(as_queries(planted()), differentiable=True)
    assert as_queries(ledger(), differentiable=True).differentiable


def test_an_onnx_file_is_refused_and_a_saved_network_is_not(tmp_path):
    for ending in (".onnx", ".npz"):
        planted().save(tmp_path / f"net{ending}")
    with pytest.raises(InvalidInput, match=r"Got PosixPath \(model file\) instead"):
        as_queries(tmp_path / "net.onnx", differentiable=True)
    found = as_queries(tmp_path / "net.npz", differentiable=True).differentiate(ROWS)
    assert_array_equal(found.gradients, network_gradients(planted(), ROWS))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: y.detach(), "without a gradient"),
        (lambda y: (y,), "one tensor"),
        (lambda y: y[:, :1] if torch.is_grad_enabled() else y, "3 outputs as before"),
        (lambda y: torch.sqrt(y - y), "derivatives must be finite"),
    ],
)
def test_a_module_that_cannot_be_differentiated_says_so(change, message):
    queries = as_queries(Wrapped(change), differentiable=True)
    if message != "one tensor":
        queries(ROWS)
    with pytest.raises(TargetError, match=message) as caught:
        queries.differentiate(ROWS)
    assert caught.value.ledger is queries
