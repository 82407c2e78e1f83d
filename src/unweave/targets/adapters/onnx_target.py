"""An ONNX graph, run by onnxruntime in the precision that the graph is written in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.targets.adapters.answer_source import (
    loaded,
    one_probability,
    optional_package,
    squeezed,
    width_of_shape,
)

_INPUT_TYPES: dict[str, Any] = {
    "tensor(double)": np.float64,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
}
_MAPS = "seq(map("  # how the type of a list of {class: probability}, one per row, begins
_ERRORS_ONLY = 3  # onnxruntime writes anything milder to stderr


class OnnxTarget:
    """f(x) = the output of an ONNX graph with one input.

    - Rows are rounded to the type of the input: double, float or float16.
    - A graph that takes a fixed number of rows N is run piece by piece, the last piece filled up; one that
      takes a single vector without batch axis is run row by row; axes of length one are added and removed.
    - The labels that a converted classifier has as a further output are left aside. Probabilities, also in
      the form of one map per row, come as columns in the order of the classes; those of two classes are one
      sigmoid output.

    Parameters
    ----------
    model : path of an .onnx file, or an `onnxruntime.InferenceSession`.
    output : name of the output to ask, if there are several.
    """

    def __init__(self, model: Any, output: str | None = None) -> None:
        self._name = "session" if is_onnx_session(model) else str(model)
        self._session = model if is_onnx_session(model) else _open(Path(model))
        source = _only_input(self._session.get_inputs(), self._name)
        self._input, self._type = source.name, _INPUT_TYPES[source.type]
        self._output, self._classifies = _chosen_output(self._session.get_outputs(), output, self._name)
        sizes = [size if isinstance(size, int) and size > 0 else None for size in source.shape]
        # Without a batch axis the graph knows one row only; no axes at all means that the shape is open.
        self._single = len(sizes) == 1
        self._batch = None if self._single or not sizes else sizes[0]
        self._row_shape = sizes if self._single else sizes[1:]
        if self._row_shape.count(None) > 1:
            raise InvalidInput(
                f"The input {source.name!r} of {self._name} must leave no more than one size of a row open. "
                f"Got shape {list(source.shape)} instead. Pass a function that brings rows into the shape "
                "that is meant and calls onnxruntime, and input_dim."
            )
        self.n_inputs = width_of_shape(self._row_shape) if self._row_shape else None
        """D, as far as the graph says; else None."""

    def __call__(self, x: Array) -> Array:
        """Answer the rows of ``x`` (n, D): (n,) or (n, K) float64."""
        with np.errstate(over="ignore"):  # what is too large for single precision becomes infinite
            rows = x.astype(self._type)
        if len(self._row_shape) > 1:
            rows = rows.reshape(len(x), *(-1 if size is None else size for size in self._row_shape))
        answers = np.concatenate([self._run(piece)[:wanted] for piece, wanted in self._pieces(rows)])
        return one_probability(answers) if self._classifies else answers

    def _pieces(self, rows: Array) -> Iterator[tuple[Array, int]]:
        """Yield what is given to the graph at once, and how many rows of its answer are wanted."""
        if self._single:
            for row in rows:
                yield row, 1
            return
        if self._batch is None:
            yield rows, len(rows)
            return
        for start in range(0, len(rows), self._batch):
            piece = rows[start : start + self._batch]
            missing = self._batch - len(piece)
            yield np.concatenate([piece, np.repeat(piece[-1:], missing, axis=0)]), len(piece)

    def _run(self, piece: Array) -> Array:
        """Run the graph once: (rows, ...) float64, without axes of length one."""
        (answer,) = self._session.run([self._output], {self._input: piece})
        if isinstance(answer, list):
            answer = _columns_of_maps(answer)
        numbers = np.asarray(answer, dtype=np.float64)
        return numbers.reshape(1, -1) if self._single else squeezed(np.atleast_1d(numbers))

    def __repr__(self) -> str:
        return f"OnnxTarget({self._name})"


def is_onnx_session(target: Any) -> bool:
    """Whether ``target`` is an onnxruntime session; onnxruntime is not imported to find out."""
    runtime = loaded("onnxruntime")
    return runtime is not None and isinstance(target, runtime.InferenceSession)


def _open(path: Path) -> Any:
    """Return a session for the file, on the processor."""
    runtime = optional_package("onnxruntime", "onnx", "run an ONNX file")
    options = runtime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    # Threads that wait by spinning would take the processor away from the recovery between two questions.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a dozen kinds without a common base
        reason = " ".join(str(error).split())
        raise InvalidInput(
            f"path must be an ONNX file that onnxruntime can run. Got {str(path)!r} instead ({reason}). "
            "Export the model again, with operators of the standard domain."
        ) from error


def _only_input(inputs: list[Any], name: str) -> Any:
    """Return the input of the graph, if there is one and it takes real numbers."""
    if len(inputs) != 1:
        named = ", ".join(f"{entry.name} {list(entry.shape)}" for entry in inputs) or "none"
        raise InvalidInput(
            f"{name} must have one input. Got {len(inputs)} instead ({named}). Pass a function that splits "
            "the columns of (n, inputs) among them and calls onnxruntime, and input_dim."
        )
    if inputs[0].type not in _INPUT_TYPES:
        raise InvalidInput(
            f"The input {inputs[0].name!r} of {name} must be one of {', '.join(_INPUT_TYPES)}. "
            f"Got {inputs[0].type} instead. Only functions of real numbers can be recovered."
        )
    return inputs[0]


def _chosen_output(outputs: list[Any], wanted: str | None, name: str) -> tuple[str, bool]:
    """Return the name of the output to ask, and whether it holds the probabilities of a classifier."""
    real = [entry for entry in outputs if entry.type in _INPUT_TYPES or entry.type.startswith(_MAPS)]
    known = ", ".join(f"{entry.name} {entry.type}" for entry in outputs)
    if wanted is not None:
        real = [entry for entry in real if entry.name == wanted]
        if not real:
            raise InvalidInput(
                f"output must be an output of {name} that holds real numbers. Got {wanted!r} instead. "
                f"It has {known}."
            )
    if not real:
        raise InvalidInput(
            f"{name} must have an output of real numbers. Got {known} instead: labels carry the decision "
            "boundary only. Export the probabilities or scores."
        )
    if len(real) > 1:
        raise InvalidInput(
            f"{name} must have one output of real numbers. Got {len(real)} instead ({known}). Pass "
            f"OnnxTarget({name!r}, output={real[0].name!r}) for one of them."
        )
    return real[0].name, real[0].type.startswith(_MAPS) or len(outputs) > 1


def _columns_of_maps(maps: list[dict[Any, float]]) -> Array:
    """Return (n, classes) from one {class: probability} per row, classes in their order."""
    classes = sorted(maps[0])
    return np.array([[row[name] for name in classes] for row in maps], dtype=np.float64)
