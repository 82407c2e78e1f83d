"""From a layer of kinked units known up to signs to an ordinary network.

In f(x) = sum_i h_i |z_i| + S^T x + c (see `absolute_form`) the signs of the units only enter
the affine part. With g(z) = z for z > 0 and p z below, a_i = 2 h_i / (1-p), a network without skip
connection has

    S = (1+p)/2 sum_i xi_i w_i a_i^T,        xi_i = +-1:

d K linear equations M xi = r for m signs. (The constant row is not among them: the output bias is free.)
Where M has full column rank, least squares solves them and rounding proves it; elsewhere signs are searched
for (`unweave.numerics.sign_search`). Two patterns that both fit differ on a set F of units with
sum_F a_i w_i = 0 ([hermite] Claim 4.8): these are listed, never
chosen silently. If no pattern fits, the affine rest becomes a skip matrix: the same function.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.activations import get_activation
from unweave.networks.network import Network
from unweave.numerics.clock import out_of_time
from unweave.numerics.sign_decoding import decoded_signs, few_adding_to
from unweave.numerics.sign_search import (
    DEFAULT_SIGN_OPTIONS,
    SignOptions,
    box_point,
    branch_and_bound,
    corner_of,
    lattice_search,
    longest_point,
    meet_in_the_middle,
    narrowed_signs,
)

SIGN_TOLERANCE = 1e-6
"""Misfit of the equations, relative to the size of their terms, up to which a pattern solves them."""
MOST_ALTERNATIVES = 16
"""Patterns that are listed beside the one found: with so many, there may be more."""
KINKED = ("relu", "leaky_relu")
"""Activations that an absolute form can be written in."""


@dataclass(frozen=True, eq=False)
class SignSolution:
    """Signs of the units of an absolute form, and how sure they are."""

    signs: Array
    """xi (m,), +-1; all one if unsolved."""
    residual: float
    """|M xi - r| relative to the size of the terms."""
    method: str
    """How: least squares, enumeration, box center, linear program, branch and bound, lattice reduction or
    none."""
    solved: bool
    """Whether the signs explain the affine part: then the network needs no skip matrix."""
    unique: bool
    """Whether no other pattern does, proven or (lattice reduction) beyond accident."""
    alternatives: tuple[Array, ...] = ()
    """Other patterns (m,) that fit as well, at most 16."""
    beyond_chance: bool = False
    """Whether no pattern would be expected to fit as well if the affine part were any other."""
    reason: str = ""
    """Why no signs were found where a search ended without them; empty if none can exist or all is well."""


def solve_signs(
    form: AbsoluteForm,
    negative_slope: float = 0.0,
    tolerance: float = SIGN_TOLERANCE,
    seed: int = 0,
    options: SignOptions = DEFAULT_SIGN_OPTIONS,
    error: float | None = None,
) -> SignSolution:
    """Find the signs of the units of ``form``, for units with slope ``negative_slope`` below zero.

    ``tolerance`` is the relative misfit that the errors of the form may cause. ``error`` is the standard
    error of an equation, relative to the size of M, if it is known.

    Cost: a least-squares problem (d K, m) where m <= d K. Beyond, up to 2^(m/2) sums for m <= 40, some
    linear programs for m < 2 d K, lattice reduction otherwise (seconds for m = 128 and d = 13).

    Example
    -------
    >>> slope, zeros = np.array([[0.5], [-0.5]]), np.zeros(2)
    >>> form = AbsoluteForm(np.eye(2), zeros, np.full((2, 1), 0.5), slope, zeros[:1])
    >>> solve_signs(form).signs
    array([ 1., -1.])
    """
    if not -1 < negative_slope < 1:
        raise InvalidInput(f"negative_slope must lie between -1 and 1. Got {negative_slope} instead.")
    matrix = sign_matrix(form, negative_slope)
    return solve_sign_system(matrix, form.slope.reshape(-1), tolerance, seed, options, error)


def sign_matrix(form: AbsoluteForm, negative_slope: float = 0.0) -> Array:
    """Return M (d K, m) of the equations M xi = r; r is the form's slope."""
    factor = (1 + negative_slope) / (1 - negative_slope)
    terms = np.einsum("di,ik->dki", form.weights, form.heights)
    return np.asarray(factor * terms.reshape(form.slope.size, form.width))


def solve_sign_system(
    matrix: Array,
    right: Array,
    tolerance: float = SIGN_TOLERANCE,
    seed: int = 0,
    options: SignOptions = DEFAULT_SIGN_OPTIONS,
    error: float | None = None,
) -> SignSolution:
    """Find xi in {-1, 1}^m with M (q, m) xi = r (q,); see `solve_signs`."""
    if not matrix.any():  # no signs, or nothing tells them
        left = float(np.linalg.norm(right))
        width = matrix.shape[1]
        return SignSolution(np.ones(width), float(left > 0), "least squares", left == 0, unique=width == 0)
    return _Solver(matrix, right, tolerance, seed, options, error).solve()


