"""Activations written as ONNX operators that runtimes have float64 kernels for.

onnxruntime computes Tanh, Sigmoid, Relu, Sin, Exp, Log and arithmetic in float64, but not Erf, Softplus, Gelu
or (at this operator set) LeakyRelu, whose slope would be rounded to float32 anyway. These are composed:

    softplus(z) = max(z, 0) + log1p(e),          e = exp(-|z|)
    swish(z)    = z / (1 + exp(-z))
    gelu(z)     = max(z, 0) - |z| Phi(-|z|),     Phi(-|z|) = exp(-a^2) erfcx(a) / 2,  a = |z| / sqrt 2
    erf(z)      = z P(z^2) for |z| < 1,          sign(z) (1 - exp(-a^2) erfcx(a)) beyond, a = |z|
    arctan(z)   = 2 t R(t^2) for |z| <= 1,       sign(z) pi/2 - arctan(1/z) beyond, t = tan(half the angle)

with log1p(e) = e log(w) / (w - 1) for w = 1 + e, which keeps all digits of a small e, and with polynomials
for the functions that are left: P, R, and erfcx(a) = (1 + u) / 2 * Q(u), u = (c - a) / (c + a), which covers
[0, inf). Nothing overflows, and every error is a few units in the last place of max(1, |g(z)|). In float32
the operators Erf and Softplus exist and are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.polynomial.chebyshev import cheb2poly
from onnx import NodeProto, TensorProto, helper, numpy_helper
from scipy.special import erf, erfcx

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations import SOFTMAX
from unweave.networks.activations.catalogue import LEAKY_SLOPE, SELU_ALPHA, SELU_SCALE

ERFCX_SCALE = 3.0
"""c of the map from [0, inf) to (-1, 1]; between 2.5 and 4 the coefficients fall fastest."""

ERFCX_DEGREE, ERF_DEGREE, ARCTAN_DEGREE = 22, 10, 11
"""Least degrees at which the polynomials are as good as float64 allows."""

ERF_REACH = 1.0
"""Up to here erf is computed from its odd series: 1 - erfc would lose the digits of small values."""

TANGENT_REACH = math.sqrt(2) - 1
"""Tangent of half the angle whose tangent is 1."""


class GraphBuilder:
    """Nodes and constants of a graph under construction, all of one floating-point type."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        self._scalars: dict[float, str] = {}

    def parameter(self, name: str, values: Array) -> str:
        """Add a constant array and return its name."""
        self.initializers.append(numpy_helper.from_array(values.astype(self.dtype), name))
        return name

    def scalar(self, value: float) -> str:
        """Return the name of a constant number, added once."""
        if value not in self._scalars:
            self._scalars[value] = self.parameter(f"constant_{len(self._scalars)}", np.array(value))
        return self._scalars[value]

    def add(self, operator: str, *inputs: str | float, **attributes: int) -> str:
        """Add a node and return the name of its output; numbers among the inputs become constants."""
        names = [self.scalar(value) if isinstance(value, float) else value for value in inputs]
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [name], name, None, None, None, **attributes))
        return name


Formula = Callable[[GraphBuilder, str], str]


def add_activation(graph: GraphBuilder, name: str, z: str) -> str:
    """Add the activation of that name on the tensor z and return the name of the result."""
    if name not in FORMULAS:
        raise InvalidInput(
            f"activations must be built-in ones in an .onnx file: {', '.join(FORMULAS)}. Got {name!r} "
            f"instead, which was registered and has no operators there. Save .npz, .json or .safetensors."
        )
    return FORMULAS[name](graph, z)


def _operator(operator: str) -> Formula:
    return lambda graph, z: graph.add(operator, z)


def _swish(graph: GraphBuilder, z: str) -> str:
    # onnxruntime's Sigmoid is 0 from -37 on (a constant from -18 on in float32); this keeps all digits.
    return graph.add("Div", z, graph.add("Add", graph.add("Exp", graph.add("Neg", z)), 1.0))


def _squared_relu(graph: GraphBuilder, z: str) -> str:
    positive = graph.add("Relu", z)
    return graph.add("Mul", positive, positive)


def _softplus(graph: GraphBuilder, z: str) -> str:
    if graph.dtype == "float32":
        return graph.add("Softplus", z)
    small = graph.add("Exp", graph.add("Neg", graph.add("Abs", z)))
    above_one = graph.add("Add", small, 1.0)
    logarithm = graph.add("Log", above_one)
    ratio = graph.add("Div", graph.add("Mul", small, logarithm), graph.add("Sub", above_one, 1.0))
    # Where 1 + e rounds to 1, the ratio is 0/0 and log1p(e) = e to the last bit.
    log1p = graph.add("Where", graph.add("Equal", above_one, 1.0), small, ratio)
    return graph.add("Add", graph.add("Relu", z), log1p)


