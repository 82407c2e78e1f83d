"""What an audit has found, as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unweave.audits.result import Audit
from unweave.errors import InvalidInput
from unweave.plot.axes import on
from unweave.report.picture import ACCENT, logarithmic

_SHOWN = (1e-16, 1.0)  # errors drawn: below is rounding, above nothing is known
_MARKERS = ("o", "s", "^", "v", "D", "x", "+", "*")


def leakage(audit: Audit, axes: Axes | None = None) -> Axes:
    """Draw the error of the weights that an attacker knows, against the queries, a curve per precision."""
    held: Any = audit
    if not isinstance(held, Audit):
        raise InvalidInput(f"audit must be what unweave.audit returned. Got {type(held).__name__} instead.")
    if not audit.points:
        raise InvalidInput(f"audit must hold attacks. This one ran none: {audit.verdict}")
    axes = on(axes)
    for place, level in enumerate(audit.levels):
        best = [(budget, audit.best(level, budget)) for budget in audit.budgets]
        known = [(budget, point.median_weight_error) for budget, point in best if point is not None]
        if known:
            budgets, errors = np.array(known, dtype=np.float64).T
            marker = _MARKERS[place % len(_MARKERS)]
            axes.plot(budgets, np.clip(errors, *_SHOWN), marker=marker, label=level.label)
    axes.axhline(audit.alarm, color=ACCENT, ls="--", lw=1.2)
    axes.set(xscale="log", yscale="log", xlabel="queries", ylabel="median relative error of the weights")
    logarithmic(axes.xaxis)
    logarithmic(axes.yaxis)
    axes.legend(title="published")
    return axes
