"""Numbers with their nouns: ``1 query``, ``2,000 queries``."""

from __future__ import annotations


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return the number with thousands separated and the noun in the right form.

    >>> counted(1, "query", "queries"), counted(2000, "query", "queries"), counted(0, "unit")
    ('1 query', '2,000 queries', '0 units')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def queries(number: int) -> str:
    """Return ``1 query`` or ``2,000 queries``.

    >>> queries(1)
    '1 query'
    """
    return counted(number, "query", "queries")
