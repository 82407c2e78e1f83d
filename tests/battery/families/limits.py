"""Networks with rules before or behind them: clips, missing values, dead zones, wrapped inputs."""

from __future__ import annotations

import numpy as np

from battery.case import Array, Case, Rng, ordinary
from battery.plain import Plain, pick, plant, shape

KINDS = ("tanh", "gelu", "relu", "softplus", "sine")


def _network(rng: Rng, outputs: int = 2) -> tuple[int, Plain]:
    inputs, units, outputs = shape(rng, units=4, outputs=outputs)
    return inputs, plant(rng, (inputs, units, outputs), pick(rng, KINDS))


def clipped_outputs(rng: Rng) -> Case:
    """Answers are cut at a quantile between 0.1 and 20 %, on one side or both."""
    inputs, network = _network(rng)
    answers = network(rng.standard_normal((20_000, inputs)))
    share = 10 ** rng.uniform(-3, np.log10(0.2))
    low, high = np.quantile(answers, [share, 1 - share], axis=0)
    side = int(rng.integers(3))
    low, high = (low if side != 1 else -np.inf), (high if side != 2 else np.inf)
    return Case(lambda x: np.clip(network(x), low, high), ordinary(inputs))


def clipped_inputs(rng: Rng) -> Case:
    """Inputs are cut at 1.5 to 4 standard deviations."""
    inputs, network = _network(rng)
    reach = rng.uniform(1.5, 4)
    return Case(lambda x: network(np.clip(x, -reach, reach)), ordinary(inputs))


def missing_values(rng: Rng) -> Case:
    """Inputs beyond a limit count as missing and are replaced."""
    inputs, network = _network(rng)
    limit, instead, rule = rng.uniform(1.5, 4), rng.uniform(-1, 1), int(rng.integers(4))

    def truth(x: Array) -> Array:
        if rule == 0:
            x = np.where(x < -limit, instead, x)
        elif rule == 1:
            x = np.where(np.abs(x) > limit, instead, x)
        elif rule == 2:  # only the first input is watched
            x = np.column_stack([np.where(x[:, 0] > limit / 1.5, instead, x[:, 0]), x[:, 1:]])
        else:  # a row with a missing value gets a default answer
            return np.where((np.abs(x) > limit).any(axis=1, keepdims=True), instead, network(x))
        return network(x)

    return Case(truth, ordinary(inputs))


def flat_regions(rng: Rng) -> Case:
    """Constant on one side of a plane, or inside a ball."""
    inputs, network = _network(rng, outputs=1)
    normal = rng.standard_normal(inputs)
    normal /= np.linalg.norm(normal)
    offset, level, rule = rng.uniform(0, 2.5), rng.uniform(-1, 1), int(rng.integers(3))

    def truth(x: Array) -> Array:
        side = (x @ normal - offset)[:, None]
        if rule == 0:  # a jump
            return np.where(side > 0, level, network(x))
        if rule == 1:  # continuous: the answer at the nearest point of the plane
            return network(x - np.maximum(side, 0) * normal)
        return np.where((x**2).sum(axis=1, keepdims=True) < (offset / 2 + 0.2) ** 2, level, network(x))

    return Case(truth, ordinary(inputs))


def saturating_posts(rng: Rng) -> Case:
    """An output function that saturates, or is cut as well."""
    inputs, network = _network(rng)
    rule, cut = int(rng.integers(4)), 10 ** rng.uniform(-3, -1)

    def truth(x: Array) -> Array:
        y = network(x)
        if rule == 0:
            return np.tanh(y)
        if rule == 1:
            return np.clip(1 / (1 + np.exp(-y)), cut, 1 - cut)
        if rule == 2:
            return np.log1p(np.abs(y)) * np.sign(y)
        return np.maximum(np.tanh(y), -1 + cut * 5)

    return Case(truth, ordinary(inputs))


def input_rules(rng: Rng) -> Case:
    """Inputs are rounded, wrapped, or read modulo one first."""
    inputs, network = _network(rng)
    rule, period = int(rng.integers(4)), rng.uniform(2, 6)
    digits = int(rng.integers(1, 5))
    if rule == 0:  # which leaves the network as well known as rounding leaves its answers
        steepness = float(np.abs(network.weights[0]).sum(axis=0) @ np.abs(network.weights[1]).max(axis=1))
        unit, hidden = 0.5 * 10.0**-digits, (len(network.biases[0]),)
        region = ordinary(inputs)
        return Case(
            network, region, lambda x: network(np.round(x, digits)), absolute=unit * steepness, hidden=hidden
        )

    def truth(x: Array) -> Array:
        if rule == 1:
            x = (x + period) % (2 * period) - period
        elif rule == 2:
            x = np.column_stack([x[:, 0] % 1.0, x[:, 1:]])
        else:
            x = np.column_stack([np.floor(x[:, 0]), x[:, 1:]])
        return network(x)

    return Case(truth, ordinary(inputs))


def not_a_number(rng: Rng) -> Case:
    """No number on part of the inputs, or for answers below a level."""
    inputs, network = _network(rng)
    limit, rule = rng.uniform(0, 3.5), int(rng.integers(3))

    def truth(x: Array) -> Array:
        y = network(x)
        if rule == 0:
            return np.where(x[:, :1] > limit, np.nan, y)
        if rule == 1:
            return np.log(y + limit)
        return np.where((np.abs(x) > limit + 2).any(axis=1, keepdims=True), np.inf, y)

    return Case(truth, ordinary(inputs))