def to_network(form: AbsoluteForm, solution: SignSolution, activation: str = "relu") -> Network:
    """Return the network with these signs; if they are not solved, a skip matrix holds the affine rest."""
    name = get_activation(activation).name
    if name not in KINKED:
        raise InvalidInput(f"activation must be one of {', '.join(KINKED)}. Got {activation!r} instead.")
    if form.width == 0:
        return Network([form.slope], [form.offset], ["identity"])
    slope_below = negative_slope(name)
    weights, biases = form.weights * solution.signs, form.biases * solution.signs
    outer = 2 / (1 - slope_below) * form.heights
    half = (1 + slope_below) / 2
    offset = form.offset - half * biases @ outer
    rest = None if solution.solved else form.slope - half * weights @ outer
    return Network([weights, outer], [biases, offset], [name, "identity"], skip=rest)


def to_form(network: Network) -> AbsoluteForm:
    """Return the form of one hidden layer of kinked units, with its skip matrix if there is one."""
    name, (incoming, outer), (biases, offset) = network.activations[0], network.weights, network.biases
    slope_below = negative_slope(name)
    half = (1 + slope_below) / 2
    slope = half * incoming @ outer + (0.0 if network.skip is None else network.skip)
    lengths = np.linalg.norm(incoming, axis=0)
    lengths = np.where(lengths > 0, lengths, 1.0)
    heights = (1 - slope_below) / 2 * outer * lengths[:, None]
    return AbsoluteForm(incoming / lengths, biases / lengths, heights, slope, offset + half * biases @ outer)


def negative_slope(activation: str) -> float:
    """Return the slope p of g(z) = p z for z < 0."""
    return float(-get_activation(activation)(np.array([-1.0]))[0])


