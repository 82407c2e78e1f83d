"""Fits to Hermite coefficients repeated until they explain them.

The misfit of a right fit is about one in units of the noise, and of a wrong one clearly above (where it is
not, the samples cannot decide): so a start that ended wrong is noticed without the truth. It is then
repaired: surplus units with random directions and either sign are added, all are fitted together, the
weakest are dropped again, and the rest is fitted once more. In the space of moments one such round costs
milliseconds, whatever the sample size.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unweave.numerics.hermite.polynomials import normal_density
from unweave.numerics.hermite.tensors import HermiteTensors
from unweave.published.relu.moment_fit import MomentFit, fit_moments
from unweave.published.relu.relu_units import ReLUUnits

EXPLAINED = 1.0
"""Misfit at which the coefficients are explained: a fit of m (d + 1) parameters ends somewhat below one."""
_SURPLUS = 0.5  # random units added in a repair, per unit
_SURPLUS_SIZE = 0.3  # output weight of an added unit, relative to the typical one
_BIAS_SPREAD = 0.5


def fit_moments_with_restarts(
    coefficients: HermiteTensors,
    deviations: Mapping[int, float],
    start: ReLUUnits,
    width: int,
    rng: np.random.Generator,
    rounds: int = 8,
) -> MomentFit:
    """The best fit of ``width`` units found from ``start`` (which may have fewer) and at most ``rounds``
    repairs.

    ``deviations`` must not name order 1, which depends on signs that are not known yet.
    """
    missing = max(width - start.width, 0)
    best = fit_moments(coefficients, deviations, _with_random(start, missing, rng))
    for _ in range(rounds):
        if best.misfit <= EXPLAINED:
            break
        surplus = max(int(np.ceil(_SURPLUS * width)), 1)
        crowded = fit_moments(coefficients, deviations, _with_random(best.units, surplus, rng))
        repaired = fit_moments(coefficients, deviations, strongest(crowded.units, width))
        if repaired.misfit < best.misfit:
            best = repaired
    return best


def strongest(units: ReLUUnits, width: int) -> ReLUUnits:
    """The ``width`` units with the largest |a| phi(b): what order 2 sees of them."""
    order = np.argsort(-np.abs(units.outer) * normal_density(units.biases))[:width]
    return ReLUUnits(units.weights[:, order], units.biases[order], units.outer[order], units.offset)


def _with_random(units: ReLUUnits, count: int, rng: np.random.Generator) -> ReLUUnits:
    """The units and ``count`` random ones."""
    if count == 0:
        return units
    directions = rng.standard_normal((units.dimension, count))
    typical = float(np.median(np.abs(units.outer))) if units.width else 1.0
    outer = rng.choice([-1.0, 1.0], count) * _SURPLUS_SIZE * typical
    return ReLUUnits(
        np.concatenate([units.weights, directions / np.linalg.norm(directions, axis=0)], axis=1),
        np.concatenate([units.biases, _BIAS_SPREAD * rng.standard_normal(count)]),
        np.concatenate([units.outer, outer]),
        units.offset,
    )
