"""Whether two networks are the same function, parameter by parameter, whatever symmetry hides it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unweave.arrays import Array, IntArray
from unweave.errors import InvalidInput
from unweave.networks.html_tables import html_figures, number
from unweave.networks.network import Network
from unweave.networks.symmetry import Layers, canonical
from unweave.networks.unit_matches import match_units

SAME_PARAMETERS = 1e-6
"""Default of the largest parameter error at which two networks count as the same."""

POINTS = 1000
"""Default number of Gaussian points on which the functions are compared."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """How far two networks are apart, modulo symmetry. Errors are inf where the networks cannot be matched.

    Attributes:
        parameter_error: max over all parameters of |a - b| / max(1, largest |parameter| of that layer in a).
        weight_error: the same over weights (and skip) only.
        bias_error: the same over biases only.
        output_error: the same over the last layer only: weights, bias and skip.
        function_error: max |a(x) - b(x)| / max |a(x)| over the points; nan if the shapes do not allow it.
        tolerance: parameter error up to which ``is_same`` holds.
        matching: per hidden layer (permutation, signs), shape (m,) each: unit i of a corresponds to unit
            permutation[i] of b, read with (w, b) times signs[i]; both numbered as in their canonical forms.
        reason: why the networks cannot be matched; empty if they can.
    """

    parameter_error: float
    weight_error: float
    bias_error: float
    output_error: float
    function_error: float
    tolerance: float
    matching: tuple[tuple[IntArray, IntArray], ...] = ()
    reason: str = ""

    @property
    def is_same(self) -> bool:
        """Whether the networks agree in every parameter, up to ``tolerance``, and in their answers.

        The parameter error is relative to the largest parameter of a layer, beside which a smaller one that
        matters may be wrong. So the function error must be small too: at most the root of the tolerance,
        which leaves room for conditioning.
        """
        return self.parameter_error <= self.tolerance and self.function_error <= math.sqrt(self.tolerance)

    def __repr__(self) -> str:
        return f"Comparison({self})"

    def _repr_html_(self) -> str:
        """Show the comparison in a notebook."""
        title, _, why = str(self).partition(": ")
        names = (
            "parameter_error",
            "weight_error",
            "bias_error",
            "output_error",
            "function_error",
            "tolerance",
        )
        rows = [(name.replace("_", " "), number(getattr(self, name))) for name in names]
        return html_figures(title, [*([("because", why)] if self.reason else []), *rows])

    def __str__(self) -> str:
        if self.reason:
            return f"different: {self.reason} (function error {self.function_error:.2g})"
        figures = (
            f"parameter error {self.parameter_error:.2g} (weights {self.weight_error:.2g}, "
            f"biases {self.bias_error:.2g}, output layer {self.output_error:.2g}), "
            f"function error {self.function_error:.2g}"
        )
        if self.is_same:
            return f"same network up to symmetry: {figures}"
        if self.function_error <= self.tolerance:
            return f"different parameters, but the same answers on the points tried: {figures}"
        return f"different: {figures}"


def compare(
    a: Network,
    b: Network,
    points: int | ArrayLike = POINTS,
    seed: int | np.random.Generator = 0,
    tolerance: float = SAME_PARAMETERS,
) -> Comparison:
    """Compare two networks modulo symmetry.

    Both are brought into canonical form (`canonical`); then, layer by layer, the units of b
    are assigned to those of a at the least total squared distance of incoming weights and bias, each pair
    with the better of the signs its activation allows; permutation and signs are carried on into the next
    layer.

    Args:
        a: the reference; errors are relative to the sizes of its parameters.
        b: the network to compare with it. Any widths; those that differ give inf, not an exception.
        points: where the functions are compared: a number of standard Gaussian points, or the points (n,
            n_inputs).
        seed: of the Gaussian points.
        tolerance: parameter error up to which the two count as the same.

    Cost: one GEMM and one assignment per layer, and the evaluation at the points.
    """
    _require_networks(a, b)
    if not tolerance >= 0:
        raise InvalidInput(f"tolerance must be non-negative. Got {tolerance} instead. For example 1e-6.")
    function_error = _function_error(a, b, points, seed)
    first, second = canonical(a), canonical(b)
    reason = _mismatch(first, second)
    if reason:
        inf = math.inf
        return Comparison(inf, inf, inf, inf, function_error, float(tolerance), (), reason)
    aligned, matching = _align(first, second)
    weight, bias, output = _parameter_errors(Layers.of(first), aligned)
    return Comparison(max(weight, bias), weight, bias, output, function_error, float(tolerance), matching)


def _require_networks(a: object, b: object) -> None:
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, Network):
            raise InvalidInput(
                f"{name} must be a Network. Got {type(value).__name__} instead. Read files with unweave.load."
            )
        value.require_floats("compare")


def _mismatch(a: Network, b: Network) -> str:
    for what, left, right in (
        ("inputs", a.n_inputs, b.n_inputs),
        ("outputs", a.n_outputs, b.n_outputs),
        ("hidden widths", a.hidden, b.hidden),
        ("activations", a.activations, b.activations),
    ):
        if left != right:
            return f"{what} differ in canonical form, {_show(left)} and {_show(right)}"
    return ""


def _show(value: object) -> str:
    return "-".join(str(entry) for entry in value) or "none" if isinstance(value, tuple) else str(value)


def _align(a: Network, b: Network) -> tuple[Layers, tuple[tuple[IntArray, IntArray], ...]]:
    """Bring b into the order and the signs of a, both canonical and of equal shape."""
    reference, other = Layers.of(a), Layers.of(b)
    matching = []
    for index in other.hidden:
        match = match_units(reference, other, index)
        other.permute(index, match.permutation)
        other.reflect(index, match.signs < 0)
        if other.activations[index] == "sine":
            turns = np.round((reference.biases[index] - other.biases[index]) / math.pi)
            other.half_turns(index, turns)
        matching.append((match.permutation, match.signs))
    return other, tuple(matching)


def _parameter_errors(a: Layers, b: Layers) -> tuple[float, float, float]:
    """Return the weight error, the bias error and the error of the last layer."""
    weight_error = bias_error = output_error = 0.0
    for index in range(len(a.weights)):
        pairs = [(a.weights[index], b.weights[index])]
        if index == len(a.weights) - 1:
            pairs.append((a.skip, b.skip))
        bias_pair = (a.biases[index], b.biases[index])
        scale = max(1.0, *(float(np.abs(left).max()) for left, _ in (*pairs, bias_pair)))
        weight = max(float(np.abs(left - right).max()) for left, right in pairs) / scale
        bias = float(np.abs(bias_pair[0] - bias_pair[1]).max()) / scale
        weight_error, bias_error = max(weight_error, weight), max(bias_error, bias)
        output_error = max(weight, bias)
    return weight_error, bias_error, output_error


def _function_error(
    a: Network, b: Network, points: int | ArrayLike, seed: int | np.random.Generator
) -> float:
    if (a.n_inputs, a.n_outputs) != (b.n_inputs, b.n_outputs):
        return math.nan
    if isinstance(points, int | np.integer):
        if points < 1:
            raise InvalidInput(f"points must be positive. Got {points} instead. For example {POINTS}.")
        x: ArrayLike = np.random.default_rng(seed).standard_normal((int(points), a.n_inputs))
    else:
        x = points
    left, right = np.atleast_2d(a(x)), np.atleast_2d(b(x))
    return relative_uniform_error(left, right)


def relative_uniform_error(expected: Array, got: Array) -> float:
    """Return max |got - expected| / max |expected|, of arrays of one shape; 0 if both vanish."""
    difference = float(np.abs(got - expected).max(initial=0.0))
    size = float(np.abs(expected).max(initial=0.0))
    if difference == 0:
        return 0.0
    return difference / size if size > 0 else math.inf
