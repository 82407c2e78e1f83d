"""Theorems 5.4.1 and 5.4.3 of the mathematics of deep learning: steps for RMSProp and ADAM.

f(x) = sum x_i^2/(1 + x_i^2) in 10 variables, L = 2. With the published steps f never rises and a gradient of
norm eps is met within T steps. The T of ADAM is corrected: the printed 9 L sigma^2 Delta/eps^6 has lost a
square.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from unweave.arrays import Array
from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import at_most
from unweave.optimize.first_order import State, descend
from unweave.optimize.first_order_steps import CertifiedStep, StepKind, certified_step

DIMENSION, SMOOTHNESS = 10, 2.0
LARGEST_GRADIENT = math.sqrt(DIMENSION) * 3 * math.sqrt(3) / 8
MOST = 60_000
SETTINGS: tuple[tuple[StepKind, float, float | None], ...] = (
    ("rmsprop", 0.01, 1.0),
    ("rmsprop", 0.01, 0.1),
    ("adam", 0.3, None),
)
"""Method, eps, xi."""
_ADAM = "corrected: T = (9/2) L (eps + 2 sigma)^4 Delta/eps^6"


def value(x: Array) -> float:
    """f"""
    return float(np.sum(x**2 / (1 + x**2)))


def slope(x: Array) -> Array:
    """grad f"""
    return np.asarray(2 * x / (1 + x**2) ** 2)


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """One Gaussian start."""
    start = np.random.default_rng(seed).standard_normal(DIMENSION)
    for kind, accuracy, shift in SETTINGS:
        cell = f"{kind}, eps = {accuracy:g}" + ("" if shift is None else f", xi = {shift:g}")
        progress(cell)
        step = certified_step(
            kind, SMOOTHNESS, LARGEST_GRADIENT, value(start), accuracy, shift=shift, sharper=False
        )
        reached, rise = descent(start, step, accuracy)
        note = _ADAM if kind == "adam" else ""
        yield at_most(f"{cell}: steps", round(step.steps), reached, note=note)
        rule = "f never rises, up to rounding"
        yield at_most(f"{cell}: largest rise of f", 1e-15, rise, rule, published="none")


def descent(start: Array, step: CertifiedStep, accuracy: float) -> tuple[float, float]:
    """Steps until |grad f| <= accuracy, infinite if too many, and the largest rise of f in one of them."""
    values: list[float] = []

    def on_step(state: State, _: float) -> None:
        values.append(value(state.x))

    found = descend(slope, start, step.method(), MOST, accuracy, on_step)
    return math.inf if found.reached is None else found.reached, float(np.diff(values).max())
