"""Networks from torch modules: exact, and every layer that cannot be read is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from unweave.errors import InvalidInput
from unweave.networks.activations.catalogue import CATALOGUE
from unweave.networks.network import Network
from unweave.networks.random import random_network

RNG = np.random.default_rng(1100)
NAMES = [activation.name for activation in CATALOGUE]


@given(
    widths=st.lists(st.integers(1, 4), min_size=2, max_size=5),
    names=st.lists(st.sampled_from(NAMES), min_size=4, max_size=4),
    softmax=st.booleans(),
    with_skip=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=60)
def test_there_and_back_is_exact(
    widths: list[int], names: list[str], softmax: bool, with_skip: bool, seed: int
) -> None:
    base = random_network(widths, seed=seed, outer="normal")
    n_layers = len(base.weights)
    activations = [*names[: n_layers - 1], "softmax" if softmax else names[-1]]
    skip = np.random.default_rng(seed).standard_normal((widths[0], widths[-1])) if with_skip else None
    net = Network(base.weights, base.biases, activations, skip)
    assert Network.from_torch(net.to_torch()) == net


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_every_precision_is_exact(kind: torch.dtype) -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(kind)
    net = Network.from_torch(module)
    assert_array_equal(net.weights[0], module[0].weight.detach().double().numpy().T)
    assert_array_equal(net.biases[1], module[2].bias.detach().double().numpy())


MODULES: dict[str, tuple[Any, list[str]]] = {
    "one layer": (lambda: nn.Linear(3, 2), ["identity"]),
    "no activation between": (
        lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)),
        ["identity", "identity"],
    ),
    "nested": (
        lambda: nn.Sequential(
            nn.Flatten(), nn.Sequential(nn.Linear(3, 4), nn.SiLU()), nn.Linear(4, 2), nn.Softmax(1)
        ),
        ["swish", "softmax"],
    ),
    "layers that change nothing": (
        lambda: nn.Sequential(
            nn.Identity(), nn.Linear(3, 4), nn.Identity(), nn.GELU(), nn.Dropout(0.9), nn.Linear(4, 1)
        ),
        ["gelu", "identity"],
    ),
    "no bias": (lambda: nn.Sequential(nn.Linear(3, 4, bias=False), nn.Softplus()), ["softplus"]),
    "weight norm": (
        lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), nn.ReLU()),
        ["relu"],
    ),
    "shared layer": (
        lambda: nn.Sequential(*[nn.Linear(3, 3), nn.LeakyReLU()] * 2),
        ["leaky_relu", "leaky_relu"],
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_read(name: str) -> None:
    torch.manual_seed(1101)
    make, activations = MODULES[name]
    module = make().double().eval()
    net = Network.from_torch(module)
    assert list(net.activations) == activations
    x = RNG.standard_normal((20, 3))
    with torch.no_grad():
        assert_allclose(net(x), module(torch.tensor(x)).numpy(), rtol=1e-13, atol=1e-14)


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) ** 2


class OwnSequential(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + 1


class OwnLinear(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


REFUSED: dict[str, tuple[Any, str]] = {
    "own forward": (Own, r"the layer 'itself', Own\("),
    "own forward inside": (lambda: nn.Sequential(nn.Linear(3, 3), Own()), r"the layer '1', Own\("),
    "own sequential": (lambda: OwnSequential(nn.Linear(3, 2)), "OwnSequential"),
    "own linear": (lambda: nn.Sequential(OwnLinear(3, 2)), "'0', OwnLinear"),
    "convolution": (
        lambda: nn.Sequential(nn.Sequential(nn.Conv1d(1, 2, 3))),
        r"the layer '0\.0', Conv1d.*not a layer that",
    ),
    "batch norm": (lambda: nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), "'1', BatchNorm1d"),
    "another slope": (
        lambda: nn.Sequential(nn.Linear(3, 2), nn.LeakyReLU(0.2)),
        "not the leaky_relu of unweave",
    ),
    "tanh gelu": (lambda: nn.Sequential(nn.Linear(3, 2), nn.GELU(approximate="tanh")), "not the gelu"),
    "another softplus": (lambda: nn.Sequential(nn.Linear(3, 2), nn.Softplus(beta=2)), "not the softplus"),
    "softmax over rows": (lambda: nn.Sequential(nn.Linear(3, 2), nn.Softmax(0)), "not the softmax"),
    "softmax inside": (
        lambda: nn.Sequential(nn.Linear(3, 2), nn.Softmax(-1), nn.Linear(2, 1)),
        "output activation only",
    ),
    "activation first": (lambda: nn.Sequential(nn.Tanh(), nn.Linear(3, 2)), "does not follow a Linear"),
    "activation twice": (
        lambda: nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Tanh()),
        "the layer '2'.*does not follow",
    ),
    "no layer": (lambda: nn.Sequential(nn.Flatten()), "must have a Linear layer"),
    "lazy": (lambda: nn.Sequential(nn.LazyLinear(2)), "Call the module once"),
    "state dict": (lambda: nn.Linear(3, 2).state_dict(), "must be a torch.nn.Module. Got OrderedDict"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_modules_are_refused_by_name(name: str) -> None:
    make, reason = REFUSED[name]
    with pytest.raises(InvalidInput, match=reason):
        Network.from_torch(make())
