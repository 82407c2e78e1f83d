"""Random networks with known parameters: what experiments and tests set out to recover."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.network import Network

Outer = Literal["ones", "unit", "normal", "signed"]


def random_network(
    layers: Sequence[int],
    activation: str = "tanh",
    seed: int | np.random.Generator = 0,
    outer: Outer = "ones",
    norms: tuple[float, float] = (1, 1),
    bias: float = 0.5,
    output_activation: str = "identity",
) -> Network:
    """Return a network of widths ``layers`` = [inputs, hidden ..., outputs] with random parameters.

    Hidden units: incoming weights uniform on the unit sphere, times a length uniform in ``norms``; biases
    uniform in [-bias, bias]. Output layer by ``outer``:

    - "ones": all weights one, no bias (a plain sum of the units);
    - "unit": columns uniform on the unit sphere;
    - "normal": standard normal weights;
    - "signed": random sign times a size uniform in [0.5, 2];

    the last three with output biases uniform in [-bias, bias]. Same arguments, same network.

    Example:
        >>> random_network([20, 40, 1], seed=3)
        Network(20-40-1, tanh, identity output, 881 parameters)
    """
    widths = _checked_widths(layers)
    low, high = _checked_ranges(norms, bias)
    if outer not in get_args(Outer):
        raise InvalidInput(
            f"outer must be one of {', '.join(get_args(Outer))}. Got {outer!r} instead. Choose one of these."
        )
    rng = np.random.default_rng(seed)
    weights, biases = [], []
    for n_in, n_out in pairwise(widths[:-1]):
        weights.append(_sphere_columns(rng, n_in, n_out) * rng.uniform(low, high, n_out))
        biases.append(rng.uniform(-bias, bias, n_out))
    weights.append(_outer_weights(rng, outer, widths[-2], widths[-1]))
    biases.append(np.zeros(widths[-1]) if outer == "ones" else rng.uniform(-bias, bias, widths[-1]))
    return Network(weights, biases, [activation] * (len(widths) - 2) + [output_activation])


def _outer_weights(rng: np.random.Generator, outer: Outer, n_in: int, n_out: int) -> Array:
    if outer == "ones":
        return np.ones((n_in, n_out))
    if outer == "unit":
        return _sphere_columns(rng, n_in, n_out)
    if outer == "normal":
        return rng.standard_normal((n_in, n_out))
    return rng.choice([-1.0, 1.0], (n_in, n_out)) * rng.uniform(0.5, 2, (n_in, n_out))


def _sphere_columns(rng: np.random.Generator, n_in: int, n_out: int) -> Array:
    columns = rng.standard_normal((n_in, n_out))
    return np.asarray(columns / np.linalg.norm(columns, axis=0))


def _checked_widths(layers: Sequence[int]) -> list[int]:
    widths = [int(n) for n in layers]
    if len(widths) < 2 or min(widths) < 1 or any(n != given for n, given in zip(widths, layers, strict=True)):
        raise InvalidInput(
            f"layers must be at least two positive integers, inputs first and outputs last. Got "
            f"{list(layers)} instead. For example [20, 40, 1]."
        )
    return widths


def _checked_ranges(norms: tuple[float, float], bias: float) -> tuple[float, float]:
    low, high = (float(value) for value in norms)
    if not 0 < low <= high < np.inf:
        raise InvalidInput(
            f"norms must be (low, high) with 0 < low <= high. Got {norms} instead. (1, 1) gives unit weights."
        )
    if not 0 <= bias < np.inf:
        raise InvalidInput(f"bias must be non-negative and finite. Got {bias} instead. 0 gives no biases.")
    return low, high
