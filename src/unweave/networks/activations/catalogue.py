"""The built-in activations: formulas that are relatively accurate in the tails and do not overflow."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import erf as error_function
from scipy.special import erfinv, expit, logit, ndtr

from unweave.arrays import Array
from unweave.networks.activations.activation import Activation, Jet, Reflection

LEAKY_SLOPE = 0.01
"""Slope of the leaky relu for negative arguments."""

GAUSSIAN_REACH = 40.0
"""exp(-z^2/2) underflows to zero well before this; larger arguments are cut so that z^2 does not overflow."""

ARCTAN_REACH = 1e70
"""Derivatives of arctan are nothing beyond: larger arguments are cut so that their powers do not overflow."""

SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
"""Constants of the scaled exponential linear unit, as published and as torch and keras have them."""


def _tanh(z: Array, order: int) -> tuple[Array, ...]:
    t = np.tanh(z)
    if order == 0:
        return (t,)
    # sech z = 2 e^{-|z|} / (1 + e^{-2|z|}): 1 - tanh^2 would lose all digits for |z| > 18.
    e = np.exp(-np.abs(z))
    first = e + e
    first /= 1 + e * e
    first *= first
    return (t, first, -2 * t * first, first * (4 - 6 * first))[: order + 1]


def _sigmoid(z: Array, order: int) -> tuple[Array, ...]:
    value = expit(z)
    if order == 0:
        return (value,)
    # value * (1 - value) would lose all digits in the right tail; expit(-z) keeps them.
    first = value * expit(-z)
    if order == 1:
        return value, first
    return (value, first, -first * np.tanh(z / 2), first * (1 - 6 * first))[: order + 1]


def _erf(z: Array, order: int) -> tuple[Array, ...]:
    value = error_function(z)
    if order == 0:
        return (value,)
    x = np.clip(z, -GAUSSIAN_REACH, GAUSSIAN_REACH)
    square = x * x
    first = 2 / math.sqrt(math.pi) * np.exp(-square)
    return (value, first, -2 * x * first, (4 * square - 2) * first)[: order + 1]


def _softplus(z: Array, order: int) -> tuple[Array, ...]:
    value = np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))
    return (value,) if order == 0 else (value, *_sigmoid(z, order - 1))


def _gelu(z: Array, order: int) -> tuple[Array, ...]:
    below = ndtr(z)
    value = z * below
    if order == 0:
        return (value,)
    x = np.clip(z, -GAUSSIAN_REACH, GAUSSIAN_REACH)
    square = x * x
    density = np.exp(-square / 2) / math.sqrt(2 * math.pi)
    return (value, below + x * density, (2 - square) * density, x * (square - 4) * density)[: order + 1]


def _swish(z: Array, order: int) -> tuple[Array, ...]:
    s = _sigmoid(z, order)
    return (z * s[0], *(k * s[k - 1] + z * s[k] for k in range(1, order + 1)))


def _mish(z: Array, order: int) -> tuple[Array, ...]:
    soft = _softplus(z, order)
    t = _tanh(soft[0], order)
    products = [t[0]]  # derivatives of tanh(softplus(z)), by the chain rule
    if order > 0:
        products.append(t[1] * soft[1])
    if order > 1:
        products.append(t[2] * soft[1] ** 2 + t[1] * soft[2])
    if order > 2:
        products.append(t[3] * soft[1] ** 3 + 3 * t[2] * soft[1] * soft[2] + t[1] * soft[3])
    return (z * products[0], *(k * products[k - 1] + z * products[k] for k in range(1, order + 1)))


def _exponential_linear(scale: float, alpha: float) -> Jet:
    def jet(z: Array, order: int) -> tuple[Array, ...]:
        below = np.minimum(z, 0.0)
        value = scale * np.where(z > 0, z, alpha * np.expm1(below))
        if order == 0:
            return (value,)
        curve = scale * alpha * np.exp(below)
        bent = np.where(z > 0, 0.0, curve)
        return (value, np.where(z > 0, scale, curve), bent, bent)[: order + 1]

    return jet


def _softsign(z: Array, order: int) -> tuple[Array, ...]:
    down = 1 / (1 + np.abs(z))
    return (z * down, down**2, -2 * np.sign(z) * down**3, 6 * down**4)[: order + 1]


def _arctan(z: Array, order: int) -> tuple[Array, ...]:
    value = np.arctan(z)
    if order == 0:
        return (value,)
    x = np.clip(z, -ARCTAN_REACH, ARCTAN_REACH)
    down = 1 / (1 + x * x)
    return (value, down, -2 * x * down**2, (6 - 8 * down) * down**2)[: order + 1]


def _gaussian(z: Array, order: int) -> tuple[Array, ...]:
    x = np.clip(z, -GAUSSIAN_REACH, GAUSSIAN_REACH)
    square = x * x
    value = np.exp(-square)
    return (value, -2 * x * value, (4 * square - 2) * value, x * (12 - 8 * square) * value)[: order + 1]


def _clipped(low: float, high: float, stretch: float = 1.0, shift: float = 0.0) -> Jet:
    """The unit that is stretch z + shift between low and high, and straight beyond."""

    def jet(z: Array, order: int) -> tuple[Array, ...]:
        line = stretch * z + shift
        value = np.clip(line, low, high)
        if order == 0:
            return (value,)
        zero = np.zeros_like(value)
        return (value, np.where((line > low) & (line < high), stretch, 0.0), zero, zero)[: order + 1]

    return jet


def _sine(z: Array, order: int) -> tuple[Array, ...]:
    s = np.sin(z)
    if order == 0:
        return (s,)
    c = np.cos(z)
    return (s, c, -s, -c)[: order + 1]


def _exp(z: Array, order: int) -> tuple[Array, ...]:
    with np.errstate(over="ignore"):
        value = np.exp(z)
    return tuple(value.copy() for _ in range(order + 1))


def _leaky(slope: float) -> Jet:
    def jet(z: Array, order: int) -> tuple[Array, ...]:
        value = np.maximum(z, slope * z) if slope else np.maximum(z, 0.0)
        if order == 0:
            return (value,)
        zero = np.zeros_like(value)
        return (value, np.where(z > 0, 1.0, slope), zero, zero)[: order + 1]

    return jet


def _squared_relu(z: Array, order: int) -> tuple[Array, ...]:
    r = np.maximum(z, 0.0)
    with np.errstate(over="ignore"):
        return (r * r, 2 * r, np.where(r > 0, 2.0, 0.0), np.zeros_like(r))[: order + 1]


def _quadratic(z: Array, order: int) -> tuple[Array, ...]:
    with np.errstate(over="ignore"):
        return (z * z, 2 * z, np.full_like(z, 2.0), np.zeros_like(z))[: order + 1]


def _cubic(z: Array, order: int) -> tuple[Array, ...]:
    with np.errstate(over="ignore"):
        square = z * z
        return (z * square, 3 * square, 6 * z, np.full_like(z, 6.0))[: order + 1]


def _identity(z: Array, order: int) -> tuple[Array, ...]:
    zero = np.zeros_like(z)
    return (z.copy(), np.ones_like(z), zero, zero)[: order + 1]


def _tanh_from_cubic(c: Array) -> Array:
    """Solve t - t^3 = c for |t| <= 1/sqrt(3): t = (2/sqrt 3) sin u gives sin 3u = (3 sqrt 3 / 2) c."""
    sine = np.clip(1.5 * math.sqrt(3) * c, -1, 1)
    return np.asarray(2 / math.sqrt(3) * np.sin(np.arcsin(sine) / 3))


def _tanh_second_inverse(c: Array) -> Array:
    # tanh'' = -2 t (1 - t^2) with t = tanh z
    return np.asarray(np.arctanh(_tanh_from_cubic(-c / 2)))


def _sigmoid_second_inverse(c: Array) -> Array:
    # sigmoid'' = -t (1 - t^2) / 4 with t = tanh(z/2)
    return np.asarray(2 * np.arctanh(_tanh_from_cubic(-4 * c)))


def _in_place(ufunc: Callable[..., object]) -> Callable[[Array], None]:
    def overwrite(z: Array) -> None:
        ufunc(z, out=z)

    return overwrite


def _relu_in_place(z: Array) -> None:
    np.maximum(z, 0, out=z)


def _leave(z: Array) -> None:
    """Do nothing: the identity in place."""


ODD = Reflection(-1)
EVEN = Reflection(1)
LINEAR_UNIT = Reflection(1, 0.0, -1.0)  # g(-z) = g(z) - z

CATALOGUE: tuple[Activation, ...] = (
    Activation(
        "tanh",
        _tanh,
        ODD,
        monotone_second=math.atanh(1 / math.sqrt(3)),
        second_inverse=_tanh_second_inverse,
        overwrite=_in_place(np.tanh),
        inverse=np.arctanh,
    ),
    Activation(
        "sigmoid",
        _sigmoid,
        Reflection(-1, 1.0),
        monotone_second=math.log(2 + math.sqrt(3)),
        second_inverse=_sigmoid_second_inverse,
        overwrite=_in_place(expit),
        inverse=logit,
    ),
    Activation(
        "erf",
        _erf,
        ODD,
        monotone_second=1 / math.sqrt(2),
        overwrite=_in_place(error_function),
        inverse=erfinv,
    ),
    Activation("softplus", _softplus, LINEAR_UNIT),
    Activation("gelu", _gelu, LINEAR_UNIT),
    Activation("swish", _swish, LINEAR_UNIT),
    Activation("mish", _mish),
    Activation("elu", _exponential_linear(1.0, 1.0), kinks=(0.0,)),
    Activation("selu", _exponential_linear(SELU_SCALE, SELU_ALPHA), kinks=(0.0,)),
    Activation("softsign", _softsign, ODD, kinks=(0.0,)),
    Activation(
        "arctan",
        _arctan,
        ODD,
        near_poles=True,
        monotone_second=1 / math.sqrt(3),
        overwrite=_in_place(np.arctan),
    ),
    Activation("gaussian", _gaussian, EVEN),
    Activation(
        "sine",
        _sine,
        ODD,
        monotone_second=math.pi / 2,
        second_inverse=lambda c: np.asarray(-np.arcsin(c)),
        overwrite=_in_place(np.sin),
    ),
    Activation(
        "relu",
        _leaky(0.0),
        LINEAR_UNIT,
        homogeneity=1,
        smooth=False,
        kinks=(0.0,),
        overwrite=_relu_in_place,
    ),
    Activation(
        "leaky_relu",
        _leaky(LEAKY_SLOPE),
        Reflection(1, 0.0, -(1 + LEAKY_SLOPE)),
        homogeneity=1,
        smooth=False,
        kinks=(0.0,),
    ),
    Activation("hard_tanh", _clipped(-1.0, 1.0), ODD, smooth=False, kinks=(-1.0, 1.0)),
    Activation("relu6", _clipped(0.0, 6.0), smooth=False, kinks=(0.0, 6.0)),
    Activation(
        "hard_sigmoid",
        _clipped(0.0, 1.0, 1 / 6, 0.5),
        Reflection(-1, 1.0),
        smooth=False,
        kinks=(-3.0, 3.0),
    ),
    Activation("squared_relu", _squared_relu, homogeneity=2, smooth=False, kinks=(0.0,)),
    Activation("quadratic", _quadratic, EVEN, homogeneity=2),
    Activation(
        "cubic",
        _cubic,
        ODD,
        homogeneity=3,
        monotone_second=math.inf,
        second_inverse=lambda c: np.asarray(c / 6),
    ),
    Activation("identity", _identity, ODD, homogeneity=1, overwrite=_leave, inverse=lambda y: y),
)
"""Every built-in elementwise activation of hidden units."""

OUTPUT_ONLY: tuple[Activation, ...] = (Activation("exp", _exp, overwrite=_in_place(np.exp), inverse=np.log),)
"""Those of the last layer alone: of a hidden unit, bias and outgoing weight would be one number."""
