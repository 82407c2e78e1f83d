"""Numbers, shares and lists in words: ``1 query``, ``97 %``, ``a, b and c``."""

from __future__ import annotations

import math

NO_NETWORK = "no network"


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


def percent(share: float) -> str:
    """Return a share or a relative error: per cent down to a hundredth, then as a power of ten.

    Only all is 100 %: shares just below are rounded down.

    >>> percent(0.0123), percent(4.2e-4), percent(2.2e-15), percent(0.967), percent(0.9996), percent(1.0)
    ('1.2 %', '0.042 %', '2e-15', '97 %', '99.9 %', '100 %')
    """
    if math.isnan(share):
        return NO_NETWORK
    if 0.995 <= share < 1:
        return f"{math.floor(1000 * share) / 10:g} %"
    if share >= 0.1 or share == 0:
        return f"{100 * share:.0f} %"
    if share >= 1e-4:
        return f"{100 * share:.2g} %"
    return f"{share:.0e}".replace("e-0", "e-")


def about(count: float) -> str:
    """Return a count rounded to two digits, for predictions.

    >>> about(123456), about(98)
    ('120,000', '98')
    """
    if count < 100:
        return f"{count:.0f}"
    unit = 10 ** (math.floor(math.log10(count)) - 1)
    return f"{round(count / unit) * unit:,}"


def listed(parts: list[str], last: str = "and") -> str:
    """Return ``a, b and c``.

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"
