"""Why no network with several smooth hidden layers was found."""

from __future__ import annotations

from unweave.search import Reason


class DeepReason(Reason):
    """The sentences that users read."""

    LAYER = "layer {number}: {what}"
    LAST_LAYER = "{what}"
    NO_END = "no end after {layers} layers"
    NO_ROOM = "no point leaves room for differences"
    TOO_WIDE = (
        "layer 1 has at least {units} units but reads only {read} coordinates: layers must not be wider than "
        "what they read"
    )
    TOO_FEW_SEEN = "far away only {units} units of layer 1 are seen where {wanted} were expected"
    NOT_FLAT = (
        "far away the answers do not level off between isolated steps, so the hidden units do not saturate; "
        "networks with several hidden layers need tanh, logistic or erf units"
    )
