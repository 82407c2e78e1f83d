"""Targets whose answer to a row depends on more than the row."""

from __future__ import annotations

import numpy as np

from battery.case import Array, Case, Rng, ordinary
from battery.plain import pick, plant, shape

KINDS = ("tanh", "gelu", "relu", "softplus")


class Counter:
    """How many rows came before."""

    def __init__(self) -> None:
        self.rows = 0

    def before(self, x: Array) -> int:
        """Count the rows, and return the number before them."""
        before, self.rows = self.rows, self.rows + len(x)
        return before


def drifting(rng: Rng) -> Case:
    """The answers move with the rows asked: slowly, all at once, or to and fro."""
    kind, (inputs, units, outputs) = pick(rng, KINDS), shape(rng, units=3, outputs=2)
    network, other = (plant(rng, (inputs, units, outputs), kind) for _ in range(2))
    size, rule, counter = 10 ** rng.uniform(-5, -1), int(rng.integers(4)), Counter()
    swap = int(10 ** rng.uniform(1.5, 3.5))

    def answer(x: Array) -> Array:
        before = counter.before(x)
        if rule == 0:
            return network(x) + size * before / 1000
        if rule == 1:  # a new version is put in place
            return network(x) if before < swap else other(x)
        if rule == 2:  # the same, nearly equal
            return network(x) + (size * other(x) if before >= swap else 0)
        return network(x) + size * np.sin(before / swap)

    return Case(network, ordinary(inputs), answer, changes=True)


def stateful(rng: Rng) -> Case:
    """The target remembers: repeats, neighbours in the batch, or how much was asked."""
    kind, (inputs, units, outputs) = pick(rng, KINDS), shape(rng, units=3, outputs=2)
    network = plant(rng, (inputs, units, outputs), kind)
    size, rule, counter = 10 ** rng.uniform(-4, 0), int(rng.integers(3)), Counter()
    seen: set[bytes] = set()

    def answer(x: Array) -> Array:
        before, y = counter.before(x), network(x)
        if rule == 0:  # a row that comes again is answered otherwise
            words = [row.tobytes() for row in x]
            again = np.array([word in seen for word in words])
            seen.update(words)
            return y + size * again[:, None]
        if rule == 1:  # as a normalisation by the batch does
            return y + size * (x.mean() if len(x) > 1 else 0.0)
        return np.where(before > 3000, 0.0, y)  # the account is blocked

    return Case(network, ordinary(inputs), answer, changes=True)
