"""Theorem 6.2.1 of the mathematics of deep learning: noise that a network's parameters bear.

With Gaussian noise of the theorem's deviation on all weights the answers move by more than the margin with
probability at most 1/2. The proof takes all layers to have one spectral norm "without loss of generality";
the noise does not rescale with the layers, so that for layers scaled by 100 and 1/100 the form that this
library proves is checked instead.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unweave.certify import draw_noise, noise_resilience_sigma
from unweave.certify.perturbation import Form
from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import at_most
from unweave.networks.network import Network

UNITS, MARGIN, FAILURE, DRAWS, POINTS = 30, 0.5, 0.5, 100, 500
CASES: tuple[tuple[Form, float], ...] = (
    ("published", 1.0),
    ("closed", 1.0),
    ("closed", 100.0),
    ("recursion", 1.0),
    ("recursion", 100.0),
)
"""Form of the deviation, and c: layers are scaled by c and 1/c."""
NAMES = {"published": "printed form", "closed": "form per layer", "recursion": "recursion"}


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """Two layers of 30 units, inputs of norm one."""
    for form, factor in CASES:
        cell = f"{NAMES[form]}, layers scaled by {factor:g} and {1 / factor:g}"
        progress(cell)
        rng = np.random.default_rng(seed)
        first, second = rng.standard_normal((2, UNITS, UNITS))
        weights = [factor * first / np.linalg.norm(first, 2), second / np.linalg.norm(second, 2) / factor]
        net = Network(weights, [np.zeros(UNITS)] * 2, ["relu", "identity"])
        x = rng.standard_normal((POINTS, UNITS))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        sigma = noise_resilience_sigma(net, 1.0, MARGIN, FAILURE, form)
        answers = net(x)
        moved = [np.linalg.norm(draw_noise(net, sigma, rng)(x) - answers, axis=1).max() for _ in range(DRAWS)]
        exceeded = float(np.mean(np.array(moved) > MARGIN))
        note = "" if form == "published" else "corrected: holds for layers of any norms"
        yield at_most(f"{cell}: draws beyond the margin", FAILURE, exceeded, note=note)
