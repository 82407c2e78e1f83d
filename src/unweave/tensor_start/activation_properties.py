"""Which activations the local theory covers: properties P1, P2, P3 and the constant rho.

For y = sum_i v_i g(w_i . x) with Gaussian x, local strong convexity around the truth is proved when

    P1   0 <= g'(z) <= L1 |z|^p  for some p >= 0,
    P2   rho(sigma) > 0,
    P3   |g''| <= L2, or g is piecewise linear,

    rho(sigma) = min { a20 - a10^2 - a11^2,   a22 - a11^2 - a12^2,   a10 a12 - a11^2 },
    aij(sigma) = E[ g'(sigma Z)^i Z^j ],   Z ~ N(0, 1).

rho measures how far g' is from a constant and from a multiple of z: for g(z) = z the weights of two units
can move against each other unseen, for g(z) = z^2 they can rotate.

Two entries of the source's table are corrected. Its squared ReLU reads 0.27 sigma; g' is homogeneous of
degree one, so that rho = (4/pi - 1) sigma^2 = 0.2732 sigma^2, the same at sigma = 1 only. Its quadratic
reads 0, which is the first of the three terms; the last is -4 sigma^2, so rho is negative. Its erf is the
function with g'(z) = exp(-z^2), without the factor 2/sqrt(pi) of the usual erf: rho is quadratic in g', so
that of "erf" is 4/pi times the table's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations import Activation, get_activation

_LARGEST_Z = 12.0  # end of the quadrature: exp(-z^2/2) is 5e-32 there
_WIDEST_PANEL = 0.5  # widest panel of the quadrature, in units of Z
_NODES_PER_PANEL = 64  # exact for some 50 radians: an oscillating g' is resolved up to sigma = 50
_FINEST_PANEL = 1 / 16  # around zero, in the argument of g', which varies over one unit
_MOMENT_EXPONENTS = ((1, 0), (1, 1), (1, 2), (2, 0), (2, 2))  # (i, j) of the moments a_ij in rho
_FAR_ARGUMENT = 1e3  # arguments between this and its double show the growth at infinity
_ARGUMENT_GRID = np.concatenate(
    [-np.geomspace(2 * _FAR_ARGUMENT, 1e-6, 4000), np.geomspace(1e-6, 2 * _FAR_ARGUMENT, 4000)]
)
_SLOPE_ROUNDING = 1e-12  # over the size of g': smaller differences count as zero


@dataclass(frozen=True)
class Rho:
    """rho(sigma), and the three terms whose minimum it is."""

    sigma: float
    variance: float
    """a20 - a10^2 - a11^2: the part of g' that is neither constant nor linear."""
    weighted_variance: float
    """a22 - a11^2 - a12^2: the same of g'(sigma Z) Z."""
    product: float
    """a10 a12 - a11^2: negative if g' is odd."""

    @property
    def value(self) -> float:
        """The least of the three."""
        return min(self.variance, self.weighted_variance, self.product)


@dataclass(frozen=True)
class ActivationProperties:
    """P1, P2 and P3 for one activation, P2 at one sigma.

    rho is an integral; the bounds L1, p and L2 are read off a grid of arguments from 1e-6 to 2e3, both signs:
    evidence, not proof.
    """

    activation: str
    rho: Rho
    growth: int | None
    """p of P1, None if no power bounds g'."""
    slope_bound: float | None
    """L1 of P1, None if P1 does not hold."""
    smallest_slope: float
    """Least g'(z) seen; negative means that P1 fails."""
    curvature_bound: float | None
    """L2 of P3, None if g'' is unbounded or g' jumps."""
    piecewise_linear: bool

    @property
    def bounded_slope(self) -> bool:
        """P1."""
        return self.slope_bound is not None

    @property
    def curved(self) -> bool:
        """P2."""
        size = max(abs(self.rho.variance), abs(self.rho.weighted_variance), abs(self.rho.product))
        return self.rho.value > _SLOPE_ROUNDING * size

    @property
    def smooth_enough(self) -> bool:
        """P3."""
        return self.piecewise_linear or self.curvature_bound is not None

    @property
    def holds(self) -> bool:
        """All three."""
        return self.bounded_slope and self.curved and self.smooth_enough


