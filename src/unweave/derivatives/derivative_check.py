"""Whether the derivatives that a target gives are those of its answers.

A module may hide a part from its backward pass, or bring a backward pass of its own. Along a random unit
direction q the answers say (f(x + h q) - f(x - h q)) / 2h, up to a truncation of order h^2; the gradient
says q . grad f(x). Two rows per site.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.stencils import Jets

LARGEST_MISMATCH = 0.1
"""Of the slopes: what a step that is short for typical units leaves even for steep ones; a part that is
missing from the backward pass leaves its share of the answers."""


def derivative_mismatch(
    ask: Callable[[Array], Array], jets: Jets, step: float, rng: np.random.Generator
) -> float:
    """Root mean square difference of slopes by answers and by the gradients of ``jets``, relative to them."""
    directions = rng.standard_normal(jets.sites.shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    ahead, behind = np.split(
        ask(np.concatenate([jets.sites + step * directions, jets.sites - step * directions])), 2
    )
    by_answers = (ahead - behind) / (2 * step)
    by_gradients = np.einsum("nkd,nd->nk", jets.gradients, directions)
    size = max(float(np.linalg.norm(by_answers)), float(np.finfo(np.float64).tiny))
    return float(np.linalg.norm(by_gradients - by_answers)) / size
