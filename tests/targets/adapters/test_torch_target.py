"""Torch modules: mode, precision and widths are the module's own; nothing else of it is touched."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import unweave
from planted_targets import NET, torch_sequential
from unweave import InvalidInput, TargetError
from unweave.targets import as_queries
from unweave.targets.adapters.torch_target import TorchTarget

ROWS = np.random.default_rng(1000).standard_normal((50, 6))
nn = torch.nn


def test_every_layer_is_back_in_its_mode_and_none_trains_meanwhile():
    frozen = nn.BatchNorm1d(6).eval()
    module = nn.Sequential(frozen, nn.Dropout(0.5), nn.Linear(6, 2)).double()
    frozen.eval()
    modes = [layer.training for layer in module.modules()]
    queries = as_queries(module)
    np.testing.assert_array_equal(queries(ROWS, fresh=True), queries(ROWS, fresh=True))  # no dropout
    assert [layer.training for layer in module.modules()] == modes == [True, False, True, True]


def test_mode_is_back_after_an_error():
    module = nn.Sequential(nn.Dropout(), nn.Linear(6, 2), nn.Linear(3, 1)).double()
    with pytest.raises(TargetError, match="RuntimeError"):
        as_queries(module)(ROWS)
    assert all(layer.training for layer in module.modules())


def test_nothing_is_recorded_for_gradients():
    seen = []

    class Watching(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 1)

        def forward(self, x):
            seen.append((torch.is_grad_enabled(), x.dtype, self.training))
            return self.layer(x)

    as_queries(Watching())(ROWS)
    assert seen == [(False, torch.float32, False)]
    assert torch.is_grad_enabled()


def test_parameters_are_not_read():
    class Secretive(nn.Sequential):
        def state_dict(self, *_, **__):
            raise AssertionError("parameters were read")

        named_parameters = state_dict

        def parameters(self, recurse=True):
            for parameter in (p for layer in self.children() for p in layer.parameters()):
                yield torch.full_like(parameter, torch.nan)  # its type and device, without its values

    module = Secretive(*torch_sequential())
    assert unweave.recover(module, hidden=[4], activation="tanh").status is unweave.Status.RECOVERED


@pytest.mark.parametrize(("dtype", "error"), [("float32", 1e-5), ("bfloat16", 0.2), ("float16", 0.02)])
def test_computed_in_the_precision_of_the_parameters(dtype, error):
    answers = as_queries(torch_sequential(dtype=dtype))(ROWS)
    assert answers.dtype == np.float64
    gap = np.abs(answers - NET(ROWS)).max()
    assert 1e-9 < gap < error


def test_a_module_without_parameters_gets_double_precision():
    answers = as_queries(nn.Tanh(), input_dim=6)(ROWS)
    np.testing.assert_allclose(answers, np.tanh(ROWS), rtol=1e-15)


@pytest.mark.parametrize(
    "first",
    [nn.Linear(6, 3), nn.BatchNorm1d(6), nn.LayerNorm(6), nn.Sequential(nn.Linear(6, 3))],
    ids=lambda layer: type(layer).__name__,
)
def test_width_of_the_first_layer(first):
    assert as_queries(nn.Sequential(nn.Flatten(), nn.Dropout(), first)).n_inputs == 6


def test_width_that_cannot_be_read_must_be_given():
    for module in (nn.Sequential(nn.Conv1d(1, 2, 3)), nn.Sequential(nn.Tanh()), nn.LazyLinear(3)):
        with pytest.raises(InvalidInput, match="input_dim must be given"):
            as_queries(module)
    lazy = nn.LazyLinear(3).double()
    assert as_queries(lazy, input_dim=6)(ROWS).shape == (50, 3)


def test_a_module_of_ones_own_is_believed_unless_the_user_knows_better():
    class Backwards(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 1)  # registered first, called last
            self.body = nn.Linear(6, 4)

        def forward(self, x):
            return self.head(torch.tanh(self.body(x)))

    assert as_queries(Backwards()).n_inputs == 4
    assert as_queries(Backwards(), input_dim=6)(ROWS).shape == (50, 1)
    assert as_queries(TorchTarget(Backwards())).n_inputs == 4
    with pytest.raises(TargetError, match="RuntimeError"):
        as_queries(Backwards())(ROWS[:, :4])


def test_several_tensors_are_refused_with_what_to_do():
    class Two(nn.Linear):
        def forward(self, x):
            return super().forward(x), x

    with pytest.raises(TargetError, match=r"^A torch module must return one tensor. Got tuple instead"):
        as_queries(Two(6, 2))(ROWS)
