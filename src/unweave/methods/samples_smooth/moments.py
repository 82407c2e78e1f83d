"""Directions and scalars of smooth units from the Hermite coefficients of Gaussian samples.

For standard Gaussian inputs and f(x) = sum_i a_i g(s_i u_i . x + b_i) + c with unit vectors u_i,

    T_k = E[ f(x) He_k(x) ] = sum_i a_i c_k(s_i, b_i) u_i^{(x) k},
    c_k(s, b) = E[ g(s Z + b) He_k(Z) ] = s^k E[ g^(k)(s Z + b) ],       k >= 1.

1. The columns of T_1 .. T_4, flattened to d x d^{k-1} and divided by their noise, span the u_i and nothing
   else: their singular values show the width, their singular vectors the span (an odd activation with small
   biases has T_2 close to zero; then T_3 carries it).
2. In the span of m <= d units, T_2 and the slices of T_3 and T_4 are all of the form U diag(.) U^T: one joint
   diagonalisation by congruence gives U, whichever of them vanish.
3. Least squares of T_k on the u_i^{(x) k} gives a_i c_k(s_i, b_i), k = 1 .. 4, and a grid over (s, b)
   explains them. Any activation will do that is no polynomial.

The noise of T_k is that of f less a polynomial of least squares (`estimated_coefficients`).

Start number 0 of a fit is the estimate from all samples, 1 and 2 are those from either half. Later ones take
their scales and biases from the best forty pairs of the grid and turn the weights by a random part that grows
with the number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import comb

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations import Activation, hermite_polynomials
from unweave.numerics.hermite.estimated_coefficients import (
    EstimatedCoefficients,
    EstimateOptions,
    estimate_coefficients,
    in_batches,
)
from unweave.numerics.hermite.symmetric_tensors import tensor_packing
from unweave.numerics.hermite.tensors import HermiteTensors
from unweave.subspace.congruence import diagonalise_by_congruence

ORDER = 4
"""Highest coefficient that is used."""

_SCALES = np.geomspace(0.15, 6.0, 28)
_CENTERS = np.linspace(-2.5, 2.5, 41)  # -b / s where the unit acts, in standard deviations of the input
_QUADRATURE_NODES = 120  # of the Gauss-Hermite rule: enough for the largest of the scales


@dataclass(frozen=True, kw_only=True)
class MomentOptions:
    """How coefficients are estimated, and how starts are drawn from them."""

    stands_out: float = 2.0
    """Singular value, over the noise's largest one, above which a direction counts as a unit's."""
    most_inputs_fourth: int = 25
    """Number of inputs up to which T_4 is formed before the span is known: it takes d^4 flops per row."""
    most_features: int = 700
    """Number of coefficients p of the polynomial taken off the answers; it takes n p^2 flops."""
    rows_per_feature: int = 8
    """Samples per coefficient of that polynomial."""
    most_degree: int = 7
    """Highest degree of it."""
    choices: int = 40
    """Number of best pairs (s, b) of the grid that perturbed starts draw from."""
    perturbation: float = 0.15
    """Random part of the weights of a perturbed start, over their size; it grows with every start."""
    largest_bias: float = 1.0
    """Largest bias of random units, whose weights have length about one."""


@dataclass(frozen=True, eq=False)
class SampleMoments:
    """Coefficients of every output, and what their half-sample differences say about their noise."""

    estimates: tuple[EstimatedCoefficients, ...]
    options: MomentOptions = field(default_factory=MomentOptions)

    @property
    def dimension(self) -> int:
        """d, or the dimension r of the span they were estimated in."""
        return self.estimates[0].coefficients.dimension

    @property
    def orders(self) -> tuple[int, ...]:
        """1 .. 4, or 1 .. 3."""
        return tuple(range(1, min(self.estimates[0].coefficients.order, ORDER) + 1))

    @property
    def deviations(self) -> list[dict[int, float]]:
        """Per output, which should have unit spread: standard error of an entry of T_k, by k."""
        rounding = float(np.finfo(np.float64).eps)  # of answers of size one
        found = [estimate.deviations(*self.orders) for estimate in self.estimates]
        return [{k: max(value, rounding) for k, value in each.items()} for each in found]

    def stacked(self, half: int | None = None) -> Array:
        """Return (d, columns) of all T_k over their standard errors, from all or one half of the samples."""
        tensors = [e.coefficients if half is None else e.halves[half] for e in self.estimates]
        return _stacked(tensors, self.deviations, self.orders)

    def noise(self) -> float:
        """Return the largest singular value of what sampling adds to `stacked`."""
        difference = self.stacked(0) - self.stacked(1)
        return float(np.linalg.norm(difference, 2)) / 2


@dataclass(frozen=True, eq=False)
class ActiveSpan:
    """The directions in which the function is not constant."""

    basis: Array
    """(d, d) orthonormal columns, the most active ones first."""
    singular_values: Array
    """(d,) in units of the noise's largest one."""
    width: int
    """Number of directions that stand out of the noise: that of the units if they are at most d."""


