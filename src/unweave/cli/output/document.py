"""Results as JSON on stdout: dataclasses, arrays and enums become plain values, NaN and infinity null."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np


def jsonable(value: Any) -> Any:
    """Return ``value`` in words that JSON has; NaN and infinity, for which it has none, become None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist())
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_json(value: Any) -> None:
    """Print ``value`` as indented JSON on stdout."""
    sys.stdout.write(json.dumps(jsonable(value), indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()


def print_served(line: str, told: dict[str, object], as_json: bool) -> None:
    """Print the one line of a server that has started: ``line``, or ``told`` as JSON."""
    sys.stdout.write((json.dumps(told) if as_json else line) + "\n")
    sys.stdout.flush()
