"""Several hidden layers at once: a random start, fitted at a ridge that falls and then without.

    minimise  (1/n) |y - f(x)|^2  +  rho |theta|^2,      rho = 1e-3, 1e-4, ...

over weights and biases of all layers but the output's bias (`unweave.networks.ridge_continuation`). Strong
units drop in first and weak ones as rho falls, in either layer. Cost: some 200 steps of n P^2 / 4 flops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from unweave.arrays import Array
from unweave.networks.activations import Activation, get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.ridge_continuation import OnStep, RidgeFit
from unweave.networks.value_fit import ValueFitResult, fit_values


@dataclass(frozen=True, kw_only=True)
class LayeredStartOptions:
    """How a start is drawn, and how long it is fitted."""

    length: float = 0.3
    """Size of a random unit of the first layer: none of the second layer's is saturated then."""
    continued: int = 8
    """Times that a fit without ridge goes on, ..."""
    falling: float = 0.7
    """... while its residual falls to this part, ..."""
    at_rounding: float = 1e-13
    """... to this: nearly linear layers lie in long valleys."""


DEFAULTS = LayeredStartOptions()


def random_layers(widths: Sequence[int], kind: Activation, rng: np.random.Generator) -> NetworkParameters:
    """Return small random units for ``widths``, those of inputs and outputs among them."""
    weights = [rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    weights[0] *= DEFAULTS.length
    functions = (*(kind for _ in widths[1:-1]), get_activation("identity"))
    return NetworkParameters(functions, tuple(weights), tuple(np.zeros(width) for width in widths[1:]))


def fit_layers(
    start: NetworkParameters, inputs: Array, answers: Array, near: float, on_step: OnStep | None
) -> tuple[ValueFitResult | None, float, float]:
    """Fit ``start`` to standardised samples; without ridge where that leaves less than ``near``.

    Returns the fit without ridge if there was one, the residual at the last ridge, and the flops.
    """
    fit = RidgeFit(inputs, answers, start.activation, on_step=on_step)
    level = fit.settled(start, fit.options.first)
    if not level.residual < near:
        return None, level.residual, fit.flops
    found = fit_values(level.model, inputs, answers, on_step=on_step)
    for _ in range(DEFAULTS.continued):
        before = found.history[-1]
        if before <= DEFAULTS.at_rounding:
            break
        found = fit_values(found.model, inputs, answers, on_step=on_step)
        if not found.history[-1] < DEFAULTS.falling * before:
            break
    return found, level.residual, fit.flops
