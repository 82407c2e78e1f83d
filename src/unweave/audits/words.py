"""Numbers in the words of an audit."""

from __future__ import annotations

import math

NO_NETWORK = "no network"


def percent(share: float) -> str:
    """Return a relative error in words: per cent down to a hundredth, then as a power of ten.

    >>> percent(0.0123), percent(4.2e-4), percent(2.2e-15), percent(0.967), percent(1.0)
    ('1.2 %', '0.042 %', '2e-15', '97 %', '100 %')
    """
    if math.isnan(share):
        return NO_NETWORK
    if share >= 0.1:
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
