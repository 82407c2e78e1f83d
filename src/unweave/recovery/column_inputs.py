"""What the network of mixed columns reads while it is fitted, and the network in the user's columns.

Free columns are normalised. A weighted column (whole numbers, booleans) counts steps from its usual value to
the level that was asked. Every other level has an input of its own. All is zero at the usual levels, so that
what a level adds to the first layer is one row of its weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.networks.columns import Column, Columns
from unweave.networks.mixed import MixedNetwork
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.targets.region import Region


@dataclass(frozen=True, eq=False)
class ColumnInputs:
    """The columns, their usual codes, and the region of the free ones."""

    columns: Columns
    examples: Array
    """(n, D) codes."""
    usual: Array
    """(D,) the most frequent of them."""
    region: Region
    """Of the free columns."""

    def levels(self, j: int) -> list[float]:
        """Return the levels of column ``j`` at which the target is asked besides the usual one."""
        column = self.columns.columns[j]
        if column.kind == "number":
            return []
        values = np.arange(column.width) if column.kind == "category" else np.unique(self.examples[:, j])
        if column.kind == "boolean":
            values = np.array([0.0, 1.0])
        others = [float(value) for value in values if value != self.usual[j]]
        if column.kind != "whole" or column.levels:
            return others
        return others and [max(others, key=lambda value: abs(value - self.usual[j]))]

    def points(self, codes: Array) -> Array:
        """Return (n, W): what the network reads at ``codes`` (n, D)."""
        parts, place = [], 0
        for j, column in enumerate(self.columns.columns):
            if column.kind == "number":
                parts.append(
                    ((codes[:, j] - self.region.location[place]) / self.region.scale[place])[:, None]
                )
                place += 1
            elif is_weighted(column):
                parts.append(((codes[:, j] - self.usual[j]) / self._step(j))[:, None])
            else:
                parts.append(codes[:, [j]] == np.array(self.levels(j)))
        return np.concatenate(parts, axis=1).astype(np.float64)

    def start(self, model: NetworkParameters, parts: list[dict[float, Array]]) -> NetworkParameters:
        """Return the network that reads `points`, from that of the free columns and what every level adds."""
        table, place, rows = _with_skip(model), 0, []
        for column, added in zip(self.columns.columns, parts, strict=True):
            if column.kind == "number":
                rows.append(table[[place]] * self.region.scale[place])
                place += 1
            elif added:
                rows.append(np.stack(list(added.values())))
            elif is_weighted(column):
                rows.append(np.zeros((1, table.shape[1])))
        return _with_rows(model, np.concatenate(rows), self.region.location @ table)

    def assembled(self, model: NetworkParameters) -> Network:
        """Return the network that reads all columns one-hot coded, from one that reads `points`."""
        table, at, place = _with_skip(model), 0, 0
        shift = np.zeros(table.shape[1])
        rows: list[Array] = []
        for j, column in enumerate(self.columns.columns):
            if column.kind == "number":
                rows.append(table[[at]] / self.region.scale[place])
                shift -= self.region.location[place] * rows[-1][0]
                at, place = at + 1, place + 1
            elif is_weighted(column):
                rows.append(table[[at]] / self._step(j))
                shift -= self.usual[j] * rows[-1][0]
                at += 1
            else:
                levels = self.levels(j)
                own = dict(zip(levels, table[at : at + len(levels)], strict=True))
                every = range(column.width) if column.kind == "category" else column.levels
                rows.append(np.stack([own.get(float(level), np.zeros(table.shape[1])) for level in every]))
                at += len(levels)
        return _with_rows(model, np.concatenate(rows), shift).to_network()

    def _step(self, j: int) -> float:
        """Return the step of a weighted column from its usual value to the level asked."""
        levels = self.levels(j)
        return float(levels[0] - self.usual[j]) if levels else 1.0


class CodedNetwork:
    """A mixed network asked with codes of the user's columns, for the judge."""

    def __init__(self, found: MixedNetwork, columns: Columns) -> None:
        self._found, self._columns = found, columns

    def __call__(self, codes: Array) -> Array:
        """Return what the network answers at ``codes`` (n, D)."""
        places = codes.copy()
        for j, column in enumerate(self._columns.columns):
            if column.kind == "whole" and column.levels:
                levels = np.array(column.levels, dtype=np.float64)
                places[:, j] = np.searchsorted(levels, codes[:, j])
        return self._found(places)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)


def is_weighted(column: Column) -> bool:
    """Whether the column's value is multiplied by weights: whole numbers and booleans."""
    return column.kind == "boolean" or (column.kind == "whole" and not column.levels)


def with_levels_as_categories(columns: Columns) -> Columns:
    """Return the columns with whole numbers that have levels made categories."""
    changed = [replace(c, kind="category") if c.kind == "whole" and c.levels else c for c in columns.columns]
    return replace(columns, columns=tuple(changed))


def _with_skip(model: NetworkParameters) -> Array:
    """Return the weights of the first layer, and of the skip beside them if there is one."""
    if model.skip is None:
        return model.weights[0]
    return np.concatenate([model.weights[0], model.skip], axis=1)


def _with_rows(model: NetworkParameters, table: Array, shift: Array) -> NetworkParameters:
    """Return ``model`` with other weights of first layer and skip, and ``shift`` added to their biases."""
    first = len(model.biases[0])
    biases = [model.biases[0] + shift[:first], *model.biases[1:]]
    if model.skip is not None:
        biases[-1] = biases[-1] + shift[first:]
    return replace(
        model,
        weights=(np.ascontiguousarray(table[:, :first]), *model.weights[1:]),
        biases=tuple(biases),
        skip=None if model.skip is None else np.ascontiguousarray(table[:, first:]),
    )
