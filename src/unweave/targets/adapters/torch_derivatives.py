"""Gradients and Hessian products of a torch module's answers with respect to its inputs.

Rows do not see each other, so the derivative of the sum over rows holds every row's own: one backward pass
gives the gradients of one output at all rows, and one more through it the products of all Hessians with a
direction. d such double backward passes are several times faster than a vectorised Hessian.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.targets.adapters.answer_source import no_answer
from unweave.targets.differentiation import Derivatives


def torch_derivatives(torch: Any, answer: Any, rows: Any, directions: Array | None) -> Derivatives:
    """Derivatives of the tensor ``answer`` (n,) or (n, K), a function of the leaf ``rows`` (n, D)."""
    if not answer.requires_grad:
        raise no_answer(
            "A torch module must be differentiable in its inputs for derivatives by autodiff. Got an answer "
            "without a gradient instead: it is detached, computed without gradients, or outside torch. Leave "
            'derivatives at "queries".'
        )
    columns = answer.reshape(len(rows), -1)
    along = None if directions is None else torch.as_tensor(directions.T).to(rows)
    gradients, products = [], []
    for output in columns.unbind(1):
        gradient = _summed(torch, output, rows, once=along is None)
        gradients.append(_numbers(torch, gradient))
        if along is not None:
            parts = [_summed(torch, gradient @ direction, rows, once=True) for direction in along]
            products.append(np.stack([_numbers(torch, part) for part in parts], axis=1))
    return Derivatives(
        _numbers(torch, columns),
        np.stack(gradients, axis=1),
        np.stack(products, axis=1) if products else None,
    )


def _summed(torch: Any, values: Any, rows: Any, once: bool) -> Any:
    """Derivative (n, D) of the sum of ``values`` (n,), row by row their own; in the graph unless ``once``."""
    if not values.requires_grad:  # constant in the inputs, such as the slope of a straight line
        return torch.zeros_like(rows)
    (found,) = torch.autograd.grad(
        values.sum(), rows, create_graph=not once, retain_graph=True, allow_unused=True
    )
    return torch.zeros_like(rows) if found is None else found


def _numbers(torch: Any, tensor: Any) -> Array:
    result: Array = tensor.detach().to(device="cpu", dtype=torch.float64).numpy()
    return result


@contextmanager
def with_gradients(torch: Any) -> Iterator[None]:
    """Everything is recorded for derivatives inside; restored even if Ctrl-C hits torch's own bookkeeping."""
    enabled = torch.is_grad_enabled()
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        torch.set_grad_enabled(enabled)
