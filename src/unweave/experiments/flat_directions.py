"""Two activations without local strong convexity, from the recovery guarantees for one-hidden-layer networks.

With W* = I and v = 1: for g(z) = z the weights of two units may move against each other unseen, for
g(z) = z^2 they may rotate. The Hessian then has a zero eigenvalue of known multiplicity, d^2 - d and
d (d - 1) / 2; for squared ReLU and ReLU it has none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg

from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import equal
from unweave.networks.network import Network
from unweave.tensor_start import empirical_hessian

INPUTS, SAMPLES = 6, 20_000
FLAT = {
    "identity": INPUTS**2 - INPUTS,
    "quadratic": INPUTS * (INPUTS - 1) // 2,
    "relu": 0,
    "squared_relu": 0,
}
"""Activation to the multiplicity of the eigenvalue zero."""
_ZERO = 1e-12  # relative to the largest eigenvalue: rounding


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """The Hessian at the truth, on Gaussian samples."""
    progress("Hessians")
    x = np.random.default_rng(seed).standard_normal((SAMPLES, INPUTS))
    for name, flat in FLAT.items():
        weights, biases = [np.eye(INPUTS), np.ones((INPUTS, 1))], [np.zeros(INPUTS), np.zeros(1)]
        network = Network(weights, biases, [name, "identity"])
        values = scipy.linalg.eigvalsh(empirical_hessian(network, x))
        yield equal(f"{name}: flat directions", flat, int((values <= _ZERO * values[-1]).sum()))
