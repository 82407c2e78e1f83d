"""Networks from torch modules: a Sequential of Linear layers and activations. Needs torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import torch
from torch import nn

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations import SOFTMAX
from unweave.networks.activations.catalogue import LEAKY_SLOPE
from unweave.networks.network import Network
from unweave.networks.torch_modules import Elementwise, Registered, SkipNetwork

CHANGE_NOTHING = (nn.Identity, nn.Dropout, nn.AlphaDropout, nn.Flatten)
"""Layers that a network in use passes through; rows are already flat."""

ACTIVATIONS: dict[type[nn.Module], tuple[str, Callable[[Any], bool]]] = {
    nn.Tanh: ("tanh", lambda layer: True),
    nn.Sigmoid: ("sigmoid", lambda layer: True),
    nn.ReLU: ("relu", lambda layer: True),
    nn.LeakyReLU: ("leaky_relu", lambda layer: layer.negative_slope == LEAKY_SLOPE),
    nn.GELU: ("gelu", lambda layer: layer.approximate == "none"),
    nn.SiLU: ("swish", lambda layer: True),
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
            biases.append(_zeros(weight) if bias is None else _parameter(bias, f"{name}.bias"))
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


def _zeros(weight: Array) -> Array:
    zeros: Array = torch.zeros(weight.shape[1], dtype=torch.float64).numpy()
    return zeros


def _refuse(name: str, layer: nn.Module, why: str) -> NoReturn:
    kinds: list[type[nn.Module]] = [nn.Linear, *ACTIVATIONS, *CHANGE_NOTHING]
    known = ", ".join(kind.__name__ for kind in kinds)
    raise InvalidInput(
        f"module must be a Sequential of {known}. Got the layer {name!r}, {layer!r}, instead, which is "
        f"{why}. Export it with torch.onnx.export and load the .onnx file, or recover it from its answers."
    )
