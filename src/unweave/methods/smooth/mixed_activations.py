"""Neurons of one layer that are not alike.

Directions do not depend on the activation, and neither do the samples of a neuron's own profile. So when no
single activation explains all neurons, each can still be asked which one explains it: a layer that mixes them
is named, not fitted.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.profiles.profiles import fit_profiles
from unweave.networks.activations import get_activation

_EXPLAINED = 0.02  # relative misfit of a profile that an activation explains
_CLEARLY = 3.0  # factor by which the next best activation must be worse


def activations_seen(
    names: tuple[str, ...], projections: Array, samples: Array, order: int, rng: np.random.Generator
) -> dict[str, int]:
    """How many neurons each activation explains best, and clearly; neurons that none explains are left out.

    ``projections`` (n, m), ``samples`` (n, m, K) and ``order`` as in `fit_profiles`.

    Example: ``{"tanh": 6, "sine": 6}`` for a layer of twelve that mixes two kinds.
    """
    residuals = np.stack(
        [fit_profiles(projections, samples, get_activation(name), order, rng).residuals for name in names]
    )
    sorted_residuals = np.sort(residuals, axis=0)
    clear = sorted_residuals[0] <= _EXPLAINED
    if len(names) > 1:
        clear &= sorted_residuals[1] > _CLEARLY * sorted_residuals[0]
    best = np.argmin(residuals, axis=0)[clear]
    counts = {name: int(np.sum(best == i)) for i, name in enumerate(names)}
    return {name: count for name, count in counts.items() if count}
