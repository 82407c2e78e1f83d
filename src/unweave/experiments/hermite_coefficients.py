"""Lemma 3.5 and its neighbours in the appendix on depth-2 ReLU networks: Hermite coefficients of a unit.

The closed form of E[relu(z + b) He_k(z)] against quadrature; the risk identity (Proposition B.1) against the
closed second moment of a unit; the loss of calling a unit affine (Lemma D.13); and how well the roots of
neighbouring He_k are separated (Lemma 4.3, corrected).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr

from unweave.arrays import Array
from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import printed, vanishes
from unweave.numerics.hermite.polynomials import hermite_polynomial, normal_density
from unweave.published.relu.hermite_coefficients import (
    affine_surrogate_risk,
    gaussian_risk,
    relu_coefficient,
)
from unweave.published.relu.relu_units import ReLUUnits

ORDERS = 9
BIASES = (-2.0, -1.0, -0.3, 0.0, 0.7, 1.0, 2.0)
RANDOM_BIASES = 5
SERIES = 4_000
SEPARATIONS = ("1", "0.618", "0.903", "1.428", "2.784", "5.985")
"""Least max(|He_k|, |He_k+1|) for k = 0, 1, ..: the corrected constants."""
_REACH, _NODES = 14.0, 120  # exp(-z^2/2) is 3e-43 there; exact for polynomials times the density on a panel
_CORRECTED = "corrected: the printed lower bound sqrt(k!/2) is above this minimum for k >= 1"


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """Fixed biases and a few random ones; the constants do not depend on the seed."""
    progress("quadrature")
    rng = np.random.default_rng(seed)
    biases = np.array([*BIASES, *rng.uniform(-2, 2, RANDOM_BIASES)])
    for order in range(ORDERS):
        exact = [coefficient(order, bias) for bias in biases]
        error = np.abs(relu_coefficient(order, biases) - np.array(exact)).max()
        yield vanishes(f"coefficient of order {order}: closed form - quadrature", float(error), 1e-12)
    losses = [loss_of_affine(bias) for bias in biases]
    error = np.abs(affine_surrogate_risk(biases) - np.array(losses)).max()
    yield vanishes("loss of calling a unit affine: closed form - quadrature", float(error), 1e-12)
    progress("risk identity")
    moments = (1 + biases**2) * ndtr(biases) + biases * normal_density(biases)
    risks = [gaussian_risk(one_unit(b, 1.0), one_unit(b, 0.0), orders=SERIES) for b in biases]
    error = np.abs(np.array(risks) - moments).max()
    yield vanishes(
        "sum of |T_k|^2/k! - second moment",
        float(error),
        1e-6,
        f"the first {SERIES:,} orders; the rest falls like their number to the -3/2",
    )
    grid = np.linspace(0, 8, 800_001)
    for order, value in enumerate(SEPARATIONS):
        pair = [np.abs(hermite_polynomial(k, grid)) for k in (order, order + 1)]
        least = float(np.maximum(*pair).min())
        yield printed(f"least max(|He_{order}|, |He_{order + 1}|)", value, least, _CORRECTED if order else "")


def coefficient(order: int, bias: float) -> float:
    """E[relu(z + b) He_k(z)] by quadrature."""
    return mean(lambda z: np.maximum(z + bias, 0) * hermite_polynomial(order, z), -bias)


def loss_of_affine(bias: float) -> float:
    """E(relu(z + b) - s)^2 by quadrature, s = z + b for b > 0 and s = 0 else."""
    slope = 1.0 if bias > 0 else 0.0
    return mean(lambda z: (np.maximum(z + bias, 0) - slope * (z + bias)) ** 2, -bias)


def one_unit(bias: float, outer: float) -> ReLUUnits:
    """A single unit on one input."""
    return ReLUUnits(np.ones((1, 1)), np.array([bias]), np.array([outer]))


def mean(function: Callable[[Array], Array], kink: float) -> float:
    """E function(z) for standard normal z, by Gauss-Legendre between whole numbers and ``kink``."""
    edges = np.unique(np.clip([kink, *np.arange(-_REACH, _REACH + 1)], -_REACH, _REACH))
    nodes, weights = leggauss(_NODES)
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    z = middle[:, None] + half[:, None] * nodes
    return float(np.sum(half[:, None] * weights * function(z) * normal_density(z)))
