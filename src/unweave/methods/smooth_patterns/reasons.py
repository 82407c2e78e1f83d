"""Why no layers were found behind the signs of a first one."""

from __future__ import annotations

from unweave.search import Reason


class PatternReason(Reason):
    """Why no network with two such layers was found."""

    NO_UNITS = "far away no unit of a first hidden layer is seen to switch"
    TOO_LARGE = (
        "hidden={hidden}: several layers behind the signs of the first are fitted together, which is not "
        "tried with so many units"
    )
    FEW_PATTERNS = (
        "the {units} units of layer 1 show {patterns} sign patterns, too few for the layer behind them; "
        "more inputs would show more"
    )
    NOT_EXACT = (
        "{units} units behind the signs of {first} first-layer units leave a residual of {residual:.2g}: "
        "more hidden layers, units of another kind, or a first-layer unit that was not seen"
    )
