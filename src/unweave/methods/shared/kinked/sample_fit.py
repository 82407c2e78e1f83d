"""From samples to a network with one layer of kinked units.

    whiten the inputs -> find the units up to signs -> signs from the polynomial part -> network

The units come from `unweave.numerics.variable_projection.search`, which never needs signs, and the signs of
ReLU and leaky ReLU units from `unweave.networks.signs`. Those of squared ReLU units come from the quadratic
part: with z_i = w_i . x + b_i and xi_i = +-1,

    sum_i a_i relu(xi_i z_i)^2 = sum_i h_i z_i |z_i| + sum_i xi_i h_i z_i^2,    a_i = 2 xi_i h_i,

so that beside the features the fit sees the quadratic form sum_i xi_i h_i (w_i, b_i) (w_i, b_i)^T of (x, 1):
(d+1)(d+2)/2 linear equations for m signs. All of them count but the constant one, which holds the output's
bias. For m up to their number least squares and rounding find the signs.

Noise is left to least squares: with the signs known, a last fit of all parameters without skip connection
gives up the polynomial's freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from unweave.arrays import Array
from unweave.errors import OutOfTime
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.signs import SIGN_TOLERANCE, SignSolution, negative_slope, solve_signs, to_network
from unweave.networks.value_fit import ValueFit
from unweave.numerics.least_squares import LevenbergMarquardtOptions, levenberg_marquardt
from unweave.numerics.variable_projection.features import KINK, feature_of
from unweave.numerics.variable_projection.nearby import DEFAULT_NEARBY_OPTIONS, NearbyOptions, search_nearby
from unweave.numerics.variable_projection.orthonormal import orthonormal_columns
from unweave.numerics.variable_projection.prune import OnStep
from unweave.numerics.variable_projection.search import SearchOptions, UnitSearch, search_units
from unweave.numerics.whitening import Whitening

_SIGN_STANDARD_ERRORS = 10.0  # of the polynomial part, by which a pattern of signs may miss it under noise
_LARGEST_SIGN_TOLERANCE = 0.2  # relative misfit beyond which a pattern of signs explains nothing
# All parameters, from a start that is near:
_LAST_FIT = LevenbergMarquardtOptions(steps=40, damping=1e-6, floor=1e-14, stalls=3)


@dataclass(frozen=True, eq=False)
class SampleFit:
    """A network fitted to samples, and how it was found."""

    network: Network
    search: UnitSearch
    residual: float
    """Root mean square residual of the network on the samples given, relative to the spread, worst output."""
    signs_solved: bool
    """Whether the polynomial part is explained by signs; else the network has a skip matrix."""
    signs_unique: bool
    signs_method: str
    alternatives: tuple[Array, ...] = ()
    """Other patterns of signs (m,) relative to the network's own, +-1, that fit as well."""
    fewest_beyond: int = 0
    """Samples on the emptier side of a unit's hyperplane, smallest over the units."""
    missing_directions: int = 0
    """Directions in which the inputs never vary."""
    signs_reason: str = ""
    """Why a search for signs ended without them, if it did."""

    def other_signs(self) -> str | None:
        """Say what the samples leave open of the units' signs, if anything."""
        if not self.signs_solved:
            return (
                "the same function, but its affine part is not explained by the units' signs: a skip "
                "connection, or units that never switch on the samples"
                + (f" ({self.signs_reason})" if self.signs_reason else "")
            )
        if self.alternatives:
            return units_may_turn(self.alternatives)
        if not self.signs_unique:
            return "the same function, but other signs of the units could not be excluded"
        return None


