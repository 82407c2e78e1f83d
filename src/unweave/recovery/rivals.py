"""Units of another kind that explain coarse answers as well as those that were found.

Behind rounding or noise one kind of unit that fits proves little: swish and mish differ by a few percent. A
kind counts as found only if the others fail. Each rival takes the place of the units that were found, width
and directions as they are, and is fitted to the same answers by least squares on all parameters; chi^2, the
sum of squared residuals in units of their standard deviation, then compares the two. A kink is the limit of
units with larger and larger weights, so that a rival of kinked units has to be better than they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.coarse_answers.averaged_fit import fit_averaged
from unweave.methods.shared.value_search import MOST_INPUTS, ValueSearchOptions, search_values
from unweave.networks.activations import Activation, get_activation
from unweave.networks.activations.catalogue import CATALOGUE
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.numerics import clock

PARALLEL_UNITS = (
    "units that are parallel read one number each time, any function of which they could imitate at this "
    "precision"
)
CLEARLY_WORSE = 30.0
"""Excess of chi^2 at which a rival has failed: five standard deviations and some."""
BETTER_PER_UNIT = 4.0
"""Decrease of chi^2 per unit that the free lengths of smooth units explain where the truth has kinks."""
ROWS_PER_PARAMETER = 32
"""Equations per parameter that rivals are fitted to, at most."""
MOST_PARAMETERS = 600
"""Beyond, the fits of all rivals would take longer than the recovery, and none is tried."""
_SHARPNESS = {True: (0.5, 1.0, 2.0), False: (3.0, 10.0, 30.0)}  # of rivals of smooth and of kinked units
_SAME_FUNCTIONS = ({"tanh", "sigmoid"}, {"hard_tanh", "relu6", "hard_sigmoid"})
"""Kinds that are one up to affine maps, which the other parameters absorb."""
_STEPS = 40  # of a fit
_PARALLEL = 0.99  # |cos| of two directions that coarse answers do not tell apart
_CLOSELY_PARALLEL = 0.999  # the same of two that are no chance, even in two inputs, ...
_HALF = 0.5  # ... if that is so of this share of the units
_CANCELLING = 0.1  # of the outgoing weights of two parallel units, their sum where they cancel
_TINY = float(np.finfo(np.float64).tiny)
_SMALLER = ValueSearchOptions(rounds=(2, 4), work=3.0)
_FEW_ROWS_PER_PARAMETER = 4  # equations per parameter on which most rivals fail already ...
_UNLIKELY = 2.0  # ... by this root mean square residual, in standard deviations
_FIRST_LOOKS = ((0.5, 5, 100.0), (1.0, _STEPS, 8.0))
"""Share of these rows, steps on them, and the residual so far, in standard deviations, that allows them."""


def rival_of(network: Network, x: Array, y: Array, sigma: Array) -> str | None:
    """Name a kind of unit that explains the answers ``y`` (n, K) at ``x`` (n, D) as well; None if all fail.

    ``sigma`` (K,) is the standard deviation of an answer. Networks of one hidden layer have rivals here.
    Raises `OutOfTime` where the time ends before all have been tried.
    """
    found = NetworkParameters.from_network(network)
    if len(network.hidden) != 1 or found.size > MOST_PARAMETERS:
        return None
    rows = min(len(x), int(np.ceil(ROWS_PER_PARAMETER * found.size / network.n_outputs)))
    few = min(rows, int(np.ceil(_FEW_ROWS_PER_PARAMETER * found.size / network.n_outputs)))
    x, y = x[:rows], y[:rows]
    if y.size <= found.size:
        return None
    sigma = np.maximum(sigma, _TINY)
    mine, smooth = fit_averaged(found, x, y, sigma).squares, found.activation.smooth
    allowed = mine + CLEARLY_WORSE if smooth else mine - CLEARLY_WORSE - BETTER_PER_UNIT * found.width
    for kind in _rivals(found.activation):
        starts = [_in_place(found, kind, sharpness, x[:few], y[:few]) for sharpness in _SHARPNESS[smooth]]
        off = [float(np.sum(((start.values(x[:few]) - y[:few]) / sigma) ** 2)) for start in starts]
        model, left = starts[int(np.argmin(off))], min(off)
        for share, steps, unlikely in _FIRST_LOOKS:
            if left <= unlikely**2 * y[:few].size:
                part = int(np.ceil(share * few))
                fit = fit_averaged(model, x[:part], y[:part], sigma, steps=steps)
                model, left = fit.model, fit.squares / share
        if left > _UNLIKELY**2 * y[:few].size or not np.isfinite(left):
            continue
        if fit_averaged(model, x, y, sigma, steps=_STEPS).squares <= allowed:
            return kind.name
    clock.check()  # a rival that had no time has not failed
    return None


def are_parallel(network: Network) -> bool:
    """Whether sums of parallel units may imitate other functions of the numbers that these read.

    So it is where every unit has a parallel one, or half of them have one too close for chance, or two nearly
    cancel: the difference of two units of almost one slope is the derivative of their kind, which is no unit.
    """
    incoming, outgoing = network.weights[0], network.weights[1]
    directions = incoming / np.maximum(np.linalg.norm(incoming, axis=0), _TINY)
    cosines = directions.T @ directions
    np.fill_diagonal(cosines, 0.0)
    parallel, closely = np.abs(cosines) > _PARALLEL, np.abs(cosines) > _CLOSELY_PARALLEL
    if parallel.any(axis=1).all() or closely.any(axis=1).mean() >= _HALF:
        return True
    is_odd = get_activation(network.activations[0]).is_odd
    for first, second in np.argwhere(np.triu(parallel)):
        turned = cosines[first, second] < 0
        if turned and not is_odd:
            continue
        left = outgoing[first] + (-1 if turned else 1) * outgoing[second]
        sizes = np.linalg.norm(outgoing[first]) + np.linalg.norm(outgoing[second])
        if np.linalg.norm(left) < _CANCELLING * sizes:
            return True
    return False


def smaller_rival(network: Network, x: Array, y: Array, floor: float, rng: np.random.Generator) -> str | None:
    """Name a kind of which no more smooth units, or fewer of its own, explain the rows to ``floor``, or None.

    The floor is relative to the answers' spread. Random starts find units in few inputs only.
    """
    if len(network.hidden) != 1 or x.shape[1] > MOST_INPUTS:
        return None
    kind, width = get_activation(network.activations[0]), network.hidden[0]
    others = [rival for rival in _rivals(kind) if rival.smooth]
    for kinds, most in (([kind] if kind.smooth else [], width - 1), (others, width)):
        if not kinds or not most:
            continue
        options = replace(_SMALLER, most_units=most)
        found = search_values(x, y, None, kinds, floor=floor, rng=rng, options=options)
        clock.check()
        if found is not None and found.exact and found.fitted.model.size <= network.n_parameters:
            fewer = "fewer " if found.network.hidden[0] < width else ""
            return fewer + found.fitted.model.activation.name
    return None


def _rivals(kind: Activation) -> list[Activation]:
    names = {known.name for known in CATALOGUE} - {"identity", kind.name}  # not what a user registers: copies
    for same in _SAME_FUNCTIONS:
        names -= same if kind.name in same else set()
    rivals = list(map(get_activation, sorted(names)))
    return [rival for rival in rivals if rival.smooth or kind.smooth]


def _in_place(
    found: NetworkParameters, kind: Activation, sharpness: float, x: Array, y: Array
) -> NetworkParameters:
    """Put units of ``kind`` in the place of those found, with outgoing weights by least squares."""
    weights, biases = sharpness * found.weights[0], sharpness * found.biases[0]
    model = replace(
        found,
        activations=(kind, *found.activations[1:]),
        weights=(weights, found.weights[1] / sharpness),
        biases=(biases, found.biases[1]),
    )
    output = found.activations[-1]
    if output is None or output.name != "identity":
        return model  # behind a link the outgoing weights found are start enough
    design = np.concatenate([kind(x @ weights + biases), np.ones((len(x), 1))], axis=1)
    if found.skip is not None:
        design = np.concatenate([design, x], axis=1)
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    width = found.width
    return replace(
        model,
        weights=(weights, solution[:width]),
        biases=(biases, solution[width]),
        skip=None if found.skip is None else solution[width + 1 :],
    )
