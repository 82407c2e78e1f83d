"""Rows to ask of a target when a network is judged."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations import get_activation
from unweave.networks.model import Model
from unweave.networks.network import Network
from unweave.probing.findings import Findings
from unweave.targets.answer_table import checked_rows, whole_number
from unweave.targets.change_of_inputs import in_normalised_inputs
from unweave.targets.placement import REACH, points_at_units
from unweave.targets.region import NormalisedQueries, Region
from unweave.targets.witnesses import ROWS_ASKED_AGAIN

FEWEST_ROWS = 100
"""Fresh rows at least."""
FEWEST_ROWS_TIGHT = 30
"""The same where the budget is nearly used up: what agrees rules out a tenth of the inputs at most."""
ROWS_PER_PARAMETER = 1 / 20
"""Fresh rows per parameter of a large network."""
FARTHEST_KINK = 1e6
"""Typical radii of the region up to which rows are placed at units with a kink, where there is no box."""
ALL_CORNERS_INPUTS = 12
"""Inputs up to which all corners of a box are asked."""
MOST_CORNERS = 1024
"""Corners of a box with more inputs that are asked: a share of 0.3 % in which a unit acts is met."""
MOST_EXAMPLES = 300
"""Examples that are asked: one in a hundred that is wrong is met in 19 of 20 runs."""
_STREAM = 0x656C7365  # seeds the choice of rows that are no fresh ones
_MOST_NUMBERS = 50_000_000  # of fresh rows together (400 MB), beyond the fewest of very many inputs
_FAR_ROWS_PER_UNIT = 4  # rows far along the hyperplane of a kinked unit ...
_FAR_ROWS = (32, 128)  # ... but so many at least and at most
_FEWEST_FAR_ROWS = 8  # the same where the budget is nearly used up
_FARTHEST_ALONG = 1e3  # normalised inputs: farther out, rows are heard with less and less precision
_CLIMBS = 4  # corners with the largest errors, from which neighbouring corners are asked ...
_CLIMBING_STEPS = 3  # ... so many times, towards where the error grows ...
_MOST_NEIGHBOURS = 64  # ... along so many inputs


@dataclass(frozen=True, eq=False)
class Demands:
    """What the user wants a network to be tried on, beside the fresh rows that every network is tried on."""

    further: int = 0
    """Fresh rows, drawn at random from the region."""
    rows: Array | None = None
    """(n, D) rows of the user's own, all of them."""
    examples: Array | None = None
    """(n, D) typical inputs, some of them."""
    sparing: bool = False
    """Whether rows are few."""

    def refuse_rows_outside(self, region: Region) -> None:
        """Raise if a row of the user's own may not be asked."""
        if self.rows is None:
            return
        outside = int((~region.contains(region.to_normalised(self.rows))).sum())
        if outside:
            raise InvalidInput(f"verify must hold rows inside the domain. Got {outside} outside instead.")


NO_DEMANDS = Demands()


def rows_to_verify(parameters: int, hidden: tuple[int, ...], region: Region, kinked: bool) -> int:
    """Return how many rows are asked when a network is judged, at most, unless the user demands more."""
    every = region.n_inputs <= ALL_CORNERS_INPUTS
    climbs = _CLIMBS * _CLIMBING_STEPS * min(region.n_inputs, _MOST_NEIGHBOURS)
    corners = 2**region.n_inputs if every else MOST_CORNERS + climbs
    elsewhere = corners if region.has_box else _far_rows(sum(hidden)) if kinked else 0
    return fresh_count(parameters, hidden) + ROWS_ASKED_AGAIN + elsewhere


@dataclass(frozen=True)
class RowsLeft:
    """What a verdict may ask."""

    left: int | None = None
    """Rows that may still be sent; None for no limit."""
    sparing: bool = False
    """Whether rows are so few that a third of them is enough at once: other networks may come to be tried."""

    def of(self, wanted: int, fewest: int, then: int) -> int:
        """Return how many of the rows ``wanted`` to ask: ``fewest`` at least, ``then`` others left over."""
        if self.left is None or (not self.sparing and self.left >= wanted + then):
            return wanted
        able = self.left // 3 if self.sparing else self.left - then
        return int(np.clip(able, min(fewest, wanted), wanted))


NO_LIMIT = RowsLeft()


def fresh_count(parameters: int, hidden: tuple[int, ...], fewest: int = FEWEST_ROWS) -> int:
    """Return how many fresh rows a network of this size is tried on."""
    return max(fewest, int(np.ceil(ROWS_PER_PARAMETER * parameters)), *hidden, 0)