def rho(activation: str | Activation, sigma: float = 1.0) -> Rho:
    """Return rho(sigma) to some twelve digits of the moments it is made of.

    Example:
        >>> round(rho("relu").value, 5)
        0.09085
    """
    function = get_activation(activation) if isinstance(activation, str) else activation
    if not 0 < sigma < np.inf:
        raise InvalidInput(
            f"sigma must be positive and finite. Got {sigma} instead. It scales Z in g'(sigma Z)."
        )
    moments = slope_moments(function, sigma)
    a10, a11, a12, a20, a22 = (moments[key] for key in _MOMENT_EXPONENTS)
    terms = (a20 - a10**2 - a11**2, a22 - a11**2 - a12**2, a10 * a12 - a11**2)
    # What rounding leaves of a difference that is zero would make the sign of rho a matter of luck.
    sizes = (a20, a22, a20)
    clean = (0.0 if abs(t) <= _SLOPE_ROUNDING * s else float(t) for t, s in zip(terms, sizes, strict=True))
    return Rho(float(sigma), *clean)


def slope_moments(activation: Activation, sigma: float) -> dict[tuple[int, int], float]:
    """E[g'(sigma Z)^i Z^j] for the (i, j) that rho needs, by Gauss-Legendre on panels graded towards 0."""
    points, weights = _graded_rule(sigma)
    slopes = activation.jet(sigma * points, 1)[1]
    return {(i, j): float(np.sum(weights * slopes**i * points**j)) for i, j in _MOMENT_EXPONENTS}


def activation_properties(activation: str | Activation, sigma: float = 1.0) -> ActivationProperties:
    """Check P1, P2 (at ``sigma``) and P3.

    Example:
        >>> activation_properties("squared_relu").holds, activation_properties("quadratic").holds
        (True, False)
    """
    function = get_activation(activation) if isinstance(activation, str) else activation
    constant = rho(function, sigma)
    _, slope, curvature = function.jet(_ARGUMENT_GRID, 2)
    size = np.abs(slope).max()
    growth = _growth(function, 1)
    bound = None
    if growth is not None and slope.min() >= -_SLOPE_ROUNDING * size:
        ratio = slope / np.abs(_ARGUMENT_GRID) ** growth
        # With p > 0, z^p must bound g' near 0 too: there the ratio of, say, 1 + z^2 runs away.
        if growth == 0 or ratio.max() <= 2 * ratio[np.abs(_ARGUMENT_GRID) >= 1].max():
            bound = float(ratio.max())
    nearest = np.abs(_ARGUMENT_GRID).min()
    left, right = function.jet(np.array([-nearest, nearest]), 1)[1]
    # A continuous g' changes by no more than the distance, 2e-6, times its curvature.
    jumps = abs(right - left) > 1e-3 * np.abs(slope[np.abs(_ARGUMENT_GRID) <= 1]).max()
    flat = bool(np.abs(curvature).max() <= _SLOPE_ROUNDING * size)
    curvature_bounded = not jumps and _growth(function, 2) == 0
    return ActivationProperties(
        activation=function.name,
        rho=constant,
        growth=growth,
        slope_bound=bound,
        smallest_slope=float(slope.min()),
        curvature_bound=float(np.abs(curvature).max()) if curvature_bounded else None,
        piecewise_linear=flat,
    )


def _growth(activation: Activation, order: int) -> int | None:
    """Power with which derivative ``order`` grows at infinity, 0 if it is bounded, None above 6."""
    ends = np.array([-2.0, -1.0, 1.0, 2.0]) * _FAR_ARGUMENT
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.abs(activation.jet(ends, order)[order])
    far, near = max(values[0], values[3]), max(values[1], values[2])
    if not np.isfinite(far):
        return None
    # An oscillating derivative has no trend between two points; bounded by its size nearer by, it does not
    # grow.
    inside = float(np.abs(activation.jet(_ARGUMENT_GRID[np.abs(_ARGUMENT_GRID) <= 10], order)[order]).max())
    if far <= 2 * inside:
        return 0
    power = round(float(np.log2(far / near)))
    return power if power <= 6 else None


def _graded_rule(sigma: float) -> tuple[Array, Array]:
    """Nodes and weights of E[f(Z)], panels cut at 0, at multiples of a half, and at powers of two of
    1/sigma."""
    uniform = np.arange(0, _LARGEST_Z + _WIDEST_PANEL / 2, _WIDEST_PANEL)
    graded = _FINEST_PANEL * 2.0 ** np.arange(0, 60) / sigma
    edges = np.unique(np.concatenate([uniform, graded[graded < _LARGEST_Z]]))
    edges = np.concatenate([-edges[:0:-1], edges])
    unit, unit_weights = np.polynomial.legendre.leggauss(_NODES_PER_PANEL)
    half = np.diff(edges)[:, None] / 2
    points = (edges[:-1, None] + half * (unit + 1)).reshape(-1)
    weights = (half * unit_weights).reshape(-1)
    return points, weights * np.exp(-(points**2) / 2) / np.sqrt(2 * np.pi)
