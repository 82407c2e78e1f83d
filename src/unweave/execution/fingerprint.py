"""A name for a computation: 128 bits of everything that it depends on."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np

from unweave.errors import InvalidInput


def fingerprint(*parts: Any) -> str:
    """32 hexadecimal digits that are equal exactly when the parts are equal, bit for bit (BLAKE2b).

    Parts are None, numbers, strings, arrays (of NumPy, or of a library that NumPy reads), and tuples, lists
    and dataclasses of them. 0.0 and -0.0 differ, as do 1 and 1.0: inputs are named, not compared.

    Example
    -------
    >>> fingerprint("ascent", np.zeros(3)) == fingerprint("ascent", np.zeros(3))
    True
    >>> fingerprint(1, 2) == fingerprint((1, 2))
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        _add(digest, part)
    return digest.hexdigest()


def _add(digest: Any, part: Any) -> None:
    """Every part says its kind and its size first, so that no two sequences of parts read alike."""
    if part is None or isinstance(part, bool | int | float | str):
        text = repr(part).encode()
        digest.update(f"{type(part).__name__} {len(text)} ".encode() + text)
    elif isinstance(part, tuple | list):
        digest.update(f"sequence {len(part)} ".encode())
        for entry in part:
            _add(digest, entry)
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        entries = dataclasses.fields(part)
        digest.update(f"dataclass {type(part).__qualname__} {len(entries)} ".encode())
        for entry in entries:
            _add(digest, getattr(part, entry.name))
    elif hasattr(part, "__array__"):
        array = np.ascontiguousarray(part)
        if array.dtype.kind not in "biufc":
            raise InvalidInput(f"An array to name must hold numbers. Got {array.dtype} instead.")
        digest.update(f"array {array.dtype.str} {array.shape} ".encode())
        digest.update(array.data)
    else:
        raise InvalidInput(
            f"What names a computation must be numbers, strings and arrays. "
            f"Got {type(part).__name__} instead."
        )