def fit_samples(
    x: Array,
    y: Array,
    width: int | None = None,
    activation: str | None = "relu",
    *,
    floor: float,
    rng: np.random.Generator,
    noisy: bool = False,
    options: SearchOptions | None = None,
    on_step: OnStep | None = None,
    start: tuple[Array, Array] | None = None,
    errors: Array | None = None,
    nearby: NearbyOptions = DEFAULT_NEARBY_OPTIONS,
) -> SampleFit:
    """Fit a network of ``width`` (None: find out) to x (n, d), y (n, K).

    ``floor`` is the residual relative to the spread of the answers at which a fit counts as exact; ``noisy``
    says that it is noise. With ``activation`` None, ReLU and leaky ReLU are told apart by the affine part.
    ``start`` are weights (d, m) and biases (m,) of units that are nearly right: no other start is
    tried then, and signs are left to the caller, who knows more rows.
    ``nearby`` says how long that is repaired.
    ``errors`` (n,) say how much less than others some rows count beside such a start.
    """
    feature = KINK if activation is None else feature_of(activation)
    # |z| grows with the inputs, so that a row (x, 1) that counts less is one that is shorter.
    weights = np.ones((len(x), 1)) if errors is None else errors.min() / errors[:, None]
    whitening = Whitening.of(weights * x)
    centre, scale = y.mean(axis=0), (weights * y).std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    extended, answers = whitening.with_ones(x), (y - centre) / scale
    if errors is not None:
        extended, answers = weights * extended, weights * answers
    inputs = extended[:, :-1]
    if start is None:
        search = search_units(
            inputs,
            answers,
            width,
            floor=floor,
            rng=rng,
            noisy=noisy,
            feature=feature,
            options=options,
            on_step=on_step,
            inputs=extended,
        )
    else:
        search = search_nearby(
            inputs,
            answers,
            whitening.units_forth(*start),
            floor=floor,
            rng=rng,
            feature=feature,
            options=nearby,
            on_step=on_step,
            inputs=extended,
        )
    units = search.fit.units
    features = feature.value(extended @ units)
    beside = extended if feature.degree == 1 else feature.polynomial(inputs)
    heights, polynomial = _linear_numbers(features, beside, answers)
    heights, polynomial = heights * scale, polynomial * scale
    polynomial[-1] += centre
    parameters = units.size + heights.size + polynomial.size
    noise = search.fit.residual * np.sqrt(parameters / max(y.size, 1))
    tolerance = float(np.clip(_SIGN_STANDARD_ERRORS * noise, SIGN_TOLERANCE, _LARGEST_SIGN_TOLERANCE))
    last = not search.exact and not search.out_of_time
    if feature.degree == 2:
        network, solved, unique, method, others = _squared(whitening, units, heights, polynomial, tolerance)
        network, reason = _refitted(network, x, y, on_step) if last else network, ""
    else:
        form = _absolute_form(whitening, units, heights, polynomial)
        networks = _kinked(form, activation, tolerance, start is None)
        if last:  # noise hides which of them the affine part asks for
            networks = [(_refitted(each, x, y, on_step), signs) for each, signs in networks]
            networks.sort(key=lambda pair: _price(pair[0], x, y))
        network, chosen = networks[0]
        solved, unique, method, reason = chosen.solved, chosen.unique, chosen.method, chosen.reason
        others = tuple(pattern * chosen.signs for pattern in chosen.alternatives)
    residual = _misfit(network, x, y)
    above = (extended @ units > 0).sum(axis=0)
    fewest = int(np.minimum(above, len(x) - above).min(initial=len(x)))
    missing = x.shape[1] - whitening.rank
    return SampleFit(network, search, residual, solved, unique, method, others, fewest, missing, reason)


def units_may_turn(patterns: Sequence[Array]) -> str:
    """Say which units other ``patterns`` of signs (m,), relative to the network's own, have turned."""
    listed = "; ".join(
        "{" + ", ".join(str(unit) for unit in np.flatnonzero(pattern < 0)) + "}" for pattern in patterns
    )
    return f"the same function with the signs of other units turned; sets of units that may turn: {listed}"


def _linear_numbers(features: Array, polynomial: Array, answers: Array) -> tuple[Array, Array]:
    """Return heights (m, K) and polynomial coefficients (q, K) of the least-squares fit, refined once."""
    width = features.shape[1]
    design = np.hstack([features, polynomial])
    basis, triangle = orthonormal_columns(design)
    solution = np.zeros((design.shape[1], answers.shape[1]))
    for _ in range(2):
        rest = basis.T @ (answers - design @ solution)
        solution = solution + solve_triangular(triangle, rest, check_finite=False)
    return solution[:width], solution[width:]


def _absolute_form(whitening: Whitening, units: Array, heights: Array, polynomial: Array) -> AbsoluteForm:
    """Return the form in x of one in whitened inputs with units (r+1, m) and affine part (r+1, K)."""
    weights, biases, length = whitening.units_back(units)
    slope, offset = whitening.affine_back(polynomial[:-1], polynomial[-1])
    return AbsoluteForm(weights, biases, heights * length[:, None], slope, offset)


def _kinked(
    form: AbsoluteForm, activation: str | None, tolerance: float, with_signs: bool
) -> list[tuple[Network, SignSolution]]:
    """Return networks whose signs explain the affine part, the best first; without any, one with a skip."""
    names = ["relu", "leaky_relu"] if activation is None else [activation]
    if not with_signs:
        unsigned = SignSolution(np.ones(form.width), np.nan, "none", solved=False, unique=False)
        return [(to_network(form, unsigned, names[0]), unsigned)]
    if not form.width:
        none = SignSolution(np.zeros(0), 0.0, "least squares", True, True)
        return [(to_network(form, none, names[0]), none)]
    solutions = [(solve_signs(form, negative_slope(name), tolerance), name) for name in names]
    solved = [pair for pair in solutions if pair[0].solved] or solutions[:1]
    solved.sort(key=lambda pair: pair[0].residual)
    return [(to_network(form, solution, name), solution) for solution, name in solved]


