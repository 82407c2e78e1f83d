"""Options of the published pipeline for deep networks, with the source's values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from unweave.derivatives.stencils import Scheme
from unweave.errors import InvalidInput

Grouping = Literal["lines", "half-sphere"]
Completion = Literal["levenberg-marquardt", "sgd", "adam", "closed form", "none"]


@dataclass(frozen=True)
class PublishedDeepOptions:
    """Every constant of [identification] Table 4.1 and sec. 4.4, None where the value follows from D and m.

    m counts all units, those of the output layer included. `as_printed` gives the source's values where the
    defaults depart from them.

    Example:
        >>> PublishedDeepOptions().hessian_count(85)
        340
        >>> PublishedDeepOptions.as_printed().far_radius
        1000.0
    """

    hessians: int | None = None
    """N_h, points near x*. Source: 4 m."""
    spread: float | None = None
    """Standard deviation of the points around x*. Source: 1 / (10 sqrt(D))."""
    step: float = 5e-3
    """Step of all differences. Source: 5e-3."""
    scheme: Scheme = "four-point"
    """Source: four points for every entry, 2 D (D + 1) rows. Here the diagonal is taken from the axes."""
    gamma: float = 1.5
    """Step of the power iteration. Source: 1.5 in section 4.2.3, not stated in 4.4."""
    restarts: int | None = None
    """N_SPM, starts of the power iteration. Source: 5 m log(m)."""
    power_steps: int = 10_000
    """Steps per start at most. Source: 1e4, all of them always made."""
    power_tolerance: float = 1e-8
    """Movement of a start at which it is retired; 80 to 600 steps reach it. Source: none."""
    newton_steps: int = 0
    """Newton steps after the power steps, at most, for starts that have not converged: the same maximizers,
    sooner where the power step contracts slowly (small D). Source: none."""
    single_precision: bool = False
    """Power steps in float32, half the time; ``power_tolerance`` must not be below 1e-6 then. Source: no."""
    threshold: float = 0.5
    """beta, the least Phi of an accepted direction. Source: 0.5."""
    angle: float = 0.05
    """Directions closer than this (radians) are one line. Source: the distance at which it counts a weight
    as found."""
    output_distance: float = 0.1
    """delta: a direction this close to an output gradient belongs to the last layer. Source: "small"."""
    grouping: Grouping = "lines"
    """How to merge duplicates: k-means on lines through the origin, started from the distinct ones, or
    k-means++ after a flip into the half sphere u_1 > 0 (source), which splits a cluster at u_1 = 0."""
    far_radius: float = 100.0
    """R of the sphere that separates first-layer weights from the others. Source: 1e3, where some unit is
    so rarely unsaturated that 1 network of 10 succeeded here; 100 with normalized Hessians: 10 of 10."""
    far_normalised: bool = True
    """Far Hessians to norm one before their span is taken, so that rarely unsaturated units count as much as
    the others. Source: no."""
    far_hessians: int | None = None
    """Points on that sphere. Source: 4 m."""
    repair: bool = True
    """Swap units between neighboring layers while that lets the entangled weights of each layer lie in the
    range of those before ([identification] Prop. 4.3 read backwards). Source: no."""
    completion: Completion = "levenberg-marquardt"
    """How to find the remaining 3 m - m_L + D numbers. Source: stochastic gradients."""
    training_samples: int | None = None
    """Gaussian inputs of the completion. Source: m D^2. None: that many for stochastic gradients, four
    equations per unknown (and at least 200 points) for Levenberg-Marquardt."""
    learning_rate: float | None = None
    """None: 0.05 for SGD (source: that in its table, 0.005 in its text), 0.01 falling to 0 for Adam."""
    batch: int = 64
    """Rows per stochastic gradient. Source: 64."""
    seconds: float = 1200.0
    """Seconds after which the completion stops. Source: 20 minutes."""
    max_steps: int | None = None
    """Steps of the completion after which it stops: gradients, or 100 of Levenberg-Marquardt."""

    def __post_init__(self) -> None:
        positive = ("step", "gamma", "power_tolerance", "angle", "far_radius", "batch", "seconds")
        for name in positive:
            if not getattr(self, name) > 0:
                raise InvalidInput(
                    f"{name} must be positive. Got {getattr(self, name)} instead. "
                    f"The default is {getattr(type(self), name)}."
                )
        for field in fields(self):
            value = getattr(self, field.name)
            if field.default is None and value is not None and not value > 0:
                raise InvalidInput(
                    f"{field.name} must be positive or None. Got {value} instead. "
                    "None takes the source's rule."
                )

    @staticmethod
    def as_printed() -> PublishedDeepOptions:
        """The source's choices throughout."""
        return PublishedDeepOptions(
            grouping="half-sphere", far_radius=1e3, far_normalised=False, repair=False, completion="sgd"
        )

    def hessian_count(self, units: int) -> int:
        """N_h near x*."""
        return self.hessians or 4 * units

    def far_count(self, units: int) -> int:
        """Points on the far sphere."""
        return self.far_hessians or 4 * units

    def site_spread(self, n_inputs: int) -> float:
        """Standard deviation of the points around x*."""
        return self.spread or float(1 / (10 * np.sqrt(n_inputs)))

    def restart_count(self, units: int) -> int:
        """N_SPM."""
        return self.restarts or max(1, int(np.ceil(5 * units * np.log(max(units, 2)))))