def sample_moments(
    inputs: Array, answers: Array, basis: Array | None = None, options: MomentOptions | None = None
) -> SampleMoments:
    """Estimate T_0 .. T_4 from Gaussian ``inputs`` (n, d) and ``answers`` (n, K), in a ``basis`` (d, r).

    Cost: of a polynomial with p coefficients in d (or r) variables, n p^2 flops; p is at most 700.
    """
    options = options or MomentOptions()
    dimension = inputs.shape[1] if basis is None else basis.shape[1]
    order = ORDER if dimension <= options.most_inputs_fourth else ORDER - 1
    polynomial = EstimateOptions(degree=_degree(dimension, len(inputs), options))
    estimates = [
        estimate_coefficients(in_batches(inputs, np.ascontiguousarray(column)), order, polynomial, basis)
        for column in answers.T
    ]
    return SampleMoments(tuple(estimates), options)


def active_span(moments: SampleMoments) -> ActiveSpan:
    """Order directions by how clearly the coefficients show them."""
    left, values, _ = np.linalg.svd(moments.stacked(), full_matrices=True)
    padded = np.zeros(moments.dimension)
    padded[: len(values)] = values
    padded /= max(moments.noise(), np.finfo(np.float64).tiny)
    return ActiveSpan(np.ascontiguousarray(left), padded, int(np.sum(padded > moments.options.stands_out)))


def unit_directions(moments: SampleMoments, half: int | None = None) -> Array:
    """Return unit columns (r, r), up to sign, of r units in r variables, from all or half of the samples."""
    dimension = moments.dimension
    if dimension == 1:
        return np.ones((1, 1))
    matrices = []
    for estimate, deviations in zip(moments.estimates, moments.deviations, strict=True):
        tensors = estimate.coefficients if half is None else estimate.halves[half]
        for k in moments.orders[1:]:
            # (p_{k-2}, r, r): slices over the other k - 2 modes, packed so that none is counted twice
            packed = tensors.flattened(1, 1, k - 2) if k > 2 else tensors.dense(2)[:, :, None]
            matrices.append(np.moveaxis(packed, -1, 0) / deviations[k])
    return diagonalise_by_congruence(np.concatenate(matrices), normalise=False).directions


def disagreement(first: Array, second: Array) -> float:
    """Return the largest angle from a column of ``first`` to the nearest of ``second``, up to sign."""
    overlap = np.abs(first.T @ second)
    return float(np.arccos(np.clip(overlap.max(axis=1).min(), 0.0, 1.0)))


def term_sizes(moments: SampleMoments, directions: Array) -> Array:
    """Return the least-squares factors (orders, K, m) a_i c_k(s_i, b_i) of u_i^{(x) k} in T_k."""
    result = np.empty((len(moments.orders), len(moments.estimates), directions.shape[1]))
    for row, k in enumerate(moments.orders):
        packing = tensor_packing(moments.dimension, k)
        powers = packing.powers(directions) * packing.scale[:, None]
        right = np.stack([e.coefficients.isometric(k) for e in moments.estimates], axis=1)
        result[row] = np.linalg.lstsq(powers, right, rcond=None)[0].T
    return result


