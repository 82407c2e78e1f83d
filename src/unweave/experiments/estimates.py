"""Estimates inside the proofs, as numbers: [mathematics] chapters 3 and 4."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np

from unweave.experiments.experiment import DERIVED, Figure, Progress, at_least, at_most, equal, shown
from unweave.gates import azuma_tail, recursion_steps
from unweave.sparse_coding import (
    SparseModel,
    criticality_hypotheses,
    near_dictionary,
    proxy_gradient,
    spikes_and_waves,
)


def run_gate_recursion(seed: int, progress: Progress) -> Iterator[Figure]:
    """[mathematics] Lemma 3.E.1 and Thm. 3.D.1: steps of a recursion, and the tail of a supermartingale.

    X_{t+1} = (1 - eta b + eta^2 c1) X_t + eta^2 c2 is iterated until it meets e^2; the number of steps is the
    lemma's. Walks of 12 steps of random lengths, fair and falling, are enumerated path by path.
    """
    rng = np.random.default_rng(seed)
    for c2 in (0.0, 0.3, 0.9):
        for target in (0.1, 1e-3):
            cell = f"c2 = {c2:g}, e^2 = {target:g}"
            progress(cell)
            b, start = float(rng.uniform(0.5, 1.5)), float(rng.uniform(1, 5))
            found = recursion_steps(b, 1.0, c2, start, target)
            x, met = start, 1
            # A relative 1e-9 is rounding over so many steps.
            while x > target * (1 + 1e-9) and met < 10 * found.steps:
                x, met = (1 - found.step * b + found.step**2) * x + found.step**2 * c2, met + 1
            yield equal(f"{cell}: steps", math.ceil(found.steps - 1e-6), met)
    lengths = rng.uniform(0.2, 2.0, 12)
    signs = np.array(list(product((-1, 1), repeat=12)))
    ends = signs @ lengths
    for up, name in ((0.5, "fair"), (0.45, "falling")):
        progress(f"{name} walks")
        chances = np.prod(np.where(signs > 0, up, 1 - up), axis=1)
        for excess in (2.0, 6.0):
            cell = f"{name} walk, lambda = {excess:g}: probability"
            tail = azuma_tail(excess, lengths.tolist())
            yield at_most(cell, tail, float(chances[ends >= excess].sum()))
    loose = azuma_tail(6.0, lengths.tolist()) / float(np.mean(ends >= 6.0))
    yield at_most("fair walk, lambda = 6: bound over probability", 20.0, loose, origin=DERIVED)


def run_critical_dictionary(seed: int, progress: Progress) -> Iterator[Figure]:
    """[mathematics] Lemma 4.5.2 and (4.4) to (4.7): the parts of the gradient near a dictionary.

    Spikes and waves with 64 and 256 inputs, 2 of twice as many atoms, values in [8, 10], rows at distance
    h^-0.3 from the atoms, the theorem's bias. Hypotheses by their exponents; alpha, beta and the remainder of
    the exact proxy gradient beside their bounds. At the dictionary itself the gradient's length in units of
    max(m1^2, m2) k/h falls with h.
    """
    lengths = []
    for inputs in (64, 256):
        cell = f"n = {inputs}"
        progress(cell)
        model = SparseModel(spikes_and_waves(inputs), 2, 8.0, 10.0)
        distance = model.n_atoms**-0.3
        encoder = near_dictionary(model.dictionary, distance, np.random.default_rng([seed, inputs])).T
        found = criticality_hypotheses(encoder, model)
        yield equal(f"{cell}: hypotheses that fail", 0, len(found.failing))
        exact = proxy_gradient(encoder, model, found.bias)
        for name, interval, values in (
            ("alpha", found.along_encoder, exact.along_encoder),
            ("beta", found.along_atom, exact.along_atom),
        ):
            yield at_most(f"{cell}: {name}", interval.high, float(values.max()))
            yield at_least(f"{cell}: {name}", interval.low, float(values.min()))
        scale = max(model.mean**2, model.mean_square) * model.sparsity / model.n_atoms
        # Without the means and the bias only the terms with m2 are left: codes of both signs.
        tilde = proxy_gradient(encoder, Centered(model.dictionary, 2, 8.0, 10.0), 0.0)
        rest = float(np.linalg.norm(tilde.remainder, axis=1).max())
        yield at_most(f"{cell}: remainder, terms with m2", found.remainder, rest)
        note = "the theorem says that it vanishes as h grows; at this distance it does not fall yet"
        relative = float(np.linalg.norm(exact.gradient, axis=1).mean()) / scale
        yield shown(f"{cell}: length of the gradient, relative", "o(1)", relative, note)
        there = criticality_hypotheses(model.dictionary.T, model)
        gradient = proxy_gradient(model.dictionary.T, model, there.bias).gradient
        lengths.append(float(np.linalg.norm(gradient, axis=1).mean()) / scale)
    fall = lengths[1] / lengths[0]
    yield at_most("at the dictionary: length at n = 256 over that at n = 64", 0.75, fall, "falls with h")


class Centered(SparseModel):
    """The same squares, and means of zero."""

    @property
    def mean(self) -> float:
        """m1 of values of both signs."""
        return 0.0

    @property
    def mean_square(self) -> float:
        """m2 of the values in [low, high], whatever their signs."""
        return (self.low**2 + self.low * self.high + self.high**2) / 3
