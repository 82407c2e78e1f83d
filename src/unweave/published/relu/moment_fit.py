"""Units fitted to estimated Hermite coefficients of several orders at once.

Eigenvectors use two or three orders and weigh none of them by its noise. What the coefficients say about the
units together is the least-squares problem

    min over units of  sum_k | T_k(units) - T_k |_F^2 / sigma_k^2,

sigma_k being the noise of an entry of T_k. Levenberg-Marquardt from the eigenvectors solves it in the space
of moments, where the number of samples no longer enters. Every unit a relu(w . x + b) is written with the d
+ 1 free parameters (|a| w, |a| b), its sign of a being kept. Orders k >= 2 do not see the sign of (w, b);
with order 1 it must be right. The derivatives are those of the closed form: c_k' = c_{k+1} for the
coefficients c_k(b) of a unit (`unweave.published.relu.relu_units.relu_coefficient`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.numerics.hermite.symmetric_tensors import tensor_packing
from unweave.numerics.hermite.tensors import HermiteTensors, normal_density
from unweave.numerics.least_squares import (
    FormedJacobian,
    LevenbergMarquardtOptions,
    Linearisation,
    levenberg_marquardt,
)
from unweave.published.relu.relu_units import ReLUUnits, relu_coefficient

_ADDED_OUTER_WEIGHT = 0.3  # output weight of a random unit over the typical one: small enough to be dropped
_ADDED_BIAS_SPREAD = 0.5  # standard deviation of its bias: kinks among the inputs


@dataclass(frozen=True, eq=False)
class MomentFit:
    """End point of the fit. Misfits are root mean squares in units of the noise: about one if the units
    explain the coefficients."""

    units: ReLUUnits
    misfit_before: float
    misfit: float


def fit_moments(
    coefficients: HermiteTensors, deviations: Mapping[int, float], units: ReLUUnits, steps: int = 40
) -> MomentFit:
    """Fit units to the orders that ``deviations`` names, sigma_k by k >= 1; the offset is kept.

    Cost per step: a factorization of a matrix with one row per packed coefficient and m (d + 1) columns.
    """
    if not deviations or min(deviations) < 1 or min(deviations.values()) <= 0:
        raise InvalidInput(
            f"deviations must be positive, by orders from 1 on. Got {dict(deviations)} instead. "
            f"Take EstimatedCoefficients.deviations()."
        )
    problem = MomentProblem(coefficients, deviations, units)
    fit = levenberg_marquardt(problem, problem.vector(units), LevenbergMarquardtOptions(steps=steps))
    return MomentFit(problem.units(fit.vector), fit.history[0], fit.rms)


def fit_moments_with_restarts(
    coefficients: HermiteTensors,
    deviations: Mapping[int, float],
    start: ReLUUnits,
    width: int,
    rng: np.random.Generator,
    rounds: int = 8,
    explained: float = 1.0,
    surplus: float = 0.5,
) -> MomentFit:
    """Best fit of ``width`` units from ``start``, which may have fewer, and at most ``rounds`` repairs.

    The misfit of a right fit is about one in units of the noise, and that of a wrong one clearly above (where
    it is not, the samples cannot decide): a start that ended wrong shows without the truth. A repair adds
    ``surplus`` random units per unit, fits all, drops the weakest and fits the rest once more. In the space
    of moments a round costs milliseconds, whatever the sample size. Repairs end at a misfit of ``explained``:
    a fit of m (d + 1) parameters ends somewhat below one.

    ``deviations`` must not name order 1, which depends on signs that are not known yet.
    """
    missing = max(width - start.width, 0)
    best = fit_moments(coefficients, deviations, _with_random(start, missing, rng))
    for _ in range(rounds):
        if best.misfit <= explained:
            break
        added = max(int(np.ceil(surplus * width)), 1)
        crowded = fit_moments(coefficients, deviations, _with_random(best.units, added, rng))
        repaired = fit_moments(coefficients, deviations, strongest(crowded.units, width))
        if repaired.misfit < best.misfit:
            best = repaired
    return best


def strongest(units: ReLUUnits, width: int) -> ReLUUnits:
    """The ``width`` units with the largest |a| phi(b): what order 2 sees of them."""
    order = np.argsort(-np.abs(units.outer) * normal_density(units.biases))[:width]
    return ReLUUnits(units.weights[:, order], units.biases[order], units.outer[order], units.offset)


def fit_entries(dimension: int, width: int, order: int) -> int:
    """Entries of the Jacobian of a fit of orders 2 .. order."""
    rows = sum(tensor_packing(dimension, k).size for k in range(2, order + 1))
    return rows * width * (dimension + 1)


class MomentProblem:
    """The least-squares problem in the parameters (|a| w, |a| b) of all units."""

    def __init__(
        self, coefficients: HermiteTensors, deviations: Mapping[int, float], units: ReLUUnits
    ) -> None:
        self._deviations = dict(deviations)
        self._data = np.concatenate([coefficients.isometric(k) / s for k, s in deviations.items()])
        self._signs = np.where(units.outer >= 0, 1.0, -1.0)
        self._offset = units.offset
        self._dimension = units.dimension

    @property
    def n_equations(self) -> int:
        """Packed coefficients of all orders."""
        return len(self._data)

    def vector(self, units: ReLUUnits) -> Array:
        """(m (d + 1),) parameters of the units, unit by unit."""
        size = np.abs(units.outer)
        return np.concatenate([units.weights * size, (units.biases * size)[None]]).T.reshape(-1)

    def units(self, vector: Array) -> ReLUUnits:
        """The units with these parameters."""
        rows = vector.reshape(-1, self._dimension + 1)
        size = np.maximum(np.linalg.norm(rows[:, :-1], axis=1), np.finfo(np.float64).tiny)
        return ReLUUnits(
            (rows[:, :-1] / size[:, None]).T, rows[:, -1] / size, size * self._signs, self._offset
        )

    def residual(self, vector: Array) -> Array:
        """Data less model, in units of the noise."""
        units = self.units(vector)
        model = []
        for k, sigma in self._deviations.items():
            packing = tensor_packing(self._dimension, k)
            terms = packing.powers(units.weights) @ (units.outer * relu_coefficient(k, units.biases))
            model.append(terms * packing.scale / sigma)
        return self._data - np.concatenate(model)

    def linearise(self, vector: Array) -> Linearisation:
        """The Jacobian of the model, formed."""
        units = self.units(vector)
        weights, biases = units.weights, units.biases
        blocks = []
        for k, sigma in self._deviations.items():
            packing = tensor_packing(self._dimension, k)
            scale = packing.scale[:, None] / sigma
            powers = packing.powers(weights) * scale
            # With |a| = |v|, w = v / |v|, b = beta / |v|:  d|a| = w . dv,  |v| dw = (I - w w^T) dv,
            # |v| db = dbeta - b w . dv. Each power is homogeneous: (d/dw w^{(x) k}) w = k w^{(x) k}.
            value, slope = relu_coefficient(k, biases), relu_coefficient(k + 1, biases)
            along = self._signs * powers * ((1 - k) * value - biases * slope)
            gradient = power_gradients(k, weights) * scale[:, :, None]
            by_weights = gradient * (self._signs * value)[:, None] + along[:, :, None] * weights.T
            by_bias = powers * (self._signs * slope)
            block = np.concatenate([by_weights, by_bias[:, :, None]], axis=2)
            blocks.append(block.reshape(len(block), -1))
        return FormedJacobian(np.concatenate(blocks))


def power_gradients(order: int, weights: Array) -> Array:
    """(p, m, d): derivatives of the packed entries of w^{(x) k} by w, for columns w of ``weights`` (d, m)."""
    dimension, width = weights.shape
    packing = tensor_packing(dimension, order)
    result = np.zeros((packing.size, width, dimension))
    entries = np.arange(packing.size)
    for t in range(order):
        others = np.ones((packing.size, width))
        for s in range(order):
            if s != t:
                others *= weights[packing.indices[:, s]]
        result[entries, :, packing.indices[:, t]] += others
    return result


def _with_random(units: ReLUUnits, count: int, rng: np.random.Generator) -> ReLUUnits:
    """The units and ``count`` random ones."""
    if count == 0:
        return units
    directions = rng.standard_normal((units.dimension, count))
    typical = float(np.median(np.abs(units.outer))) if units.width else 1.0
    outer = rng.choice([-1.0, 1.0], count) * _ADDED_OUTER_WEIGHT * typical
    return ReLUUnits(
        np.concatenate([units.weights, directions / np.linalg.norm(directions, axis=0)], axis=1),
        np.concatenate([units.biases, _ADDED_BIAS_SPREAD * rng.standard_normal(count)]),
        np.concatenate([units.outer, outer]),
        units.offset,
    )
