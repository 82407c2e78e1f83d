"""Noise-assisted descent on a ReLU gate, and how far it may wander ([mathematics] Alg. 3).

Clean labels y_i = relu(w* . x_i), |x_i| <= C. Per step, one pass over all S samples:

    g = -(1/S) sum_i 1{w . x_i >= 0} (y_i - relu(w . x_i)) x_i,
    w <- w - eta (g + u) + sqrt(eta) v,

eta, the step, and the noise may change: u uniform on the ball of radius S1, v normal with standard deviations
s_k < 1 of its coordinates. g never points away from w*, <w - w*, g> >= 0, and |g| <= C^2 |w - w*|. With
D_t = |w_t - w*|^2, a_t = eta_t^2 C^4 and c_t = eta_t^2 E|u|^2 + eta_t sum_k s_k^2,

    E[D_{t+1} | w_t] <= (1 + a_t) D_t + c_t,

so D_t over the product of (1 + a), plus the noise still to come, is a supermartingale, and by Ville's
inequality the solution d_T of d_{t+1} = (1 + a_t) d_t + c_t, d_0 = D_0, bounds

    P[some t <= T has |w_t - w*| > r] <= d_T / r^2.                                           (maximal)

Thm. 3.4.1 bounds the same probability for one step eta through bounded differences, for
r^2 = (margin + D_0 + T (eta n + 2 eta^2 S1^2)) / (1 - 2 T eta^2 C^4) and any b < sqrt(n), by

    T (P[|v| > b] + exp(-margin^2 / (2 T k^2))),                                              (azuma)
    k = 2 sqrt(eta) b (r + eta (C^2 r + S1)) + eta (2 S1 r + n + 2 C^2 r^2 + 2 eta (C^4 r^2 + S1^2)),

with k^2, where the printed exponent has k. It exceeds one unless T is tiny; the first bound does not. Both
say that the iterates stay near w*, not that they arrive.

Cost: 4 S n flops per pass; blocks of a pass may be given one after the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaincc

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.gates.common import GateResult, checked_positive, checked_rows, checked_vector

_JUMP_GRID = np.linspace(0.05, 0.999, 200)  # values of b / sqrt(n) over which the second bound is minimized


@dataclass(frozen=True)
class NoisyDescentOptions:
    """Steps and noise."""

    steps: int = 1000
    step: float | tuple[float, ...] | None = None
    """eta, or one for every step; half of 1/(C^2 sqrt(2 steps)) if not given."""
    bounded_noise: float = 0.1
    """S1, the radius of u."""
    diffusion: float | tuple[float, ...] = 0.1
    """s, the standard deviation of v, of all coordinates or one for each; below one."""
    margin: float = 5.0
    """Of the confinement radius; larger ones make leaving it less likely."""


@dataclass(frozen=True)
class Confinement:
    """A ball around w* and how likely the iterates leave it."""

    radius: float
    maximal: float
    """Ville's bound on the probability of leaving within all steps; one at most."""
    azuma: float
    """That of [mathematics] Thm. 3.4.1; one at most, and one where steps differ."""


@dataclass(frozen=True, eq=False)
class NoisyDescentFit(GateResult):
    """Best and last iterate, with losses and distances on the way."""

    weights: Array
    """(n,) the iterate with the least empirical loss."""
    last: Array
    losses: Array
    """(steps,) empirical loss before every step."""
    confinement: Confinement | None
    """None if w* is not known."""
    distances: Array | None
    """(steps + 1,) |w_t - w*|, the start first; None if w* is not known."""
    step: float
    """The longest one."""


