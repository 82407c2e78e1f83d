"""Which activation the first layer's units have, from how their steps level off far out.

Beyond its step a unit is 1 - g(z), and what follows is linear in so little: for tanh and logistic the answers
approach their limit as exp(-2z), so that log|f - limit| is straight, for erf as exp(-z^2), so that it bends
down ever faster.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.far_field import Ask, Unit
from unweave.networks.saturation import ERF, TANH, Saturating

_UNITS = 5  # whose steps are looked at, the highest
_ALONG = np.arange(0.5, 5.1, 0.25)  # places beyond a step, in its widths
_LIMIT = 50.0  # the same where the answers have levelled off
_READ_FROM = 3e-2  # share of the height below which what is left is linear in 1 - g
_BENT = 1.5  # ratio of the last slope of the logarithm to the first, above which it is not straight
_FEWEST = 4  # places that show a slope


def unit_kind(ask: Ask, units: list[Unit], noise: float) -> Saturating:
    """Return how ``units`` level off; ``noise`` is the error of an answer."""
    highest = sorted(units, key=lambda unit: -max(c.height for c in unit.crossings))[:_UNITS]
    places = np.concatenate([[-_LIMIT], _ALONG, [_LIMIT]])
    points = np.concatenate(
        [unit.strongest(1)[0] + unit.width * places[:, None] * unit.direction for unit in highest]
    )
    answers = ask(points).reshape(len(highest), len(places), -1)
    ratios = [_slope_ratio(each, noise) for each in answers]
    known = [ratio for ratio in ratios if ratio is not None]
    return ERF if known and float(np.median(known)) > _BENT else TANH


def _slope_ratio(answers: Array, noise: float) -> float | None:
    """Return the last slope of log|f - limit| over the first; None if too little of it is seen."""
    output = int(np.abs(answers[-1] - answers[0]).argmax())
    values = answers[:, output]
    height, left = abs(values[-1] - values[0]), np.abs(values[1:-1] - values[-1])
    shown = (left < _READ_FROM * height) & (left > max(100 * noise, 1e-12 * height))
    if shown.sum() < _FEWEST:
        return None
    logs, along = np.log(left[shown]), _ALONG[shown]
    half = len(logs) // 2
    first = (logs[half] - logs[0]) / (along[half] - along[0])
    last = (logs[-1] - logs[half]) / (along[-1] - along[half])
    return float(last / first) if first < 0 else None
