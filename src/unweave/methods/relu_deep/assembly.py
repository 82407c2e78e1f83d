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
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.output_fit import OutputFitOptions
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.activations import get_activation
from unweave.networks.network import Network
from unweave.networks.signs import SignSolution, negative_slope, solve_signs
from unweave.numerics.sign_search import SignOptions


@dataclass(frozen=True, kw_only=True)
class AssemblyOptions:
    """How outputs and signs are fitted to units as they were measured."""

    signs: SignOptions = field(default_factory=SignOptions)
    fit: OutputFitOptions = field(default_factory=OutputFitOptions)
    sign_tolerance: float = 1e-4
    """Relative misfit of the signs' equations that the errors of the units may cause."""
    always_active: float = 1e-7
    """Size of an affine rest that is no rounding, relative to the largest one."""
    margin: float = 4.0
    """Factor beyond the rows that were asked up to which a unit that is always active stays so."""


DEFAULT_ASSEMBLY_OPTIONS = AssemblyOptions()


def absolute_form(known: LiftedLayers, alphas: Array) -> AbsoluteForm:
    """Return alphas^T phi for alphas (F, K) in terms of |z| of the last layer and what it reads."""
    matrix, width = known.stages[-1].matrix, known.stages[-1].width
    return AbsoluteForm(
        matrix[:, :-1].T, matrix[:, -1], alphas[:width], alphas[width:-1], np.asarray(alphas[-1])
    )


def signed_layers(known: LiftedLayers, signs: Array, slope: float) -> LiftedLayers:
    """Give the last layer its signs (m,), and all layers the p for which they are right."""
    *below, last = known.stages
    return LiftedLayers(known.n_inputs, below, slope).with_signed(signs[:, None] * last.matrix)


def signs_from_next_layer(
    known: LiftedLayers,
    units: Sequence[Unit],
    activation: str,
    options: AssemblyOptions = DEFAULT_ASSEMBLY_OPTIONS,
) -> SignSolution:
    """Find the signs of the last layer of ``known`` from units of the next one, found without them."""
    form = absolute_form(known, np.stack([unit.alpha for unit in units], axis=1))
    return solve_signs(form, negative_slope(activation), options.sign_tolerance, options=options.signs)


def signed_unit(unit: Unit, known: LiftedLayers, signs: Array, slope: float) -> Unit:
    """Return a unit in terms of the signed states, where |z| = (2 g(s z) - (1+p) s z) / (1-p)."""
    form = absolute_form(known, unit.alpha[:, None])
    weights = 2 / (1 - slope) * form.heights[:, 0]
    bias = form.offset - (1 + slope) / (1 - slope) * form.heights[:, 0] @ (signs * form.biases)
    return Unit(np.append(weights, bias), unit.unread, unit.confirmed, unit.denied)


def behind_units(known: LiftedLayers, units: Sequence[Unit]) -> LiftedLayers:
    """Add units, found with the signs of the layers before them, as a layer whose signs are open."""
    return known.with_unsigned(np.stack([unit.alpha for unit in units]))


def output_signs(
    form: AbsoluteForm,
    units: Sequence[Unit],
    known: LiftedLayers,
    activation: str,
    options: AssemblyOptions = DEFAULT_ASSEMBLY_OPTIONS,
) -> SignSolution:
    """Find the signs of the last layer; leave out equations of what units do not read for certain."""
    unread = {unit - known.top.start for each in units for unit in each.unread}
    rows = [row for row in range(len(form.weights)) if row not in unread]
    reduced = AbsoluteForm(form.weights[rows], form.biases, form.heights, form.slope[rows], form.offset)
    return solve_signs(reduced, negative_slope(activation), options.sign_tolerance, options=options.signs)


def assemble(
    known: LiftedLayers, units: Sequence[Unit], form: AbsoluteForm, signs: Array, activation: str
) -> tuple[Network, Array]:
    """Return the network, and the part (n_in, K) of S that it does not explain."""
    slope, name = negative_slope(activation), get_activation(activation).name
    half = (1 + slope) / 2
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
    layers = [stage.matrix for stage in known.stages]
    network = Network(
        [*(matrix[:, :-1].T for matrix in layers), weights, outer],
        [*(matrix[:, -1] for matrix in layers), biases, offset],
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