def demands(verify: Any, examples: Any, n_inputs: int) -> Demands:
    """Check what the user gave: ``verify`` is a number of rows, or rows."""
    typical = None if examples is None else np.asarray(examples, dtype=np.float64)
    if verify is None:
        return Demands(examples=typical)
    if np.ndim(verify) == 0:
        return Demands(further=whole_number(verify, "verify", least=0), examples=typical)
    return Demands(rows=checked_rows(verify, n_inputs), examples=typical)


def fresh_rows(
    network: Network | Model,
    findings: Findings,
    rng: Generator,
    fewest: int = FEWEST_ROWS,
    further: int = 0,
    rows_left: RowsLeft = NO_LIMIT,
) -> tuple[Array, int]:
    """Return normalised rows, and how many of them are drawn at random from the region.

    Half or more are placed at the units of the first layer; ``further`` ones are drawn besides. There are
    fewer where ``rows_left`` says so.
    """
    region = findings.region
    if not isinstance(network, Network):
        return _fresh_rows_of_model(network, region, rng, fewest, further, rows_left)
    size = network.n_parameters, network.hidden
    least = fresh_count(*size, min(fewest, FEWEST_ROWS_TIGHT))
    far = _FEWEST_FAR_ROWS if network.hidden and not region.has_box and _is_kinked(network) else 0
    count = rows_left.of(fresh_count(*size, fewest), least, far + ROWS_ASKED_AGAIN)
    count = min(count, max(fewest, _MOST_NUMBERS // region.n_inputs))
    points = region.sample(count, rng)
    if not network.hidden:
        return np.concatenate([points, region.sample(further, rng)]), count + further
    width, boxed, kinked = network.hidden[0], region.has_box, _is_kinked(network)
    placed = min(count, max(count // 2, width))  # every unit is looked at, if there are rows enough
    drawn = count - placed
    ordinary = Region.standard(region.n_inputs)
    if findings.searched and not boxed and kinked and region.covers(ordinary):
        # A unit that never switches in a region that was found may switch where inputs are by default.
        points[len(points) - count // 4 :] = region.to_normalised(ordinary.sample(count // 4, rng))
        drawn = max(0, drawn - count // 4)
    inner = in_normalised_inputs(network, region)
    weights, biases = inner.weights[0], inner.biases[0]
    units = rng.permutation(max(width, placed))[:placed] % width
    # A kink far out is as sharp as one nearby, and an answer there as good.
    reach = FARTHEST_KINK if kinked and not boxed else REACH
    points[:placed] = points_at_units(weights, biases, units, region, rng, reach=reach)
    return np.concatenate([points, region.sample(further, rng)]), drawn + further


def _fresh_rows_of_model(
    model: Model, region: Region, rng: Generator, fewest: int, further: int, rows_left: RowsLeft
) -> tuple[Array, int]:
    """Return rows of the region, and as many moved to where an error of the model would show."""
    wanted = max(2 * fewest, model.rows_to_verify)
    count = rows_left.of(wanted, min(fewest, FEWEST_ROWS_TIGHT), ROWS_ASKED_AGAIN)
    drawn = max(1, count // 2)
    placed = model.placed(region.to_inputs(region.sample(count - drawn, rng)), rng)
    if region.low is not None and region.high is not None:
        placed = np.clip(placed, region.low, region.high)
    points = np.concatenate([region.sample(drawn + further, rng), region.to_normalised(placed)])
    return points, drawn + further


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """Rows beside the fresh ones, all of which are heard: the ledger keeps but a sample of what it asked."""

    rows: Array
    """(n, D) in the target's own inputs."""
    answers: Array
    """(n, K)"""
    corners: int = 0
    """Corners of the declared box among them, those on the way to larger errors left out."""


def ask_elsewhere(network: Network | Model, view: NormalisedQueries, wanted: Demands) -> Elsewhere:
    """Ask the user's own rows, corners of a box, and rows far along kinks."""
    rng = np.random.default_rng(_STREAM)  # the same rows for every candidate
    rows, corners = [] if wanted.rows is None else [wanted.rows], 0
    if wanted.examples is not None:
        rows.append(_some_examples(wanted.examples, view.region, rng))
    if view.region.has_box:
        asked, corners = _ask_corners(network, view, rng)
        rows.append(asked)
    elif isinstance(network, Network) and network.hidden and _is_kinked(network):
        rows.append(view.region.to_inputs(_far_along_kinks(network, view, rng, wanted.sparing)))
    every = np.concatenate([np.empty((0, view.n_inputs)), *rows])
    return Elsewhere(every, view.ledger(every), corners)


def _far_rows(units: int) -> int:
    return int(np.clip(_FAR_ROWS_PER_UNIT * units, *_FAR_ROWS))


def _far_along_kinks(network: Network, view: NormalisedQueries, rng: Generator, sparing: bool) -> Array:
    """Return normalised rows at the hyperplanes of the first layer, up to far from the region.

    A unit of one layer switches on a whole hyperplane. What looks like one nearby, but belongs to a later
    layer, bends where it meets another: far along it the target no longer switches where the network does.
    """
    region = view.region
    inner = in_normalised_inputs(network, region)
    weights, biases = inner.weights[0], inner.biases[0]
    length = np.linalg.norm(weights, axis=0)
    units = np.flatnonzero(length > 0)
    if not len(units) or region.n_inputs < 2:
        return np.empty((0, region.n_inputs))
    rows_left = RowsLeft(view.ledger.remaining, sparing)
    count = rows_left.of(_far_rows(len(units)), max(_FEWEST_FAR_ROWS, len(units)), ROWS_ASKED_AGAIN)
    units = np.resize(rng.permutation(units), count)
    points = points_at_units(weights, biases, units, region, rng, reach=FARTHEST_KINK)
    normal = (weights[:, units] / length[units]).T
    along = rng.standard_normal(points.shape)
    along -= np.einsum("nd,nd->n", along, normal)[:, None] * normal
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    return points + np.exp(rng.uniform(0, np.log(_FARTHEST_ALONG), (count, 1))) * along


def _ask_corners(network: Network | Model, view: NormalisedQueries, rng: Generator) -> tuple[Array, int]:
    """Ask corners of the box, where a unit may act that acts nowhere else; return all asked, and the first.

    A budget that is too small for all of them gets as many as it can pay for.

    From the corners with the largest errors, go to neighbouring ones where the error grows: most units fade
    out slowly, and an error that rounding nearly hides points to where it is large.
    """
    low, high = view.region.low, view.region.high
    assert low is not None
    assert high is not None
    inputs = len(low)
    every = inputs <= ALL_CORNERS_INPUTS
    if every:
        upper = np.arange(2**inputs)[:, None] >> np.arange(inputs) & 1 == 1
    else:
        upper = rng.random((MOST_CORNERS, inputs)) < 0.5
    if len(upper) > _affordable(view):
        upper = rng.permutation(upper)[: _affordable(view)]
    asked: list[Array] = []

    def errors(upper: Array) -> Array:
        corners = np.where(upper, high, low)
        asked.append(corners)
        error: Array = np.abs(view.ledger(corners) - network(corners)).max(axis=1)
        return error

    error = errors(upper)
    for start in () if every else np.argsort(error)[: -_CLIMBS - 1 : -1]:
        corner, reached = upper[start], error[start]
        for _ in range(_CLIMBING_STEPS):
            flips = rng.permutation(inputs)[:_MOST_NEIGHBOURS]
            if len(flips) > _affordable(view):
                break
            neighbours = np.repeat(corner[None], len(flips), axis=0)
            neighbours[np.arange(len(flips)), flips] ^= True
            around = errors(neighbours)
            best = int(np.argmax(around))
            if not around[best] > reached:
                break
            corner, reached = neighbours[best], around[best]
    return np.concatenate(asked), len(upper)


def _affordable(view: NormalisedQueries) -> int:
    """Return how many rows the budget can pay for beside those asked again."""
    left = view.ledger.remaining
    return sys.maxsize if left is None else max(0, left - ROWS_ASKED_AGAIN)


def _some_examples(examples: Array, region: Region, rng: Generator) -> Array:
    """Return up to `MOST_EXAMPLES` of the user's rows inside the region, half of them as far apart as can be.

    Rows drawn at random stand for the many; a small cluster shows only among those that are far from others.
    """
    rows = examples[region.contains(region.to_normalised(examples))]  # nothing outside a domain is asked
    rows = rng.permutation(rows)
    if len(rows) <= MOST_EXAMPLES:
        return rows
    drawn = MOST_EXAMPLES // 2
    normalised = region.to_normalised(rows)
    distance = np.full(len(rows), np.inf)
    for row in normalised[:drawn]:
        distance = np.minimum(distance, np.linalg.norm(normalised - row, axis=1))
    apart = []
    for _ in range(MOST_EXAMPLES - drawn):
        apart.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(normalised - normalised[apart[-1]], axis=1))
    return np.concatenate([rows[:drawn], rows[apart]])


def _is_kinked(network: Network) -> bool:
    return not get_activation(network.activations[0]).smooth
