"""Which activation the first layer's units have, from how their steps level off far out.

Beyond its step a unit is 1 - g(z), and what follows is linear in so little: for tanh and logistic the answers
approach their limit as exp(-2z), so that log|f - limit| is straight, for erf as exp(-z^2), so that it bends
down ever faster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.far_field import Ask
from unweave.methods.smooth_patterns.directions import Hyperplanes
from unweave.networks.saturation import ERF, TANH, Saturating


@dataclass(frozen=True, kw_only=True)
class KindOptions:
    """Where steps are seen to level off."""

    units: int = 8
    """Units whose steps are looked at."""
    radius: float = 1e4
    """Standard deviation of the places, in normalised inputs."""
    along: tuple[float, ...] = tuple(np.arange(0.5, 5.1, 0.25))
    """Places beyond a step, in its widths."""
    limit: float = 30.0
    """The same where the answers have levelled off."""
    read_from: float = 3e-2
    """Share of the height below which what is left is linear in 1 - g."""
    bent: float = 1.2
    """Ratio of the last slope of the logarithm to the first, above which it is not straight."""
    fewest: int = 4
    """Places that show a slope."""


def unit_kind(
    ask: Ask, planes: Hyperplanes, noise: float, rng: np.random.Generator, options: KindOptions | None = None
) -> Saturating:
    """Return how units level off that switch at ``planes``; ``noise`` is the error of an answer."""
    options = options or KindOptions()
    chosen = rng.permutation(planes.count)[: options.units]
    places = np.concatenate([[-options.limit], options.along, [options.limit]])
    points = []
    for unit in map(int, chosen):
        direction = planes.directions[unit]
        drawn = options.radius * rng.standard_normal((100, len(direction)))
        drawn += (planes.positions[unit] - drawn @ direction)[:, None] * direction
        clear = drawn[planes.signs(drawn, 2 * options.limit, but=unit)[1]]
        if len(clear):
            points.append(clear[0] + planes.widths[unit] * places[:, None] * direction)
    if not points:
        return TANH
    answers = ask(np.concatenate(points)).reshape(len(points), len(places), -1)
    ratios = [_slope_ratio(each, noise, options) for each in answers]
    known = [ratio for ratio in ratios if ratio is not None]
    return ERF if known and float(np.median(known)) > options.bent else TANH


def _slope_ratio(answers: Array, noise: float, options: KindOptions) -> float | None:
    """Return the last slope of log|f - limit| over the first; None if too little of it is seen."""
    output = int(np.abs(answers[-1] - answers[0]).argmax())
    values = answers[:, output]
    height, left = abs(values[-1] - values[0]), np.abs(values[1:-1] - values[-1])
    shown = (left < options.read_from * height) & (left > max(30 * noise, 1e-12 * height))
    if shown.sum() < options.fewest:
        return None
    logs, along = np.log(left[shown]), np.array(options.along)[shown]
    half = len(logs) // 2
    first = (logs[half] - logs[0]) / (along[half] - along[0])
    last = (logs[-1] - logs[half]) / (along[-1] - along[half])
    return float(last / first) if first < 0 else None
