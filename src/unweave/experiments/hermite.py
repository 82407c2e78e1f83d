"""ReLU networks from Hermite coefficients: [hermite]."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.linalg import null_space
from scipy.special import ndtr

from unweave.arrays import Array
from unweave.experiments.experiment import DERIVED, Figure, Progress, equal, printed, shown, vanishes
from unweave.experiments.planted import distances
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.comparison import compare
from unweave.networks.signs import solve_signs
from unweave.numerics.hermite.estimated_coefficients import Batches, estimate_coefficients
from unweave.numerics.hermite.tensors import hermite_polynomial, normal_density
from unweave.published.relu.relu_units import (
    ReLUUnits,
    affine_surrogate_risk,
    gaussian_risk,
    hermite_coefficients,
    relu_coefficient,
)
from unweave.published.relu.spectral_recovery import DirectionMethod, recover_from_coefficients

_LARGEST_Z = 14.0  # end of the quadrature: exp(-z^2/2) is 3e-43 there
_NODES_PER_PANEL = 120  # exact for polynomials times the density on a panel


def run_hermite_coefficients(seed: int, progress: Progress) -> Iterator[Figure]:
    """[hermite] Lemma 3.5 and its neighbors: Hermite coefficients of a unit.

    The closed form of E[relu(z + b) He_k(z)] against quadrature; the risk identity (Prop. B.1) against
    the closed second moment of a unit; the loss of calling a unit affine (Lemma D.13); and how well the roots
    of neighboring He_k are separated (Lemma 4.3, corrected). Fixed biases and a few random ones; the
    constants do not depend on the seed.
    """
    orders = 9
    fixed_biases = (-2.0, -1.0, -0.3, 0.0, 0.7, 1.0, 2.0)
    random_biases = 5
    series = 4_000
    # Least max(|He_k|, |He_k+1|) for k = 0, 1, ..: the corrected constants.
    separations = ("1", "0.618", "0.903", "1.428", "2.784", "5.985")
    corrected = "corrected: the printed lower bound sqrt(k!/2) is above this minimum for k >= 1"
    progress("quadrature")
    rng = np.random.default_rng(seed)
    biases = np.array([*fixed_biases, *rng.uniform(-2, 2, random_biases)])
    for order in range(orders):
        exact = [quadrature_coefficient(order, bias) for bias in biases]
        error = np.abs(relu_coefficient(order, biases) - np.array(exact)).max()
        yield vanishes(f"coefficient of order {order}: closed form - quadrature", float(error), 1e-12)
    losses = [loss_of_affine(bias) for bias in biases]
    error = np.abs(affine_surrogate_risk(biases) - np.array(losses)).max()
    yield vanishes("loss of calling a unit affine: closed form - quadrature", float(error), 1e-12)
    progress("risk identity")
    moments = (1 + biases**2) * ndtr(biases) + biases * normal_density(biases)
    risks = [gaussian_risk(one_unit(b, 1.0), one_unit(b, 0.0), orders=series) for b in biases]
    error = np.abs(np.array(risks) - moments).max()
    yield vanishes(
        "sum of |T_k|^2/k! - second moment",
        float(error),
        1e-6,
        f"the first {series:,} orders; the rest falls like their number to the -3/2",
    )
    grid = np.linspace(0, 8, 800_001)
    for order, value in enumerate(separations):
        pair = [np.abs(hermite_polynomial(k, grid)) for k in (order, order + 1)]
        least = float(np.maximum(*pair).min())
        yield printed(
            f"least max(|He_{order}|, |He_{order + 1}|)", value, least, corrected if order else "", DERIVED
        )


def quadrature_coefficient(order: int, bias: float) -> float:
    """E[relu(z + b) He_k(z)] by quadrature."""
    return normal_mean(lambda z: np.maximum(z + bias, 0) * hermite_polynomial(order, z), -bias)


def loss_of_affine(bias: float) -> float:
    """E(relu(z + b) - s)^2 by quadrature, s = z + b for b > 0 and s = 0 else."""
    slope = 1.0 if bias > 0 else 0.0
    return normal_mean(lambda z: (np.maximum(z + bias, 0) - slope * (z + bias)) ** 2, -bias)


def one_unit(bias: float, outer: float) -> ReLUUnits:
    """A single unit on one input."""
    return ReLUUnits(np.ones((1, 1)), np.array([bias]), np.array([outer]))


def normal_mean(function: Callable[[Array], Array], kink: float) -> float:
    """E function(z) for standard normal z, by Gauss-Legendre between whole numbers and ``kink``."""
    edges = np.unique(np.clip([kink, *np.arange(-_LARGEST_Z, _LARGEST_Z + 1)], -_LARGEST_Z, _LARGEST_Z))
    nodes, weights = leggauss(_NODES_PER_PANEL)
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    z = middle[:, None] + half[:, None] * nodes
    return float(np.sum(half[:, None] * weights * function(z) * normal_density(z)))


def run_relu_from_coefficients(seed: int, progress: Progress) -> Iterator[Figure]:
    """[hermite] Algs. 1 and 6: exact coefficients give the network back.

    T_0 .. T_4 for at most as many units as inputs (order l = 1), T_0 .. T_6 for twice as many (l = 2), the
    width not told; units with biases 0 and 1 are among them, which T_3 and T_4 do not see. Directions by
    Jennrich as published, and by one pencil (l = 1) or the power method (l = 2). One network per setting;
    parameters include signs and output weights.
    """
    # Inputs, units, way to the directions.
    settings: tuple[tuple[int, int, DirectionMethod], ...] = (
        (10, 5, "published"),
        (10, 5, "pencil"),
        (10, 10, "published"),
        (10, 10, "pencil"),
        (20, 20, "pencil"),
        (8, 16, "published"),
        (8, 16, "power"),
    )
    ways = {"published": "Jennrich", "pencil": "pencil", "power": "power method"}
    # Error allowed per condition number of the weights, which multiplies rounding.
    per_condition = 1e-9
    for inputs, width, directions in settings:
        cell = f"d = {inputs}, m = {width}, {ways[directions]}"
        progress(cell)
        units = planted_units(np.random.default_rng([seed, inputs, width]), inputs, width, (0.0, 1.0))
        order = 1 if width <= inputs else 2
        coefficients = hermite_coefficients(units, 2 * order + 2)
        rng = np.random.default_rng([seed, inputs, width, 1])
        found = recover_from_coefficients(coefficients, rng, order=order, directions=directions)
        error = compare(units.to_network(), found.to_network()).parameter_error
        tolerance = per_condition * float(np.linalg.cond(units.weights))
        yield vanishes(f"{cell}: parameter error", error, tolerance)


def planted_units(
    rng: np.random.Generator, inputs: int, width: int, biases: tuple[float, ...] = ()
) -> ReLUUnits:
    """Random directions, output weights in +-[0.5, 1.5], the given ``biases`` and others in [-1, 1]."""
    outer = rng.choice([-1.0, 1.0], width) * rng.uniform(0.5, 1.5, width)
    weights = rng.standard_normal((inputs, width))
    drawn = np.concatenate([biases, rng.uniform(-1, 1, width - len(biases))])
    return ReLUUnits(weights / np.linalg.norm(weights, axis=0), drawn, outer)


_SAMPLES_PER_BATCH = 20_000  # samples drawn at once: limits memory


def run_sampled_coefficients(seed: int, progress: Progress) -> Iterator[Figure]:
    """Samples in place of exact coefficients ([hermite] Algs. 4 and 6).

    The guarantees need polynomially many samples because estimated Hermite coefficients err like N^-1/2, and
    the directions read off them do too. Five networks of 5 units on 10 standard Gaussian inputs; a quadratic
    is fitted off the labels first, without which the law only shows at far larger N. Slopes between the two
    numbers of samples.
    """
    inputs, width, networks = 10, 5, 5
    smaller, larger = sample_counts = (100_000, 1_600_000)
    orders = (3, 4)
    # Deviation of a slope from -1/2 that few networks may cause: a factor 1.7 over these samples.
    spread = 0.2
    errors: dict[str, list[list[float]]] = {f"T_{order}": [[], []] for order in orders}
    errors["directions"] = [[], []]
    for network in range(networks):
        units = planted_units(np.random.default_rng([seed, network]), inputs, width)
        exact = hermite_coefficients(units, max(orders))
        for size, samples in enumerate(sample_counts):
            progress(f"network {network + 1} of {networks}, {samples:,} samples")
            estimate = estimate_coefficients(batches_of(units, samples, [seed, network, 1]), max(orders))
            difference = estimate.coefficients.plus(exact, -1.0)
            for order in orders:
                errors[f"T_{order}"][size].append(difference.norm(order) / exact.norm(order))
            rng = np.random.default_rng([seed, network, 2])
            found = recover_from_coefficients(
                estimate.coefficients, rng, width=width, directions="pencil", sign_tolerance=math.inf
            )
            errors["directions"][size] += distances(units.weights.T, found.form.weights.T).tolist()
    for name, (few, many) in errors.items():
        first, second = float(np.median(few)), float(np.median(many))
        slope = math.log(second / first) / math.log(larger / smaller)
        yield Figure(
            f"{name}: slope of the median error in N",
            -0.5,
            slope,
            abs(slope + 0.5) <= spread,
            f"within {spread} of -1/2",
            note=f"median relative error {first:.2g} at N = {smaller:,}, {second:.2g} at {larger:,}",
        )
    worst = max(errors["directions"][1])
    yield shown(f"worst direction at N = {larger:,}", "-", worst)


def batches_of(units: ReLUUnits, samples: int, stream: list[int]) -> Batches:
    """Gaussian samples of the units' function, the same in every pass."""

    def batches() -> Iterator[tuple[Array, Array]]:
        rng = np.random.default_rng(stream)
        for start in range(0, samples, _SAMPLES_PER_BATCH):
            x = rng.standard_normal((min(_SAMPLES_PER_BATCH, samples - start), units.dimension))
            yield x, units(x)

    return batches


