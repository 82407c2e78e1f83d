"""From the body of a request to the body of its response, without a network in between."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.serving.model import ServedModel

ROW_NAMES = ("instances", "inputs")
"""Names under which a request may carry its rows."""
ANSWERS_NAME = "predictions"


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
