"""Functions that are no networks of one kind of unit."""

from __future__ import annotations

import numpy as np

from battery.case import Array, Case, Rng, ordinary
from battery.plain import plant


def formulas(rng: Rng) -> Case:
    """Formulas of physics books and polynomials."""
    inputs, rule = int(rng.integers(2, 5)), int(rng.integers(7))
    a, b = rng.standard_normal((2, inputs)) / np.sqrt(inputs)
    c = rng.uniform(0.5, 2, 3)

    def truth(x: Array) -> Array:
        u, v = x @ a, x @ b
        y = [
            lambda: c[0] * np.sin(u) * v,
            lambda: c[0] * u**3 * v + c[1] * v**2,
            lambda: np.exp(-c[0] * np.abs(u)) + v,
            lambda: np.sqrt(1 + (x**2).sum(axis=1)),
            lambda: np.exp(-c[0] * (x**2).sum(axis=1) / 2),
            lambda: u * v / (1 + c[0] * u**2),
            lambda: np.abs(u) ** 1.5 + c[1] * v,
        ][rule]()
        return y[:, None]

    return Case(truth, ordinary(inputs), foreign=True)


def largest_of_planes(rng: Rng) -> Case:
    """The largest of some affine functions, or the difference of two such: a deep ReLU network perhaps."""
    inputs, planes = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    one, other = rng.standard_normal((2, inputs, planes))
    levels = 0.5 * rng.standard_normal((2, planes))
    difference = float(rng.random() < 0.5)

    def truth(x: Array) -> Array:
        first = (x @ one + levels[0]).max(axis=1, keepdims=True)
        return first - difference * (x @ other + levels[1]).max(axis=1, keepdims=True)

    return Case(truth, ordinary(inputs))


def deeper(rng: Rng) -> Case:
    """Networks with residual connections, normalised layers, or of units read twice."""
    inputs, rule = int(rng.integers(2, 5)), int(rng.integers(3))
    inner = plant(rng, (inputs, 3, inputs), "tanh")
    outer = plant(rng, (inputs, 3, 1), "tanh")

    def truth(x: Array) -> Array:
        if rule == 0:
            return outer(x + inner(x))
        if rule == 1:
            centred = x - x.mean(axis=1, keepdims=True)
            return outer(centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 0.1))
        return outer(inner(x)) + outer(x)

    return Case(truth, ordinary(inputs), foreign=True)
