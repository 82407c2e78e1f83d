"""From layers known up to the last signs to a network.

Behind a last layer z = A phi with open signs the outputs are V^T |z| + U^T phi + c. As in `inner_signs` the
signs are those that explain U, now of every output. What is open of a unit's weights acts where no row was
asked on the unit's surface; beyond, the unit is on or off, and what it adds there is part of U. A rest of U
that nothing explains is given as units that are active wherever rows were asked, and so are the channels of
inner layers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.relu_layers.inner_signs import signs_beside_channels
from unweave.methods.relu_layers.tower import Tower
from unweave.methods.shared.surfaces.output_fit import OutputFit, OutputFitOptions
from unweave.networks.network import Network
from unweave.networks.signs import SignSolution, solve_sign_system
from unweave.numerics.sign_search import SignOptions


@dataclass(frozen=True, kw_only=True)
class LastLayerOptions:
    """How signs are fitted to units as they were measured."""

    signs: SignOptions = field(default_factory=SignOptions)
    fit: OutputFitOptions = field(default_factory=OutputFitOptions)
    sign_tolerance: float = 1e-4
    """Relative misfit of the signs' equations that the errors of the units may cause."""
    nothing: float = 1e-7
    """Outgoing weight, relative to the largest one, below which a unit is none; all have gradient one."""
    rest: float = 1e-3
    """Part of U that is not explained, relative to U, above which a unit is always active."""
    always_active: float = 1e-7
    """Size of a rest that is no rounding, relative to the largest one."""
    margin: float = 4.0
    """Factor beyond the rows that were asked up to which a unit that is always active stays so."""


def idle_units(fit: OutputFit, width: int, options: LastLayerOptions) -> IntArray:
    """Return the units of the last layer that no output reads."""
    heights = np.abs(fit.solution[:width]).max(axis=1)
    return np.flatnonzero(heights <= options.nothing * heights.max())


@dataclass(frozen=True, eq=False)
class Assembled:
    """A network in the reduced inputs."""

    network: Network
    signs: SignSolution
    always_active: int
    """Units, of all layers, that are active wherever rows were asked: signs and bias are not known."""


def assemble(tower: Tower, fit: OutputFit, name: str, options: LastLayerOptions) -> Assembled:
    """Return the network of a tower whose last layer the outputs read."""
    top, slope, width = tower.top, tower.slope, tower.top.width
    heights, slopes, offset = fit.solution[:width], fit.solution[width:-1], fit.solution[-1]
    matrix = top.matrix
    solution = _signs(tower, matrix, heights, slopes, options)
    signed = matrix * solution.signs[:, None]
    outer, half = 2 / (1 - slope) * heights, (1 + slope) / 2
    rest = slopes - half * signed[:, :-1].T @ outer
    offset = offset - half * signed[:, -1] @ outer
    if solution.solved:
        change, signed = _open_weights(tower, signed, outer, rest, fit.points)
        rest = rest - change
    size = max(float(np.linalg.norm(slopes)), np.finfo(np.float64).tiny)
    last = np.zeros((0, matrix.shape[1]))
    if np.linalg.norm(rest) > options.rest * size:
        left, values, right = np.linalg.svd(rest, full_matrices=False)
        count = int((values > options.always_active * values[0]).sum())
        channels, read = left[:, :count].T, values[:count, None] * right[:count]
        if solution.solved or slope != 0:
            phi = tower.below(len(tower.layers) - 1).values(fit.points)
            turn = active_sides(phi[:, :-1] @ channels.T)
            last = np.hstack([turn[:, None] * channels, np.zeros((count, 1))])
            outer = np.vstack([outer, turn[:, None] * read])
        else:
            # Not the unit itself, as signs are not known: z = relu(z) - relu(-z) holds wherever it switches.
            pairs = np.hstack([channels, np.zeros((count, 1))])
            signed = np.vstack([signed, pairs, -pairs])
            outer = np.vstack([outer, read, -read])
    layers = [(layer.matrix, layer.channels) for layer in tower.layers[:-1]] + [(signed, last)]
    network = _as_network(tower, layers, outer, offset, fit.points, name, options)
    passed = sum(len(layer.channels) for layer in tower.layers[:-1])
    return Assembled(network, solution, passed + len(outer) - width)


def active_sides(values: Array) -> Array:
    """Return signs (a,) with which linear functions, given values (n, a), are least negative."""
    return np.where(-values.min(axis=0) <= values.max(axis=0), 1.0, -1.0)


