"""The layers behind a first one, from the surfaces of the second layer's units.

A surface (`bent`) is where V . |z| + U . x + e vanishes, and a unit that reads g(s_i z_i), with slope p of g
below zero, has

    U = kappa sum_i s_i V_i w_i,        kappa = (1 + p) / (1 - p):

linear equations for the signs s_i, the same for all units, in which directions of hyperplanes that a surface
was never followed across are left out. Behind a layer with signs the rest is one hidden layer with known
inputs and units that are nearly right: least squares on rows from anywhere gives outgoing weights, adds units
that no line has met, and leaves out what is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_pairs.bent import Bent
from unweave.methods.relu_pairs.features import FirstUnits
from unweave.methods.shared.kinked.sample_fit import fit_samples
from unweave.networks.network import Network
from unweave.networks.signs import negative_slope, solve_sign_system, solve_signs, to_form, to_network
from unweave.numerics.sign_search import SignOptions


@dataclass(frozen=True, kw_only=True)
class SecondLayerOptions:
    """How the second layer is fitted, and what counts as read."""

    rows_per_parameter: float = 7.0
    """Rows of the fit, for every parameter of the second layer and output."""
    unread: float = 2e-3
    """What the second layer reads of a unit, relative to the most, up to which the unit is an accident."""
    open: float = 0.05
    """Standard error of what a crossing adds to a normal, in lengths of it, from which it is not known."""
    best_known: float = 1e-5
    """The same error up to which surfaces count equally."""
    told_apart: float = 2.0
    """Factor between misfits of two activations that tells which it is."""
    sign_tolerance: float = 0.1
    """Relative misfit of the signs' equations; wrong signs leave more than one."""
    margin: float = 4.0
    """Factor beyond the rows that are looked at up to which a unit that is always active stays so, ..."""
    reach: float = 100.0
    """... and factor on the rows that were asked, without a box."""
    nothing: float = 1e-3
    """Singular value of an affine rest, relative to the largest one, that is error."""
    signs: SignOptions = field(default_factory=SignOptions)


@dataclass(frozen=True, eq=False)
class Signed:
    """A first layer with signs, and what the second one reads of it."""

    layer: FirstUnits
    activation: str
    weights: Array
    """(m, k)"""
    biases: Array
    """(k,)"""
    clear: bool
    """Whether no other signs or activation explain the surfaces."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two hidden layers and an affine output."""

    network: Network
    residual: float
    """Of the fit of the second layer, relative to the spread of the answers."""


def rows_wanted(first: int, second: int, outputs: int, options: SecondLayerOptions) -> int:
    """Return the number of rows that a second layer of so many units is fitted to."""
    parameters = second * (first + 1 + outputs) + (first + 1) * outputs
    return int(options.rows_per_parameter * parameters / min(outputs, 4)) + 200


def with_signs(surfaces: Sequence[Bent], names: Sequence[str], options: SecondLayerOptions) -> Signed:
    """Give the units of the first layer that are read their signs, and tell their activation."""
    layer = surfaces[0].layer
    forms = [surface.absolute() for surface in surfaces]
    heights = np.stack([form[0] for form in forms], axis=1)
    reads = np.abs(heights).max(axis=1)
    kept = reads > options.unread * reads.max()
    weights, biases, heights = layer.weights[:, kept], layer.biases[kept], heights[kept]
    blocks, right = [], []
    for surface, (_, slope, _), height in zip(surfaces, forms, heights.T, strict=True):
        unknown = weights[:, surface.bend_errors[kept] > options.open]
        seen = _complement(unknown, surface.basis)
        weight = 1 / (options.best_known + float(np.median(surface.bend_errors)))
        blocks.append(weight * (seen.T @ (weights * height)))
        right.append(weight * (seen.T @ slope))
    matrix, sides = np.concatenate(blocks), np.concatenate(right)
    solutions = []
    for name in names:
        p = negative_slope(name)
        kappa = (1 + p) / (1 - p)
        tolerance = options.sign_tolerance
        solutions.append(solve_sign_system(kappa * matrix, sides, tolerance, options=options.signs))
    best = min(range(len(names)), key=lambda i: (not solutions[i].solved, solutions[i].residual))
    solution, p = solutions[best], negative_slope(names[best])
    others = [each.residual for each in solutions if each is not solution]
    apart = all(residual >= options.told_apart * solution.residual for residual in others)
    signed = FirstUnits(weights * solution.signs, biases * solution.signs, p)
    offsets = np.array([form[2] for form in forms])
    start = 2 / (1 - p) * heights, offsets - (1 + p) / (1 - p) * signed.biases @ heights
    return Signed(signed, names[best], *start, solution.solved and solution.unique and apart)