def scalar_choices(moments: SampleMoments, directions: Array, activation: Activation, count: int) -> Array:
    """Return pairs (s, b), (m, count, 2), that explain every unit's factors, s of either sign; best first."""
    sizes = term_sizes(moments, directions)
    errors = np.array([[each[k] for each in moments.deviations] for k in moments.orders])
    pairs, shapes = _shapes(activation, len(moments.orders))
    # Amplitudes are projected out, one per output: explained = sum_o <c, t_o>^2 / <c, c>, both over errors.
    explained = np.zeros((len(pairs), sizes.shape[2]))
    for output in range(sizes.shape[1]):
        weight = 1 / errors[:, output]
        scaled = shapes * weight
        norm = np.maximum(np.sum(scaled**2, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        explained += (scaled @ (sizes[:, output] * weight[:, None])) ** 2 / norm
    best = np.argsort(-explained, axis=0)[: max(count, 1)]
    return np.asarray(pairs[best.T])


@dataclass(frozen=True, eq=False)
class MomentStarts:
    """Starts of r units in the r variables of the moments."""

    moments: SampleMoments
    sets: tuple[Array, Array, Array]
    """Unit columns (r, r) from all samples and from either half of them"""

    @classmethod
    def of(cls, moments: SampleMoments) -> MomentStarts:
        """Find the directions that the moments give."""
        return cls(
            moments, (unit_directions(moments), unit_directions(moments, 0), unit_directions(moments, 1))
        )

    @cached_property
    def angle(self) -> float:
        """Radians by which the directions of the halves differ."""
        return disagreement(self.sets[1], self.sets[2])

    def units(self, activation: Activation, number: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return weights (r, r) and biases (r,) of start ``number``."""
        options = self.moments.options
        perturbed = max(0, number - len(self.sets) + 1)
        columns = self.sets[0 if perturbed else number]
        choices = scalar_choices(self.moments, columns, activation, options.choices)
        units = np.arange(len(choices))
        chosen = rng.integers(0, choices.shape[1], len(units)) if perturbed else np.zeros_like(units)
        scales, biases = choices[units, chosen].T
        weights = columns * scales
        if perturbed:
            size = np.abs(scales) / np.sqrt(len(weights))
            noise = perturbed * options.perturbation * size * rng.standard_normal(weights.shape)
            weights = weights + noise
        return weights, biases


def _shapes(activation: Activation, orders: int) -> tuple[Array, Array]:
    """Return the pairs (s, b) of the grid, and c_1 .. c_orders of each."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_QUADRATURE_NODES)
    weights = weights / weights.sum()
    signs = (1.0,) if activation.is_odd or activation.is_even else (1.0, -1.0)
    pairs = np.array(
        [(sign * s, -s * center) for sign in signs for s in _SCALES for center in _CENTERS],
    )
    values = activation(pairs[:, :1] * nodes + pairs[:, 1:])
    normalised = hermite_polynomials(nodes, orders + 1)[1:]  # E h_k^2 = 1
    lengths = np.sqrt(np.cumprod(np.arange(1, orders + 1)))
    return pairs, (values * weights) @ normalised.T * lengths


def _stacked(
    tensors: list[HermiteTensors], deviations: list[dict[int, float]], orders: tuple[int, ...]
) -> Array:
    parts = []
    for tensor, errors in zip(tensors, deviations, strict=True):
        for k in orders:
            flat = tensor.at(1)[:, None] if k == 1 else tensor.flattened(1, k - 1)
            parts.append(flat / errors[k])
    return np.concatenate(parts, axis=1)


def _degree(dimension: int, rows: int, options: MomentOptions) -> int:
    """Return the highest degree of a polynomial of the answers that is cheap and well determined."""
    most = min(options.most_features, rows // options.rows_per_feature)
    fitting = [g for g in range(1, options.most_degree + 1) if comb(dimension + g, g) <= most]
    if not fitting:
        fewest = options.rows_per_feature * (dimension + 1)
        raise InvalidInput(
            f"samples must number at least {fewest} for {dimension} inputs. Got {rows} instead. Add samples."
        )
    return max(fitting)
