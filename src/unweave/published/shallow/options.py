"""Options of the published pipeline for wide one-hidden-layer networks, with the source's values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from unweave.derivatives.stencils import Scheme
from unweave.errors import InvalidInput

Refinement = Literal["gradient", "sgd", "none"]


@dataclass(frozen=True)
class PublishedOptions:
    """Every constant of [identification] Table 3.1 and sec. 3.6, None where the value follows from D and m.

    Example:
        >>> PublishedOptions().hessian_count(dimension=20, width=100)
        300
        >>> PublishedOptions().accepted_objective(dimension=20, width=160)
        0.99
    """

    hessians: int | None = None
    """N_h. Source: ceil(log(D) m), natural logarithm; 1.5 m was enough wherever it was tried."""
    step: float = 1e-2
    """Step of all finite differences. Source: 1e-2, for Hessians and directional derivatives alike.
    Truncation limits the result in float64; 1e-3 is a hundred times better."""
    scheme: Scheme = "compact"
    """Source: "central differences of second order", stencil not named. Compact needs D^2 + D + 1 rows,
    four-point 2 D^2 + 1 and has about half the error."""
    gamma: float = 2.0
    """Step of [identification] Alg. 2.2. Source: 2."""
    power_steps: int = 3000
    """Steps per start at most. Source: a power of ten with an unreadable exponent (3 or 4, by its run
    times); at m = 2/5 D^2 a thousand is not always enough."""
    power_tolerance: float = 1e-8
    """Movement of a start at which it is retired. Source: none, all steps are always made."""
    threshold: float | None = None
    """beta, the least Phi of an accepted direction. Source: 0.9, and 0.99 at m = 2/5 D^2."""
    restarts: float | None = None
    """Starts in multiples of m, of which the m best are kept. Source: 5 log(D) in the text and at most
    5 log(m) in the table; here the former. What is missing after them is searched for further."""
    max_restarts: float = 200.0
    """Largest number of starts, in multiples of m. Source: the number above."""
    angle: float = 4.5e-2
    """Directions closer than this (radians) are the same. Source: not given; 1 - cos of it is 1e-3."""
    interval: float | None = None
    """T, shifts are sought in [-T, T]. Source: 0.6 for tanh (of 0.6585). For other activations nine tenths of
    the interval on which g'' is monotone."""
    refinement: Refinement = "sgd"
    """Source: analyzed for gradient descent on all samples, run with stochastic gradients."""
    training_samples: int | None = None
    """N_train, Gaussian. Source: D^2 m."""
    learning_rate: float | None = None
    """Source: 1e-3 for stochastic gradients of the mean squared error; for plain gradient descent a step of
    at most 1/||K||, which is what None takes."""
    batch: int = 64
    """Rows per stochastic gradient. Source: 64."""
    tolerance: float = 1e-8
    """Training mean squared error at which the refinement stops. Source: 1e-8, checked once per epoch."""
    seconds: float = 180.0
    """Seconds after which the refinement stops. Source: 180."""

    def __post_init__(self) -> None:
        for name in ("step", "gamma", "seconds"):
            if not getattr(self, name) > 0:
                raise InvalidInput(
                    f"{name} must be positive. Got {getattr(self, name)} instead. "
                    f"The source uses {getattr(type(self), name)}."
                )

    def hessian_count(self, dimension: int, width: int) -> int:
        """N_h."""
        return self.hessians or max(width + 1, int(np.ceil(np.log(dimension) * width)))

    def accepted_objective(self, dimension: int, width: int) -> float:
        """beta."""
        if self.threshold is not None:
            return self.threshold
        return 0.99 if width >= 2 / 5 * dimension**2 else 0.9

    def start_count(self, dimension: int, width: int) -> int:
        """Starts of the first, fixed batch."""
        multiple = 5 * np.log(max(dimension, 2)) if self.restarts is None else self.restarts
        return max(1, int(np.ceil(multiple * width)))

    def sample_count(self, dimension: int, width: int) -> int:
        """N_train."""
        return self.training_samples or dimension**2 * width
