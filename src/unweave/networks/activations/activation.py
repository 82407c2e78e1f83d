"""What an activation function is: its value, three derivatives, and the symmetries it declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, roots_hermitenorm

from unweave.arrays import Array
from unweave.errors import InvalidInput

Jet = Callable[[Array, int], tuple[Array, ...]]

MAX_ORDER = 3
"""Highest derivative that every activation provides."""

HERMITE_NODES = 200
"""Quadrature nodes n: poles at distance a from the real axis leave an error of about exp(-2 a sqrt(n))."""

BISECTIONS = 60
"""Halvings that take an interval of width O(1) to one unit in the last place."""


@dataclass(frozen=True)
class Reflection:
    """The identity g(-z) = sign * g(z) + constant + slope * z, for all z.

    Odd functions have (-1, 0, 0), even ones (1, 0, 0); sigmoid has (-1, 1, 0), softplus and relu (1, 0, -1).
    """

    sign: int
    constant: float = 0.0
    slope: float = 0.0


@dataclass(frozen=True)
class Activation:
    """An elementwise function g with its derivatives and what is known about it.

    Attributes:
        name: what `get_activation` knows it by.
        jet: ``jet(z, order)`` gives (g, g', ..., g^(order)) at ``z`` (any shape) for order 0 to 3 in one
            call; at a kink the derivative from one side.
        reflection: how g(-z) follows from g(z), None if it does not.
        homogeneity: p with g(c z) = c^p g(z) for all c > 0, None if there is none.
        smooth: False where g is a polynomial between its kinks: derivatives at points hardly show such units,
            and lines through the kinks do.
        kinks: where g, g' or g'' jumps, in growing order; g is analytic everywhere else. Where none is given,
            g that is not smooth has one at 0.
        near_poles: whether complex poles lie so near 0 that quadrature must be split there.
        monotone_second: half-width T of the widest interval (-T, T) on which g'' is strictly monotone, None
            if there is no such interval around 0.
        second_inverse: closed form of the inverse of g'' on that interval, for c within its range; None:
            bisection.
        overwrite: ``overwrite(z)`` replaces z by g(z) in place; None: through ``jet``.
        inverse: ``inverse(y)`` gives z with g(z) = y, infinite at the ends of the range of g and NaN beyond;
            None where no closed form is known.
    """

    name: str
    jet: Jet
    reflection: Reflection | None = None
    homogeneity: int | None = None
    smooth: bool = True
    kinks: tuple[float, ...] = ()
    near_poles: bool = False
    monotone_second: float | None = None
    second_inverse: Callable[[Array], Array] | None = None
    overwrite: Callable[[Array], None] | None = None
    inverse: Callable[[Array], Array] | None = None

    def __call__(self, z: ArrayLike) -> Array:
        """Return g(z), elementwise."""
        return self.jet(np.asarray(z, dtype=np.float64), 0)[0]

    def apply_in_place(self, z: Array) -> None:
        """Replace z by g(z), without a temporary where the function allows it."""
        if self.overwrite is None:
            z[...] = self.jet(z, 0)[0]
        else:
            self.overwrite(z)

    @property
    def is_odd(self) -> bool:
        """Whether g(-z) = -g(z)."""
        return self.reflection == Reflection(-1)

    @property
    def has_sides(self) -> bool:
        """Whether g'' tells z from -z beyond a sign: then Hessians show which way units point."""
        return self.reflection is None

    @property
    def is_even(self) -> bool:
        """Whether g(-z) = g(z)."""
        return self.reflection == Reflection(1)

    def inverse_second(self, c: ArrayLike) -> Array:
        """Return z in [-T, T] with g''(z) = c, elementwise, T being ``monotone_second``.

        Values outside the range of g'' on that interval go to the nearer endpoint. The condition number is
        1 / |g'''(z)|, so that digits are lost only towards the endpoints.
        """
        half_width = self.monotone_second
        if half_width is None:
            raise InvalidInput(
                f"activation must have a second derivative that is monotone around 0. Got {self.name!r} "
                f"instead. Check monotone_second before calling inverse_second."
            )
        values = np.asarray(c, dtype=np.float64)
        if not np.isfinite(half_width) and self.second_inverse is not None:
            return self.second_inverse(values)
        ends = np.array([-half_width, half_width])
        at_ends = self.jet(ends, 2)[2]
        low, high = (0, 1) if at_ends[0] < at_ends[1] else (1, 0)
        inside = np.clip(values, at_ends[low], at_ends[high])
        inverse = self.second_inverse or self._bisect_second
        z = np.clip(inverse(inside), -half_width, half_width)
        z = np.where(values <= at_ends[low], ends[low], z)
        return np.where(values >= at_ends[high], ends[high], z)

    def _bisect_second(self, c: Array) -> Array:
        half_width = self.monotone_second
        assert half_width is not None
        low, high = np.full(c.shape, -half_width), np.full(c.shape, half_width)
        at_ends = self.jet(np.array([-half_width, half_width]), 2)[2]
        rising = bool(at_ends[0] < at_ends[1])
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            to_the_right = (self.jet(middle, 2)[2] < c) == rising
            low, high = np.where(to_the_right, middle, low), np.where(to_the_right, high, middle)
        middle = (low + high) / 2
        # One Newton step turns the absolute precision of bisection into a relative one next to z = 0.
        _, _, second, third = self.jet(middle, 3)
        step = np.divide(c - second, third, out=np.zeros_like(middle), where=third != 0)
        radius = 4 * np.finfo(np.float64).eps * half_width
        return np.asarray(middle + np.clip(step, -radius, radius))

    def hermite_coefficients(
        self, order: int, shift: ArrayLike = 0.0, derivative: int = 0, nodes: int = HERMITE_NODES
    ) -> Array:
        """Return mu_r = E[g^(n)(Z + tau) h_r(Z)] for r = 0 .. order - 1, Z standard Gaussian.

        h_r are the probabilists' Hermite polynomials, normalised to E[h_r(Z)^2] = 1, n is ``derivative`` (0
        to 3) and tau is ``shift`` (any shape; the result has that shape and a last axis of length ``order``).
        Integration by parts gives mu_r(g^(n)) = sqrt((r+n)!/r!) mu_{r+n}(g); functions with kinks are
        treated by this rule, so that their derivatives are meant as distributions (relu'' is a point mass).

        Smooth functions are integrated by Gauss-Hermite quadrature with ``nodes`` nodes, others by
        Gauss-Legendre with ``nodes`` nodes between their kinks.
        """
        if order < 1 or derivative not in range(MAX_ORDER + 1) or nodes < 1:
            raise InvalidInput(
                f"order and nodes must be at least 1 and derivative 0 to {MAX_ORDER}. "
                f"Got order={order}, nodes={nodes}, derivative={derivative} instead. Choose values in these "
                f"ranges."
            )
        tau = np.asarray(shift, dtype=np.float64)[..., None]
        kinks = self.kinks or (() if self.smooth and not self.near_poles else (0.0,))
        if not kinks:
            points, weights = _gauss_hermite(nodes)
            values = self.jet(points + tau, derivative)[derivative]
            return np.asarray((values * weights) @ hermite_polynomials(points, order).T)
        points, weights = _split_rule(np.array(kinks) - tau, order + derivative, nodes)
        values = self.jet(points + tau, 0)[0]
        polynomials = hermite_polynomials(points, order + derivative)[derivative:]
        coefficients = np.einsum("...n,r...n->...r", values * weights, polynomials)
        r = np.arange(order)
        return np.asarray(coefficients * np.exp((gammaln(r + derivative + 1) - gammaln(r + 1)) / 2))


def hermite_polynomials(z: Array, order: int) -> Array:
    """Return h_0 .. h_{order-1} at z, normalised probabilists' Hermite polynomials, shape (order, *z.shape).

    Recurrence: sqrt(r+1) h_{r+1}(z) = z h_r(z) - sqrt(r) h_{r-1}(z).
    """
    values = np.ones((order, *z.shape))
    if order > 1:
        values[1] = z
    for r in range(1, order - 1):
        values[r + 1] = (z * values[r] - np.sqrt(r) * values[r - 1]) / np.sqrt(r + 1)
    return values


@lru_cache(maxsize=16)
def _gauss_hermite(nodes: int) -> tuple[Array, Array]:
    points, weights = roots_hermitenorm(nodes)
    return points, weights / weights.sum()


def _split_rule(kinks: Array, order: int, nodes: int) -> tuple[Array, Array]:
    """Nodes and weights, Gaussian density included, between all kinks (..., q); (..., (q + 1) * nodes).

    The interval is cut where h_order(z) exp(-z^2/2) is far below the rounding unit: 10 past the last turning
    point.
    """
    reach = 10 + 2 * np.sqrt(order)
    unit, unit_weights = np.polynomial.legendre.leggauss(nodes)
    end = np.full((*kinks.shape[:-1], 1), reach)
    cuts = np.concatenate([-end, np.clip(kinks, -reach, reach), end], axis=-1)
    half = np.diff(cuts, axis=-1)[..., None] / 2
    points = cuts[..., :-1, None] + half * (unit + 1)
    weights = half * unit_weights * np.exp(-(points**2) / 2) / np.sqrt(2 * np.pi)
    flat = (*kinks.shape[:-1], -1)
    return points.reshape(flat), weights.reshape(flat)
