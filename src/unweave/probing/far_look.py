"""A look at the target far outside the region: do its units level off, and is there more than one hidden
layer, or a last transformation?

Where every hidden unit of the first layer is saturated, a network is constant along rays: f(2x) = f(x).
With one hidden layer of odd units (up to a constant) f(x) + f(-x) is then the same for all x; deeper
networks have no such rule, unless all their deeper biases vanish. Behind a sigmoid or softmax the rule holds
for the logits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import NonFiniteAnswers
from unweave.networks.links import Link
from unweave.targets.region import NormalisedQueries

_FAR_RADIUS = 1e4  # in normalised inputs: units of any usual steepness are saturated this far out
_ANTIPODAL_PAIRS = 12  # pairs of points
_FEWEST_PAIRS = 4  # with finite values: fewer tell nothing
_MOST_ANSWER = 1 - 1e-9  # beyond, a logit is known to fewer digits than the test needs
_SAME_FAR_ANSWER = 1e-6  # difference relative to the spread of the answers


@dataclass(frozen=True)
class FarLook:
    """What the far field shows."""

    saturates: bool
    """Whether the answers are constant along rays."""
    layered: bool
    """Whether they are, and cannot come from one hidden layer, whatever the last transformation."""
    links: tuple[str, ...]
    """Of the last transformations asked about, those behind which one hidden layer is possible."""


def far_look(
    view: NormalisedQueries,
    relative_noise: float,
    rng: np.random.Generator,
    links: tuple[str, ...] = ("identity",),
    pairs: int = _ANTIPODAL_PAIRS,
) -> FarLook:
    """Look at antipodal points far out, three rows a pair. ``links``: possible last transformations."""
    points = _FAR_RADIUS * rng.standard_normal((pairs, view.n_inputs))
    try:
        here, opposite, beyond = np.split(view(np.concatenate([points, -points, 2 * points])), 3)
    except NonFiniteAnswers:  # what overflows so far out may answer well enough nearer by
        return FarLook(False, False, links)
    spread = float(np.ptp(here, axis=0).max())
    if not spread > 0:
        return FarLook(False, False, links)
    tolerance = max(_SAME_FAR_ANSWER, 10 * relative_noise)
    # Some pre-activation may be near zero even far out: most rays count.
    saturates = bool(np.median(np.abs(beyond - here).max(axis=1)) <= tolerance * spread)
    if not saturates:
        return FarLook(False, False, links)
    behind = {name: (_behind(name, here), _behind(name, opposite)) for name in links}
    possible = tuple(name for name, values in behind.items() if _is_odd(*values, tolerance))
    return FarLook(True, not possible, possible or links)


def _is_odd(here: Array, opposite: Array, tolerance: float) -> bool:
    """Whether the sums of antipodal values (n, K) are the same for most pairs, as far as both are finite."""
    finite = np.isfinite(here).all(axis=1) & np.isfinite(opposite).all(axis=1)
    if finite.sum() < _FEWEST_PAIRS:
        return True  # saturated answers tell nothing
    sums = (here + opposite)[finite]
    spread = float(np.ptp(here[finite], axis=0).max())
    return bool(np.median(np.abs(sums - np.median(sums, axis=0)).max(axis=1)) <= tolerance * spread)


def _behind(link: str, answers: Array) -> Array:
    """Return answers (n, K) without their last transformation; infinite where that is saturated."""
    with np.errstate(divide="ignore", invalid="ignore"):
        behind = Link(link).inverse(answers)
    return np.where(np.abs(answers) > _MOST_ANSWER, np.inf, behind) if link in ("sigmoid", "tanh") else behind