class _Solver:
    """One system M xi = r, reduced to independent equations."""

    def __init__(
        self,
        matrix: Array,
        right: Array,
        tolerance: float,
        seed: int,
        options: SignOptions,
        error: float | None,
    ) -> None:
        self._options = options
        self._width = matrix.shape[1]
        self._size = max(float(np.linalg.norm(matrix)), np.finfo(np.float64).tiny)
        basis, values, _ = np.linalg.svd(matrix, full_matrices=False)
        rank = int((values > options.rank * values[0]).sum())
        self._smallest = float(values[rank - 1]) if rank else 0.0
        self._full_rank = rank == self._width
        self._values = values[:rank] / self._size
        # Coordinates in the column space: no more equations than unknowns, and the same misfit for every
        # pattern up to what no pattern explains.
        self._matrix = basis[:, :rank].T @ matrix / self._size
        self._right = basis[:, :rank].T @ right / self._size
        outside = right - basis[:, :rank] @ (self._right * self._size)
        self._outside = float(np.linalg.norm(outside)) / self._size
        self._tolerance = tolerance
        self._error = options.equation_error if error is None else error
        self._error_known = error is not None
        self._reason = ""
        self._rng = np.random.default_rng(seed)

    def solve(self) -> SignSolution:
        """Try what is certain first."""
        if self._outside > self._tolerance:
            return self._unsolved()
        if self._full_rank:
            found = np.linalg.lstsq(self._matrix, self._right, rcond=None)[0]
            signs: Array = np.where(found >= 0, 1.0, -1.0)
            # Another pattern is off by 2 in some coordinate, so its misfit is at least 2 sigma_min less ours.
            beyond = 2 * self._smallest / self._size - self._misfit(signs) > self._tolerance
            if beyond:
                return self._judged(signs, "least squares", unique=True)
        if self._width <= self._options.easy_enumeration:
            return self._enumerated() or self._unsolved()
        options, system = self._options, (self._matrix, self._right)
        decoded = self._decoded()
        if decoded is not None:
            return self._judged(decoded, "box center", *self._others(decoded))
        point = None if out_of_time() else box_point(*system)
        if point is None:
            return self._unsolved()  # not even signs between -1 and 1 would do
        corner, method = longest_point(*system, point, self._rng, options), "linear program"
        if not self._fits(corner):
            # The first node, with all that a solver tries there, often shows it.
            corner = branch_and_bound(*system, [], nodes=1, options=options)[0]
            method = "branch and bound"
        if not self._fits(corner):
            known = narrowed_signs(*system, self._rng, options)
            corner, method = known, "linear program"
            if not known.all():
                corner = branch_and_bound(*system, [], known, options=options)[0]
                method = "branch and bound"
        if corner is not None and self._fits(corner):
            return self._judged(corner, method, *self._others(corner))
        if self._width > self._options.fast_enumeration:
            return self._reduced() or self._enumerated() or self._unsolved()
        return self._enumerated() or self._reduced() or self._unsolved()

    def _decoded(self) -> Array | None:
        """Return a pattern that fits precisely, from the center of the box, or None."""
        options = self._options
        if self._width > options.widest_branching * len(self._matrix) or out_of_time():
            return None
        tolerance = min(self._tolerance, SIGN_TOLERANCE)
        return decoded_signs(self._matrix, self._right, tolerance, self._rng, options.decoding_tries)

    def _stands_alone(self, signs: Array, farthest: Array | None, allowed: float) -> bool:
        """Return whether neither chance nor columns that cancel could bring another pattern about.

        Where columns cancel, the point of the box that is ``farthest`` (m,) is another pattern, unless so
        much else is left of the box; of that, sets of up to four columns are looked through.
        """
        if self._fits(corner_of(farthest)) or not self._no_accident(allowed):
            return False
        return few_adding_to(self._matrix * signs, np.zeros(len(self._matrix)), allowed) is None

    def _others(self, signs: Array) -> tuple[bool, tuple[Array, ...]]:
        """Return whether a pattern that a program found is the only one, and others that fit."""
        point = box_point(self._matrix, self._right, away_from=signs)
        if point is not None and float(np.abs(point - signs).max()) <= 1e-3:
            return True, ()  # the program ended where it was sent away from
        allowed, proven = self._as_good(self._misfit(signs)), False
        if self._stands_alone(signs, point, allowed):
            return True, ()
        others: list[Array] = []
        while len(others) < MOST_ALTERNATIVES and not proven and not out_of_time():
            other, proven = branch_and_bound(
                self._matrix, self._right, [signs, *others], options=self._options
            )
            if other is None or self._misfit(other) > allowed:
                break
            others.append(other)
            proven = False
        return not others and (proven or self._no_accident(allowed)), tuple(others)

    def _enumerated(self) -> SignSolution | None:
        patterns = meet_in_the_middle(self._matrix, self._right, self._tolerance)
        if patterns is None:
            return None
        if not len(patterns):
            return self._unsolved()
        misfits = np.linalg.norm(patterns @ self._matrix.T - self._right, axis=1)
        best = int(np.argmin(misfits))
        as_good = misfits <= self._as_good(misfits[best])
        as_good[best] = False
        others = tuple(patterns[np.flatnonzero(as_good)[:MOST_ALTERNATIVES]])
        return self._judged(patterns[best], "enumeration", not others, others)

    def _reduced(self) -> SignSolution | None:
        bits = float(np.log2(np.maximum(self._values / self._error, 1.0)).sum())
        measured = "carry" if self._error_known else "are taken to carry"
        counted = f"the {len(self._matrix)} equations {measured} {bits:.0f} bits"
        if bits < self._width:
            self._reason = f"{counted}, and {self._width} signs need at least {self._width}"
            return None
        # Larger blocks only help if the last bits that they are fed are known to be right.
        rough = not self._error_known and self._tolerance > SIGN_TOLERANCE
        options = replace(self._options, largest_block=2) if rough else self._options
        found = lattice_search(self._matrix, self._right, self._error, options)
        self._reason = f"{counted} for {self._width} signs, and " + (
            f"lattice reduction with blocks of up to {found.block} vectors did not find them"
            if found.block
            else "no lattice was reduced: too many units or too little time"
        )
        fitting = [signs for signs in found.patterns if self._misfit(signs) <= self._tolerance]
        if not fitting:
            return None
        signs = min(fitting, key=self._misfit)
        # Flipping the units of v gives another solution if M v = 0 and v or -v carries their signs.
        flips = [v for v in found.kernel if abs(float(v @ signs)) == float(np.abs(v).sum())]
        flipped = [np.where(v != 0, -signs, signs) for v in flips]
        allowed = self._as_good(self._misfit(signs))
        others = tuple(other for other in flipped if self._misfit(other) <= allowed)
        unique = not others and self._no_accident(allowed)
        return self._judged(signs, "lattice reduction", unique, others[:MOST_ALTERNATIVES])

    def _no_accident(self, allowed: float) -> bool:
        """Return whether 2^m random patterns leave no room for one with a misfit of ``allowed`` by chance.

        M xi of a random pattern is about normal, with the singular values of M as standard deviations.
        """
        shares = np.minimum(1.0, 2 * allowed / (np.sqrt(2 * np.pi) * self._values))
        return bool(self._width * np.log(2) + np.log(shares).sum() < np.log(self._options.accidents))

    def _as_good(self, misfit: float) -> float:
        """Return the misfit up to which a pattern is as good as one with ``misfit``."""
        return max(self._options.as_good * misfit, self._options.rounding)

    def _fits(self, signs: Array | None) -> bool:
        return signs is not None and self._misfit(signs) <= self._tolerance

    def _misfit(self, signs: Array) -> float:
        return float(np.linalg.norm(self._matrix @ signs - self._right))

    def _judged(
        self, signs: Array, method: str, unique: bool, others: tuple[Array, ...] = ()
    ) -> SignSolution:
        residual = float(np.hypot(self._misfit(signs), self._outside))
        if residual > self._tolerance:
            return self._unsolved(residual)
        beyond = self._no_accident(self._as_good(residual))
        return SignSolution(signs, residual, method, True, unique, others, beyond)

    def _unsolved(self, residual: float | None = None) -> SignSolution:
        ones = np.ones(self._width)
        misfit = float(np.hypot(self._misfit(ones), self._outside)) if residual is None else residual
        return SignSolution(ones, misfit, "none", False, False, reason=self._reason)
