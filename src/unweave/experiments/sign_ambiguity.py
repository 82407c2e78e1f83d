"""Claim 4.8 of the appendix on depth-2 ReLU networks: beyond linear independence, signs can be ambiguous.

relu(-t) = relu(t) - t, so turning the units of a set F around, (w, b) -> (-w, -b), changes the function by
-sum_F a_i (w_i . x + b_i). If these sums vanish, two different networks are one function. Planted: 5 units
on 3 inputs, without biases (outer weights in the null space of W) and with (in that of W and b together).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import null_space

from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import equal, vanishes
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.signs import solve_signs
from unweave.published.relu.relu_units import ReLUUnits

INPUTS, UNITS, POINTS = 3, 5, 10_000
_SAME = 1e-6  # distance of (w, b) up to which two units are one


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """One pair of networks without biases, one with."""
    for biased in (False, True):
        cell = "with biases" if biased else "without biases"
        progress(cell)
        rng = np.random.default_rng([seed, int(biased)])
        weights = rng.standard_normal((INPUTS, UNITS))
        weights /= np.linalg.norm(weights, axis=0)
        biases = rng.uniform(-1, 1, UNITS) if biased else np.zeros(UNITS)
        outer = null_space(np.vstack([weights, biases]))[:, 0]
        one, other = ReLUUnits(weights, biases, outer), ReLUUnits(-weights, -biases, outer)
        x = rng.standard_normal((POINTS, INPUTS))
        yield vanishes(
            f"{cell}: largest difference of answers", float(np.abs(one(x) - other(x)).max()), 1e-14
        )
        a, b = (np.vstack([units.weights, units.biases]).T for units in (one, other))
        near = np.linalg.norm(a[:, None] - b[None], axis=2) < _SAME
        yield equal(f"{cell}: units that both networks have", 0, int(near.sum()))
        # Signs only enter the affine part, which is zero for both.
        form = AbsoluteForm(weights, biases, outer[:, None] / 2, np.zeros((INPUTS, 1)), np.zeros(1))
        yield equal(f"{cell}: signs called unique", False, solve_signs(form).unique)
