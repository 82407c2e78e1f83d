"""What the weights of a network show of its structure: convolutions and skip connections.

A convolution is a dense layer whose units are a few filters, each at many places of the inputs. A recovered
layer has its units in no order, and up to what its activation leaves open (`symmetry`): the sign of odd
units, the length of homogeneous ones. So a unit belongs to a filter phi with bias beta at place p if

    w = c phi(. - p),   b = c beta,         c = 1, +-1 or > 0 as the activation allows,

where parts of phi that reach beyond the inputs are cut off (zero padding). Inputs are read as a row, or as
rows of an image of any width that divides their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.networks.activations import get_activation
from unweave.networks.network import Network
from unweave.numerics.clock import out_of_time

ZERO = 1e-9
"""Weight relative to the largest one of its unit that counts as zero."""
SAME = 1e-6
"""Difference relative to the largest weight up to which two units are one filter."""
LARGEST_SHARE = 0.5
"""Parameters of a convolution, relative to those of the dense layer, at most."""
MOST_INPUTS = 4096
"""Number of inputs up to which convolutions are looked for."""
FEWEST_PLACES = 3
"""Places of a filter at least: two units that are alike prove little."""


@dataclass(frozen=True, eq=False)
class Convolution:
    """A first layer that is a convolution over inputs (H, W) of one channel; H = 1 for a row."""

    shape: tuple[int, int]
    """(H, W) of the inputs."""
    filters: Array
    """(F, h, w)"""
    biases: Array
    """(F,)"""
    stride: tuple[int, int]
    padding: tuple[int, int]
    places: tuple[int, int]
    """Number of places along both axes."""
    units: IntArray
    """(F, P) the unit of the network at every place, row by row; -1 where there is none."""
    factors: Array
    """(F, P) the factor c of every unit."""

    @property
    def dimension(self) -> int:
        """1 or 2."""
        return 1 if self.shape[0] == 1 else 2

    @property
    def n_parameters(self) -> int:
        """Number of weights and biases of the filters."""
        return int(self.filters.size + self.biases.size)

    @property
    def is_complete(self) -> bool:
        """Whether filters stand at all places that stride and padding allow, as in a layer of that kind."""
        free = [
            (self.shape[axis] + 2 * self.padding[axis] - self.filters.shape[1 + axis]) // self.stride[axis]
            + 1
            for axis in (0, 1)
        ]
        return tuple(free) == self.places

    def read_by(self, weight: Array, bias: Array, activation: str) -> tuple[Array, Array]:
        """Return weights (F P, n) and biases (n,) of the next layer for this one's places, filter by filter.

        ``weight`` (m, n) and ``bias`` (n,) read the units of the network as they are.
        """
        function, present = get_activation(activation), self.units.reshape(-1) >= 0
        rows = np.where(present[:, None], weight[np.where(present, self.units.reshape(-1), 0)], 0.0)
        factor = self.factors.reshape(-1, 1)
        if function.homogeneity is not None:
            return rows * factor**function.homogeneity, bias
        turned = factor < 0
        rule = function.reflection
        if rule is None or not turned.any():
            return rows, bias
        return np.where(turned, rule.sign * rows, rows), bias + rule.constant * (turned * rows).sum(axis=0)

    def __str__(self) -> str:
        def across(pair: tuple[int, int]) -> str:
            return str(pair[1]) if self.dimension == 1 else f"{pair[0]} x {pair[1]}"

        count = len(self.filters)
        size = (int(self.filters.shape[1]), int(self.filters.shape[2]))
        padding = f", padding {across(self.padding)}" if any(self.padding) else ""
        stride = f", stride {across(self.stride)}" if max(self.stride) > 1 else ""
        return (
            f"the first layer is a {self.dimension}-D convolution over {across(self.shape)} inputs: {count} "
            f"filter{'' if count == 1 else 's'} of {across(size)} at {across(self.places)} "
            f"places{stride}{padding}, {self.n_parameters} parameters"
        )


@dataclass(frozen=True)
class SkipConnection:
    """Inputs that reach the outputs beside the hidden layers."""

    def __str__(self) -> str:
        return (
            "a skip connection carries the inputs past the hidden layers, as a residual block with an affine "
            "layer behind it does"
        )


def structure_of(network: Network) -> tuple[Convolution | SkipConnection, ...]:
    """Return what the weights of ``network`` show.

    Example: ``[str(part) for part in structure_of(result.network)]``
    """
    found: list[Any] = []
    if network.hidden and not network.is_exact:
        found.append(find_convolution(network))
    if network.skip is not None and network.hidden:
        found.append(SkipConnection())
    return tuple(part for part in found if part is not None)


def find_convolution(network: Network) -> Convolution | None:
    """Return the convolution that the first layer of ``network`` is, the smallest one, or None."""
    weights, biases = network.weights[0], network.biases[0]
    inputs, units = weights.shape
    if inputs > MOST_INPUTS or units < FEWEST_PLACES or inputs < FEWEST_PLACES:
        return None
    size = np.abs(weights).max(axis=0)
    if not (size > 0).all():
        return None
    supported = np.abs(weights) > ZERO * size
    if supported.mean() > LARGEST_SHARE:  # a filter leaves most inputs of a unit alone
        return None
    best: Convolution | None = None
    for height in (n for n in range(1, inputs + 1) if inputs % n == 0 and inputs // n > 1):
        if out_of_time():
            return best
        shape = (height, inputs // height)
        found = _Reading(weights, biases, network.activations[0], shape, supported).convolution()
        if found is not None and (best is None or found.n_parameters < best.n_parameters):
            best = found
    return best


class _Reading:
    """The units read as filters over inputs of one shape."""

    def __init__(
        self, weights: Array, biases: Array, activation: str, shape: tuple[int, int], supported: Any
    ) -> None:
        self._shape, self._activation = shape, get_activation(activation)
        units = weights.shape[1]
        self._images = np.where(supported, weights, 0.0).T.reshape(units, *shape)
        self._biases = biases
        nonzero = self._images != 0
        rows, columns = nonzero.any(axis=2), nonzero.any(axis=1)
        self._first = np.stack([np.argmax(rows, axis=1), np.argmax(columns, axis=1)], axis=1)
        last = [along.shape[1] - 1 - np.argmax(along[:, ::-1], axis=1) for along in (rows, columns)]
        self._extent = np.stack(last, axis=1) - self._first + 1  # (m, 2)

    def convolution(self) -> Convolution | None:
        """Return the convolution, or None."""
        kernel = self._extent.max(axis=0)
        whole = (self._extent == kernel).all(axis=1)
        dense = self._images.size + len(self._biases)
        if kernel.prod() + 1 > LARGEST_SHARE * dense:
            return None
        filters: list[tuple[Array, float]] = []
        members: list[dict[tuple[int, int], tuple[int, float]]] = []
        for unit in [*np.flatnonzero(whole), *np.flatnonzero(~whole)]:
            home = self._home(int(unit), filters, kernel)
            if home is None:
                if not whole[unit]:
                    return None
                row, column = self._first[unit]
                patch = self._images[unit, row : row + kernel[0], column : column + kernel[1]]
                filters.append((patch, float(self._biases[unit])))
                members.append({})
                if len(filters) * (kernel.prod() + 1) > LARGEST_SHARE * dense:
                    return None
                home = len(filters) - 1, (int(row), int(column)), 1.0
            index, place, factor = home
            if place in members[index]:
                return None
            members[index][place] = int(unit), factor
        if min(len(each) for each in members) < FEWEST_PLACES:
            return None
        return self._assembled(filters, members, kernel)

    def _home(
        self, unit: int, filters: list[tuple[Array, float]], kernel: IntArray
    ) -> tuple[int, tuple[int, int], float] | None:
        """Return the filter, the place and the factor of ``unit``."""
        image, bias, extent = self._images[unit], self._biases[unit], self._extent[unit]
        scale = np.abs(image).max()
        for index, (patch, beta) in enumerate(filters):
            for place in self._possible_places(unit, kernel, extent):
                low = np.maximum(place, 0)
                high = np.minimum(np.array(place) + kernel, self._shape)
                inside = patch[low[0] - place[0] : high[0] - place[0], low[1] - place[1] : high[1] - place[1]]
                mine = image[low[0] : high[0], low[1] : high[1]]
                if not inside.any():
                    continue
                factor = self._factor(float((inside * mine).sum() / (inside * inside).sum()))
                if factor is None:
                    continue
                off = max(np.abs(mine - factor * inside).max(), abs(bias - factor * beta))
                if off <= SAME * scale and np.count_nonzero(image) == np.count_nonzero(mine):
                    return index, place, factor
        return None

    def _possible_places(self, unit: int, kernel: IntArray, extent: IntArray) -> list[tuple[int, int]]:
        """Where a filter of size ``kernel`` may start: beyond the border if part of it is cut off."""
        options = []
        for axis in (0, 1):
            start, cut = int(self._first[unit, axis]), int(kernel[axis] - extent[axis])
            at = [start]
            if cut and start == 0:
                at.append(-cut)
            options.append(at)
        return [(row, column) for row in options[0] for column in options[1]]

    def _factor(self, fitted: float) -> float | None:
        """Return the factor that the activation allows next to ``fitted``."""
        if self._activation.homogeneity is not None:
            return fitted if fitted > 0 else None
        rule = self._activation.reflection
        allowed = (1.0, -1.0) if rule is not None and rule.slope == 0 else (1.0,)
        near = [value for value in allowed if abs(value - fitted) <= 1e-3]
        return near[0] if near else None

    def _assembled(
        self,
        filters: list[tuple[Array, float]],
        members: list[dict[tuple[int, int], tuple[int, float]]],
        kernel: IntArray,
    ) -> Convolution | None:
        """Put the places on a grid; None if they are on none, or fill less than half of it."""
        places = np.array(sorted({place for each in members for place in each}))
        axes = [np.unique(places[:, axis]) for axis in (0, 1)]
        steps = [int(np.gcd.reduce(np.diff(axis))) if len(axis) > 1 else 1 for axis in axes]
        start = places.min(axis=0)
        counts = [int((axis[-1] - axis[0]) // step) + 1 for axis, step in zip(axes, steps, strict=True)]
        size = counts[0] * counts[1]
        units = np.full((len(filters), size), -1, dtype=np.int64)
        factors = np.ones((len(filters), size))
        for index, each in enumerate(members):
            for (row, column), (unit, factor) in each.items():
                at = (row - start[0]) // steps[0] * counts[1] + (column - start[1]) // steps[1]
                units[index, at], factors[index, at] = unit, factor
        padding = (max(0, -int(start[0])), max(0, -int(start[1])))
        if 2 * (units >= 0).sum() < units.size or start.max() > 0:
            return None
        return Convolution(
            shape=self._shape,
            filters=np.stack([patch for patch, _ in filters]),
            biases=np.array([beta for _, beta in filters]),
            stride=(steps[0], steps[1]),
            padding=padding,
            places=(counts[0], counts[1]),
            units=units,
            factors=factors,
        )
