"""What is served: a function from rows to answers, read from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.targets.adapters.file_target import open_file_target


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
