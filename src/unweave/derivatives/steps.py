"""Difference steps that follow from the noise floor.

All lengths are in normalised inputs, where weights have norms of order one and their entries are of
order d^{-1/2}; steps along coordinate axes therefore grow like sqrt(d).

Hessians. Truncation costs h^2/d, round-off sigma/h^2; their balance h ~ sigma^(1/4) is the best step when
nothing else is known. Here the truncation is predicted and removed once a first network stands
(`unweave.derivatives.truncation`), so a larger step is better as long as the first network is found at all.

Gradients. The polish compares difference quotients with difference quotients, so truncation only
blurs its Jacobian, and round-off sigma/h wants h large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.derivatives.stencils import Scheme

_HESSIAN_STEP = 8e-4  # times sqrt(d): truncation of about 1e-6 where the target is float64
_HESSIAN_NOISE_STEP = 1.0  # times sqrt(d) sigma^(1/4), the balance for noisy answers
_GRADIENT_STEP = 3e-3  # times sqrt(d)
_GRADIENT_NOISE_STEP = 0.5  # times sqrt(d) sigma^(1/6)
_LONGEST_STEP = 0.35  # times sqrt(d): beyond it the Taylor series of a unit with |w| = 1 means little
_NOISY_ANSWERS = 1e-6  # relative noise above which halving the variance beats halving the rows


@dataclass(frozen=True)
class Steps:
    """Steps and stencil for a function of ``d`` normalised inputs."""

    hessian: float
    gradient: float
    scheme: Scheme


def difference_steps(relative_noise: float, d: int) -> Steps:
    """Steps for answers whose error has standard deviation ``relative_noise`` times their spread."""
    root = np.sqrt(d)
    hessian = np.clip(_HESSIAN_NOISE_STEP * relative_noise**0.25, _HESSIAN_STEP, _LONGEST_STEP)
    gradient = np.clip(_GRADIENT_NOISE_STEP * relative_noise ** (1 / 6), _GRADIENT_STEP, _LONGEST_STEP)
    return Steps(
        hessian=float(root * hessian),
        gradient=float(root * gradient),
        scheme="four-point" if relative_noise > _NOISY_ANSWERS else "compact",
    )
