"""Theorem 3.5 of the dissertation: Hessians at Gaussian points show every neuron, alpha > 0.

alpha, the m-th eigenvalue of E[vec H vec H^T], is at least lambda_min(G_2) lambda_min(E_2), the product of
how independent the squared weights are and how much the units curve. Sampled, sigma_m^2 / N of N Hessians
approaches it from below.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unweave.derivatives import network_hessians
from unweave.diagnose import expected_learnability, learnability_estimate
from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import at_least
from unweave.networks.activations import get_activation
from unweave.networks.random import random_network
from unweave.subspace import hessian_span, symmetric_packing

SETTINGS = ((20, 100), (20, 160))
SHIFTS = 0.5
HESSIANS_PER_UNIT = 30


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """One network per setting."""
    for inputs, width in SETTINGS:
        cell = f"D = {inputs}, m = {width}"
        progress(cell)
        truth = random_network([inputs, width, 1], seed=seed, outer="ones", bias=SHIFTS)
        expected = expected_learnability(truth.weights[0], truth.biases[0], get_activation("tanh"))
        count = HESSIANS_PER_UNIT * width
        points = np.random.default_rng([seed, width]).standard_normal((count, inputs))
        packed = symmetric_packing(inputs).pack(network_hessians(truth, points)[:, 0])
        sampled, gap = learnability_estimate(hessian_span(packed).singular_values, width, count)
        bound = expected.alpha_lower_bound
        yield at_least(f"{cell}: alpha, exact", bound, expected.alpha)
        yield at_least(f"{cell}: alpha, from {count:,} Hessians", bound, sampled)
        yield at_least(
            f"{cell}: sigma_m / sigma_m+1", 1e6, gap, "a gap of 1e6 and above: m directions, no more"
        )
