"""The table of rho(sigma) in the recovery guarantees for one-hidden-layer networks.

rho(sigma) > 0 is property P2, under which the loss is strongly convex around the truth. At sigma = 0.1, 1, 10
by quadrature. Two rows of the table are corrected: the squared ReLU is printed as 0.27 sigma, but its
derivative is homogeneous of degree one, so that rho grows like sigma^2; the quadratic is printed as 0, which
is one of the three terms whose minimum rho is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import close, printed, vanishes
from unweave.tensor_start import rho

SIGMAS = (0.1, 1.0, 10.0)
PRINTED = {
    "relu": ("0.091", "0.091", "0.091"),
    "leaky_relu": ("0.089", "0.089", "0.089"),
    "tanh": ("1.8e-4", "4.9e-2", "5.1e-5"),
    "erf": ("1.9e-4", "5.2e-2", "2.5e-5"),
}
CORRECTED = {
    "squared_relu": (4 / math.pi - 1, "corrected: printed as 0.27 sigma, the same at sigma = 1 only"),
    "quadratic": (-4.0, "corrected: printed as 0; P2 fails either way"),
}
"""Activation to rho / sigma^2."""
ERF_SCALE = math.pi / 4
"""The table's erf has the derivative exp(-z^2), the usual one 2/sqrt(pi) times that; rho is quadratic."""


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """Nothing is random: every seed gives the same."""
    progress("quadrature")
    for name, values in PRINTED.items():
        scale, note = (ERF_SCALE, "erf with derivative exp(-z^2)") if name == "erf" else (1.0, "")
        for sigma, value in zip(SIGMAS, values, strict=True):
            yield printed(f"rho({sigma:g}), {name}", value, scale * rho(name, sigma).value, note)
    for name, (factor, note) in CORRECTED.items():
        for sigma in SIGMAS:
            yield close(f"rho({sigma:g}), {name}", factor * sigma**2, rho(name, sigma).value, 1e-9, note)
    for sigma in SIGMAS:
        yield vanishes(f"rho({sigma:g}), identity", rho("identity", sigma).value, 1e-12)
