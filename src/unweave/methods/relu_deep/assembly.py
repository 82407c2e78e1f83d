"""From units known up to signs to layers, and to a network.

Where a layer of m units z = h W + b is read by functions that are affine in (|z|, h),

    sum_i H_i |z_i| + S^T h + c,        H (m, K), S (n_in, K),

the signs s_i of its units are those that explain S: an `AbsoluteForm` in h, whose signs
`networks.signs` finds. For an inner layer the functions are the units of the next one, for the last layer
the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_deep.trace import Unit
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.activations import get_activation
from unweave.networks.lifted_layers import Layer, LiftedLayers
from unweave.networks.network import Network
from unweave.networks.signs import SignSolution, negative_slope, solve_signs
from unweave.numerics.sign_search import SignOptions


@dataclass(frozen=True, kw_only=True)
class AssemblyOptions:
    """How outputs and signs are fitted to units as they were measured."""

    signs: SignOptions = field(default_factory=SignOptions)
    sign_tolerance: float = 1e-4
    """Relative misfit of the signs' equations that the errors of the units may cause."""
    rank: float = 1e-12
    """Singular values of the fit of outputs, relative to the largest one, below which they are zero."""
    reweightings: int = 15
    """Times that rows are weighted anew by their residuals."""
    agrees: float = 1e-7
    """Misfit above which a row counts less, relative to the typical answer at its distance."""
    always_active: float = 1e-7
    """Size of an affine rest that is no rounding, relative to the largest one."""
    margin: float = 4.0
    """Factor beyond the rows that were asked up to which a unit that is always active stays so."""


DEFAULT_ASSEMBLY_OPTIONS = AssemblyOptions()


def layer_of(units: Sequence[Unit]) -> Layer:
    """Return the layer of units that were found with the signs of the layer before them."""
    alphas = np.stack([unit.alpha for unit in units], axis=1)
    return Layer(alphas[:-1], alphas[-1])


def signs_from_next_layer(
    known: LiftedLayers,
    units: Sequence[Unit],
    activation: str,
    options: AssemblyOptions = DEFAULT_ASSEMBLY_OPTIONS,
) -> SignSolution:
    """Find the signs of the last layer of ``known`` from units of the next one, found without them."""
    form = known.absolute_form(np.stack([unit.alpha for unit in units], axis=1))
    return solve_signs(form, negative_slope(activation), options.sign_tolerance, options=options.signs)


def signed_unit(unit: Unit, known: LiftedLayers, signs: Array, slope: float) -> Unit:
    """Return a unit in terms of the signed states, where |z| = (2 g(s z) - (1+p) s z) / (1-p)."""
    form = known.absolute_form(unit.alpha[:, None])
    weights = 2 / (1 - slope) * form.heights[:, 0]
    bias = form.offset - (1 + slope) / (1 - slope) * form.heights[:, 0] @ (signs * form.biases)
    return Unit(np.append(weights, bias), unit.unread, unit.confirmed, unit.denied)


@dataclass(frozen=True, eq=False)
class OutputFit:
    """Outputs as affine functions of (|z|, h) of the last layer."""

    form: AbsoluteForm
    """In the states before the last layer."""
    misfits: Array
    """(n,) error of every row, relative to the typical answer at its distance."""


def fit_outputs(
    known: LiftedLayers,
    layer: Layer,
    points: Array,
    answers: Array,
    options: AssemblyOptions = DEFAULT_ASSEMBLY_OPTIONS,
) -> OutputFit:
    """Fit affine functions of (|z|, h) of ``layer`` behind ``known`` to answers (n, K) at points (n, d).

    Rows get weights 1 / |residual|, so that those at which a unit is missing do not spoil the fit of the
    others, as long as these are many; their misfits tell them.
    """
    lifted = known.with_unsigned(layer, narrow=False)
    size = 1 + np.linalg.norm(points, axis=1) / np.sqrt(points.shape[1])
    features = lifted.values(points) / size[:, None]
    scale = np.linalg.norm(features, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    wanted = answers / size[:, None]
    typical = float(np.sqrt(np.mean(wanted**2)))
    typical = typical if typical > 0 else 1.0
    weights = np.ones((len(points), 1))
    for _ in range(options.reweightings):
        scaled = weights * features / scale
        solution = np.linalg.lstsq(scaled, weights * wanted, rcond=options.rank)[0] / scale[:, None]
        misfits = np.abs(features @ solution - wanted).max(axis=1) / typical
        if misfits.max() <= options.agrees:
            break
        weights = 1 / np.sqrt(np.maximum(misfits, options.agrees))[:, None]
    return OutputFit(lifted.absolute_form(solution), misfits)


def output_signs(
    fit: OutputFit,
    units: Sequence[Unit],
    known: LiftedLayers,
    activation: str,
    options: AssemblyOptions = DEFAULT_ASSEMBLY_OPTIONS,
) -> SignSolution:
    """Find the signs of the last layer; leave out equations of what units do not read for certain."""
    unread = {unit - known.top.start for each in units for unit in each.unread}
    rows = [row for row in range(len(fit.form.weights)) if row not in unread]
    form = fit.form
    reduced = AbsoluteForm(form.weights[rows], form.biases, form.heights, form.slope[rows], form.offset)
    return solve_signs(reduced, negative_slope(activation), options.sign_tolerance, options=options.signs)


def assemble(
    known: LiftedLayers, units: Sequence[Unit], fit: OutputFit, signs: Array, activation: str
) -> tuple[Network, Array]:
    """Return the network, and the part (n_in, K) of S that it does not explain."""
    slope, name = negative_slope(activation), get_activation(activation).name
    form, half = fit.form, (1 + slope) / 2
    weights, biases = form.weights * signs, form.biases * signs
    outer = 2 / (1 - slope) * form.heights
    rest = form.slope - half * weights @ outer
    # What an unread unit adds beyond is affine there: it is the weight of those that do not read it.
    readers: dict[int, list[int]] = {}
    for index, unit in enumerate(units):
        for read in unit.unread:
            readers.setdefault(read - known.top.start, []).append(index)
    for read, indices in readers.items():
        change = np.linalg.lstsq(outer[indices].T, rest[read], rcond=None)[0]
        weights[read, indices] += change
        rest[read] -= change @ outer[indices]
    offset = form.offset - half * biases @ outer
    layers = known.layers
    network = Network(
        [*(layer.weights for layer in layers), weights, outer],
        [*(layer.biases for layer in layers), biases, offset],
        [name] * (len(layers) + 1) + ["identity"],
    )
    return network, rest


def with_always_active(
    network: Network, rest: Array, points: Array, options: AssemblyOptions = DEFAULT_ASSEMBLY_OPTIONS
) -> Network:
    """Add units to the last hidden layer that are active at all points and contribute ``rest`` (n_in, K)."""
    left, sizes, right = np.linalg.svd(rest, full_matrices=False)
    count = int((sizes > options.always_active * sizes[0]).sum())
    below = Network(network.weights[:-2], network.biases[:-2], network.activations[:-2])
    states = below(points)
    columns, outer = left[:, :count], sizes[:count, None] * right[:count]
    bias = options.margin * np.abs(states @ columns).max(axis=0) + 1
    return Network(
        [
            *network.weights[:-2],
            np.hstack([network.weights[-2], columns]),
            np.vstack([network.weights[-1], outer]),
        ],
        [*network.biases[:-2], np.append(network.biases[-2], bias), network.biases[-1] - bias @ outer],
        network.activations,
    )
