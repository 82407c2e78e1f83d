"""A torch module, asked in evaluation mode, in its own precision and on its own device.

Derivatives: rows do not see each other, so the derivative of the sum over rows holds every row's own. One
backward pass gives the gradients of one output at all rows, and one more through it the products of all
Hessians with a direction. d such double backward passes are several times faster than a vectorised Hessian.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.targets.adapters.answer_source import loaded, no_answer
from unweave.targets.differentiation import Derivatives


class TorchTarget:
    """f(x) = module(x) of a `torch.nn.Module`.

    Rows are rounded to the precision of the module's parameters and moved to their device. Layers that act
    differently while training (dropout, batch normalisation) are put in evaluation mode for the call, each
    one back to what it was afterwards. Nothing of a parameter is looked at but its type and device.

    ``n_inputs`` is the width of the first layer of a `torch.nn.Sequential`. Any other module may call its
    layers in another order than it holds them, so there ``assumed_inputs`` gives way to what the user says.

    Parameters
    ----------
    module : maps a tensor (n, D) to a tensor (n,) or (n, K).
    call : what to call instead of the module: one of its bound methods.
    """

    def __init__(self, module: Any, call: Callable[[Any], Any] | None = None) -> None:
        import torch

        self._module = module
        self._call = module if call is None else call
        self._lock = threading.Lock()  # two threads would take each other's mode for the user's
        width = _first_width(module)
        certain = isinstance(module, torch.nn.Sequential)
        self.n_inputs = width if certain else None
        """D, where it is certain; else None."""
        self.assumed_inputs = None if certain else width
        """D to be used unless the user gives another one; None if not even that is known."""

    def __call__(self, x: Array) -> Array:
        """Answer the rows of ``x`` (n, D): (n,) or (n, K) float64."""
        import torch

        rows = self._as_tensor(torch, x)
        with self._lock, _evaluating(self._module), gradients(torch, recorded=False):
            answer = self._checked(torch, self._call(rows))
        return as_numbers(torch, answer)

    def differentiate(self, x: Array, directions: Array | None = None) -> Derivatives:
        """Return values, gradients and, along ``directions`` (D, d), Hessian products at rows ``x`` (n, D).

        By backward passes with respect to the inputs, in the module's own precision: 1 + K (1 + d) passes.
        No ``grad`` of a parameter is touched.
        """
        import torch

        with self._lock, _evaluating(self._module), gradients(torch, recorded=True):
            rows = self._as_tensor(torch, x).clone().requires_grad_(True)
            # A copy goes in: a layer that works in place must not write on the leaf.
            answer = self._checked(torch, self._call(rows.clone()))
            return _derivatives(torch, answer, rows, directions)

    def _as_tensor(self, torch: Any, x: Array) -> Any:
        """Return the rows in the module's precision, on its device."""
        state = itertools.chain(self._module.parameters(), self._module.buffers())
        like = next((tensor for tensor in state if tensor.is_floating_point()), None)
        with np.errstate(over="ignore"):
            rows = torch.from_numpy(np.ascontiguousarray(x))
        return rows if like is None else rows.to(device=like.device, dtype=like.dtype)

    @staticmethod
    def _checked(torch: Any, answer: Any) -> Any:
        if not isinstance(answer, torch.Tensor):
            raise no_answer(
                f"A torch module must return one tensor. Got {type(answer).__name__} instead. Wrap it in a "
                "function that returns the part that is meant."
            )
        return answer

    def __repr__(self) -> str:
        return f"TorchTarget({type(self._module).__name__})"


def is_torch_module(target: Any) -> bool:
    """Whether ``target`` is a torch module; torch is not imported to find out."""
    torch = loaded("torch")
    return torch is not None and hasattr(torch, "nn") and isinstance(target, torch.nn.Module)


def torch_target(target: Any) -> TorchTarget:
    """Return the adapter of a module, or of a bound method of one."""
    if is_torch_module(target):
        return TorchTarget(target)
    return TorchTarget(target.__self__, call=target)


@contextmanager
def gradients(torch: Any, recorded: bool) -> Iterator[None]:
    """Record for derivatives inside, or not; restored even if Ctrl-C hits torch's own bookkeeping."""
    enabled = torch.is_grad_enabled()
    try:
        with torch.inference_mode(False) if recorded else nullcontext(), torch.set_grad_enabled(recorded):
            yield
    finally:
        torch.set_grad_enabled(enabled)


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Put the module in evaluation mode inside; afterwards each layer is in the mode that it was in."""
    training = [layer for layer in module.modules() if layer.training]
    for layer in training:
        layer.training = False
    try:
        yield
    finally:
        for layer in training:
            layer.training = True


def _first_width(module: Any) -> int | None:
    """Return the inputs of the first layer that has parameters or statistics, if it declares them."""
    for layer in module.modules():
        has_state = next(itertools.chain(layer.parameters(), layer.buffers()), None) is not None
        if has_state and not any(True for _ in layer.children()):
            return _layer_width(layer)
    return None


def _layer_width(layer: Any) -> int | None:
    """Return the width of a linear layer or of a normalisation in front of it; None for any other layer."""
    width = getattr(layer, "in_features", None)
    if width is None and type(layer).__name__ == "BatchNorm1d":
        width = layer.num_features
    if width is None and type(layer).__name__ == "LayerNorm" and len(layer.normalized_shape) == 1:
        width = layer.normalized_shape[0]
    return width if isinstance(width, int) and width > 0 else None


def _derivatives(torch: Any, answer: Any, rows: Any, directions: Array | None) -> Derivatives:
    """Return derivatives of the tensor ``answer`` (n,) or (n, K), a function of the leaf ``rows`` (n, D)."""
    if not answer.requires_grad:
        raise no_answer(
            "A torch module must be differentiable in its inputs for derivatives by autodiff. Got an answer "
            "without a gradient instead: it is detached, computed without gradients, or outside torch. Leave "
            'derivatives at "queries".'
        )
    columns = answer.reshape(len(rows), -1)
    along = None if directions is None else torch.as_tensor(directions.T).to(rows)
    slopes, products = [], []
    for output in columns.unbind(1):
        gradient = _summed(torch, output, rows, once=along is None)
        slopes.append(as_numbers(torch, gradient))
        if along is not None:
            parts = [_summed(torch, gradient @ direction, rows, once=True) for direction in along]
            products.append(np.stack([as_numbers(torch, part) for part in parts], axis=1))
    stacked = np.stack(products, axis=1) if products else None
    return Derivatives(as_numbers(torch, columns), np.stack(slopes, axis=1), stacked)


def _summed(torch: Any, values: Any, rows: Any, once: bool) -> Any:
    """Differentiate the sum of ``values`` (n,) row by row: (n, D), in the graph unless ``once``."""
    if not values.requires_grad:  # constant in the inputs, such as the slope of a straight line
        return torch.zeros_like(rows)
    kept = {"create_graph": not once, "retain_graph": True, "allow_unused": True}
    (found,) = torch.autograd.grad(values.sum(), rows, **kept)
    return torch.zeros_like(rows) if found is None else found


def as_numbers(torch: Any, tensor: Any) -> Array:
    """Return a tensor as float64 array."""
    result: Array = tensor.detach().to(device="cpu", dtype=torch.float64).numpy()
    return result
