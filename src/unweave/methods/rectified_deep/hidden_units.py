"""Units of the last hidden layer that far kinks do not show, or only in part.

A unit that reads only what makes it smaller is off everywhere far out, and one that is on in a thousandth of
all directions shows few of its weights. All else is right to rounding by then, so that with h what the last
hidden layer reads, near by

    f(x) - (all other units)  =  a g(w . h(x) + b) + c

has one unit's parameters as unknowns: `missing_unit` finds them. A unit that is there but wrong is left out
first; the one whose own derivatives explain most of what is left is the likeliest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.networks.missing_unit import MissingUnit, MissingUnitOptions, missing_unit
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import fit_values


@dataclass(frozen=True, kw_only=True)
class HiddenUnitOptions:
    """How units that far kinks do not show are searched for."""

    settled: float = 1e-5
    """Relative residual below which nothing is missing: far kinks leave less."""
    units: int = 3
    """Units that are found at most."""
    suspects: int = 2
    """Units that are left out in turn, to be found anew."""
    explained: float = 1e-4
    """Part of what was left that the right unit leaves: no other is tried then."""
    falling: int = 100
    """Directions in which a unit reads only what makes it smaller, tried besides as many random ones."""


def with_hidden_units(
    network: Network, points: Array, answers: Array, rng: np.random.Generator, options: HiddenUnitOptions
) -> Network:
    """Add units to the last hidden layer while ``answers`` (n, K) at ``points`` (n, D) ask for them.

    Return ``network`` as it is if they do not explain the answers in the end.
    """
    state = points
    if len(network.hidden) > 1:
        before = Network(network.weights[:-2], network.biases[:-2], network.activations[:-2])
        state = before(points)
    model = NetworkParameters.from_network(
        Network(network.weights[-2:], network.biases[-2:], network.activations[-2:])
    )
    enough = options.settled * float(np.linalg.norm(answers - answers.mean(axis=0)))
    for _ in range(options.units):
        if np.linalg.norm(answers - model.values(state)) <= enough:
            break
        found = _best(model, state, answers, rng, options)
        if found is None:
            return network
        model = found
        if (
            np.linalg.norm(answers - model.values(state)) > enough
        ):  # several are missing: they share what is left
            model = fit_values(model, state, answers).model
    if np.linalg.norm(answers - model.values(state)) > enough:
        return network  # units that only fill gaps would be no part of the target
    last = model.to_network()
    return Network(
        [*network.weights[:-2], *last.weights], [*network.biases[:-2], *last.biases], network.activations
    )


def _best(
    model: NetworkParameters,
    state: Array,
    answers: Array,
    rng: np.random.Generator,
    options: HiddenUnitOptions,
) -> NetworkParameters | None:
    """Return ``model`` with one more unit, or with one found anew; None where neither explains anything."""
    best: tuple[MissingUnit, NetworkParameters] | None = None
    first = float(np.linalg.norm(answers - model.values(state)))
    suspects = _suspects(model, state, answers)[: options.suspects]
    for others in (model, *(_without(model, unit) for unit in suspects)):
        before = float(np.linalg.norm(answers - others.values(state)))
        falling = -np.abs(rng.standard_normal((model.n_inputs, options.falling)))
        search = MissingUnitOptions(directions=options.falling)
        unit = missing_unit(others, state, answers, rng, falling, search, frozen=True)
        if unit is None:
            continue
        unit = replace(unit, left=unit.left * before / first)  # relative to the same for all
        if best is None or unit.left < best[0].left:
            best = unit, others
        if unit.left <= options.explained:
            break
    if best is None or best[0].left >= 1:
        return None
    found = best[0].added_to(best[1])
    offset = (answers - found.values(state)).mean(axis=0)  # what was constant did not count
    return replace(found, biases=(found.biases[0], found.biases[1] + offset))


def _suspects(model: NetworkParameters, state: Array, answers: Array) -> list[int]:
    """Return the units in the order in which their own parameters explain what is left, the most first."""
    left = answers - model.values(state)
    reads = np.column_stack([state, np.ones(len(state))])
    slopes = model.activation.jet(state @ model.weights[0] + model.biases[0], 1)[1]
    stays = []
    for unit, outgoing in enumerate(model.weights[1]):
        columns = (slopes[:, unit, None] * reads)[:, None, :] * outgoing[:, None]
        flat = columns.reshape(left.size, -1)
        stays.append(float(np.linalg.norm(left.ravel() - flat @ np.linalg.lstsq(flat, left.ravel())[0])))
    return [int(unit) for unit in np.argsort(stays)]


def _without(model: NetworkParameters, unit: int) -> NetworkParameters:
    """Return ``model`` without one unit."""
    return replace(
        model,
        weights=(np.delete(model.weights[0], unit, axis=1), np.delete(model.weights[1], unit, axis=0)),
        biases=(np.delete(model.biases[0], unit), model.biases[1]),
    )