def run_sign_ambiguity(seed: int, progress: Progress) -> Iterator[Figure]:
    """[hermite] Claim 4.8: beyond linear independence, signs can be ambiguous.

    relu(-t) = relu(t) - t, so turning the units of a set F around, (w, b) -> (-w, -b), changes the function
    by -sum_F a_i (w_i . x + b_i). If these sums vanish, two different networks are one function. Planted: 5
    units on 3 inputs, without biases (outer weights in the null space of W) and with (in that of W and b
    together). One pair of networks without biases, one with; beside each, three independent units on 5
    inputs, whose signs are unique.
    """
    inputs, width, points = 3, 5, 10_000
    same_distance = 1e-6  # distance of (w, b) up to which two units are one
    for biased in (False, True):
        cell = "with biases" if biased else "without biases"
        progress(cell)
        rng = np.random.default_rng([seed, int(biased)])
        weights = rng.standard_normal((inputs, width))
        weights /= np.linalg.norm(weights, axis=0)
        biases = rng.uniform(-1, 1, width) if biased else np.zeros(width)
        outer = null_space(np.vstack([weights, biases]))[:, 0]
        one, other = ReLUUnits(weights, biases, outer), ReLUUnits(-weights, -biases, outer)
        x = rng.standard_normal((points, inputs))
        yield vanishes(
            f"{cell}: largest difference of answers", float(np.abs(one(x) - other(x)).max()), 1e-14
        )
        a, b = (np.vstack([units.weights, units.biases]).T for units in (one, other))
        near = np.linalg.norm(a[:, None] - b[None], axis=2) < same_distance
        yield equal(f"{cell}: units that both networks have", 0, int(near.sum()))
        # Signs only enter the affine part, which is zero for both.
        form = AbsoluteForm(weights, biases, outer[:, None] / 2, np.zeros((inputs, 1)), np.zeros(1))
        yield equal(f"{cell}: signs called unique", False, solve_signs(form).unique)
        # Control: units that are independent have one set of signs.
        free = rng.standard_normal((width, inputs))
        heights = rng.uniform(0.5, 1.0, (inputs, 1)) / 2
        offsets = rng.uniform(-1, 1, inputs)
        control = AbsoluteForm(free, offsets, heights, free @ heights, offsets @ heights)
        yield equal(f"{cell}, independent units: signs called unique", True, solve_signs(control).unique)
