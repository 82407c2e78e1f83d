"""Columns as they are: numbers, whole numbers, booleans and categories, and their codes in float64.

A number is its own code, a boolean 0 or 1, a category the place of its level in the list of levels. A network
reads them one-hot coded: one input per level of a category, one per other column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.errors import InvalidInput

Kind = Literal["number", "whole", "boolean", "category"]
KINDS = ("number", "whole", "boolean", "category")
_MOST_LEVELS = 1000  # of one category: more are names of rows, not of kinds


@dataclass(frozen=True)
class Column:
    """One input."""

    name: str
    kind: Kind = "number"
    levels: tuple[Any, ...] = ()
    """Values of a category, in the order of their codes."""
    dtype: str = "float64"
    """Type in which a frame holds it."""
    declared: tuple[Any, ...] = ()
    """All categories of that type, those that no row has included."""
    ordered: bool = False
    """Whether these have an order."""

    @property
    def width(self) -> int:
        """Number of inputs of a network that reads it."""
        return len(self.levels) if self.kind == "category" else 1

    @property
    def inputs(self) -> list[str]:
        """Names of these inputs."""
        return [f"{self.name}={level}" for level in self.levels] if self.kind == "category" else [self.name]

    def encode(self, values: Any) -> Array:
        """Return the codes (n,) of ``values`` (n,)."""
        if self.kind != "category":
            try:
                codes = np.asarray(values, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise InvalidInput(f"column {self.name!r} must hold numbers. Got {error} instead.") from error
            if not np.isfinite(codes).all():
                raise InvalidInput(f"column {self.name!r} must hold no missing values. Drop those rows.")
            if self.kind != "number" and (codes != np.round(codes)).any():
                raise InvalidInput(f"column {self.name!r} must hold whole numbers. Got fractions instead.")
            return codes
        places = {level: place for place, level in enumerate(self.levels)}
        unknown = [value for value in values if value not in places]
        if unknown:
            raise InvalidInput(
                f"column {self.name!r} must hold one of its {len(places)} levels. Got {unknown[0]!r} instead."
            )
        return np.array([places[value] for value in values], dtype=np.float64)

    def decode(self, codes: Array) -> Any:
        """Return the values (n,) with these ``codes`` (n,)."""
        if self.kind == "category":
            values = np.empty(len(codes), dtype=object)
            values[:] = [self.levels[int(code)] for code in codes]
            return values
        if self.kind == "boolean":
            return codes != 0
        return codes.astype(np.int64) if self.kind == "whole" else codes


@dataclass(frozen=True)
class Columns:
    """All inputs of a target."""

    columns: tuple[Column, ...]
    framed: bool = False
    """Whether the target is asked with a pandas frame."""

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def discrete(self) -> BoolArray:
        """(D,) whether a column takes no values in between."""
        return np.array([column.kind != "number" for column in self.columns])

    @property
    def categories(self) -> bool:
        """Whether there is a category."""
        return any(column.kind == "category" for column in self.columns)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs of a network that reads the columns one-hot coded."""
        return [name for column in self.columns for name in column.inputs]

    @property
    def starts(self) -> IntArray:
        """(D,) first of these inputs, of every column."""
        widths = [column.width for column in self.columns]
        return np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.int64)

    def encode(self, rows: Any) -> Array:
        """Return the codes (n, D) of rows: a frame with these columns, or (n, D) values; codes stay codes."""
        if hasattr(rows, "columns"):
            missing = [name for name in self.names if name not in rows.columns]
            if missing:
                raise InvalidInput(f"the frame must have the column {missing[0]!r}. It is missing.")
            parts = [column.encode(rows[column.name].to_numpy()) for column in self.columns]
            return np.stack(parts, axis=1)
        values = np.asarray(rows, dtype=object) if not isinstance(rows, np.ndarray) else rows
        if values.ndim != 2 or values.shape[1] != len(self):
            raise InvalidInput(f"rows must be (n, {len(self)}). Got shape {values.shape} instead.")
        if values.dtype.kind in "fiub":
            return values.astype(np.float64)
        return np.stack([column.encode(values[:, j]) for j, column in enumerate(self.columns)], axis=1)

    def decode(self, codes: Array) -> Any:
        """Return rows with these ``codes`` (n, D) as the target takes them: a frame, or (n, D) objects."""
        parts = [column.decode(codes[:, j]) for j, column in enumerate(self.columns)]
        if self.framed:
            pandas = import_module("pandas")  # the user's examples are a frame, so it is there
            frame = pandas.DataFrame(dict(zip(self.names, parts, strict=True)))
            types = {
                c.name: pandas.CategoricalDtype(list(c.declared), c.ordered) if c.declared else c.dtype
                for c in self.columns
                if c.dtype
            }
            return frame.astype(types)
        rows = np.empty(codes.shape, dtype=object)
        for j, part in enumerate(parts):
            rows[:, j] = part
        return rows

    def one_hot(self, codes: Array) -> Array:
        """Return what a network reads (n, W) at ``codes`` (n, D)."""
        parts = [
            codes[:, [j]] == np.arange(column.width) if column.kind == "category" else codes[:, [j]]
            for j, column in enumerate(self.columns)
        ]
        return np.concatenate(parts, axis=1).astype(np.float64)

    def admits(self, codes: Array) -> BoolArray:
        """Return whether rows ``codes`` (n, D) may be asked. Shape (n,)."""
        whole = (codes == np.round(codes)) | ~self.discrete
        top = np.array(
            [{"boolean": 1, "category": c.width - 1}.get(c.kind, np.inf) for c in self.columns], dtype=float
        )
        low = np.where(np.isfinite(top), 0.0, -np.inf)
        return np.asarray((whole & (codes >= low) & (codes <= top)).all(axis=1))

    def to_list(self) -> list[dict[str, Any]]:
        """Return the columns in words of JSON."""
        lists = ("levels", "declared")
        return [
            {**asdict(column), **{name: [_plain(each) for each in getattr(column, name)] for name in lists}}
            for column in self.columns
        ]

    @classmethod
    def from_list(cls, entries: Sequence[Mapping[str, Any]], framed: bool = False) -> Columns:
        """Return what `to_list` wrote."""
        lists = ("levels", "declared")
        return cls(
            tuple(Column(**{**entry, **{name: tuple(entry[name]) for name in lists}}) for entry in entries),
            framed,
        )

    def describe(self) -> str:
        """Return ``age (whole), city (3 levels)``."""
        said = [f"{c.name} ({f'{c.width} levels' if c.kind == 'category' else c.kind})" for c in self.columns]
        return ", ".join(said)


