"""Networks as torch modules, and networks from torch modules. Imported only on demand: torch is optional."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn

from unweave.arrays import Array
from unweave.errors import InvalidInput, UnweaveError
from unweave.networks.activations import MAX_ORDER, SOFTMAX, get_activation
from unweave.networks.activations.catalogue import LEAKY_SLOPE
from unweave.networks.network import Network
from unweave.networks.structure import Convolution, find_convolution

SOFTPLUS_THRESHOLD = 40.0
"""From here on softplus(z) = z to the last bit; torch's own default of 20 would be wrong by 2e-9."""


class _Named(nn.Module):
    """An elementwise function g with the name of an activation."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def extra_repr(self) -> str:
        """Return the name of the function."""
        return self.name


class Elementwise(_Named):
    """One of the functions that torch has no module for, such as erf, sine and the powers."""

    FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {  # noqa: RUF012  (a table, never changed)
        "erf": torch.erf,
        "exp": torch.exp,
        "sine": torch.sin,
        "squared_relu": lambda z: torch.relu(z) ** 2,
        "quadratic": lambda z: z**2,
        "cubic": lambda z: z**3,
        "arctan": torch.atan,
        "gaussian": lambda z: torch.exp(-(z**2)),
    }

    def forward(self, z: Tensor) -> Tensor:
        """Return g(z), elementwise."""
        return self.FUNCTIONS[self.name](z)


class Registered(_Named):
    """A registered activation, computed by its NumPy jet; differentiable as often as the jet goes."""

    def forward(self, z: Tensor) -> Tensor:
        """Return g(z), elementwise."""
        result: Tensor = _JetFunction.apply(z, self.name, 0)  # type: ignore[no-untyped-call]
        return result


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
    "mish": nn.Mish,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "softsign": nn.Softsign,
    "hard_tanh": nn.Hardtanh,
    "relu6": nn.ReLU6,
    "hard_sigmoid": nn.Hardsigmoid,
    "identity": nn.Identity,
    "softmax": lambda: nn.Softmax(dim=-1),
}


def to_torch(network: Network, structure: bool = False) -> nn.Module:
    """Return the network as a double-precision nn.Sequential, or as a `SkipNetwork` if it has a skip.

    With ``structure`` a first layer that is a convolution becomes one.
    """
    stack: list[nn.Module] = []
    layers = list(zip(network.weights, network.biases, network.activations, strict=True))
    found = find_convolution(network) if structure else None
    if found is not None and found.is_complete:
        (_, _, name), (weight, bias, following), *rest = layers
        shape = (1, found.shape[1]) if found.dimension == 1 else (1, *found.shape)
        stack += [nn.Unflatten(1, shape), _convolution(found), _activation_module(name), nn.Flatten()]
        layers = [(*found.read_by(weight, bias, name), following), *rest]
    for weight, bias, name in layers:
        stack += [_linear(weight, bias), _activation_module(name)]
    if network.skip is None:
        return nn.Sequential(*stack)
    return SkipNetwork(nn.Sequential(*stack[:-1]), _linear(network.skip, None), stack[-1])


def _convolution(found: Convolution) -> nn.Module:
    count, height, width = found.filters.shape
    layer: nn.Conv1d | nn.Conv2d
    if found.dimension == 1:
        layer = nn.Conv1d(1, count, width, found.stride[1], found.padding[1], dtype=torch.float64)
        kernel = found.filters
    else:
        size = (height, width)
        layer = nn.Conv2d(1, count, size, found.stride, found.padding, dtype=torch.float64)
        kernel = found.filters[:, None]
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(kernel.copy()))
        assert layer.bias is not None
        layer.bias.copy_(torch.tensor(found.biases.copy()))
    return layer


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


CHANGE_NOTHING = (nn.Identity, nn.Dropout, nn.AlphaDropout, nn.Flatten)
"""Layers that a network in use passes through; rows are already flat."""

ACTIVATIONS: dict[type[nn.Module], tuple[str, Callable[[Any], bool]]] = {
    nn.Tanh: ("tanh", lambda layer: True),
    nn.Sigmoid: ("sigmoid", lambda layer: True),
    nn.ReLU: ("relu", lambda layer: True),
    nn.LeakyReLU: ("leaky_relu", lambda layer: layer.negative_slope == LEAKY_SLOPE),
    nn.GELU: ("gelu", lambda layer: layer.approximate == "none"),
    nn.SiLU: ("swish", lambda layer: True),
    nn.Mish: ("mish", lambda layer: True),
    nn.ELU: ("elu", lambda layer: layer.alpha == 1),
    nn.CELU: ("elu", lambda layer: layer.alpha == 1),
    nn.SELU: ("selu", lambda layer: True),
    nn.Softsign: ("softsign", lambda layer: True),
    nn.Hardtanh: ("hard_tanh", lambda layer: (layer.min_val, layer.max_val) == (-1, 1)),
    nn.ReLU6: ("relu6", lambda layer: True),
    nn.Hardsigmoid: ("hard_sigmoid", lambda layer: True),
    # Beyond its threshold torch's softplus is z itself, which is 2e-9 off at the default of 20.
    nn.Softplus: ("softplus", lambda layer: layer.beta == 1),
    nn.Softmax: (SOFTMAX, lambda layer: layer.dim in (-1, 1)),
}
"""Module -> activation, and whether the module's options make it that one."""


