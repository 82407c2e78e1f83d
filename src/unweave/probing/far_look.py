"""A look at the target far outside the region: do its units level off or grow, and is there more than one
hidden layer, or a last transformation?

Where every hidden unit of the first layer is saturated, a network is constant along rays: f(2x) = f(x).
With one hidden layer of odd units (up to a constant) f(x) + f(-x) is then the same for all x; deeper
networks have no such rule, unless all their deeper biases vanish. Behind a sigmoid or softmax the rule holds
for the logits.

Where every unit is a rectifier from afar (softplus, gelu, ...), a network grows along rays: f(2x) = 2 f(x)
but for biases. With one hidden layer the odd part f(x) - f(-x) is then linear, as relu(z) - relu(-z) = z, so
that it sums to zero over three points that do; deeper networks have no such rule.
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
_PROPORTIONAL = 0.01  # the same for what grows along rays: biases count for one part in the radius
_NOT_LINEAR = 1e-3  # sum of odd parts relative to their spread: units that level off beside a skip leave 1e-4


@dataclass(frozen=True)
class FarLook:
    """What the far field shows."""

    saturates: bool
    """Whether the answers are constant along rays."""
    layered: bool
    """Whether they cannot come from one hidden layer, whatever the last transformation."""
    rectifies: bool
    """Whether they grow along rays in proportion, and are not affine."""
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
    thirds = points[2::3]
    thirds[:] = -(points[0::3][: len(thirds)] + points[1::3][: len(thirds)])
    try:
        here, opposite, beyond = np.split(view(np.concatenate([points, -points, 2 * points])), 3)
    except NonFiniteAnswers:  # what overflows so far out may answer well enough nearer by
        return FarLook(False, False, False, links)
    spread = float(np.ptp(here, axis=0).max())
    if not spread > 0:
        return FarLook(False, False, False, links)
    tolerance = max(_SAME_FAR_ANSWER, 10 * relative_noise)
    # Some pre-activation may be near zero even far out: most rays count.
    saturates = bool(np.median(np.abs(beyond - here).max(axis=1)) <= tolerance * spread)
    if not saturates:
        grows = bool(np.median(np.abs(beyond - 2 * here).max(axis=1)) <= _PROPORTIONAL * spread)
        bent = bool(np.median(np.abs(here + opposite).max(axis=1)) > _PROPORTIONAL * spread)
        odd = grows and bent and _is_linear(here - opposite, len(thirds))
        return FarLook(False, grows and bent and not odd, grows and bent, links)
    behind = {name: (_behind(name, here), _behind(name, opposite)) for name in links}
    possible = tuple(name for name, values in behind.items() if _is_odd(*values, tolerance))
    return FarLook(True, not possible, False, possible or links)


def _is_linear(odd: Array, triples: int) -> bool:
    """Whether values (n, K) sum to zero over most of the first ``triples`` points, which do."""
    if not triples:
        return True
    sums = odd[: 3 * triples].reshape(triples, 3, -1).sum(axis=1)
    return bool(np.median(np.abs(sums).max(axis=1)) <= _NOT_LINEAR * np.ptp(odd, axis=0).max())


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
