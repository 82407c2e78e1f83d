"""Numbers with the digits that a reader can use."""

from __future__ import annotations

import re

from unweave.experiments.experiment import Value

_EXPONENT = re.compile(r"e([+-])0(\d)")  # e-05 is printed as e-5
_LARGEST_PLAIN, _SMALLEST_PLAIN = 1e6, 1e-2


def number(value: Value) -> str:
    """Format a value with the digits that a reader can use; texts stay as they are.

    Example:
        >>> number(0.09084), number(2e-15), number(15176.3), number(True)
        ('0.09084', '2.0e-15', '15,176', 'yes')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    size = abs(value)
    if size == 0 or value != value or size == float("inf"):
        return f"{value:g}"
    if size < _SMALLEST_PLAIN or size >= _LARGEST_PLAIN:
        return _EXPONENT.sub(r"e\1\2", f"{value:.1e}" if size < 1e-6 else f"{value:.2e}")
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"
