"""What is served: a function from rows to answers, read from a file; the bodies of requests and responses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.targets.adapters.file_target import open_file_target

ROW_NAMES = ("instances", "inputs")
"""Names under which a request may carry its rows."""
ANSWERS_NAME = "predictions"


@dataclass(frozen=True)
class ServedModel:
    """A function (n, n_inputs) -> (n, n_outputs), float64 in and out; called from several threads at once."""

    function: Callable[[Array], Array]
    n_inputs: int
    n_outputs: int

    def __call__(self, x: Array) -> Array:
        """Answer the rows ``x``."""
        return np.asarray(self.function(x), dtype=np.float64).reshape(x.shape[0], self.n_outputs)


def load_model(path: str | Path) -> ServedModel:
    """Read the model in ``path``: an ONNX file, run by onnxruntime, or any file that `unweave.load` reads.

    Example: ``load_model("net.onnx")(np.zeros((1, 10)))``
    """
    source = open_file_target(path)
    if source.n_inputs is None:
        raise InvalidInput(
            f"the model in {str(path)!r} must say how many inputs it has. Got an open size instead. "
            "Export it again with a fixed number of inputs."
        )
    answer = np.asarray(source(np.zeros((1, source.n_inputs))))
    return ServedModel(source, source.n_inputs, answer.size)


def read_rows(body: bytes, n_inputs: int) -> Array:
    """Return the rows (n, n_inputs) in ``{"instances": [[...], ...]}``, or say what is wrong.

    >>> read_rows(b'{"instances": [[1, 2.5]]}', 2)
    array([[1. , 2.5]])
    """
    wanted = f'the body must be JSON of the form {{"instances": [[{n_inputs} numbers], ...]}}'
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{wanted}. Got text that is no JSON instead.") from error
    name = next((name for name in ROW_NAMES if isinstance(content, dict) and name in content), None)
    if name is None:
        raise InvalidInput(f"{wanted}. Got JSON without that name instead.")
    try:
        rows = np.array(content[name])
    except ValueError as error:
        raise InvalidInput(f"{wanted}. Got rows of different lengths instead.") from error
    if rows.dtype.kind not in "iuf":
        raise InvalidInput(f"{wanted}. Got entries that are no numbers instead.")
    if rows.ndim != 2 or rows.shape[1] != n_inputs or rows.shape[0] == 0:
        raise InvalidInput(f"{wanted}. Got shape {rows.shape} instead.")
    if not np.isfinite(rows).all():
        raise InvalidInput(f"{wanted}. Got numbers that are not finite instead.")
    return rows.astype(np.float64, copy=False)


def write_answers(answers: Array) -> bytes:
    """Return ``{"predictions": [[...], ...]}``, every number exact.

    >>> write_answers(np.array([[0.1]]))
    b'{"predictions":[[0.1]]}'
    """
    return to_json({ANSWERS_NAME: answers.tolist()})


def to_json(content: Any) -> bytes:
    """Return ``content`` as JSON without spaces; NaN and infinity as Python writes them."""
    return json.dumps(content, separators=(",", ":")).encode()


def answer_body(model: ServedModel, body: bytes) -> bytes:
    """Answer a request as the server does when nothing goes wrong: the yardstick of its throughput."""
    return write_answers(model(read_rows(body, model.n_inputs)))
