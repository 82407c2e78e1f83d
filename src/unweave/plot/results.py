"""What a recovery has measured, one picture each."""

from __future__ import annotations

from matplotlib.axes import Axes

from unweave.errors import InvalidInput
from unweave.plot.axes import on
from unweave.recovery.result import Recovery
from unweave.report.charts import paint_chart


def spectrum(result: Recovery, axes: Axes | None = None) -> Axes:
    """Draw the singular values of the Hessians, whose gap shows the number of units.

    Example
    -------
    >>> import unweave
    >>> result = unweave.recover(unweave.random_network([4, 5, 1], seed=1000, outer="normal"))
    >>> unweave.plot.spectrum(result).get_yscale()
    'log'
    """
    return _draw(
        result, "spectrum", axes, "singular values of Hessians, which methods for one smooth layer measure"
    )


def profile(result: Recovery, axes: Axes | None = None) -> Axes:
    """Draw the profile of a unit: its activation along its own direction, as measured and as fitted."""
    return _draw(result, "profile", axes, "the profile of a unit, which methods for smooth units measure")


def convergence(result: Recovery, axes: Axes | None = None) -> Axes:
    """Draw the residual of the final fit, step by step, down to what rounding or noise leaves."""
    return _draw(result, "convergence", axes, "the history of a final fit of two steps or more")


def kinks(result: Recovery, axes: Axes | None = None) -> Axes:
    """Draw the kinks along a line, one or more for every ReLU unit."""
    return _draw(result, "kinks", axes, "kinks on lines, which methods for ReLU units measure")


def _draw(result: Recovery, name: str, axes: Axes | None, what: str) -> Axes:
    if not isinstance(result, Recovery):
        raise InvalidInput(
            f"result must be what unweave.recover returned. Got {type(result).__name__} instead."
        )
    charts = {chart.name: chart for chart in result.evidence.charts(result.network)}
    if name not in charts:
        drawn = [each for each in charts if each in ("spectrum", "profile", "convergence", "kinks")]
        held = (
            f"It can be drawn with unweave.plot.{' or .'.join(drawn)}."
            if drawn
            else "It holds nothing to draw."
        )
        raise InvalidInput(f"result must hold {what}. Got {result!r} instead. {held}")
    axes = on(axes)
    paint_chart(axes, charts[name])
    axes.set_title(charts[name].title, loc="left")
    return axes