def with_known(signed: Signed, network: Network) -> Signed:
    """Return the layers of ``network``, which explains most rows, beside what surfaces say.

    Of two units that are the same, least squares leaves one out.
    """
    (first, second, _), name = network.weights, signed.activation
    if first.shape != signed.layer.weights.shape or network.activations[0] != name:
        return signed
    lengths = np.linalg.norm(first, axis=0)
    layer = FirstUnits(first / lengths, network.biases[0] / lengths, signed.layer.slope)
    weights = np.hstack([second * lengths[:, None], signed.weights])
    return Signed(layer, name, weights, np.append(network.biases[1], signed.biases), signed.clear)


def fit_behind(
    points: Array,
    values: Array,
    signed: Signed,
    floor: float,
    rng: np.random.Generator,
    options: SecondLayerOptions,
    on_step: Callable[[int, float], None] | None = None,
    in_box: bool = False,
) -> Pair | None:
    """Fit the layers behind a signed one to values (n, K) at points (n, d); None if there is nothing."""
    known, name = signed.layer, signed.activation
    states = known.values(points)
    start = signed.weights, signed.biases
    errors = 1 + np.linalg.norm(points, axis=1) / np.sqrt(points.shape[1])  # rounding grows with the answers
    fit = fit_samples(
        states, values, None, name, floor=floor, rng=rng, start=start, on_step=on_step, errors=errors
    )
    if fit.search.interrupted:
        raise KeyboardInterrupt
    if not fit.network.hidden:
        return None
    form = to_form(fit.network)
    solution = solve_signs(form, negative_slope(name), options.sign_tolerance, options=options.signs)
    behind = to_network(form, solution, name)
    if behind.skip is not None:
        places = points if in_box else options.reach * points
        behind = _with_always_active(behind, known.values(places), options)
    network = Network(
        [known.weights, *behind.weights], [known.biases, *behind.biases], [name, name, "identity"]
    )
    return Pair(network, fit.search.fit.residual)


def signs_are_unique(network: Network, options: SecondLayerOptions) -> bool:
    """Return whether no other signs of a network's units give the same function."""
    first, second, outer = network.weights
    name = network.activations[0]
    kappa = (1 + negative_slope(name)) / (1 - negative_slope(name))
    matrix = kappa * np.einsum("di,ik->kdi", first, second).reshape(-1, first.shape[1])
    below = solve_sign_system(matrix, matrix.sum(axis=1), options=options.signs)
    behind = Network([second, outer], network.biases[1:], [name, "identity"])
    above = solve_signs(to_form(behind), negative_slope(name), options=options.signs)
    return below.unique and above.unique


def _complement(directions: Array, basis: Array) -> Array:
    """Return an orthonormal basis (d, r) of what is left of ``basis`` (d, q) without directions (d, u)."""
    inside = basis.T @ directions
    left, values, _ = np.linalg.svd(inside, full_matrices=True)
    rank = int((values > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)).sum())
    return np.asarray(basis @ left[:, rank:])


def _with_always_active(network: Network, states: Array, options: SecondLayerOptions) -> Network:
    """Return the network with units that are active at all states (n, m) in place of its skip matrix."""
    assert network.skip is not None
    left, sizes, right = np.linalg.svd(network.skip, full_matrices=False)
    count = int((sizes > options.nothing * sizes[0]).sum())
    columns, outer = left[:, :count], sizes[:count, None] * right[:count]
    bias = options.margin * np.abs(states @ columns).max(axis=0) + 1
    (incoming, outgoing), (biases, offset) = network.weights, network.biases
    return Network(
        [np.hstack([incoming, columns]), np.vstack([outgoing, outer])],
        [np.append(biases, bias), offset - bias @ outer],
        network.activations,
    )
