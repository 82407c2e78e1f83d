"""What all gate learners share: checks of their arguments, and the gate as a network."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unweave.arrays import Array, real_numbers
from unweave.errors import InvalidInput
from unweave.networks.network import Network


def checked_rows(x: Any, y: Any, inputs: int | None = None) -> tuple[Array, Array]:
    """x (N, n) and y (N,) as finite float64; n must be ``inputs`` if that is given."""
    rows, labels = real_numbers(x, "x"), real_numbers(y, "y")
    if rows.ndim != 2 or rows.shape[1] == 0 or (inputs is not None and rows.shape[1] != inputs):
        expected = "(N, n) with n at least 1" if inputs is None else f"(N, {inputs})"
        raise InvalidInput(
            f"x must be of shape {expected}. Got shape {rows.shape} instead. Give one row per sample and one "
            f"column per input."
        )
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (len(rows),):
        raise InvalidInput(
            f"y must be of shape ({len(rows)},), one label per row of x. Got shape {labels.shape} instead. "
            f"A gate has one output; learn several one by one."
        )
    for name, array in (("x", rows), ("y", labels)):
        if not np.isfinite(array).all():
            bad = int(array.size - np.isfinite(array).sum())
            raise InvalidInput(
                f"{name} must be finite. Got {bad} NaN or infinite entries instead. Leave out those rows."
            )
    return rows, labels


def checked_vector(value: Any, inputs: int | None, name: str) -> Array:
    """``value`` as a finite float64 copy of shape (n,); n must be ``inputs`` if that is given."""
    vector = np.array(real_numbers(value, name))
    if vector.ndim != 1 or not vector.size or (inputs is not None and len(vector) != inputs):
        expected = "(n,)" if inputs is None else f"({inputs},)"
        raise InvalidInput(
            f"{name} must be of shape {expected}, one entry per input. Got shape {vector.shape} instead. "
            f"Reshape it."
        )
    if not np.isfinite(vector).all():
        raise InvalidInput(f"{name} must be finite. Got NaN or infinite entries instead. Check its source.")
    return vector


def checked_theta(theta: float) -> float:
    """The largest error of a label: a finite number, at least zero."""
    if not isinstance(theta, int | float | np.number) or not math.isfinite(theta) or theta < 0:
        raise InvalidInput(
            f"theta must be a finite number of at least 0. Got {theta!r} instead. It bounds the error "
            f"of every label; clean labels have theta 0."
        )
    return float(theta)


def checked_positive(value: float, name: str, meaning: str) -> float:
    """A finite number above zero."""
    if not isinstance(value, int | float | np.number) or not math.isfinite(value) or value <= 0:
        raise InvalidInput(f"{name} must be a finite number above 0. Got {value!r} instead. It is {meaning}.")
    return float(value)


def gate_network(weights: Array, activation: str = "relu") -> Network:
    """x -> act(w . x), w (n,), as a hidden layer of one unit and an output of weight one.

    This is the form in which `unweave.recover` returns a single unit, so that both compare.

    Example:
        >>> import numpy as np
        >>> gate_network(np.array([1.0, -2.0]))
        Network(2-1-1, relu, identity output, 5 parameters)
    """
    return Network([weights[:, None], [[1.0]]], [[0.0], [0.0]], [activation, "identity"])


class GateResult:
    """A fit of a gate; ``weights`` (n,) are those of the gate."""

    weights: Array
    activation: str = "relu"

    @property
    def network(self) -> Network:
        """The gate as a network."""
        return gate_network(self.weights, self.activation)
