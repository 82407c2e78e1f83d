"""Activations by name: the built-in ones and those that a user registers."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations.activation import MAX_ORDER, Activation
from unweave.networks.activations.catalogue import CATALOGUE, OUTPUT_ONLY

ALIASES = {"logistic": "sigmoid", "linear": "identity", "celu": "elu"}
"""Second names; a network always carries the first. CELU is ELU with other weights, and ELU at alpha 1."""

SOFTMAX = "softmax"
"""The one output activation that is not elementwise; `Network` knows it, the registry does not."""

CHECK_POINTS = np.array([-2.3, -1.1, -0.37, 0.29, 0.83, 1.7, 2.9])
"""Where a registered activation is checked: on both sides of 0, away from it, not symmetric."""

CHECK_STEP = 1e-3
CHECK_TOLERANCE = 1e-6
"""Relative error allowed: fourth-order differences are far better, a wrong formula is far worse."""

_BUILT_IN = {activation.name: activation for activation in (*CATALOGUE, *OUTPUT_ONLY)}
_REGISTERED: dict[str, Activation] = {}


def activation_names() -> tuple[str, ...]:
    """Return the names of all activations of hidden units, built-in ones first, aliases left out."""
    return (*(activation.name for activation in CATALOGUE), *_REGISTERED)


def get_activation(name: str) -> Activation:
    """Return the activation of that name; "logistic" means "sigmoid" and "linear" means "identity"."""
    canonical = ALIASES.get(name, name)
    found = _BUILT_IN.get(canonical) or _REGISTERED.get(canonical)
    if found is None:
        hint = " softmax is possible as the output activation only." if name == SOFTMAX else ""
        raise InvalidInput(
            f"activation must be one of {', '.join(activation_names())}. Got {name!r} instead.{hint} "
            f"Choose one of these or add your own with register_activation."
        )
    return found


def hidden_activation(name: str) -> Activation:
    """Return the activation of that name, which hidden units can have."""
    found = get_activation(name)
    if found in OUTPUT_ONLY:
        raise InvalidInput(
            f"activation of hidden units must be one of {', '.join(activation_names())}. Got {name!r} "
            "instead, which is possible as the output activation only."
        )
    return found


def register_activation(activation: Activation) -> None:
    """Make an activation known by its name, after checking what it declares on a few points.

    The derivatives are checked by fourth-order central differences, the reflection and the homogeneity by
    evaluation. A built-in name is refused; registering a name of one's own again replaces it.

    Example:
        >>> import numpy as np
        >>> from unweave.networks.activations import Activation, Reflection
        >>> def algebraic(z, order):
        ...     r = 1 / np.sqrt(1 + z**2)
        ...     return (z * r, r**3, -3 * z * r**5, (12 * z**2 - 3) * r**7)[: order + 1]
        >>> register_activation(Activation("algebraic", algebraic, Reflection(-1)))
    """
    name = activation.name
    if name in _BUILT_IN or name in ALIASES or name == SOFTMAX or not name:
        raise InvalidInput(
            f"name of a registered activation must be new. Got {name!r} instead. Built-in ones cannot be "
            f"replaced; choose another name."
        )
    _check_derivatives(activation)
    _check_reflection(activation)
    _check_homogeneity(activation)
    _REGISTERED[name] = activation


def _check_derivatives(activation: Activation) -> None:
    jets = activation.jet(CHECK_POINTS, MAX_ORDER)
    if len(jets) != MAX_ORDER + 1 or any(np.shape(d) != CHECK_POINTS.shape for d in jets):
        raise InvalidInput(
            f"jet of {activation.name!r} must give {MAX_ORDER + 1} arrays shaped like z for order "
            f"{MAX_ORDER}. Got shapes {[np.shape(d) for d in jets]} instead. "
            f"Return (g, g', g'', g''')[: order + 1]."
        )
    for order in range(MAX_ORDER + 1):
        shorter = activation.jet(CHECK_POINTS, order)
        if len(shorter) != order + 1:
            raise InvalidInput(
                f"jet of {activation.name!r} must give {order + 1} arrays for order {order}. "
                f"Got {len(shorter)} instead. Return (g, g', g'', g''')[: order + 1]."
            )
    h = CHECK_STEP
    at = {k: activation.jet(CHECK_POINTS + k * h, MAX_ORDER) for k in (-2, -1, 1, 2)}
    for n in range(MAX_ORDER):
        slope = (8 * (at[1][n] - at[-1][n]) - (at[2][n] - at[-2][n])) / (12 * h)
        what = f"derivative {n + 1} of {activation.name!r}"
        _require_close(jets[n + 1], slope, what, "central differences")


def _check_reflection(activation: Activation) -> None:
    rule = activation.reflection
    if rule is None:
        return
    if rule.sign not in (-1, 1):
        raise InvalidInput(
            f"reflection sign of {activation.name!r} must be -1 or 1. Got {rule.sign} instead. "
            f"Divide by it, or declare no reflection."
        )
    expected = rule.sign * activation(CHECK_POINTS) + rule.constant + rule.slope * CHECK_POINTS
    what = f"g(-z) of {activation.name!r}"
    _require_close(activation(-CHECK_POINTS), expected, what, "its declared reflection")


def _check_homogeneity(activation: Activation) -> None:
    if activation.homogeneity is None:
        return
    expected = 1.7**activation.homogeneity * activation(CHECK_POINTS)
    what = f"g(1.7 z) of {activation.name!r}"
    _require_close(activation(1.7 * CHECK_POINTS), expected, what, "its homogeneity")


def _require_close(got: Array, expected: Array, what: str, source: str) -> None:
    scale = np.maximum(1, np.abs(expected))
    error = np.abs(got - expected) / scale
    worst = int(np.argmax(error))
    if not error[worst] <= CHECK_TOLERANCE:
        raise InvalidInput(
            f"{what} must agree with {source}. Got {got[worst]:.9g} instead of {expected[worst]:.9g} at "
            f"z = {CHECK_POINTS[worst]:.3g}. Correct the formula or the declaration."
        )
