"""Tensor initialisation and descent, from the recovery guarantees for one-hidden-layer networks.

Gaussian samples of a bias-free network; moments give v exactly and W nearly, a local method the rest. The
printed third moment vanishes for ReLU, whose fourth takes its place, and leaves the sign of v open, which the
second one tells.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.planted_bias_free import matching, plant
from unweave.experiments.rules import equal, shown, vanishes
from unweave.networks.comparison import compare
from unweave.tensor_start import recover_from_tensors

SETTINGS = (("squared_relu", 10, 5, 10_000), ("relu", 10, 5, 30_000), ("squared_relu", 20, 5, 10_000))
"""Activation, inputs d, units k, samples."""
_MOMENT = {
    "relu": "corrected: from the fourth moment, as ReLU has no third",
    "squared_relu": "corrected: the sign of v from the second moment",
}


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """One network per setting."""
    for activation, inputs, width, samples in SETTINGS:
        cell = f"{activation}, d = {inputs}, k = {width}"
        progress(cell)
        truth = plant(np.random.default_rng([seed, inputs]), inputs, width, activation)
        x = np.random.default_rng([seed, inputs, 1]).standard_normal((samples, inputs))
        found = recover_from_tensors(x, truth(x)[:, 0], width, activation)
        order, errors = matching(truth, found.start.network)
        signs = found.start.network.weights[1][order, 0] == truth.weights[1][:, 0]
        yield equal(f"{cell}: v right", width, int(signs.sum()), _MOMENT[activation])
        yield shown(f"{cell}: relative error of the start, median", "small", float(np.median(errors)))
        error = compare(truth, found.network).parameter_error
        yield vanishes(f"{cell}: parameter error at the end", error, 1e-10)
