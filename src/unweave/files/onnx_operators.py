"""What each ONNX operator does to the values of a chain of layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import erf, expit

from unweave.arrays import Array
from unweave.files.onnx_chain import (
    Affine,
    Chain,
    Curve,
    NotAChain,
    Scaled,
    Softmaxed,
    Value,
    as_affine,
    as_curve,
)
from unweave.networks.activations import get_activation
from unweave.networks.activations.catalogue import SELU_ALPHA, SELU_SCALE

Attributes = Mapping[str, Any]
Rule = Callable[[Chain, Sequence[Value], Attributes], Value]
"""(layers so far, inputs of the node with None for absent ones, its attributes) -> its first output."""


def _gelu(z: Array, attributes: Attributes) -> Array:
    if attributes.get("approximate", b"none") not in (b"none", "none"):
        raise NotAChain("its tanh approximation is not the gelu of unweave")
    return get_activation("gelu")(z)


def _celu(z: Array, attributes: Attributes) -> Array:
    alpha = attributes.get("alpha", 1.0)
    return np.where(z > 0, z, alpha * np.expm1(np.minimum(z, 0) / alpha))


def _selu(z: Array, attributes: Attributes) -> Array:
    # Attributes are float32: those nearest to the published constants mean them.
    given = (attributes.get("gamma", SELU_SCALE), attributes.get("alpha", SELU_ALPHA))
    if not np.array_equal(np.array(given, np.float32), np.array((SELU_SCALE, SELU_ALPHA), np.float32)):
        raise NotAChain(f"its constants {given} are not those of the selu of unweave")
    return get_activation("selu")(z)


def _sixth(slope: float) -> float:
    """Return 1/6 for the float32 nearest to it, which is what an attribute can hold."""
    return 1 / 6 if np.float32(slope) == np.float32(1 / 6) else slope


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Tanh": np.tanh,
    "Sigmoid": expit,
    "Relu": lambda z: np.maximum(z, 0),
    "Erf": erf,
    "Softplus": get_activation("softplus"),
    "Exp": np.exp,
    "Log": np.log,
    "Sin": np.sin,
    "Atan": np.arctan,
    "Mish": get_activation("mish"),
    "Softsign": get_activation("softsign"),
    "Abs": np.abs,
    "Sign": np.sign,
    "Sqrt": np.sqrt,
    "Reciprocal": lambda z: 1 / z,
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Pow": np.power,
    "Max": np.maximum,
    "Min": np.minimum,
    "Equal": np.equal,
    "Less": np.less,
    "Greater": np.greater,
    "Where": np.where,
}
"""Operators that act entry by entry, without attributes."""

_WITH_ATTRIBUTES: dict[str, Callable[[Array, Attributes], Array]] = {
    "LeakyRelu": lambda z, attributes: np.where(z < 0, attributes.get("alpha", 0.01) * z, z),
    "Gelu": _gelu,
    "Elu": lambda z, found: np.where(z > 0, z, found.get("alpha", 1.0) * np.expm1(np.minimum(z, 0))),
    "Celu": _celu,
    "Selu": _selu,
    "HardSigmoid": lambda z, found: np.clip(
        _sixth(found.get("alpha", 0.2)) * z + found.get("beta", 0.5), 0, 1
    ),
}


def is_constant(value: Value) -> bool:
    """Whether ``value`` is known without any input."""
    return isinstance(value, np.ndarray)


def vector(constant: Any, width: int | None) -> Array:
    """Return a constant as a number () or, if it is longer, as a vector (width,)."""
    numbers = np.asarray(constant, dtype=np.float64)
    if numbers.size == 1:
        return numbers.reshape(())
    if numbers.size != max(numbers.shape[-1], 1) or (width is not None and numbers.size != width):
        raise NotAChain(f"its constant has shape {numbers.shape}, which is not one number per unit")
    return numbers.reshape(-1)


def _entrywise(function: Callable[..., Any], operands: Sequence[Value]) -> Value:
    """Return ``function`` of curves over one pre-activation and of constant numbers."""
    if all(is_constant(operand) for operand in operands):
        return np.asarray(function(*operands))
    curves = [as_curve(operand) for operand in operands if not is_constant(operand)]
    if any(curve.base is not curves[0].base for curve in curves):
        raise NotAChain("it combines two different layers")
    values = [vector(each, None) if is_constant(each) else as_curve(each).values for each in operands]
    if any(value.ndim for value, each in zip(values, operands, strict=True) if is_constant(each)):
        raise NotAChain("it has a constant per unit inside an activation")
    inside = {curve.slope for curve in curves if curve.slope is not None} - {1.0}
    stretches = frozenset(inside).union(*(curve.stretches for curve in curves))
    with np.errstate(all="ignore"):
        return Curve(curves[0].base, function(*values), None, stretches)


def _elementwise(function: Callable[..., Any]) -> Rule:
    return lambda chain, inputs, attributes: _entrywise(function, inputs)


def _elementwise_with_attributes(function: Callable[[Array, Attributes], Array]) -> Rule:
    return lambda chain, inputs, attributes: _entrywise(lambda z: function(z, attributes), inputs)


def _shift(chain: Chain, value: Value, constant: Any) -> Value:
    """Return value + constant."""
    amount = vector(constant, chain.width(value))
    if isinstance(value, Curve) and value.slope is None:
        if amount.ndim == 0:
            return _entrywise(np.add, [value, amount])
        value = chain.source(value)
    if isinstance(value, Scaled):
        return Scaled(value.source, value.scale, amount if value.shift is None else value.shift + amount)
    return as_affine(value).shifted(amount)


def _stretch(chain: Chain, value: Value, constant: Any) -> Value:
    """Return value * constant."""
    factor = vector(constant, chain.width(value))
    if isinstance(value, Scaled) or (isinstance(value, Curve) and value.slope is None and factor.ndim):
        value = chain.source(value)
        scale = factor if value.scale is None else value.scale * factor
        return Scaled(value.source, scale, None if value.shift is None else value.shift * factor)
    if factor.ndim:
        return as_affine(value).stretched(factor)
    # A number may belong to the activation that follows (gelu starts by z / sqrt 2): not folded in yet.
    curve = as_curve(value)
    if curve.slope is None:
        return _entrywise(np.multiply, [curve, factor])
    return Curve(curve.base, curve.values * factor, curve.slope * float(factor), curve.stretches)


def _add(chain: Chain, inputs: Sequence[Value], attributes: Attributes) -> Value:
    first, second = inputs
    if is_constant(first) and is_constant(second):
        return np.add(first, second)
    if is_constant(first) or is_constant(second):
        return _shift(chain, second, first) if is_constant(first) else _shift(chain, first, second)
    bases = [value.base if isinstance(value, Curve) else value for value in inputs]
    if bases[0] is bases[1]:
        return _entrywise(np.add, inputs)
    return _with_skip(as_affine(first), as_affine(second))


def _with_skip(first: Affine, second: Affine) -> Affine:
    """Return h @ weight + bias + x @ skip; of two terms in the inputs themselves, the second is the skip."""
    layer, skip = (second, first) if first.source == 0 and second.source > 0 else (first, second)
    if skip.source or skip.skip is not None or layer.skip is not None or skip.width != layer.width:
        raise NotAChain("it adds two layers, neither of which comes directly from the inputs")
    whole = Affine(layer.source, layer.weight, layer.bias, skip.weight)
    return whole if skip.bias is None else whole.shifted(skip.bias)


def _sub(chain: Chain, inputs: Sequence[Value], attributes: Attributes) -> Value:
    first, second = inputs
    if is_constant(second) and not is_constant(first):
        return _shift(chain, first, -np.asarray(second, dtype=np.float64))
    if is_constant(first) and not is_constant(second):
        return _shift(chain, _stretch(chain, second, np.array(-1.0)), first)
    return _entrywise(np.subtract, inputs)


def _mul(chain: Chain, inputs: Sequence[Value], attributes: Attributes) -> Value:
    first, second = inputs
    if is_constant(first) == is_constant(second):
        return _entrywise(np.multiply, inputs)
    return _stretch(chain, second, first) if is_constant(first) else _stretch(chain, first, second)


def _div(chain: Chain, inputs: Sequence[Value], attributes: Attributes) -> Value:
    first, second = inputs
    if is_constant(second) and not is_constant(first):
        return _stretch(chain, first, 1 / np.asarray(second, dtype=np.float64))
    return _entrywise(np.divide, inputs)


def _neg(chain: Chain, inputs: Sequence[Value], attributes: Attributes) -> Value:
    return -inputs[0] if is_constant(inputs[0]) else _stretch(chain, inputs[0], np.array(-1.0))


def _product(chain: Chain, value: Value, matrix: Any) -> Affine:
    """Return value @ matrix, with what the values were scaled by folded into the matrix."""
    weight = np.asarray(matrix, dtype=np.float64)
    taken = chain.source(value)
    width = chain.width(taken)
    if weight.ndim != 2 or (width is not None and weight.shape[0] != width):
        raise NotAChain(f"its matrix has shape {weight.shape}, for {width or 'the'} inputs")
    if taken.scale is None and taken.shift is None:
        return Affine(taken.source, weight)
    for part in (taken.scale, taken.shift):
        if part is not None and part.ndim and part.size != weight.shape[0]:
            raise NotAChain(
                f"its matrix has shape {weight.shape}, for inputs scaled by {part.size} constants"
            )
    n = weight.shape[0]
    scaled = weight if taken.scale is None else np.broadcast_to(taken.scale, n)[:, None] * weight
    bias = None if taken.shift is None else np.broadcast_to(taken.shift, n) @ weight
    return Affine(taken.source, scaled, bias)


def _constant_matrix(value: Value) -> Any:
    if not is_constant(value):
        raise NotAChain("it multiplies by a matrix that is computed from the inputs")
    return value


def _matmul(chain: Chain, inputs: Sequence[Value], attributes: Attributes) -> Value:
    if is_constant(inputs[0]):
        raise NotAChain("it multiplies by a matrix from the left; units must be columns")
    matrix = _constant_matrix(inputs[1])
    return _product(chain, inputs[0], matrix[:, None] if matrix.ndim == 1 else matrix)


def _gemm(chain: Chain, inputs: Sequence[Value], attributes: Attributes) -> Value:
    if attributes.get("transA") or is_constant(inputs[0]):
        raise NotAChain("it multiplies by a matrix from the left; units must be columns")
    matrix = _constant_matrix(inputs[1])
    alpha, beta = (float(attributes.get(name, 1.0)) for name in ("alpha", "beta"))
    result = _product(chain, inputs[0], matrix.T if attributes.get("transB") else matrix)
    if alpha != 1:
        result = result.stretched(np.array(alpha))
    if len(inputs) < 3 or inputs[2] is None:
        return result
    bias = vector(_constant_matrix(inputs[2]), result.width)
    return result.shifted(bias if beta == 1 else beta * bias)


def _scaler(chain: Chain, inputs: Sequence[Value], attributes: Attributes) -> Value:
    """Return (x - offset) * scale, of the ai.onnx.ml operators."""
    shifted = _shift(chain, inputs[0], -np.asarray(attributes.get("offset", [0.0]), dtype=np.float64))
    return _stretch(chain, shifted, np.asarray(attributes.get("scale", [1.0])))


def _softmax(chain: Chain, inputs: Sequence[Value], attributes: Attributes) -> Value:
    if attributes.get("axis", -1) not in (-1, 1):
        raise NotAChain("its softmax does not run over the outputs")
    return Softmaxed(as_affine(inputs[0]))


def _cast(chain: Chain, inputs: Sequence[Value], attributes: Attributes) -> Value:
    kind = attributes["to"]
    if is_constant(inputs[0]):
        return inputs[0].astype(kind)
    if not np.issubdtype(kind, np.floating):
        raise NotAChain(f"it casts to {kind}")
    return inputs[0]


def _flatten(chain: Chain, inputs: Sequence[Value], attributes: Attributes) -> Value:
    if attributes.get("axis", 1) != 1 or is_constant(inputs[0]):
        raise NotAChain("it merges rows")
    return inputs[0]


def _reshape(chain: Chain, inputs: Sequence[Value], attributes: Attributes) -> Value:
    value, shape = inputs[0], [int(n) for n in np.ravel(_constant_matrix(inputs[1]))]
    if is_constant(value):
        return value.reshape([value.shape[i] if n == 0 else n for i, n in enumerate(shape)])
    width = chain.width(value)
    flat = len(shape) == 1 and width == 1
    if not flat and (len(shape) != 2 or (shape[1] > 0 and width not in (None, shape[1]))):
        raise NotAChain(f"it reshapes to {shape}, which mixes rows or units")
    return value


def _clip(chain: Chain, inputs: Sequence[Value], attributes: Attributes) -> Value:
    """Return values between two bounds, which older files have as attributes."""
    bounds = [attributes.get("min"), attributes.get("max")]
    for place, bound in enumerate(inputs[1:]):
        if bound is not None:
            bounds[place] = float(np.ravel(_constant_matrix(bound))[0])
    low, high = (
        end if bound is None else bound for bound, end in zip(bounds, (-np.inf, np.inf), strict=True)
    )
    return _entrywise(lambda z: np.clip(z, low, high), inputs[:1])


RULES: dict[str, Rule] = {
    **{name: _elementwise(function) for name, function in _FUNCTIONS.items()},
    **{name: _elementwise_with_attributes(function) for name, function in _WITH_ATTRIBUTES.items()},
    "Clip": _clip,
    "Add": _add,
    "Sub": _sub,
    "Mul": _mul,
    "Div": _div,
    "Neg": _neg,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "ai.onnx.ml.Scaler": _scaler,
    "Softmax": _softmax,
    **dict.fromkeys(("Identity", "Dropout"), lambda chain, inputs, attributes: inputs[0]),
    "Cast": _cast,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Squeeze": lambda chain, inputs, _: np.squeeze(inputs[0]) if is_constant(inputs[0]) else inputs[0],
    "Transpose": lambda chain, inputs, found: np.transpose(_constant_matrix(inputs[0]), found.get("perm")),
}
"""Operator (with its domain, unless it is the standard one) -> what it does."""
