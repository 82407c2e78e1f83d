"""Numbers and lists in words."""

from __future__ import annotations

import math

NO_NETWORK = "no network"


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


def plural(count: int, word: str, words: str | None = None) -> str:
    """Return a count with its noun.

    >>> plural(1, "row"), plural(2300, "query", "queries")
    ('1 row', '2,300 queries')
    """
    return f"{count:,} {word if count == 1 else words or word + 's'}"
