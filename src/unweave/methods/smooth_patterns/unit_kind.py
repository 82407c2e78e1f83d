"""Which activation the first layer's units have, from how their steps level off far out.

Beyond its step a unit is 1 - g(z), and what follows is linear in so little: for tanh and logistic the answers
approach their limit as exp(-2z), so that log|f - limit| is straight, for erf as exp(-z^2), so that it bends
down ever faster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.far_field import Ask, Unit
from unweave.networks.saturation import ERF, TANH, Saturating


@dataclass(frozen=True, kw_only=True)
class KindOptions:
    """Where steps are seen to level off."""

    units: int = 5
    """Units whose steps are looked at, the highest."""
    along: tuple[float, ...] = tuple(np.arange(0.5, 5.1, 0.25))
    """Places beyond a step, in its widths."""
    limit: float = 50.0
    """The same where the answers have levelled off."""
    read_from: float = 3e-2
    """Share of the height below which what is left is linear in 1 - g."""
    bent: float = 1.5
    """Ratio of the last slope of the logarithm to the first, above which it is not straight."""
    fewest: int = 4
    """Places that show a slope."""


def unit_kind(ask: Ask, units: list[Unit], noise: float, options: KindOptions | None = None) -> Saturating:
    """Return how ``units`` level off; ``noise`` is the error of an answer."""
    options = options or KindOptions()
    highest = sorted(units, key=lambda unit: -max(c.height for c in unit.crossings))[: options.units]
    places = np.concatenate([[-options.limit], options.along, [options.limit]])
    points = np.concatenate(
        [unit.strongest(1)[0] + unit.width * places[:, None] * unit.direction for unit in highest]
    )
    answers = ask(points).reshape(len(highest), len(places), -1)
    ratios = [_slope_ratio(each, noise, options) for each in answers]
    known = [ratio for ratio in ratios if ratio is not None]
    return ERF if known and float(np.median(known)) > options.bent else TANH


def _slope_ratio(answers: Array, noise: float, options: KindOptions) -> float | None:
    """Return the last slope of log|f - limit| over the first; None if too little of it is seen."""
    output = int(np.abs(answers[-1] - answers[0]).argmax())
    values = answers[:, output]
    height, left = abs(values[-1] - values[0]), np.abs(values[1:-1] - values[-1])
    shown = (left < options.read_from * height) & (left > max(100 * noise, 1e-12 * height))
    if shown.sum() < options.fewest:
        return None
    logs, along = np.log(left[shown]), np.array(options.along)[shown]
    half = len(logs) // 2
    first = (logs[half] - logs[0]) / (along[half] - along[0])
    last = (logs[-1] - logs[half]) / (along[-1] - along[half])
    return float(last / first) if first < 0 else None