def _gelu(graph: GraphBuilder, z: str) -> str:
    if graph.dtype == "float32":
        twice_below = graph.add("Add", graph.add("Erf", graph.add("Mul", z, math.sqrt(0.5))), 1.0)
        return graph.add("Mul", graph.add("Mul", z, twice_below), 0.5)
    size = graph.add("Abs", z)
    tail = _complementary_error(graph, graph.add("Mul", size, math.sqrt(0.5)))
    return graph.add("Sub", graph.add("Relu", z), graph.add("Mul", graph.add("Mul", size, 0.5), tail))


def _mish(graph: GraphBuilder, z: str) -> str:
    # tanh(softplus(z)) = u (u + 2) / (u (u + 2) + 2) for u = exp(z); where that would overflow,
    # (1 + 2 v) / (1 + 2 v + 2 v^2) for v = exp(-z).
    small = graph.add("Exp", graph.add("Neg", graph.add("Abs", z)))
    twice, square = graph.add("Add", small, small), graph.add("Mul", small, small)
    below = graph.add("Add", square, twice)
    left = graph.add("Div", below, graph.add("Add", below, 2.0))
    above = graph.add("Add", twice, 1.0)
    right = graph.add("Div", above, graph.add("Add", above, graph.add("Add", square, square)))
    return graph.add("Mul", z, graph.add("Where", graph.add("Less", z, 0.0), left, right))


def _exponential_linear(scale: float, alpha: float) -> Formula:
    def formula(graph: GraphBuilder, z: str) -> str:
        # exp(z) - 1 = 2 t / (1 - t) with t = tanh(z / 2), which keeps the digits of a small z.
        t = graph.add("Tanh", graph.add("Mul", graph.add("Min", z, 0.0), 0.5))
        curve = graph.add("Div", graph.add("Add", t, t), graph.add("Sub", 1.0, t))
        if alpha != 1:
            curve = graph.add("Mul", curve, alpha)
        value = graph.add("Add", graph.add("Relu", z), curve)
        return value if scale == 1 else graph.add("Mul", value, scale)

    return formula


def _softsign(graph: GraphBuilder, z: str) -> str:
    return graph.add("Div", z, graph.add("Add", graph.add("Abs", z), 1.0))


def _arctan(graph: GraphBuilder, z: str) -> str:
    if graph.dtype == "float32":
        return graph.add("Atan", z)
    size = graph.add("Abs", z)
    is_large = graph.add("Greater", size, 1.0)
    t = graph.add("Where", is_large, graph.add("Div", 1.0, size), size)
    root = graph.add("Sqrt", graph.add("Add", graph.add("Mul", t, t), 1.0))
    half = graph.add("Div", t, graph.add("Add", root, 1.0))  # tangent of half the angle
    v = graph.add("Sub", graph.add("Mul", graph.add("Mul", half, half), 2 / TANGENT_REACH**2), 1.0)
    angle = graph.add("Mul", graph.add("Mul", half, 2.0), _polynomial(graph, v, _odd_arctan()))
    whole = graph.add("Where", is_large, graph.add("Sub", math.pi / 2, angle), angle)
    return graph.add("Mul", graph.add("Sign", z), whole)


def _gaussian(graph: GraphBuilder, z: str) -> str:
    return graph.add("Exp", graph.add("Neg", graph.add("Mul", z, z)))


def _clipped(low: float, high: float) -> Formula:
    return lambda graph, z: graph.add("Max", graph.add("Min", z, high), low)


def _hard_sigmoid(graph: GraphBuilder, z: str) -> str:
    # Clipped first: a factor and a shift of z itself would be read as those of its weights.
    return graph.add("Mul", graph.add("Add", _clipped(-3.0, 3.0)(graph, z), 3.0), 1 / 6)


def _erf(graph: GraphBuilder, z: str) -> str:
    if graph.dtype == "float32":
        return graph.add("Erf", z)
    size = graph.add("Abs", z)
    beyond = graph.add("Mul", graph.add("Sign", z), graph.add("Sub", 1.0, _complementary_error(graph, size)))
    square = graph.add("Mul", z, z)
    v = graph.add("Sub", graph.add("Add", square, square), 1.0)
    within = graph.add("Mul", z, _polynomial(graph, v, _odd_erf()))
    return graph.add("Where", graph.add("Less", size, ERF_REACH), within, beyond)


