"""Choose what surfaces leave open of units such that the rows that were asked agree.

Part of a unit's weights is open where its surface never meets what it reads there: beyond, the unit is on
or off as a whole, or shows a piece of surface of its own. Let the answers differ by r at a row, let D be
the derivative of the answers by the unit's state, and let z be what the unit is now. If it alone is wrong
there, it should be

    z + N c . phi = r / D   if it is off now,        z + r / D   if it is on,

and where rows agree and units are on, all N c . phi together add nothing. These are linear equations for
the c of all units. A few rows at a time are solved, one unit turned round at these rows, and the c are
taken that make most rows agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.relu_layers.tower import Tower
from unweave.networks.network import Network
from unweave.networks.signs import negative_slope
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class OpenWeightOptions:
    """How weights are tried."""

    agrees: float = 1e-4
    """Misfit of units as they were measured."""
    draws: int = 12
    """Choices of rows per unit."""
    better: float = 0.8
    """Share of the rows that differ which may be left by a change."""
    most_changes: int = 8
    """Changes in a row."""
    clearly: float = 1e-2
    """Singular value of the equations of rows that agree, above which a direction shows in them."""
    certain: float = 1e-2
    """Misfit of rows that show it, in units of the misfit that is allowed."""
    off: float = 8.0
    """How clearly a unit is turned off or on, in units of its weights."""
    most_rows: int = 3000
    """Rows that are looked at."""


@dataclass(frozen=True, eq=False)
class _Part:
    """What is open of one unit."""

    layer: int
    unit: int
    sign: float
    """Of the network's unit, relative to the tower's."""
    free: Array
    """N (F, q)"""


def resolve_open_weights(
    tower: Tower,
    network: Network,
    signs: Array,
    points: Array,
    answers: Array,
    rng: np.random.Generator,
    options: OpenWeightOptions,
) -> bool:
    """Change units of a tower, given its network and last signs (m,); return whether any changed."""
    parts = []
    for layer, found in enumerate(tower.layers):
        for k, unit in enumerate(found.units):
            if unit.open.shape[1]:
                sign = float(signs[k]) if layer == len(tower.layers) - 1 else 1.0
                parts.append(_Part(layer, k, sign, unit.open))
    if not parts:
        return False
    rows = _Rows(tower, points, answers, options)
    if len(points) > options.most_rows:
        order = rng.permutation(len(points))
        order = order[np.argsort(~rows.bad(network)[order], kind="stable")][: options.most_rows]
        rows = _Rows(tower, points[order], answers[order], options)
    changed = False
    for _ in range(options.most_changes):
        bad = rows.bad(network)
        if not bad.any():
            break
        best = None
        for changes in _changes(parts, network, rows, bad, rng, options):
            check()
            tried = network
            for part, change in zip(parts, changes, strict=True):
                tried = rows.with_change(tried, part, change)
            left = int(rows.bad(tried).sum())
            if left < (options.better * bad.sum() if best is None else best[0]):
                best = left, changes, tried
        if best is None:
            break
        _, changes, network = best
        for part, change in zip(parts, changes, strict=True):
            unit = tower.layers[part.layer].units[part.unit]
            unit.alpha = unit.alpha + part.sign * change
        changed = True
    if changed:
        tower.changed(min(part.layer for part in parts) + 1)
    return changed


class _Rows:
    """Rows, and what units read there."""

    def __init__(self, tower: Tower, points: Array, answers: Array, options: OpenWeightOptions) -> None:
        self.points, self.answers, self._options = points, answers, options
        self.size = 1 + np.linalg.norm(points, axis=1) / np.sqrt(points.shape[1])
        typical = float(np.sqrt(np.mean((answers / self.size[:, None]) ** 2)))
        self._allowed = options.agrees * self.size * max(typical, np.finfo(np.float64).tiny)
        self.read = [tower.below(layer).values(points) for layer in range(len(tower.layers))]
        self._widths = [layer.width for layer in tower.layers]

    def bad(self, network: Network) -> BoolArray:
        """Return (n,) the rows that differ."""
        return np.asarray(np.abs(network(self.points) - self.answers).max(axis=1) > self._allowed)

    def certain(self, network: Network) -> BoolArray:
        """Return (n,) the rows that agree so well that nothing which acts there can be wrong."""
        errors = np.abs(network(self.points) - self.answers).max(axis=1)
        return np.asarray(errors <= self._options.certain * self._allowed)

    def states(self, network: Network) -> list[Array]:
        """Return the states before every layer."""
        slope, found = negative_slope(network.activations[0]), [self.points]
        for weights, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
            z = found[-1] @ weights + bias
            found.append(np.where(z > 0, z, slope * z))
        return found

    def with_change(self, network: Network, part: _Part, change: Array) -> Network:
        """Return the network with a change (F,) of one unit's alpha."""
        weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
        read, constant = self.read[part.layer], change[-1]
        if part.layer:
            # Channels are units with a bias there, which their readers subtract.
            width = self._widths[part.layer - 1]
            shift = self.states(network)[part.layer][0, width:] - read[0, width:-1]
            constant = constant - change[width:-1] @ shift
        weights[part.layer][:, part.unit] += change[:-1]
        biases[part.layer][part.unit] += constant
        return Network(weights, biases, network.activations)

    def slopes(self, network: Network, part: _Part) -> tuple[Array, Array]:
        """Return z (n,) of a unit and the derivative (n, K) of the answers by its state."""
        states, slope = self.states(network), negative_slope(network.activations[0])
        z = states[part.layer] @ network.weights[part.layer] + network.biases[part.layer]
        derivative = np.repeat(network.weights[-1].T[None], len(self.points), axis=0)
        for layer in range(len(network.weights) - 2, part.layer, -1):
            on = states[layer] @ network.weights[layer] + network.biases[layer] > 0
            derivative = (derivative * np.where(on, 1.0, slope)[:, None, :]) @ network.weights[layer].T
        return z[:, part.unit], derivative[:, :, part.unit]


