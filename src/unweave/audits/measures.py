"""What an attacker has: how far the weights are off, and how far the answers.

    weight error of unit k = |(w_k, b_k)^ - s (w_k, b_k)| / |(w_k, b_k)|,

over the first hidden layer, both networks in canonical form, units assigned to each other at least total
cost, s the better sign where the activation allows a choice. A unit without counterpart counts as 1, and so
does whatever is further away: nothing of it is known. The median tells how well a typical unit is known,
the worst whether all are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from unweave.arrays import Array
from unweave.audits.level import Level
from unweave.networks.comparison import compare, relative_uniform_error
from unweave.networks.network import Network
from unweave.networks.symmetry import Layers, canonical

_SINGLE_PRECISION = float(np.finfo(np.float32).eps)  # answers that are not rounded are alike to this


@dataclass(frozen=True)
class Knowledge:
    """What a network found tells about the one behind the answers; nan throughout if none was found."""

    parameter_error: float = math.nan
    """As `unweave.compare` has it; inf if the widths differ."""
    median_weight_error: float = math.nan
    worst_weight_error: float = math.nan
    fresh_error: float = math.nan
    """max |found(x) - f(x)| / max |f(x)| over fresh rows"""
    share_alike: float = math.nan
    """Share of fresh rows answered alike to the published digits, or to within the noise"""


def knowledge(truth: Network, found: Network | None, rows: Array, level: Level) -> Knowledge:
    """Measure ``found`` against ``truth`` on ``rows`` (n, D), whose answers are published at ``level``."""
    if found is None:
        return Knowledge()
    weights = weight_errors(truth, found)
    expected, got = truth(rows), found(rows)
    return Knowledge(
        compare(truth, found).parameter_error,
        float(np.median(weights)),
        float(weights.max()),
        relative_uniform_error(expected, got),
        share_alike(expected, got, level),
    )


def weight_errors(truth: Network, found: Network) -> Array:
    """Return the relative error (m,) of every unit of the first layer of ``truth``."""
    if found.n_inputs != truth.n_inputs:
        return np.ones(truth.weights[0].shape[1])
    reference, other = canonical(truth), canonical(found)
    layers = Layers.of(reference)
    wanted = np.vstack([reference.weights[0], reference.biases[0]]).T
    have = np.vstack([other.weights[0], other.biases[0]]).T
    sine = reference.activations[0] == "sine"
    distances = _distances(wanted, have, sine)
    if layers.hidden and layers.reflection(0) is not None:
        distances = np.minimum(distances, _distances(wanted, -have, sine))
    rows, columns = linear_sum_assignment(distances)
    errors = np.ones(len(wanted))
    sizes = np.maximum(np.linalg.norm(wanted, axis=1), np.finfo(np.float64).tiny)
    errors[rows] = np.minimum(distances[rows, columns] / sizes[rows], 1.0)
    return errors


def share_alike(expected: Array, got: Array, level: Level) -> float:
    """Return the share of rows on which ``got`` (n, K) is ``expected`` to the digits that the level shows.

    Behind noise: to within its standard deviation; unrounded: to single precision.
    """
    if level.is_rounded:
        same = np.round(expected, level.decimals or 0) == np.round(got, level.decimals or 0)
    else:
        size = float(np.abs(expected).max(initial=0.0))
        same = np.abs(expected - got) <= max(level.sigma, _SINGLE_PRECISION * size)
    return float(same.all(axis=1).mean())


def _distances(a: Array, b: Array, half_turns: bool) -> Array:
    """Return the distance (m, k) of every row of ``a`` (m, n) to every row of ``b`` (k, n); biases come last.

    With ``half_turns`` biases count modulo pi, as those of sine do.
    """
    result = np.empty((len(a), len(b)))
    for index, row in enumerate(a):
        difference = b - row
        if half_turns:
            difference[:, -1] -= math.pi * np.round(difference[:, -1] / math.pi)
        result[index] = np.linalg.norm(difference, axis=1)
    return result
