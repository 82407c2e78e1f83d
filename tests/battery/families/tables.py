"""Samples: of networks, with rounded answers or repeated inputs, and of functions that are no networks."""

from __future__ import annotations

import numpy as np

from battery.case import Array, Case, Function, Rng, around
from battery.plain import FOREIGN, pick, plant

ROWS_PER_PARAMETER = 20


def sampled_networks(rng: Rng) -> Case:
    """Exact rows of a network, plenty of them."""
    kind, inputs = pick(rng, ["relu", "leaky_relu", "tanh", "sigmoid"]), int(rng.integers(2, 6))
    units = int(rng.integers(1, 4))
    network = plant(rng, (inputs, units, 1), kind)
    x = rng.standard_normal((ROWS_PER_PARAMETER * units * (inputs + 2), inputs))
    return Case(
        network,
        around(x),
        samples=(x, network(x)),
        hidden=(units,),
        kind=kind,
        must_recover=True,
    )


def coarse_samples(rng: Rng) -> Case:
    """Rows of a network with rounded answers, noise, or inputs that repeat with other answers."""
    kind, inputs = pick(rng, ["relu", "tanh", "softplus", "gelu", "sine", "swish"]), int(rng.integers(1, 6))
    units = int(rng.integers(1, 4))
    network = plant(rng, (inputs, units, 1), kind)
    x = rng.standard_normal((500, inputs))
    rows, absolute = _coarse(rng, x, network)
    return Case(network, around(x), samples=rows, absolute=absolute, hidden=(units,), kind=kind)


def sampled_functions(rng: Rng) -> Case:
    """Rows of functions that are no networks, exact or coarse."""
    inputs, rule = int(rng.integers(1, 4)), int(rng.integers(4))
    network = plant(rng, (inputs, 2, 1), FOREIGN[pick(rng, list(FOREIGN))])
    direction = rng.standard_normal((inputs, 1))

    def truth(x: Array) -> Array:
        u = x @ direction
        if rule == 0:
            return np.sin(u) * np.exp(u / 4)
        if rule == 1:
            return network(x)
        return (u > 0.3) + 0.1 * u if rule == 2 else u * x[:, :1] * np.cos(u)

    x = rng.uniform(-3, 3, (500, inputs))
    rows, absolute = ((x, truth(x)), 0.0) if rng.random() < 0.3 else _coarse(rng, x, truth)
    return Case(truth, around(x), samples=rows, absolute=absolute, foreign=True)


def _coarse(rng: Rng, x: Array, truth: Function) -> tuple[tuple[Array, Array], float]:
    """Rows with answers that are rounded, or noisy at inputs that occur twice, and how coarse they are."""
    y = truth(x)
    if rng.random() < 0.6:
        digits = int(rng.integers(1, 4))
        return (x, np.round(y, digits)), 0.5 * 10.0**-digits
    sigma = 10 ** rng.uniform(-4, -1.5) * float(y.std())
    x, y = np.vstack([x, x[::2]]), np.vstack([y, y[::2]])
    return (x, y + sigma * rng.standard_normal(y.shape)), sigma