def _signs(
    tower: Tower, matrix: Array, heights: Array, slopes: Array, options: LastLayerOptions
) -> SignSolution:
    """Find the signs of the last layer; project out what is open of its units."""
    basis = np.eye(matrix.shape[1] - 1)
    free = np.hstack([unit.open[:-1] for unit in tower.top.units])
    if free.shape[1]:
        left, values, _ = np.linalg.svd(free, full_matrices=True)
        basis = left[:, int((values > 1e-6).sum()) :]
    factor = (1 + tower.slope) / (1 - tower.slope)
    read = basis.T @ matrix[:, :-1].T
    system = factor * np.einsum("qi,ik->kqi", read, heights).reshape(-1, len(matrix))
    right = (basis.T @ slopes).T.reshape(-1)
    solution = solve_sign_system(system, right, options.sign_tolerance, options=options.signs)
    if solution.solved or not basis.shape[1]:
        return solution
    # Units that are always active leave equations to the others if there are more outputs than such units.
    beside = signs_beside_channels(read.T, heights.T, (basis.T @ slopes).T, factor)
    return solution if beside is None else replace(solution, signs=beside[0])


def _open_weights(
    tower: Tower, signed: Array, outer: Array, rest: Array, points: Array
) -> tuple[Array, Array]:
    """Give the affine rest to the open weights of units that are on where these act.

    Return what of the rest they explain, and the units.
    """
    phi = tower.below(len(tower.layers) - 1).values(points)
    size = np.linalg.norm(phi, axis=1)
    owners = []
    for k, unit in enumerate(tower.top.units):
        on = phi @ signed[k] > 0
        for column in unit.open.T:
            acts = np.abs(phi @ column) > 1e-9 * size
            if on[acts].sum() * 2 > acts.sum():
                owners.append((k, column))
    if not owners:
        return np.zeros_like(rest), signed
    system = np.stack([np.outer(column[:-1], outer[k]).ravel() for k, column in owners], axis=1)
    amounts = np.linalg.lstsq(system, rest.ravel(), rcond=1e-8)[0]
    changed = signed.copy()
    for (k, column), amount in zip(owners, amounts, strict=True):
        changed[k] += amount * column
    return (system @ amounts).reshape(rest.shape), changed


def _as_network(
    tower: Tower,
    layers: list[tuple[Array, Array]],
    outer: Array,
    offset: Array,
    points: Array,
    name: str,
    options: LastLayerOptions,
) -> Network:
    """Return the network, its channels as units with a bias that keeps them active; readers subtract it."""
    weights, biases, shift = [], [], np.zeros(0)
    for number, (matrix, channels) in enumerate(layers):
        both = np.vstack([matrix, channels])
        bias = both[:, -1].copy()
        if len(shift):
            bias -= both[:, -1 - len(shift) : -1] @ shift
        read = tower.below(number).values(points)
        shift = options.margin * np.maximum(-(read @ channels.T).min(axis=0, initial=0.0), 0.0) + 1
        bias[len(matrix) :] += shift
        weights.append(both[:, :-1].T)
        biases.append(bias)
    if len(shift):
        offset = offset - shift @ outer[-len(shift) :]
    return Network([*weights, outer], [*biases, offset], [name] * len(layers) + ["identity"])


def take_back(tower: Tower, network: Network, signs: Array, points: Array) -> None:
    """Give a tower its network's parameters after a polish; ``signs`` (m,) are those of the last layer."""
    states, shift = points[:1], np.zeros(0)
    slope = tower.slope
    for number, layer in enumerate(tower.layers):
        width, weights = layer.width, network.weights[number]
        biases = network.biases[number] + weights[len(weights) - len(shift) :].T @ shift
        rows = np.hstack([weights.T, biases[:, None]])[:width]
        for unit, row, sign in zip(
            layer.units, rows, signs if number == len(tower.layers) - 1 else np.ones(width), strict=True
        ):
            unit.alpha = sign * row
        tower.changed(number + 1)
        z = states @ weights + network.biases[number]
        states = np.where(z > 0, z, slope * z)
        if number < len(tower.layers) - 1:
            shift = states[0, width:] - tower.below(number + 1).values(points[:1])[0, width:-1]


def known_network(tower: Tower, count: int, points: Array, name: str, options: LastLayerOptions) -> Network:
    """Return the first ``count`` layers, which are signed."""
    layers = [(layer.matrix, layer.channels) for layer in tower.layers[:count]]
    width = sum(map(len, layers[-1]))
    whole = _as_network(tower, layers, np.zeros((width, 1)), np.zeros(1), points, name, options)
    return Network(whole.weights[:-1], whole.biases[:-1], whole.activations[:-1])
