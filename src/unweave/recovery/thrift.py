"""Whether a budget is too small for the usual way, and how little is looked at then.

A look of a few hundred rows is cheap insurance where a search takes thousands. Where it would take most of
what may be asked, less has to do: a short look, a route of few rows, and a verdict on fewer rows. What the
verdict demands stays the same.
"""

from __future__ import annotations

from unweave.probing.look import FULL_LOOK, GLANCE, SHORT_LOOK, LookSize
from unweave.search import Request

LOOK_SHARE = 0.25
"""Share of the budget that a full look may take."""


def is_tight(budget: int | None, usual: int, look: int) -> bool:
    """Whether ``budget`` is below the ``usual`` rows, a good part of which a full look would take."""
    return budget is not None and budget < usual and look > LOOK_SHARE * budget


def look_size(request: Request) -> LookSize:
    """Return how much to look at: what is told need not be looked for when rows are few."""
    if not request.tight:
        return FULL_LOOK
    told = request.hidden is not None and request.activation is not None
    return GLANCE if told else SHORT_LOOK
