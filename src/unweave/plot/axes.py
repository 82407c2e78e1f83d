"""Where pictures are drawn: on the axes given, or on new ones that no window shows by itself."""

from __future__ import annotations

from matplotlib.axes import Axes


def on(axes: Axes | None, width: float = 4.6, height: float = 3.1) -> Axes:
    """Return ``axes``, or new ones, ``width`` x ``height`` inches."""
    if axes is not None:
        return axes
    import matplotlib.pyplot as pyplot  # a backend is only chosen where a figure has to be made

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
