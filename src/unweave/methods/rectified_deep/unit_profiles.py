"""Steepness and bias of rectifying units, from answers across their far kinks.

Far out, a network of softplus units is the network of ReLU units with the same weights, but ReLU units have a
freedom that softplus units do not have: s z in place of z, and 1/s of what is read from them. Where a line
crosses the kink of one unit far from those of all others, the answers are

    f(t) = p + q t + c g(a t + b)        t: distance from the kink,

so that (a, b) is a fit of two unknowns once p, q and c are eliminated. How well it goes tells the kind g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.far_field import Ask
from unweave.networks.activations import get_activation
from unweave.networks.network import Network
from unweave.numerics.clock import check
from unweave.numerics.least_squares.pair_steps import PairResiduals, fit_pairs
from unweave.search import GaveUp, Reason


class ProfileReason(Reason):
    """Why units cannot be read far out."""

    NO_KINK = "far out, unit {unit} of layer {layer} switches nowhere by itself"


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """Where kinks are crossed, and how their profiles are fitted; lengths in normalised inputs."""

    radius: float = 3e4
    """Standard deviation of the places."""
    clear: float = 300.0
    """Distance of the other kinks, at which a unit of any usual steepness is straight."""
    drawn: tuple[int, ...] = (60, 1000, 10_000)
    """Places drawn per unit, more if none meets the kink; of those that are clear, the one with the highest
    kink is taken."""
    moves: int = 8
    """Steps that bring a place onto the kink of a unit behind others."""
    on_kink: float = 1e-9
    """Distance from the kink that counts as none, relative to the radius: a multiple of rounding."""
    nearest: float = 0.03
    """Distance of the samples next to the kink, ..."""
    farthest: float = 30.0
    """... and of the last ones."""
    samples: int = 15
    """On either side."""
    steepness: tuple[float, ...] = tuple(np.geomspace(0.05, 30.0, 24))
    """First guesses of a: the best of them is refined."""
    biases: tuple[float, ...] = tuple(np.linspace(-5.0, 5.0, 21))
    """First guesses of b: units before it that level off below zero move a kink."""


@dataclass(frozen=True, eq=False)
class UnitProfiles:
    """Answers across one far kink of every unit, layer after layer."""

    places: Array
    """(u, D) points on the kinks"""
    along: Array
    """(t,) distances from the kink"""
    answers: Array
    """(u, t, K)"""
    slopes: Array
    """(u,) change of the pre-activation per distance, in the ReLU network"""


@dataclass(frozen=True, eq=False)
class FittedProfiles:
    """One kind of unit, fitted to all profiles, or to those of one layer."""

    kind: str
    slope: float
    """Of such a unit far out, where it is on"""
    scales: Array
    """(u,) pre-activation over that of the ReLU network"""
    heights: Array
    """(u,) pre-activation at the places"""
    misfits: Array
    """(u,) relative to what is not affine in the profile"""

    @property
    def misfit(self) -> float:
        """That of the middle unit."""
        return float(np.median(self.misfits))

    def of_units(self, begin: int, end: int) -> FittedProfiles:
        """Return the fits of some units."""
        units = slice(begin, end)
        return replace(
            self, scales=self.scales[units], heights=self.heights[units], misfits=self.misfits[units]
        )


def best_by_layer(fitted: Sequence[FittedProfiles], hidden: tuple[int, ...]) -> list[FittedProfiles]:
    """Return the kind that fits best for each hidden layer; ``hidden`` are the widths."""
    parts = pairwise(np.cumsum([0, *hidden]))
    return [
        min((each.of_units(begin, end) for each in fitted), key=lambda each: each.misfit)
        for begin, end in parts
    ]


def smooth_network(network: Network, profiles: UnitProfiles, layers: Sequence[FittedProfiles]) -> Network:
    """Return ``network``, which has ReLU units, with the kinds of units that ``layers`` say.

    A bias is what the pre-activation at the unit's place asks for: units before it that are off there may
    still answer, as those of an exponential linear unit do.
    """
    weights, biases, state, begin = list(network.weights), list(network.biases), profiles.places, 0
    for layer, fitted in enumerate(layers):
        weights[layer] = weights[layer] * fitted.scales
        weights[layer + 1] = weights[layer + 1] / (fitted.slope * fitted.scales)[:, None]
        read = state @ weights[layer]
        biases[layer] = fitted.heights - read[begin : begin + len(fitted.heights)].diagonal()
        state = get_activation(fitted.kind)(read + biases[layer])
        begin += len(fitted.heights)
    answers = profiles.answers[:, len(profiles.along) // 2]
    biases[-1] = np.median(answers - state @ weights[-1], axis=0)
    return Network(weights, biases, [*(fitted.kind for fitted in layers), "identity"])


def read_profiles(
    ask: Ask, network: Network, rng: np.random.Generator, options: ProfileOptions
) -> UnitProfiles:
    """Ask for answers across a far kink of every unit of ``network``, which has ReLU units."""
    side = np.geomspace(options.nearest, options.farthest, options.samples)
    along = np.concatenate([-side[::-1], [0.0], side])
    places, directions, slopes = [], [], []
    for layer, width in enumerate(network.hidden):
        for unit in range(width):
            check()
            place, normal = _clear_place(network, layer, unit, rng, options)
            slope = float(np.linalg.norm(normal))
            places.append(place)
            directions.append(normal / slope)
            slopes.append(slope)
    points = np.array(places)[:, None] + along[None, :, None] * np.array(directions)[:, None]
    answers = ask(points.reshape(-1, network.n_inputs)).reshape(len(slopes), len(along), -1)
    return UnitProfiles(np.array(places), along, answers, np.array(slopes))


def fit_profiles(profiles: UnitProfiles, kind: str, options: ProfileOptions) -> FittedProfiles:
    """Fit units of ``kind`` to all profiles."""
    activation, along = get_activation(kind), profiles.along
    straight = np.linalg.qr(np.column_stack([np.ones_like(along), along]))[0]

    def bent(values: Array) -> Array:
        """Take the affine part from values (u, t, K)."""
        return np.asarray(values - np.einsum("ta,sa,usk->utk", straight, straight, values))

    answers = bent(profiles.answers)
    total = np.maximum(np.einsum("utk,utk->u", answers, answers), np.finfo(np.float64).tiny)

    def residuals(a: Array, b: Array) -> Array:
        shape = bent(activation(a[:, None] * along + b[:, None])[:, :, None] / a[:, None, None])[:, :, 0]
        power = np.maximum(np.einsum("ut,ut->u", shape, shape), np.finfo(np.float64).tiny)
        heights = np.einsum("ut,utk->uk", shape, answers) / power[:, None]
        return np.asarray((answers - shape[:, :, None] * heights[:, None]).reshape(len(a), -1))

    best = fit_pairs(residuals, [_best_start(residuals, len(total), options)])
    slope = float(activation.jet(np.array([options.radius]), 1)[1][0])
    return FittedProfiles(kind, slope, best.a / profiles.slopes, best.b, np.sqrt(best.size / total))


def _best_start(residuals: PairResiduals, count: int, options: ProfileOptions) -> tuple[Array, Array]:
    """Return the guesses (u,), (u,) that leave least."""
    guesses = np.array([(a, b) for a in options.steepness for b in options.biases])
    sizes = [np.linalg.norm(residuals(np.full(count, a), np.full(count, b)), axis=1) for a, b in guesses]
    best = guesses[np.argmin(sizes, axis=0)]
    return best[:, 0], best[:, 1]


def _clear_place(
    network: Network, layer: int, unit: int, rng: np.random.Generator, options: ProfileOptions
) -> tuple[Array, Array]:
    """Return a point (D,) on the kink of a unit, far from all others, and the gradient (D,) across it."""
    tiny = np.finfo(np.float64).tiny
    for count in options.drawn:
        points = options.radius * rng.standard_normal((count, network.n_inputs))
        for _ in range(options.moves):
            values, gradients = _states(network, points)
            normals = gradients[layer][:, :, unit]
            power = np.maximum((normals**2).sum(axis=1), tiny)
            points = points - (values[layer][:, unit] / power)[:, None] * normals
        values, gradients = _states(network, points)
        normals = gradients[layer][:, :, unit]
        lengths = np.linalg.norm(normals, axis=1)
        ends = options.farthest * normals / np.maximum(lengths, tiny)[:, None]
        heights = np.abs(network(points + ends) + network(points - ends) - 2 * network(points)).max(axis=1)
        on_kink = np.abs(values[layer][:, unit]) <= options.on_kink * options.radius * lengths
        usable = on_kink & (lengths > 0) & (heights > 0)
        if usable.any():
            break
    else:
        raise GaveUp(ProfileReason.NO_KINK, unit=unit + 1, layer=layer + 1)
    own = sum(network.hidden[:layer]) + unit
    apart = np.delete(_distances(values, gradients), own, axis=1).min(axis=1, initial=np.inf)
    clear = usable & (apart > options.clear)
    worth = np.where(clear, heights, -1.0) if clear.any() else np.where(usable, apart, -1.0)
    best = int(worth.argmax())
    return points[best], normals[best]


def _states(network: Network, points: Array) -> tuple[list[Array], list[Array]]:
    """Return the pre-activations (n, m) of every hidden layer at ``points``, and the gradients (n, D, m)."""
    values, gradients = [], []
    state = points
    slope = np.broadcast_to(np.eye(network.n_inputs), (len(points), network.n_inputs, network.n_inputs))
    for weights, biases in zip(network.weights[:-1], network.biases[:-1], strict=True):
        values.append(state @ weights + biases)
        gradients.append(slope @ weights)
        state = np.maximum(values[-1], 0.0)
        slope = gradients[-1] * (values[-1] > 0)[:, None]
    return values, gradients


def _distances(values: list[Array], gradients: list[Array]) -> Array:
    """Return the distance (n, units) of every point to every kink; infinite where a unit does not vary."""
    lengths = np.concatenate([np.linalg.norm(each, axis=1) for each in gradients], axis=1)
    heights = np.abs(np.concatenate(values, axis=1))
    return np.where(lengths > 0, heights / np.maximum(lengths, np.finfo(np.float64).tiny), np.inf)
