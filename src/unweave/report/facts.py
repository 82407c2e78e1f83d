"""Every number and word of a report comes from ``Recovery.to_dict()`` and says from where.

    facts("/evidence/gap")  ->  <data data-path="/evidence/gap" value="2140.5">2.14e+03</data>

The path is a JSON pointer (RFC 6901) into what ``unweave recover --json`` prints, the value is the full one,
the text is rounded. So a reader can look up what a rounded number is, and a test that none is made up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

DIGITS = 3
NOT_MEASURED = "not measured"
_MOST_ENTRIES = 4  # of a list among the figures of a stage


class Facts:
    """The dictionary of a recovery, shown by JSON pointers."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content

    def get(self, pointer: str) -> Any:
        """The value at ``pointer``; None if there is none."""
        value: Any = self._content
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list):
                value = value[int(key)] if int(key) < len(value) else None
            elif isinstance(value, Mapping):
                value = value.get(key)
            else:
                return None
        return value

    def has(self, pointer: str) -> bool:
        """Whether there is a value that is not null at ``pointer``."""
        return self.get(pointer) is not None

    def __call__(self, pointer: str, digits: int = DIGITS) -> Markup:
        """The number, word or list at ``pointer`` as HTML."""
        value = self.get(pointer)
        if isinstance(value, list):
            shown = [self(f"{pointer}/{index}", digits) for index in range(min(len(value), _MOST_ENTRIES))]
            return Markup(", ").join(shown) + (" ..." if len(value) > _MOST_ENTRIES else "")
        # A number is never broken at its minus sign.
        kind = "" if isinstance(value, str) else Markup(' class="short"')
        return Markup('<data{} data-path="{}" value="{}">{}</data>').format(
            kind, pointer, json.dumps(value), text_of(value, digits)
        )

    def plain(self, pointer: str) -> Markup:
        """The whole number at ``pointer`` without marks between its thousands: a seed is no count."""
        value = self.get(pointer)
        return Markup('<data class="short" data-path="{}" value="{}">{}</data>').format(
            pointer, json.dumps(value), value
        )

    def figures(self, pointer: str) -> Markup:
        """Names and values of the dictionary at ``pointer``."""
        names = self.get(pointer) or {}
        return Markup(", ").join(
            Markup("{}&nbsp;{}").format(name, self(f"{pointer}/{escape_key(name)}")) for name in names
        )


def ordinal(place: int) -> Markup:
    """The number of a layer, which is no figure of the run."""
    return Markup("<span class=label>{}</span>").format(place + 1)


def escape_key(key: str) -> str:
    """``key`` as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def text_of(value: Any, digits: int = DIGITS) -> str:
    """A value in words: thousands of an int are marked, a float is rounded to ``digits`` digits.

    >>> text_of(50934), text_of(3.14159e-14), text_of(True), text_of(None)
    ('50,934', '3.14e-14', 'yes', 'not measured')
    """
    if value is None:
        return NOT_MEASURED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
