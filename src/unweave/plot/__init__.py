"""Pictures of results on matplotlib axes, for notebooks and papers; the report draws the same ones.

    result = unweave.recover(target)
    unweave.plot.spectrum(result)

Every function takes axes to draw on, or None for new ones, and returns the axes. A result without the
evidence that a picture shows is refused, and the message says what it holds.
"""

from unweave.plot.audits import leakage
from unweave.plot.results import convergence, kinks, profile, spectrum
from unweave.plot.weights import weights

__all__ = ["convergence", "kinks", "leakage", "profile", "spectrum", "weights"]
