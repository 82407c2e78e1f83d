"""A ReLU gate from poisoned labels, beside the mathematics of deep learning (chapter 3).

The source proves its adversarial result for GLM-Tron and leaves that for streams to later papers; the bound
is this library's: with labels off by at most theta and updates where y > theta, errors end below theta
kappa/lambda. Three attacks, one of which sees the current weights. Updates wherever y > 0, the clean rule, go
wrong by a constant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import get_args

import numpy as np

from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import at_least, at_most
from unweave.gates import Attack, error_floor, gate_constants, gate_update, poison

INPUTS, STREAMS, ROWS, MOMENT_ROWS = 10, 100, 3000, 100_000
THETAS = (0.05, 0.2)
_OURS = "the floor theta kappa/lambda is this library's; the source has no poisoned streams"


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """Root mean square error over the last eighth of the streams."""
    for theta in THETAS:
        rng = np.random.default_rng([seed, int(100 * theta)])
        truth = rng.standard_normal(INPUTS)
        truth /= np.linalg.norm(truth)
        sample = rng.standard_normal((MOMENT_ROWS, INPUTS))
        constants = gate_constants(sample, np.maximum(sample @ truth, 0), theta, truth)
        floor, step = error_floor(constants), constants.robust_step
        open_gate = math.inf
        for attack in get_args(Attack):
            progress(f"theta = {theta:g}, {attack}")
            gated = ungated = np.zeros((STREAMS, INPUTS))
            late, loose = [], []
            for now in range(ROWS):
                x = rng.standard_normal((STREAMS, INPUTS))
                clean = np.maximum(x @ truth, 0)
                gated = gate_update(
                    gated, x, clean + poison(attack, theta, x, gated, truth, rng), step, theta
                )
                ungated = gate_update(ungated, x, clean + poison(attack, theta, x, ungated, truth, rng), step)
                if now >= 7 * ROWS // 8:
                    late.append(np.mean(np.sum((gated - truth) ** 2, axis=1)))
                    loose.append(np.mean(np.sum((ungated - truth) ** 2, axis=1)))
            error = math.sqrt(np.mean(late))
            open_gate = min(open_gate, math.sqrt(np.mean(loose)))
            yield at_most(f"theta = {theta:g}, {attack} attack: error", floor, error, note=_OURS)
        rule = "above the floor: the clean rule does not do"
        yield at_least(f"theta = {theta:g}, updates at y > 0: least error", floor, open_gate, rule)
