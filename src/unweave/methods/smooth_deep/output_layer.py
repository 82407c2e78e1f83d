"""The output layer: what activation it may have, and its weights by linear least squares.

An output activation phi acts on each output alone, so gradients keep their directions and the layers before
the last do not notice it; only the last hidden layer tells phi^{-1}(f) from f, and that costs no query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from unweave.arrays import Array
from unweave.errors import InvalidInput

_SATURATED = 1e-6  # distance to a limit of the output below which its inverse is mostly rounding


@dataclass(frozen=True)
class OutputActivation:
    """An output activation and its inverse on the answers."""

    name: str
    undo: Callable[[Array], Array]
    low: float
    high: float

    def fits(self, answers: Array) -> bool:
        """Whether answers can have come out of it."""
        return bool((answers > self.low).all() and (answers < self.high).all())

    def usable(self, answers: Array) -> Array:
        """For rows (..., K): whether no output is saturated."""
        if not np.isfinite(self.low):
            return np.ones(answers.shape[:-1], dtype=bool)
        margin = _SATURATED * (self.high - self.low)
        inside = (answers > self.low + margin) & (answers < self.high - margin)
        return np.asarray(inside.all(axis=-1))


IDENTITY = OutputActivation("identity", lambda f: f, -np.inf, np.inf)
OUTPUTS = {
    "identity": IDENTITY,
    "tanh": OutputActivation("tanh", np.arctanh, -1.0, 1.0),
    "sigmoid": OutputActivation("sigmoid", logit, 0.0, 1.0),
}


def possible_outputs(answers: Array, name: str | None) -> tuple[OutputActivation, ...]:
    """The output activations to consider, given all answers seen so far."""
    if name is None:
        return tuple(output for output in OUTPUTS.values() if output.fits(answers))
    if name not in OUTPUTS:
        raise InvalidInput(
            f"output_activation must be one of {', '.join(OUTPUTS)} for networks with several hidden layers. "
            f"Got {name!r} instead."
        )
    return (OUTPUTS[name],)


@dataclass(frozen=True, eq=False)
class OutputFit:
    """Weights (m, K) and biases (K,) of the output layer and what they leave."""

    weights: Array
    biases: Array
    residual: float
    """Root mean square misfit relative to the spread of the (undone) answers."""


def fit_output(states: Array, answers: Array, output: OutputActivation) -> OutputFit:
    """Least squares of phi^{-1}(answers) (n, K) on ``states`` (n, m) and one."""
    usable = output.usable(answers)
    values = output.undo(answers[usable])
    design = np.concatenate([states[usable], np.ones((int(usable.sum()), 1))], axis=1)
    solution, *_ = np.linalg.lstsq(design, values, rcond=None)
    misfit = values - design @ solution
    spread = float(np.sqrt(np.mean((values - values.mean(axis=0)) ** 2))) if len(values) else 0.0
    residual = float(np.sqrt(np.mean(misfit**2))) / spread if spread > 0 else np.inf
    return OutputFit(solution[:-1], solution[-1], residual)
