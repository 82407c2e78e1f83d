"""How a search says that it cannot go on."""

from __future__ import annotations

from enum import Enum
from typing import Any

from unweave.errors import UnweaveError


class Reason(Enum):
    """Base of the enums in which methods list their reasons; a value is the sentence that users read.

    Figures stand in braces, as in ``str.format``.
    """


class GaveUp(UnweaveError):
    """A search cannot go on; it still holds its best candidate."""

    def __init__(self, reason: Reason, **figures: Any) -> None:
        super().__init__(reason.value.format(**figures))
        self.reason = reason