def _complementary_error(graph: GraphBuilder, a: str) -> str:
    """Return erfc(a) for a tensor a >= 0."""
    above = graph.add("Add", a, ERFCX_SCALE)
    u = graph.add("Div", graph.add("Sub", ERFCX_SCALE, a), above)
    scaled = graph.add("Mul", graph.add("Div", ERFCX_SCALE, above), _polynomial(graph, u, _scaled_erfc()))
    return graph.add("Mul", graph.add("Exp", graph.add("Neg", graph.add("Mul", a, a))), scaled)


def _polynomial(graph: GraphBuilder, u: str, coefficients: tuple[float, ...]) -> str:
    """Return sum_k coefficients[k] u^k by Horner's rule."""
    value = graph.add("Mul", u, coefficients[-1])
    for coefficient in coefficients[-2:0:-1]:
        value = graph.add("Mul", graph.add("Add", value, coefficient), u)
    return graph.add("Add", value, coefficients[0])


@lru_cache(maxsize=1)
def _scaled_erfc() -> tuple[float, ...]:
    """Return coefficients of Q with erfcx(a) = (1 + u) / 2 * Q(u), u = (c - a) / (c + a).

    With u = cos(theta), a = c tan^2(theta / 2) and (1 + u) / 2 = cos^2(theta / 2), free of cancellation.
    """
    return _interpolated(lambda h: erfcx(ERFCX_SCALE * np.tan(h) ** 2) / np.cos(h) ** 2, ERFCX_DEGREE)


@lru_cache(maxsize=1)
def _odd_erf() -> tuple[float, ...]:
    """Return coefficients of P with erf(z) = z P(v), v = 2 z^2 - 1 = cos(theta), |z| = cos(theta / 2)."""
    return _interpolated(lambda half: erf(np.cos(half)) / np.cos(half), ERF_DEGREE)


@lru_cache(maxsize=1)
def _odd_arctan() -> tuple[float, ...]:
    """Return coefficients of P with arctan(t) = t P(v), v = 2 t^2 / T^2 - 1, for |t| <= T."""

    def values(half: Array) -> Array:
        t = TANGENT_REACH * np.cos(half)
        return np.asarray(np.arctan(t) / t)

    return _interpolated(values, ARCTAN_DEGREE)


def _interpolated(values: Callable[[Array], Array], degree: int) -> tuple[float, ...]:
    """Interpolate ``values(theta / 2)`` at the Chebyshev points cos(theta); return power coefficients."""
    odd = 2 * np.arange(degree + 1) + 1
    step = math.pi / (2 * (degree + 1))
    found = values(odd * step / 2)
    # k theta is reduced to one period as an integer: rounding a large angle would cost a digit.
    cosines = [np.cos(k * odd % (4 * (degree + 1)) * step) for k in range(degree + 1)]
    series = [2 / (degree + 1) * math.fsum(found * cosine) for cosine in cosines]
    series[0] /= 2
    # Chebyshev coefficients that fall by a factor 5 per degree: powers of u are as accurate, and cheaper.
    return tuple(float(c) for c in cheb2poly(series))


FORMULAS: dict[str, Formula] = {
    "tanh": _operator("Tanh"),
    "sigmoid": _operator("Sigmoid"),
    "erf": _erf,
    "softplus": _softplus,
    "gelu": _gelu,
    "swish": _swish,
    "sine": _operator("Sin"),
    "mish": _mish,
    "elu": _exponential_linear(1.0, 1.0),
    "selu": _exponential_linear(SELU_SCALE, SELU_ALPHA),
    "softsign": _softsign,
    "arctan": _arctan,
    "gaussian": _gaussian,
    "hard_tanh": _clipped(-1.0, 1.0),
    "relu6": _clipped(0.0, 6.0),
    "hard_sigmoid": _hard_sigmoid,
    "exp": _operator("Exp"),
    "relu": _operator("Relu"),
    "leaky_relu": lambda graph, z: graph.add("Max", z, graph.add("Mul", z, LEAKY_SLOPE)),
    "squared_relu": _squared_relu,
    "quadratic": lambda graph, z: graph.add("Mul", z, z),
    "cubic": lambda graph, z: graph.add("Mul", z, graph.add("Mul", z, z)),
    "identity": lambda graph, z: z,
    SOFTMAX: lambda graph, z: graph.add("Softmax", z, axis=-1),
}
"""Activation -> how it is added to a graph."""
