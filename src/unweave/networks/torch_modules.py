"""Networks as torch modules. Imported only when asked for: torch is optional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unweave.arrays import Array
from unweave.errors import UnweaveError
from unweave.networks.activations import MAX_ORDER, get_activation
from unweave.networks.activations.catalogue import LEAKY_SLOPE
from unweave.networks.network import Network

SOFTPLUS_THRESHOLD = 40.0
"""From here on softplus(z) = z to the last bit; torch's own default of 20 would be wrong by 2e-9."""


class Elementwise(nn.Module):
    """One of the functions that torch has no module for: erf, sine, squared_relu, quadratic, cubic."""

    FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {  # noqa: RUF012  (a table, never changed)
        "erf": torch.erf,
        "sine": torch.sin,
        "squared_relu": lambda z: torch.relu(z) ** 2,
        "quadratic": lambda z: z**2,
        "cubic": lambda z: z**3,
    }

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, z: Tensor) -> Tensor:
        """Return g(z), elementwise."""
        return self.FUNCTIONS[self.name](z)

    def extra_repr(self) -> str:
        """Return the name of the function."""
        return self.name


class Registered(nn.Module):
    """A registered activation, computed by its NumPy jet; differentiable as often as the jet goes."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, z: Tensor) -> Tensor:
        """Return g(z), elementwise."""
        result: Tensor = _JetFunction.apply(z, self.name, 0)  # type: ignore[no-untyped-call]
        return result

    def extra_repr(self) -> str:
        """Return the name of the function."""
        return self.name


class _JetFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, name: str, order: int) -> Tensor:
        if order > MAX_ORDER:
            raise UnweaveError(
                f"order of differentiation must be at most {MAX_ORDER}. Got {order} instead. "
                f"A registered activation knows no higher derivative."
            )
        ctx.save_for_backward(z)
        ctx.name, ctx.order = name, order
        values = get_activation(name).jet(z.detach().double().numpy(), order)[order]
        return torch.as_tensor(values).to(z.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (z,) = ctx.saved_tensors
        slope = _JetFunction.apply(z, ctx.name, ctx.order + 1)  # type: ignore[no-untyped-call]
        return gradients[0] * slope, None, None


class SkipNetwork(nn.Module):
    """output(layers(x) + x @ skip): a network whose inputs also reach the last pre-activation directly."""

    def __init__(self, layers: nn.Sequential, skip: nn.Linear, output: nn.Module) -> None:
        super().__init__()
        self.layers, self.skip, self.output = layers, skip, output

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (n, n_outputs) at x (n, n_inputs)."""
        result: Tensor = self.output(self.layers(x) + self.skip(x))
        return result


MODULES: dict[str, Callable[[], nn.Module]] = {
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "softplus": lambda: nn.Softplus(threshold=SOFTPLUS_THRESHOLD),
    "gelu": nn.GELU,
    "swish": nn.SiLU,
    "relu": nn.ReLU,
    "leaky_relu": lambda: nn.LeakyReLU(LEAKY_SLOPE),
    "identity": nn.Identity,
    "softmax": lambda: nn.Softmax(dim=-1),
}


def to_torch(network: Network) -> nn.Module:
    """Return the network as a double-precision nn.Sequential, or as a `SkipNetwork` if it has a skip."""
    stack: list[nn.Module] = []
    for weight, bias, name in zip(network.weights, network.biases, network.activations, strict=True):
        stack += [_linear(weight, bias), _activation_module(name)]
    if network.skip is None:
        return nn.Sequential(*stack)
    return SkipNetwork(nn.Sequential(*stack[:-1]), _linear(network.skip, None), stack[-1])


def _linear(weight: Array, bias: Array | None) -> nn.Linear:
    layer = nn.Linear(weight.shape[0], weight.shape[1], bias=bias is not None, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight.T.copy()))
        if bias is not None:
            layer.bias.copy_(torch.tensor(bias.copy()))
    return layer


def _activation_module(name: str) -> nn.Module:
    if name in MODULES:
        return MODULES[name]()
    return Elementwise(name) if name in Elementwise.FUNCTIONS else Registered(name)
