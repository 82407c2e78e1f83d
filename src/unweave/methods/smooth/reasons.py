"""Why no network with one smooth hidden layer was found."""

from __future__ import annotations

from unweave.search import Reason


class SmoothReason(Reason):
    """The sentences that users read."""

    NO_GAP = (
        "no gap in the spectrum of {columns} Hessians (largest ratio {gap:.2g}; one smooth hidden layer "
        "shows at least {clear:.0f}): more than {most} units, more than one hidden layer, answers too "
        "coarse to see it, or not a network of this class"
    )
    TOO_WIDE = (
        "the Hessians span {rank} dimensions; in {inputs} inputs at most {most} units are determined by "
        "their span"
    )
    NO_RANK_ONE_MEMBER = (
        "the span of the Hessians has dimension {rank} but no rank-one member: not a sum of functions of one "
        "direction each"
    )
    NOT_AT_FLOOR = (
        "{units} units leave a residual of {residual:.2g} where rounding or noise would leave {floor:.2g}: "
        "{what_else}"
    )
    DERIVATIVES_DIFFER = (
        "the target's derivatives by autodiff are not those of its answers (off by {mismatch:.2g} of their "
        'size): a part is detached, or has a backward pass of its own; leave derivatives at "queries"'
    )
