"""Starting points for the fit of smooth units to samples.

Number 0 is the estimate from all samples, 1 and 2 those from either half; later ones take their scales and
biases from the best forty pairs of the grid and turn the weights by a random part that grows with the number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.samples_smooth.moments import (
    SampleMoments,
    disagreement,
    scalar_choices,
    unit_directions,
)
from unweave.networks.activations import Activation, get_activation
from unweave.networks.parameters import NetworkParameters

_PERTURBATION = 0.15  # of the weights' size, growing with every perturbed start
_CHOICES = 40  # pairs (s, b) of the grid from which perturbed starts draw
_SMALLEST_COLUMN = 1e-6  # singular values of the outgoing weights' equations that count, relative
_LARGEST_BIAS = 1.0  # of random units


@dataclass(frozen=True, eq=False)
class StartDirections:
    """Unit columns (r, r) from all samples and from either half of them."""

    sets: tuple[Array, Array, Array]

    @property
    def angle(self) -> float:
        """Radians by which the directions of the halves differ."""
        return disagreement(self.sets[1], self.sets[2])


def start_directions(moments: SampleMoments) -> StartDirections:
    """The directions that the moments give."""
    return StartDirections(
        (unit_directions(moments), unit_directions(moments, 0), unit_directions(moments, 1))
    )


def units_near_estimate(
    moments: SampleMoments,
    directions: StartDirections,
    activation: Activation,
    number: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Weights (r, r) and biases (r,) of start ``number``, in the variables of the moments."""
    perturbed = max(0, number - len(directions.sets) + 1)
    columns = directions.sets[0 if perturbed else number]
    choices = scalar_choices(moments, columns, activation, _CHOICES)
    units = np.arange(len(choices))
    chosen = rng.integers(0, choices.shape[1], len(units)) if perturbed else np.zeros_like(units)
    scales, biases = choices[units, chosen].T
    weights = columns * scales
    if perturbed:
        size = np.abs(scales) / np.sqrt(len(weights))
        weights = weights + perturbed * _PERTURBATION * size * rng.standard_normal(weights.shape)
    return weights, biases


def random_units(inputs: int, width: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Weights (r, m) of length about one and biases (m,)."""
    weights = rng.standard_normal((inputs, width)) / np.sqrt(inputs)
    return weights, rng.uniform(-_LARGEST_BIAS, _LARGEST_BIAS, (width,))


def with_outgoing(
    activation: Activation, weights: Array, biases: Array, inputs: Array, answers: Array
) -> NetworkParameters:
    """The model with these units (r, m) and the best outgoing weights for inputs (n, r), answers (n, K)."""
    states = activation(inputs @ weights + biases)
    columns = np.column_stack([states, np.ones(len(inputs))])
    solution = np.asarray(np.linalg.lstsq(columns, answers, rcond=_SMALLEST_COLUMN)[0], dtype=np.float64)
    functions = (activation, get_activation("identity"))
    return NetworkParameters(functions, (weights, solution[:-1]), (biases, solution[-1]))
