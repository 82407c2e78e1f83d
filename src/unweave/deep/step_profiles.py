"""Norms of first-layer units from the shape of their steps.

Along its own direction u a far-field crossing shows f(c + t u) = F_c(g(a (u.c + t) + b)): a smooth outer
function F_c, different at every crossing, of one sigmoid with the unit's norm a and bias b. F_c is
replaced by a polynomial, eliminated by least squares, and (a, b) fitted to all crossings of the unit.

The norm comes out to 1e-4 or better. The bias does not: for tanh, g(z + s) is a rational function of g(z),
which a smooth F_c absorbs; it is only a start for `unweave.deep.first_biases`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from unweave.arrays import Array
from unweave.deep.far_field import Ask, Unit
from unweave.deep.saturating import Saturating

_CROSSINGS = 3
_SAMPLES = 33
_HALF_WIDTH = 7.0  # of the profile, in units of about one pre-activation
_NORMS = np.geomspace(0.2, 5, 40)  # of the norm that height and slope suggest
_SHIFTS = np.linspace(-3, 3, 25)
_GRID_DEGREE = 3
_DEGREES = (3, 5, 8)
_CLEAN = 1e-5  # misfit of profiles that only one unit has shaped


@dataclass(frozen=True)
class StepProfile:
    """What the steps of one unit show."""

    norm: float
    bias: float
    residual: float
    """Relative misfit of the polynomial profiles."""
    straight: float
    """The same with outer functions of degree one: at rounding level the network has one hidden layer."""


def fit_step_profile(ask: Ask, unit: Unit, g: Saturating) -> StepProfile:
    """Norm and approximate bias of ``unit``: about 100 rows."""
    centres = np.array(unit.crossings[:_CROSSINGS])
    # Dense in the middle, so that a width that is off by a factor of a few does no harm.
    times = np.sinh(np.linspace(-1, 1, _SAMPLES) * np.arcsinh(_HALF_WIDTH)) * unit.width / 2
    points = centres[:, None, :] + times[:, None] * unit.direction
    values = ask(points.reshape(-1, centres.shape[1])).reshape(len(centres), _SAMPLES, -1)
    places = centres @ unit.direction
    offset = float(places[0])
    positions = (places - offset)[:, None] + times  # relative to the first crossing, for accuracy
    values = values - values.mean(axis=1, keepdims=True)
    values /= np.maximum(np.linalg.norm(values, axis=(1, 2), keepdims=True), np.finfo(np.float64).tiny)
    best = _fit(positions, values, unit.width, g)
    if best.residual > _CLEAN and len(centres) > 1:  # another unit may be at work near one of the crossings
        for left_out in range(len(centres)):
            kept = np.arange(len(centres)) != left_out
            best = min(best, _fit(positions[kept], values[kept], unit.width, g), key=lambda fit: fit.residual)
    return StepProfile(best.norm, best.bias - best.norm * offset, best.residual, best.straight)


def _fit(positions: Array, values: Array, width: float, g: Saturating) -> StepProfile:
    """The sigmoid common to profiles (n, samples, K) at ``positions`` (n, samples)."""
    norm, shift = _best_on_grid(positions, values, 2 / width, g)

    def residual(parameters: Array, degree: int) -> Array:
        basis = _orthonormal_powers(g.values(parameters[0] * positions + parameters[1]), degree)
        return np.asarray((values - basis @ (basis.transpose(0, 2, 1) @ values)).ravel())

    def fitted(start: Array, degree: int) -> tuple[Array, float]:
        scale = (0.1 * abs(norm), 0.1)
        fit = least_squares(
            residual, start, x_scale=scale, xtol=1e-14, ftol=1e-14, gtol=1e-15, max_nfev=25, args=(degree,)
        )
        return fit.x, float(np.linalg.norm(fit.fun) / np.sqrt(len(values)))

    parameters, misfit = fitted(np.array([norm, shift]), _DEGREES[0])
    straight = fitted(parameters, 1)[1]
    for degree in _DEGREES[1:]:
        parameters, misfit = fitted(parameters, degree)
    return StepProfile(float(parameters[0]), float(parameters[1]), misfit, straight)


def _best_on_grid(positions: Array, values: Array, about: float, g: Saturating) -> tuple[float, float]:
    norms = np.repeat(_NORMS * about, len(_SHIFTS))
    shifts = np.tile(_SHIFTS, len(_NORMS))
    total = np.zeros(len(norms))
    for place, value in zip(positions, values, strict=True):
        y = g.values(norms[:, None] * place + shifts[:, None])
        powers = np.stack([y**degree for degree in range(_GRID_DEGREE + 1)], axis=2)
        powers /= np.linalg.norm(powers, axis=1, keepdims=True) + 1e-300
        gram = powers.transpose(0, 2, 1) @ powers + 1e-10 * np.eye(_GRID_DEGREE + 1)
        moments = powers.transpose(0, 2, 1) @ value
        total += 1 - (moments * np.linalg.solve(gram, moments)).sum(axis=(1, 2))
    best = int(np.argmin(total))
    return float(norms[best]), float(shifts[best])


def _orthonormal_powers(y: Array, degree: int) -> Array:
    """(n, samples, degree + 1) orthonormal basis of the polynomials in y (n, samples)."""
    return np.linalg.qr(np.polynomial.chebyshev.chebvander(y, degree))[0]