def _price(network: Network, x: Array, y: Array) -> float:
    """Return the Bayesian information criterion of networks of one size: a slope below zero is one number."""
    slopes = int(network.activations[0] != "relu")
    left = max(_misfit(network, x, y), float(np.finfo(np.float64).tiny))
    return float(2 * y.size * np.log(left) + slopes * np.log(y.size))


def _misfit(network: Network, x: Array, y: Array) -> float:
    """Return the root mean square misfit over the answers' spread, of the worst output."""
    spread = np.where(y.std(axis=0) > 0, y.std(axis=0), 1.0)
    return float((np.sqrt(np.mean((network(x) - y) ** 2, axis=0)) / spread).max())


def _squared(
    whitening: Whitening, units: Array, heights: Array, polynomial: Array, tolerance: float
) -> tuple[Network, bool, bool, str, tuple[Array, ...]]:
    rank, outputs = whitening.rank, heights.shape[1]
    first, second = np.triu_indices(rank)
    quadratic = np.zeros((outputs, rank, rank))
    quadratic[:, first, second] = polynomial[: len(first)].T / 2
    quadratic = quadratic + quadratic.transpose(0, 2, 1)
    full, slope, offset = whitening.quadratic_back(quadratic, polynomial[len(first) : -1], polynomial[-1])
    weights, biases, length = whitening.units_back(units)
    if not len(biases):
        return Network([slope], [offset], ["identity"]), not full.any(), True, "least squares", ()
    heights = heights * length[:, None] ** 2
    signs, solved, unique = _squared_signs(weights, biases, heights, full, slope, tolerance)
    weights, biases, outer = weights * signs, biases * signs, 2 * heights * signs[:, None]
    offset = offset - (biases**2) @ outer / 2  # what the units' constants leave
    network = Network([weights, outer], [biases, offset], ["squared_relu", "identity"])
    return network, solved, unique, "least squares", ()


def _squared_signs(
    weights: Array, biases: Array, heights: Array, quadratic: Array, slope: Array, tolerance: float
) -> tuple[Array, bool, bool]:
    """Return the signs (m,) by least squares, whether they fit, and whether no other pattern could do.

    The function is f_k(x) = sum_i h_ik z_i |z_i| + x^T Q_k x + s_k . x + c_k with z = x W + b.

    Parameters
    ----------
    weights : (d, m)                           biases : (m,)
    heights : (m, K)                           quadratic : (K, d, d), symmetric
    slope : (d, K)
    """
    first, second = np.triu_indices(len(weights))
    twice = np.where(first == second, 1.0, 2.0)[:, None]
    squares = twice * weights[first] * weights[second]  # (q, m): x_i x_j in z^2
    crosses = 2 * weights * biases  # (d, m): x_i in z^2
    matrix = np.vstack([squares, crosses])[:, None, :] * heights.T[None]  # (q + d, K, m)
    right = np.vstack([twice * quadratic[:, first, second].T, slope])
    matrix, flat = matrix.reshape(-1, len(biases)), right.reshape(-1)
    size = float(np.linalg.norm(matrix))
    values = np.linalg.svd(matrix, compute_uv=False)
    found = np.linalg.lstsq(matrix, flat, rcond=1e-8)[0]
    signs = np.where(found >= 0, 1.0, -1.0)
    residual = float(np.linalg.norm(matrix @ signs - flat)) / size
    smallest = float(values[-1]) / size if len(flat) >= len(biases) else 0.0
    return signs, residual <= tolerance, 2 * smallest - residual > tolerance


def _refitted(network: Network, x: Array, y: Array, on_step: OnStep | None) -> Network:
    """Fit all weights and biases of one hidden layer without a skip, from a start that is near."""
    if len(network.hidden) != 1 or network.skip is not None:
        return network
    model = NetworkParameters.from_network(network)
    spread = np.where(y.std(axis=0) > 0, y.std(axis=0), 1.0)
    problem = ValueFit(model, x, y, np.broadcast_to(1 / spread, y.shape).copy())
    try:
        fit = levenberg_marquardt(problem, model.to_vector(), _LAST_FIT, on_step)
    except OutOfTime:
        return network
    return model.from_vector(fit.vector).to_network()