class NoisyDescent:
    """Noise-assisted descent over blocks: `partial_fit` every block of a pass, then `end_pass`.

    Args:
        start: w_0 (n,).
        radius: C, a bound on |x| over all rows.
        rng: where the noise comes from.
        options: steps and noise.
        truth: w* (n,), to measure.
    """

    def __init__(
        self,
        start: Any,
        radius: float,
        rng: np.random.Generator,
        options: NoisyDescentOptions | None = None,
        truth: Any = None,
    ) -> None:
        self._options = options = options or NoisyDescentOptions()
        self._radius = checked_positive(radius, "radius", "a bound on |x| over all rows")
        self._weights = checked_vector(start, None, "start")
        spread = np.asarray(options.diffusion, dtype=np.float64)
        if (
            options.steps < 1
            or options.bounded_noise < 0
            or spread.shape not in ((), (len(self._weights),))
            or not np.all((spread >= 0) & (spread < 1))
        ):
            raise InvalidInput(
                f"options must have steps >= 1, bounded_noise >= 0 and 0 <= diffusion < 1, one or for each "
                f"input. Got {options} instead. Change those."
            )
        longest = 1 / (self._radius**2 * math.sqrt(2 * options.steps))
        given = np.asarray(longest / 2 if options.step is None else options.step, dtype=np.float64)
        fits = given.shape in ((), (options.steps,))
        self._lengths = np.broadcast_to(given, (options.steps,)) if fits else np.zeros(1)
        too_long = 2 * self._radius**4 * float(np.sum(self._lengths**2)) >= 1
        if too_long or not np.all(self._lengths > 0):
            raise InvalidInput(
                f"step must be above 0 and below 1/(C^2 sqrt(2 steps)) = {longest:g}, or as many steps whose "
                f"squares add up to less than 1/(2 C^4). Got {options.step!r} instead. Leave it out, or take "
                f"fewer steps."
            )
        self._truth = None if truth is None else checked_vector(truth, len(self._weights), "truth")
        self._rng = rng
        self._best: tuple[float, Array] | None = None
        self._losses: list[float] = []
        self._distances: list[float] = []
        self._measure()
        self._sum = np.zeros_like(self._weights)
        self._squares, self._rows = 0.0, 0

    def partial_fit(self, x: Any, y: Any) -> NoisyDescent:
        """Add samples x (N, n), y (N,) to the pass under way."""
        x, y = checked_rows(x, y, len(self._weights))
        z = x @ self._weights
        residual = y - np.maximum(z, 0.0)
        self._sum = self._sum - np.where(z >= 0, residual, 0.0) @ x
        self._squares += float(np.sum(residual**2))
        self._rows += len(x)
        return self

    def end_pass(self) -> NoisyDescent:
        """Step, after all blocks have been seen."""
        if not self._rows:
            raise InvalidInput("partial_fit must be called with samples before end_pass.")
        loss = self._squares / self._rows
        self._losses.append(loss)
        if self._best is None or loss < self._best[0]:
            self._best = loss, self._weights
        n, options = len(self._weights), self._options
        direction = self._rng.standard_normal(n)
        direction *= options.bounded_noise * self._rng.random() ** (1 / n) / np.linalg.norm(direction)
        normal = np.asarray(options.diffusion) * self._rng.standard_normal(n)
        gradient = self._sum / self._rows
        step = float(self._lengths[min(len(self._losses), len(self._lengths)) - 1])
        self._weights = self._weights - step * (gradient + direction) + math.sqrt(step) * normal
        self._measure()
        self._clear()
        return self

    def fit(self) -> NoisyDescentFit:
        """The iterates so far."""
        if self._best is None:
            raise InvalidInput("end_pass must be called before fit.")
        known = self._truth is not None
        return NoisyDescentFit(
            weights=self._best[1].copy(),
            last=self._weights.copy(),
            losses=np.array(self._losses),
            confinement=self._confinement() if known else None,
            distances=np.array(self._distances) if known else None,
            step=float(self._lengths.max()),
        )

    def _confinement(self) -> Confinement:
        return confinement(len(self._weights), self._distances[0], self._radius, self._lengths, self._options)

    def _measure(self) -> None:
        if self._truth is not None:
            self._distances.append(float(np.linalg.norm(self._weights - self._truth)))

    def _clear(self) -> None:
        self._sum = np.zeros_like(self._weights)
        self._squares, self._rows = 0.0, 0


def confinement(
    inputs: int, distance: float, radius: float, step: float | Array, options: NoisyDescentOptions
) -> Confinement:
    """The ball of [mathematics] Thm. 3.4.1 for |w_0 - w*| = distance, |x| <= radius; both probabilities.

    ``step`` is one for all steps of ``options``, or one for each.
    """
    n, s1 = inputs, options.bounded_noise
    eta = np.broadcast_to(np.asarray(step, dtype=np.float64), (options.steps,))
    growth = eta**2 * radius**4
    squared = (options.margin + distance**2 + float(np.sum(eta * n + 2 * eta**2 * s1**2))) / (
        1 - 2 * float(growth.sum())
    )
    r = math.sqrt(squared)
    # E|u|^2 = S1^2 n/(n+2) on the ball.
    diffused = float(np.sum(np.broadcast_to(np.asarray(options.diffusion, dtype=np.float64), (n,)) ** 2))
    noise = eta**2 * s1**2 * n / (n + 2) + eta * diffused
    # d_T = (product of all 1 + a) D_0 + sum_t c_t (product of the 1 + a after t).
    grown = np.exp(np.cumsum(np.log1p(growth)))
    reached = float(grown[-1] * (distance**2 + np.sum(noise / grown)))
    azuma = _azuma(n, r, radius, float(eta[0]), options) if np.all(eta == eta[0]) else 1.0
    return Confinement(r, min(1.0, reached / squared), min(1.0, azuma))


def _azuma(n: int, r: float, radius: float, eta: float, options: NoisyDescentOptions) -> float:
    s1, steps, c2 = options.bounded_noise, options.steps, radius**2
    jumps = _JUMP_GRID * math.sqrt(n)
    spread = float(np.max(options.diffusion)) or np.finfo(np.float64).tiny
    with np.errstate(over="ignore"):
        tails = gammaincc(n / 2, (jumps / spread) ** 2 / 2)  # |v|^2/s^2 is chi-squared, or smaller
    k = 2 * math.sqrt(eta) * jumps * (r + eta * (c2 * r + s1)) + eta * (
        2 * s1 * r + n + 2 * c2 * r**2 + 2 * eta * (c2**2 * r**2 + s1**2)
    )
    return float(np.min(steps * (tails + np.exp(-(options.margin**2) / (2 * steps * k**2)))))


def noisy_gd_gate(
    x: Any,
    y: Any,
    start: Any,
    rng: np.random.Generator,
    options: NoisyDescentOptions | None = None,
    truth: Any = None,
) -> NoisyDescentFit:
    """Descend on clean samples x (S, n), y (S,) from ``start`` (n,), with all steps of ``options``.

    Example:
        >>> rng = np.random.default_rng(1000)
        >>> x = rng.standard_normal((100, 3))
        >>> found = noisy_gd_gate(x, np.maximum(x @ [1, 0, 0], 0), [0, 1, 0], rng, truth=[1, 0, 0])
        >>> bool(found.distances.max() < found.confinement.radius)
        True
    """
    x, y = checked_rows(x, y)
    if not len(x):
        raise InvalidInput("x must have at least one row. It is empty.")
    options = options or NoisyDescentOptions()
    radius = float(np.sqrt(np.max(np.sum(x**2, axis=1))))
    learner = NoisyDescent(start, radius, rng, options, truth)
    for _ in range(options.steps):
        learner.partial_fit(x, y).end_pass()
    return learner.fit()
