"""Networks whose answers are coarse: float32 and halves, rounding rules, noise of many kinds, scales."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from battery.case import Array, Case, Rng, ordinary
from battery.plain import FOREIGN, NAMED, Plain, pick, plant, shape

SINGLE, HALF, BRAIN = 2.0**-24, 2.0**-11, 2.0**-9
"""Largest relative errors of rounding to float32, float16 and bfloat16."""
KINDS = ("tanh", "gelu", "relu", "softplus", "erf")


def _network(rng: Rng, units: int = 4) -> tuple[str, Plain, int]:
    kind, (inputs, units, outputs) = pick(rng, KINDS), shape(rng, units=units, outputs=2)
    return kind, plant(rng, (inputs, units, outputs), kind), inputs


def _spread(network: Plain, inputs: int, rng: Rng) -> float:
    return float(network(rng.standard_normal((2000, inputs))).std())


def to_bfloat16(y: Array) -> Array:
    """Round to the nearest number of 8 significant bits, ties to even, with the range of float32."""
    bits = y.astype(np.float32).view(np.uint32)
    kept = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return kept.view(np.float32).astype(np.float64)


def to_significant(y: Array, digits: int) -> Array:
    """Round to so many significant decimal digits."""
    size = np.floor(np.log10(np.maximum(np.abs(y), 1e-300)))
    unit = 10.0 ** (size - digits + 1)
    return np.round(y / unit) * unit


def single(rng: Rng) -> Case:
    """Computed in float32."""
    kind, network, inputs = _network(rng)
    return Case(
        network,
        ordinary(inputs),
        network.in_single_precision,
        relative=4 * SINGLE,
        hidden=(len(network.biases[0]),),
        kind=kind,
        must_recover=True,
    )


def halves(rng: Rng) -> Case:
    """Answers are rounded to float16 or bfloat16."""
    kind, network, inputs = _network(rng)
    brain, dtype = rng.random() < 0.5, np.float64 if rng.random() < 0.5 else np.float16

    def answer(x: Array) -> Array:
        y = network(x)
        return to_bfloat16(y) if brain else y.astype(np.float16).astype(dtype)

    relative = BRAIN if brain else HALF
    return Case(
        network, ordinary(inputs), answer, relative=relative, hidden=(len(network.biases[0]),), kind=kind
    )


def decimals(rng: Rng) -> Case:
    """Answers are published with 2 to 6 decimals, rounded to nearest."""
    kind, network, inputs = _network(rng, units=3)
    digits = int(rng.integers(2, 7))
    return Case(
        network,
        ordinary(inputs),
        lambda x: np.round(network(x), digits),
        absolute=0.5 * 10.0**-digits,
        hidden=(len(network.biases[0]),),
        kind=kind,
        must_recover=kind in ("tanh", "relu"),
    )


def rounding_rules(rng: Rng) -> Case:
    """Answers are cut by another rule than rounding to nearest, or kept to significant digits."""
    _, network, inputs = _network(rng, units=3)
    digits = int(rng.integers(2, 5))
    unit = 10.0**-digits
    rules: dict[str, Callable[[Array], Array]] = {
        "floor": np.floor,
        "ceil": np.ceil,
        "trunc": np.trunc,
        "half up": lambda y: np.floor(y + 0.5),
        "integer": lambda y: np.round(y * unit) / unit,
    }
    rule = pick(rng, [*rules, "significant"])
    if rule == "significant":
        return Case(
            network, ordinary(inputs), lambda x: to_significant(network(x), digits), relative=5 * unit
        )
    cut = rules[rule]
    digit = {"integer": 1.0}.get(rule, unit)
    return Case(
        network,
        ordinary(inputs),
        lambda x: cut(network(x) / unit) * unit,
        absolute=digit,
        hidden=(len(network.biases[0]),) if digit < 1 else None,
        digit=digit if rule in ("floor", "ceil", "trunc") else 0.0,
        rule=rule,
    )


def noise(rng: Rng) -> Case:
    """Gaussian noise of 1e-6 to 1e-3 of the answers."""
    kind, network, inputs = _network(rng, units=3)
    sigma, source = 10 ** rng.uniform(-6, -3) * _spread(network, inputs, rng), _stream(rng)
    return Case(
        network,
        ordinary(inputs),
        lambda x: network(x) + sigma * source.standard_normal((len(x), network.weights[-1].shape[1])),
        absolute=sigma,
        hidden=(len(network.biases[0]),),
        kind=kind,
        must_recover=True,
    )


def uneven_noise(rng: Rng) -> Case:
    """Noise that grows with the answer, the input or the calls, or has heavy tails."""
    kind, network, inputs = _network(rng, units=3)
    sigma, source = 10 ** rng.uniform(-5, -2) * _spread(network, inputs, rng), _stream(rng)
    rule, asked = int(rng.integers(4)), [0]

    def answer(x: Array) -> Array:
        y = network(x)
        asked[0] += len(x)
        z = source.standard_normal(y.shape)
        if rule == 0:
            return y * (1 + sigma * z)
        if rule == 1:
            return y + sigma * z * (1 + (x**2).sum(axis=1, keepdims=True))
        if rule == 2:
            return y + sigma * z * (1 if asked[0] < 800 else 30)
        return y + sigma * source.standard_t(2, y.shape)

    coarse = sigma * {0: 1.0, 1: 1.0 + inputs, 2: 30.0, 3: 5.0}[rule]
    return Case(
        network, ordinary(inputs), answer, absolute=coarse, hidden=(len(network.biases[0]),), kind=kind
    )


def coarse_foreign(rng: Rng) -> Case:
    """Units that the package does not know, behind noise, decimals or float32."""
    inputs, units, _ = shape(rng, units=2, outputs=1)
    kind = pick(rng, ["mish", "softsign", "gelu_tanh", "elu"])
    network = plant(rng, (inputs, units, 1), FOREIGN[kind])
    sigma, source = 10 ** rng.uniform(-4, -2) * _spread(network, inputs, rng), _stream(rng)
    rule, digits = int(rng.integers(3)), int(rng.integers(2, 5))

    def answer(x: Array) -> Array:
        y = network(x)
        if rule == 0:
            return y + sigma * source.standard_normal(y.shape)
        return np.round(y, digits) if rule == 1 else y.astype(np.float32)

    absolute = [sigma, 0.5 * 10.0**-digits, 0.0][rule]
    relative = SINGLE if rule == 2 else 0.0
    # The two formulas of gelu differ by less than most of this noise: only the function must be right, as it
    # must of kinds that the package has come to know.
    foreign = kind != "gelu_tanh" and kind not in NAMED
    return Case(network, ordinary(inputs), answer, absolute=absolute, relative=relative, foreign=foreign)


def scales(rng: Rng) -> Case:
    """Answers of about 1e-310, 1e-160, 1e-30, 1e30 or 1e150."""
    kind, network, inputs = _network(rng, units=3)
    scale = float(rng.choice([1e-310, 1e-160, 1e-30, 1e30, 1e150]))
    smallest = 5e-324  # the unit of denormal numbers
    return Case(
        lambda x: network(x) * scale,
        ordinary(inputs),
        absolute=smallest if scale < 1e-300 else 0.0,
        hidden=(len(network.biases[0]),),
        kind=kind,
        must_recover=scale > 1e-200,
    )


def _stream(rng: Rng) -> Rng:
    """Noise of its own, so that what is asked does not depend on it."""
    return np.random.default_rng(int(rng.integers(2**32)))
