"""The weights of one layer as an image."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.plot.axes import on
from unweave.recovery.result import Recovery
from unweave.report.weight_pictures import MOST_CELLS, layer_panel, paint_panel

_MOST_NAMES = 30  # inputs whose names are written beside the image


def weights(network: Network | Recovery, layer: int = 0, axes: Axes | None = None) -> Axes:
    """Draw the weights of a layer, inputs downwards, units to the right: dark is negative, light is positive.

    Parameters
    ----------
    network
        A `Network`, or a result; the names of its inputs, if it has any, stand beside the first layer.
    layer
        Number of the layer, the first being 0, the output layer -1.
    """
    found: Any = network.network or network.known_layers if isinstance(network, Recovery) else network
    if not isinstance(found, Network):
        raise InvalidInput(f"network must be a Network, or a result that holds one. Got {network!r} instead.")
    count = len(found.weights)
    if not -count <= layer < count:
        raise InvalidInput(f"layer must be from {-count} to {count - 1}. Got {layer!r} instead.")
    axes = on(axes)
    panel = layer_panel(found, layer % count)
    figure = axes.get_figure(root=True)
    assert figure is not None  # axes without a figure cannot be drawn on
    paint_panel(figure, axes, panel, MOST_CELLS)
    names = network.input_names if isinstance(network, Recovery) else ()
    if layer % count == 0 and len(names) == found.n_inputs <= _MOST_NAMES:
        axes.set_yticks(range(1, len(names) + 1), names)
        axes.set_ylabel("")
    return axes
