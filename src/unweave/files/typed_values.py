"""Dataclasses from values that a file held, each checked against the type of the field that it fills."""

from __future__ import annotations

import types
from dataclasses import fields
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from unweave.errors import InvalidInput

_LARGEST_COUNT = 2**63  # beyond it, a whole number is no count, and floats cannot be made of all of them

T = TypeVar("T")


class Misfit(InvalidInput):
    """A value that cannot be what was written; the message says so in a few words."""


def built(kind: type[T], content: Any) -> T:
    """Build the dataclass ``kind`` from values that fit the types of its fields."""
    values = typed(content, dict[str, Any], kind.__name__)
    hints = get_type_hints(kind)
    known = {entry.name for entry in fields(kind)}  # type: ignore[arg-type]
    if not values.keys() <= known:
        raise Misfit(f"{kind.__name__} has no {', '.join(sorted(values.keys() - known))}")
    try:
        return kind(**{name: typed(value, hints[name], name) for name, value in values.items()})
    except TypeError as error:  # a field that has no default is missing
        raise Misfit(str(error)) from error


def typed(value: Any, hint: Any, name: str) -> Any:
    """Return ``value`` if it is of the type ``hint``."""
    if not _fits(value, hint):
        raise Misfit(f"{name} must be {getattr(hint, '__name__', hint)}. Got {str(value)[:60]!r} instead")
    return value


def _fits(value: Any, hint: Any) -> bool:
    """Whether ``value`` is of the type ``hint``, as far as fields of results need."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, option) for option in inner)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(entry, inner[1]) for entry in value.values())
    if origin is tuple and Ellipsis not in inner:
        pairs = isinstance(value, tuple) and len(value) == len(inner)
        return pairs and all(_fits(*pair) for pair in zip(value, inner, strict=True))
    if origin in (list, tuple):
        return isinstance(value, origin) and all(_fits(entry, inner[0]) for entry in value)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    if hint in (int, float):
        kinds = (int, float) if hint is float else int
        is_number = isinstance(value, kinds) and not isinstance(value, bool)
        return is_number and (isinstance(value, float) or abs(value) < _LARGEST_COUNT)
    return isinstance(value, type(None) if hint is None else hint)
