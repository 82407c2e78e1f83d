"""A keras model, asked as in inference, whatever its backend."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.targets.adapters.answer_source import loaded, no_answer, squeezed, width_of_shape
from unweave.targets.adapters.torch_target import as_numbers, gradients

_ANSWERING_METHODS = ("predict", "predict_on_batch", "call", "__call__")


class KerasTarget:
    """f(x) = model(x, training=False) of a `keras.Model`.

    Rows are handed over in double precision; each layer brings them to the precision that it computes in.
    A model whose inputs have several axes, say (28, 28), is asked with D = 784 numbers per row.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._shape = _row_shape(model)
        self.n_inputs = None if self._shape is None else width_of_shape(self._shape)
        """D, of a model that knows its input shape; else None."""

    def __call__(self, x: Array) -> Array:
        """Answer the rows of ``x`` (n, D): (n,) or (n, K) float64."""
        import keras

        rows = x if self._shape is None or len(self._shape) == 1 else x.reshape(len(x), *self._sizes())
        tensor = keras.ops.convert_to_tensor(rows, dtype="float64")
        # keras 3 compares the structure of its inputs under a bare except, at every call.
        with _without_gradients(keras), interrupts_wait():
            answer = self._model(tensor, training=False)
        if isinstance(answer, list | tuple | dict):
            raise no_answer(
                f"A keras model must have one output. Got {len(answer)} instead. Build a model that ends at "
                "the output that is meant: keras.Model(model.inputs, model.outputs[0])."
            )
        return squeezed(_numbers(keras, answer))

    def _sizes(self) -> tuple[int, ...]:
        return tuple(-1 if size is None else int(size) for size in self._shape or ())

    def __repr__(self) -> str:
        return f"KerasTarget({type(self._model).__name__})"


def is_keras_model(target: Any) -> bool:
    """Whether ``target`` is a keras model; keras is not imported to find out."""
    keras = loaded("keras")
    return keras is not None and hasattr(keras, "Model") and isinstance(target, keras.Model)


def answers_like_the_model(method: Any) -> bool:
    """Whether a bound method of a keras model gives the model's own answers."""
    return getattr(method, "__name__", None) in _ANSWERING_METHODS


def keras_target(target: Any) -> KerasTarget:
    """Return the adapter of a model, or of its ``predict``, which would draw a progress bar at every call."""
    return KerasTarget(target if is_keras_model(target) else target.__self__)


def _without_gradients(keras: Any) -> AbstractContextManager[Any]:
    """Keep torch, the only backend that does so by default, from recording for derivatives."""
    torch = loaded("torch")
    if torch is None or keras.backend.backend() != "torch":
        return nullcontext()
    return gradients(torch, recorded=False)


def _numbers(keras: Any, answer: Any) -> Array:
    """Return a tensor of the backend as float64 array."""
    torch = loaded("torch")
    if torch is not None and isinstance(answer, torch.Tensor):
        # keras hands torch tensors to NumPy in a way that NumPy 2 warns of.
        return as_numbers(torch, answer)
    return np.asarray(keras.ops.convert_to_numpy(answer), dtype=np.float64)


def _row_shape(model: Any) -> tuple[int | None, ...] | None:
    """Return the shape of one row of inputs; None for a model that was not built yet."""
    try:
        shape = model.input_shape
    except (AttributeError, ValueError):  # keras says either, of a model without a defined input
        return None
    if shape is None:
        return None
    if isinstance(shape, dict) or (shape and isinstance(shape[0], list | tuple)):
        names = ", ".join(str(tensor.name) for tensor in model.inputs)
        raise InvalidInput(
            f"A keras model must have one input. Got {len(shape)} instead ({names}). Pass a function that "
            "splits the columns of (n, inputs) among them, and input_dim."
        )
    return tuple(shape[1:])


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Hold a first Ctrl-C back until the block has ended; a second one is let through at once.

    For a library that catches everything somewhere on its way: an interrupt raised there is lost, or comes
    out as an error of the target. Only the main thread receives signals, so elsewhere nothing is to be done;
    nor where the program handles no interrupts.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    held: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append((number, frame))
        signal.signal(signal.SIGINT, handler)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if held:
            handler(*held[0])
