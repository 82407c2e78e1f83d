"""Figures 3.3 and 3.4 of the dissertation: Algorithms 3.1 to 3.3 to the letter, with the printed constants.

Second differences of step 1e-2, ceil(log(D) m) Hessians, power iterations of step 2, signs and shifts by
Algorithm 3.3; the gradient descent that follows is left out, which only makes the figures larger. The axis
of Figure 3.4 ends at 1e-1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import at_most, equal, shown
from unweave.networks.random import random_network
from unweave.published.shallow import PublishedOptions, recover_published

SETTINGS = ((20, 100), (20, 160))
"""Inputs and units; the second is the widest published, m = 2/5 D^2."""
SHIFTS = 0.5
LARGEST_TICK = 1e-1
TEST_POINTS = 20_000


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """One network per setting."""
    for inputs, width in SETTINGS:
        cell = f"D = {inputs}, m = {width}"
        progress(cell)
        truth = random_network([inputs, width, 1], seed=seed, outer="ones", bias=SHIFTS)
        options = PublishedOptions(refinement="none")
        found = recover_published(truth, inputs, width, "tanh", seed + 1, options)
        overlap = truth.weights[0].T @ found.weights
        order = np.argmax(np.abs(overlap), axis=1)
        # Signed: a weight whose sign were wrong would be at distance two.
        signs = int((overlap[np.arange(width), order] > 0).sum()) if len(set(order)) == width else 0
        weights = np.linalg.norm(truth.weights[0] - found.weights[:, order], axis=0).max()
        shifts = np.linalg.norm(truth.biases[0] - found.shifts[order])
        x = np.random.default_rng([seed, inputs, width]).standard_normal((TEST_POINTS, inputs))
        uniform = np.abs(truth(x) - found.network(x)).max()
        rule = "not above the largest tick of the published figure, 1e-1"
        yield equal(f"{cell}: weights found, with the right sign", width, signs)
        yield at_most(f"{cell}: worst weight error", LARGEST_TICK, float(weights), rule)
        yield at_most(f"{cell}: error of all shifts, l2", LARGEST_TICK, float(shifts), rule)
        yield at_most(f"{cell}: uniform error", LARGEST_TICK, float(uniform), rule)
        yield shown(f"{cell}: seconds", "-", round(sum(found.seconds.values()), 2))