def from_torch(module: Any) -> Network:
    """Return the network in ``module``; `InvalidInput` names the layer that cannot be read."""
    if not isinstance(module, nn.Module):
        raise InvalidInput(
            f"module must be a torch.nn.Module. Got {type(module).__name__} instead. "
            f"For a state dict, save it as .safetensors and give load(path, activations=[...])."
        )
    if isinstance(module, SkipNetwork):
        parts = [*_flat(module.layers, "layers"), *_flat(module.output, "output")]
        return _assembled(parts, _parameter(module.skip.weight, "skip.weight").T)
    return _assembled(list(_flat(module, "")), None)


def _flat(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """The layers of ``module`` with their names, in the order in which they are applied."""
    if isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward:
        # Not named_children, which leaves out the second use of a layer.
        for key, child in zip(module._modules, module, strict=True):
            yield from _flat(child, f"{name}.{key}" if name else key)
    else:
        yield name or "itself", module


def _assembled(parts: list[tuple[str, nn.Module]], skip: Array | None) -> Network:
    weights: list[Array] = []
    biases: list[Array] = []
    activations: list[str | None] = []  # None for a layer that no activation has followed yet
    for name, layer in parts:
        if isinstance(layer, nn.Linear) and type(layer).forward is nn.Linear.forward:
            weight = _parameter(layer.weight, f"{name}.weight").T
            bias = layer.bias
            weights.append(weight)
            biases.append(np.zeros(weight.shape[1]) if bias is None else _parameter(bias, f"{name}.bias"))
            activations.append(None)
        elif type(layer) not in CHANGE_NOTHING:
            found = _activation(name, layer)
            if not activations or activations[-1] is not None:
                _refuse(name, layer, "an activation that does not follow a Linear layer")
            activations[-1] = found
    if not weights:
        raise InvalidInput(
            f"module must have a Linear layer. Got {[type(layer).__name__ for _, layer in parts]} instead. "
            f"Give a torch.nn.Sequential of Linear layers and activations."
        )
    return Network(weights, biases, [found or "identity" for found in activations], skip)


def _activation(name: str, layer: nn.Module) -> str:
    if isinstance(layer, Elementwise | Registered):
        return layer.name
    found, fits = ACTIVATIONS.get(type(layer), ("", lambda layer: False))
    if not found:
        _refuse(name, layer, "not a layer that can be read")
    if not fits(layer):
        _refuse(name, layer, f"not the {found} of unweave")
    return found


def _parameter(tensor: Any, name: str) -> Array:
    if nn.parameter.is_lazy(tensor):
        raise InvalidInput(
            f"{name} must have values. Got a lazy layer that has seen no inputs yet instead. "
            f"Call the module once first."
        )
    array: Array = tensor.detach().to(device="cpu", dtype=torch.float64).numpy()
    return array


def _refuse(name: str, layer: nn.Module, why: str) -> NoReturn:
    kinds: list[type[nn.Module]] = [nn.Linear, *ACTIVATIONS, *CHANGE_NOTHING]
    known = ", ".join(kind.__name__ for kind in kinds)
    raise InvalidInput(
        f"module must be a Sequential of {known}. Got the layer {name!r}, {layer!r}, instead, which is "
        f"{why}. Export it with torch.onnx.export and load the .onnx file, or recover it from its answers."
    )