def _changes(
    parts: list[_Part],
    network: Network,
    rows: _Rows,
    bad: BoolArray,
    rng: np.random.Generator,
    options: OpenWeightOptions,
) -> Iterator[list[Array]]:
    """Yield changes (F,) of every part that rows ask for if one unit is on the other side there."""
    heights, slopes, acts = [], [], []
    for part in parts:
        z, derivative = rows.slopes(network, part)
        heights.append(z)
        slopes.append(derivative)
        acts.append(rows.read[part.layer] @ part.free)
    ends = np.cumsum([0, *(part.free.shape[1] for part in parts)])
    scale = max(np.median(np.abs(each).max(axis=1)) for each in slopes) or 1.0

    def system(chosen: IntArray, turned: int | None) -> tuple[Array, Array]:
        """Return equations (n K, Q) of the open coefficients and their right side, one unit turned round."""
        right = rows.answers[chosen] - network(rows.points[chosen])
        columns = []
        for number, (z, derivative, act) in enumerate(zip(heights, slopes, acts, strict=True)):
            on = z[chosen] > 0
            if number == turned:
                right = right + np.where(on, 1.0, -1.0)[:, None] * derivative[chosen] * z[chosen, None]
                on = ~on
            columns.append((on[:, None] * derivative[chosen])[:, :, None] * act[chosen][:, None, :])
        size = (rows.size[chosen] * scale)[:, None]
        matrix = np.concatenate(columns, axis=2) / size[:, :, None]
        return matrix.reshape(-1, ends[-1]), (right / size).reshape(-1)

    certain, differing = np.flatnonzero(rows.certain(network)), np.flatnonzero(bad)
    known = np.linalg.qr(system(certain, None)[0], mode="r") if len(certain) else np.zeros((0, ends[-1]))
    _, values, right = np.linalg.svd(known, full_matrices=True)
    free = right[int((values > options.clearly).sum()) :].T  # rows that hardly see a direction always agree
    if not free.shape[1]:
        return
    outputs = rows.answers.shape[1]
    for turned in (None, *range(len(parts))):
        for draw in range(options.draws):
            count = min(len(differing), -(-free.shape[1] // outputs) + draw % 3)
            first = rows.points[rng.choice(differing)]
            near = np.argsort(np.linalg.norm(rows.points[differing] - first, axis=1))
            some = differing[near[:count]] if draw % 2 else rng.choice(differing, count, replace=False)
            matrix, wanted = system(some, turned)
            amounts = free @ np.linalg.lstsq(matrix @ free, wanted, rcond=1e-9)[0]
            yield [
                part.free @ amounts[start:end]
                for part, start, end in zip(parts, ends[:-1], ends[1:], strict=True)
            ]
    for number, part in enumerate(parts):  # on where it should be off, or the other way round
        mean = acts[number][differing].mean(axis=0)
        if np.linalg.norm(mean) > 0:
            direction = part.free @ (mean / np.linalg.norm(mean))
            size = options.off * np.linalg.norm(network.weights[part.layer][:, part.unit])
            for side in (size, -size):
                yield [side * direction if other is part else np.zeros(len(other.free)) for other in parts]