def columns_of(inputs: Any, examples: Any) -> Columns | None:
    """Return the columns that the user declared or that ``examples`` show; None where all are plain numbers.

    ``inputs`` has one entry per column, or names some of them: a kind, or the list of a category's levels.
    """
    framed = hasattr(examples, "columns") and hasattr(examples, "dtypes")
    table = None if examples is None or framed else np.asarray(examples)
    plain = table is None or table.dtype.kind in "fiub"
    if inputs is None and not framed and plain:
        return None
    if framed:
        names = [str(name) for name in examples.columns]
    elif table is not None and table.ndim == 2:
        names = [f"x{j}" for j in range(table.shape[1])]
    elif isinstance(inputs, Mapping) or inputs is None:
        raise InvalidInput("inputs must be a list with one entry per column where there are no examples.")
    else:
        names = [f"x{j}" for j in range(len(inputs))]
    told = _told(inputs, names)
    found = []
    for j, name in enumerate(names):
        if framed:
            values = examples.iloc[:, j]
            dtype = str(values.dtype)
            seen: Any = values.to_numpy()
            if dtype == "category":
                found.append(_categorical(name, values))
                continue
        else:
            dtype, seen = "", None if table is None else table[:, j]
        found.append(_column(name, told.get(name), seen, dtype, whole_seen=framed))
    columns = Columns(tuple(found), framed)
    return columns if framed or columns.discrete.any() else None


def _told(inputs: Any, names: list[str]) -> dict[str, Any]:
    if inputs is None:
        return {}
    if isinstance(inputs, Mapping):
        unknown = [name for name in inputs if name not in names]
        if unknown:
            raise InvalidInput(f"inputs must name columns of the examples. Got {unknown[0]!r} instead.")
        return dict(inputs)
    entries = list(inputs)
    if len(entries) != len(names):
        raise InvalidInput(
            f"inputs must have {len(names)} entries, one per column. Got {len(entries)} instead."
        )
    return dict(zip(names, entries, strict=True))


def _column(name: str, told: Any, seen: Any, dtype: str, whole_seen: bool) -> Column:
    """Return one column from what was said of it and its values in the examples."""
    if told is not None and not isinstance(told, str):
        return Column(name, "category", tuple(told), dtype)
    kind = told or _kind_of(seen, whole_seen)
    if kind not in KINDS:
        raise InvalidInput(f"inputs must hold {', '.join(KINDS)} or lists of levels. Got {told!r} instead.")
    if kind != "category":
        return Column(name, kind, (), dtype)  # type: ignore[arg-type]  # checked above
    if seen is None:
        raise InvalidInput(f"inputs must list the levels of {name!r} where there are no examples.")
    levels = list(dict.fromkeys(seen.tolist()))
    if any(level is None or level != level for level in levels):
        raise InvalidInput(f"column {name!r} must hold no missing values. Drop those rows.")
    if len(levels) > _MOST_LEVELS:
        raise InvalidInput(
            f"column {name!r} must have at most {_MOST_LEVELS} levels. Got {len(levels)} instead."
        )
    with suppress(TypeError):  # levels of several types keep the order in which they come
        levels.sort()
    return Column(name, "category", tuple(levels), dtype)


def _categorical(name: str, values: Any) -> Column:
    """Return a column of a frame whose type lists its categories."""
    declared = tuple(values.dtype.categories.tolist())
    met = set(values.tolist())
    if any(level is None or level != level for level in met):
        raise InvalidInput(f"column {name!r} must hold no missing values. Drop those rows.")
    levels = tuple(level for level in declared if level in met)
    return Column(name, "category", levels, "category", declared, bool(values.dtype.ordered))


def _kind_of(seen: Any, whole_seen: bool) -> Kind:
    if seen is None:
        return "number"
    if seen.dtype.kind == "b":
        return "boolean"
    if seen.dtype.kind in "iu":
        return "whole" if whole_seen else "number"
    if seen.dtype.kind == "f":
        return "number"
    values = seen.tolist()
    if all(isinstance(value, bool | np.bool_) for value in values):
        return "boolean"
    numbers = all(
        isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values
    )
    return "number" if numbers else "category"


def _plain(level: Any) -> Any:
    return level.item() if isinstance(level, np.generic) else level
