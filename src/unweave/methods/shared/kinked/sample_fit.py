"""From samples to a network with one layer of kinked units.

    whiten the inputs -> find the units up to signs -> signs from the polynomial part -> network

The units come from `unweave.numerics.variable_projection.search`, which never needs signs; the signs from
`signs` (ReLU, leaky ReLU) or `squared_fit`. Noise is left to least squares: with
the signs known, a last fit of all parameters without skip connection gives up the polynomial's freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from unweave.arrays import Array
from unweave.methods.shared.kinked.squared_fit import SquaredForm, squared_network, squared_signs
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.signs import SIGN_TOLERANCE, negative_slope, solve_signs, to_network
from unweave.networks.value_fit import ValueFit
from unweave.numerics.least_squares import LevenbergMarquardtOptions, levenberg_marquardt
from unweave.numerics.variable_projection.features import KINK, UnitFeature, feature_of
from unweave.numerics.variable_projection.orthonormal import orthonormal_columns
from unweave.numerics.variable_projection.prune import OnStep
from unweave.numerics.variable_projection.search import OutOfTime, SearchOptions, UnitSearch, search_units
from unweave.numerics.whitening import Whitening

_ERRORS_OF_NOISE = 10.0  # standard errors of the affine part that a pattern of signs may miss it by
_LARGEST_SIGN_TOLERANCE = 0.2
_FINAL_STEPS = 40


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

    def other_signs(self) -> str | None:
        """What the samples leave open of the units' signs, if anything."""
        if not self.signs_solved:
            return (
                "the same function, but its affine part is not explained by the units' signs: a skip "
                "connection, or units that never switch on the samples"
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
) -> SampleFit:
    """Fit a network of ``width`` (None: find out) to x (n, d), y (n, K).

    ``floor`` is the residual relative to the spread of the answers at which a fit counts as exact; ``noisy``
    says that it is noise. With ``activation`` None, ReLU and leaky ReLU are told apart by the affine part.
    """
    feature = KINK if activation is None else feature_of(activation)
    whitening = Whitening.of(x)
    centre, scale = y.mean(axis=0), y.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    extended, answers = whitening.with_ones(x), (y - centre) / scale
    inputs = extended[:, :-1]
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
    units = search.fit.units
    features = feature.value(inputs @ units[:-1] + units[-1])
    heights, polynomial = _linear_numbers(feature, inputs, features, answers)
    heights, polynomial = heights * scale, polynomial * scale
    polynomial[-1] += centre
    parameters = units.size + heights.size + polynomial.size
    noise = search.fit.residual * np.sqrt(parameters / max(y.size, 1))
    tolerance = float(np.clip(_ERRORS_OF_NOISE * noise, SIGN_TOLERANCE, _LARGEST_SIGN_TOLERANCE))
    if feature.degree == 2:
        network, solved, unique, method, others = _squared(whitening, units, heights, polynomial, tolerance)
    else:
        form = _absolute_form(whitening, units, heights, polynomial)
        network, solved, unique, method, others = _kinked(form, activation, tolerance)
    last = not search.exact and not search.out_of_time
    if last and len(network.hidden) == 1 and network.skip is None:
        network = _refitted(network, x, y, on_step)
    spread = np.where(y.std(axis=0) > 0, y.std(axis=0), 1.0)
    residual = float((np.sqrt(np.mean((network(x) - y) ** 2, axis=0)) / spread).max())
    above = (inputs @ units[:-1] + units[-1] > 0).sum(axis=0)
    fewest = int(np.minimum(above, len(x) - above).min(initial=len(x)))
    missing = x.shape[1] - whitening.rank
    return SampleFit(network, search, residual, solved, unique, method, others, fewest, missing)


def units_may_turn(patterns: Sequence[Array]) -> str:
    """Which units other ``patterns`` of signs (m,), relative to the network's own, have turned."""
    listed = "; ".join(
        "{" + ", ".join(str(unit) for unit in np.flatnonzero(pattern < 0)) + "}" for pattern in patterns
    )
    return f"the same function with the signs of other units turned; sets of units that may turn: {listed}"


def _linear_numbers(
    feature: UnitFeature, inputs: Array, features: Array, answers: Array
) -> tuple[Array, Array]:
    """Heights (m, K) and polynomial coefficients (q, K) of the least-squares fit, refined once."""
    width = features.shape[1]
    design = np.hstack([features, feature.polynomial(inputs)])
    basis, triangle = orthonormal_columns(design)
    solution = np.zeros((design.shape[1], answers.shape[1]))
    for _ in range(2):
        rest = basis.T @ (answers - design @ solution)
        solution = solution + solve_triangular(triangle, rest, check_finite=False)
    return solution[:width], solution[width:]


def _absolute_form(whitening: Whitening, units: Array, heights: Array, polynomial: Array) -> AbsoluteForm:
    """The form in x of one in whitened inputs with units (r+1, m) and affine part (r+1, K)."""
    weights, biases, length = whitening.units_back(units)
    slope, offset = whitening.affine_back(polynomial[:-1], polynomial[-1])
    return AbsoluteForm(weights, biases, heights * length[:, None], slope, offset)


def _kinked(
    form: AbsoluteForm, activation: str | None, tolerance: float
) -> tuple[Network, bool, bool, str, tuple[Array, ...]]:
    names = ["relu", "leaky_relu"] if activation is None else [activation]
    solutions = [solve_signs(form, negative_slope(name), tolerance) for name in names]
    solved = [i for i, solution in enumerate(solutions) if solution.solved]
    best = min(solved, key=lambda i: solutions[i].residual) if solved else 0
    chosen = solutions[best]
    network = to_network(form, chosen, names[best])
    if not network.hidden:
        return network, True, True, "least squares", ()
    others = tuple(pattern * chosen.signs for pattern in chosen.alternatives)
    return network, chosen.solved, chosen.unique, chosen.method, others


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
    form = SquaredForm(weights, biases, heights * length[:, None] ** 2, full, slope, offset)
    if not len(biases):
        return Network([slope], [offset], ["identity"]), not full.any(), True, "least squares", ()
    signs = squared_signs(form, tolerance)
    solved = signs.residual <= tolerance
    return squared_network(form, signs.signs), solved, signs.unique, "least squares", ()


def _refitted(network: Network, x: Array, y: Array, on_step: OnStep | None) -> Network:
    """Least squares over all weights and biases, from a fit that is near."""
    model = NetworkParameters.from_network(network)
    spread = np.where(y.std(axis=0) > 0, y.std(axis=0), 1.0)
    problem = ValueFit(model, x, y, np.broadcast_to(1 / spread, y.shape).copy())
    options = LevenbergMarquardtOptions(steps=_FINAL_STEPS, damping=1e-6, floor=1e-14, stalls=3)
    try:
        fit = levenberg_marquardt(problem, model.to_vector(), options, on_step)
    except OutOfTime:
        return network
    return model.from_vector(fit.vector).to_network()
