"""Tables that users hand over: frames with named columns, and data given in place of a target."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.columns import Columns
from unweave.networks.network import Network
from unweave.targets.queries import Queries
from unweave.targets.target import KINDS


def refuse_tables(target: Any, hidden: Any) -> None:
    """Raise if data stand in place of a target: ``recover(X, y)`` is meant for samples."""
    is_frame = hasattr(target, "columns") and hasattr(target, "dtypes")
    if not (isinstance(target, np.ndarray | list | tuple) or is_frame):
        return
    shape = np.shape(target)
    answers = hidden is not None and len(shape) == 2 and np.shape(hidden)[:1] == shape[:1]
    got = f"data of shape {shape}" + (" and answers in place of hidden" if answers else "")
    raise InvalidInput(
        f"target must be something that can be asked. Got {got} instead. To recover a network from samples, "
        "wrap them: unweave.recover(unweave.Samples(X, y)), with hidden and activation if known."
    )


def width_told(target: Any, input_dim: int | None, examples: Any) -> int | None:
    """Return the number of inputs: as given, or, of a target that does not say it, that of the examples."""
    if input_dim is not None or examples is None or isinstance(target, Queries):
        return input_dim
    is_function = next((kind.name for kind in KINDS if kind.recognises(target)), "") in (
        "function",
        "torch module",
    )
    shape = np.shape(examples)
    if not is_function or len(shape) != 2 or hasattr(target, "n_inputs"):
        return None
    return int(shape[1])


def asked_with_frames(target: Any, columns: Columns) -> Any:
    """Return a function that hands ``target`` frames with the columns of the examples, if it wants them.

    Only plain functions may: all others know the names of their columns, or need none. A function that fails
    on an array at its first call and takes a frame is asked with frames from then on.
    """
    kind = next((kind.name for kind in KINDS if kind.recognises(target)), "")
    if not columns.framed or kind != "function" or isinstance(target, Network | Queries):
        return target
    pandas = import_module("pandas")  # the user's examples are a frame, so it is there
    wants_frames: bool | None = None

    def answer(x: Array) -> Any:
        nonlocal wants_frames
        frame = pandas.DataFrame(x, columns=columns.names)
        if wants_frames is not None:
            return target(frame if wants_frames else x)
        try:
            found = target(x)
            wants_frames = False
        except Exception as error:  # whatever a function raises that looks for names in an array
            try:
                found = target(frame)
            except Exception:
                raise error from None
            wants_frames = True
        return found

    return answer
