"""The output layer: what activation it may have, and its weights by linear least squares.

An output activation phi acts on each output alone, so gradients keep their directions and the layers before
the last do not notice it. Only the last hidden layer tells phi^{-1}(f) from f, and that costs no query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.links import Link

OUTPUTS = {name: Link(name) for name in ("identity", "tanh", "sigmoid")}
"""Output activations that a deep network may have, the simplest first."""


def possible_outputs(answers: Array, name: str | None) -> tuple[Link, ...]:
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


def fit_output(states: Array, answers: Array, output: Link) -> OutputFit:
    """Least squares of phi^{-1}(answers) (n, K) on ``states`` (n, m) and one."""
    usable = output.unsaturated(answers)
    values = output.inverse(answers[usable])
    design = np.concatenate([states[usable], np.ones((int(usable.sum()), 1))], axis=1)
    solution, *_ = np.linalg.lstsq(design, values, rcond=None)
    misfit = values - design @ solution
    spread = float(np.sqrt(np.mean((values - values.mean(axis=0)) ** 2))) if len(values) else 0.0
    residual = float(np.sqrt(np.mean(misfit**2))) / spread if spread > 0 else np.inf
    return OutputFit(solution[:-1], solution[-1], residual)
