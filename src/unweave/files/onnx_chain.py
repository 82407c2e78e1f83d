"""The layers of a network as they come out of a graph that is read node by node.

Between the inputs and the output every tensor of a chain of layers is one of four things, where h is what the
layer ``source`` gives (source 0: the inputs):

    Scaled     h * scale + shift                      what the next layer takes in
    Affine     h @ weight + bias (+ x @ skip)         a pre-activation z
    Curve      f(z), entry by entry                   an activation, or a part of one
    Softmaxed  softmax of z over the outputs

f is carried along as its values on a fixed grid. When a matrix product or the end of the graph takes f(z) in,
the values say which activation it is, however it was composed. That closes the layer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.files.contents import build_network
from unweave.networks.activations import SOFTMAX
from unweave.networks.activations.catalogue import CATALOGUE, OUTPUT_ONLY
from unweave.networks.network import Network

_FINE, _TAIL = np.linspace(-8, 8, 401), np.geomspace(8, 500, 33)[1:]
GRID: Array = np.concatenate([-_TAIL[::-1], _FINE, _TAIL])
"""Where f is evaluated: densely where activations bend, and in the tails, where clipping would show.

exp(500) is still finite, so that formulas with an exponential can be evaluated.
"""

SAME_FUNCTION = 1e-6
"""Largest difference to an activation, relative to max(1, |g|).

Constants in float32 make 1e-7; the tanh form of gelu is 5e-4 away.
"""


class NotAChain(Exception):
    """The graph does something that a chain of layers does not; the message says what."""


@dataclass(frozen=True, eq=False)
class Scaled:
    """h * scale + shift for the output h of layer ``source``; numbers or vectors (n,), None for 1 and 0."""

    source: int
    scale: Array | None = None
    shift: Array | None = None


@dataclass(frozen=True, eq=False)
class Affine:
    """h @ weight + bias + x @ skip; None for a bias or skip that is not there (yet)."""

    source: int
    weight: Array
    bias: Array | None = None
    skip: Array | None = None

    @property
    def width(self) -> int:
        """Number of units."""
        return int(self.weight.shape[1])

    def stretched(self, factor: Array) -> Affine:
        """Return all of it times ``factor``, a number or a vector (n_out,)."""
        bias = None if self.bias is None else self.bias * factor
        skip = None if self.skip is None else self.skip * factor
        return Affine(self.source, self.weight * factor, bias, skip)

    def shifted(self, shift: Array) -> Affine:
        """Return all of it plus ``shift``, a number or a vector (n_out,)."""
        # A first shift is the bias itself, bit for bit: 0 + (-0.0) would be 0.0.
        bias = np.broadcast_to(shift, self.width) if self.bias is None else self.bias + shift
        return Affine(self.source, self.weight, bias, self.skip)


@dataclass(frozen=True, eq=False)
class Curve:
    """f(z) for the pre-activation z = ``base``, with f given by its values on `GRID`."""

    base: Affine
    values: Any
    slope: float | None = None
    """s if f(z) = s z, else None."""
    stretches: frozenset[float] = frozenset()
    """Factors that z was multiplied by inside f: g(s z) is an activation too, of s times the weights."""

    def straight(self) -> Affine:
        """Return s z as a pre-activation of its own."""
        if self.slope is None:
            raise NotAChain("an activation is followed by something that takes no activation")
        return self.base if self.slope == 1 else self.base.stretched(np.array(self.slope))


@dataclass(frozen=True, eq=False)
class Softmaxed:
    """The softmax of ``base`` over the outputs."""

    base: Affine


Value = Any
"""Scaled, Affine, Curve, Softmaxed, or a NumPy array for a constant."""


def as_curve(value: Value) -> Curve:
    """Return ``value`` as a function of its pre-activation; the inputs and softmax have none."""
    if isinstance(value, Curve):
        return value
    if isinstance(value, Affine):
        return Curve(value, GRID, slope=1.0)
    softmaxed = isinstance(value, Softmaxed)
    where = "the outputs of softmax" if softmaxed else "values that no matrix was applied to"
    raise NotAChain(f"it is applied to {where}")


def as_affine(value: Value) -> Affine:
    """Return ``value`` as a pre-activation, if it is one up to a factor."""
    return value if isinstance(value, Affine) else as_curve(value).straight()


@dataclass
class Chain:
    """The layers closed so far, in order."""

    layers: list[tuple[Affine, str]] = field(default_factory=list)
    _closed: dict[Any, Scaled] = field(default_factory=dict)

    def source(self, value: Value) -> Scaled:
        """Return ``value`` as input of the next layer; a pre-activation or activation closes its layer."""
        if isinstance(value, Scaled):
            return value
        if value not in self._closed:
            self._close(value)
            self._closed[value] = Scaled(len(self.layers))
        return self._closed[value]

    def width(self, value: Value) -> int | None:
        """Return the number of columns of ``value``; None where the graph has not said it yet."""
        if isinstance(value, Scaled):
            return self.layers[value.source - 1][0].width if value.source else None
        return value.width if isinstance(value, Affine) else value.base.width

    def network(self, path: Path, output: Value) -> Network:
        """Close the last layer and return the network."""
        if isinstance(output, np.ndarray):
            raise NotAChain("the output is a constant")
        end = self.source(output)
        if not self.layers:
            raise NotAChain("there is no layer between input and output")
        if end.scale is not None or end.shift is not None:
            raise NotAChain("the output is scaled after its activation")
        content = {
            "weights": [z.weight for z, _ in self.layers],
            "biases": [np.zeros(z.width) if z.bias is None else z.bias for z, _ in self.layers],
            "activations": [name for _, name in self.layers],
            "skip": self.layers[-1][0].skip,
        }
        return build_network(path, content)

    def _close(self, value: Value) -> None:
        if isinstance(value, Curve):
            base, name = _identified(value)
        elif isinstance(value, Softmaxed):
            base, name = value.base, SOFTMAX
        else:
            base, name = value, "identity"
        if base.source != len(self.layers):
            raise NotAChain("its input branches off earlier, so the layers do not form a chain")
        if self.layers and (self.layers[-1][0].skip is not None or self.layers[-1][1] in _LAST):
            raise NotAChain("a skip from the inputs, an exp or a softmax is followed by another layer")
        self.layers.append((base, name))


_LAST = (SOFTMAX, *(activation.name for activation in OUTPUT_ONLY))  # activations that end a chain


def _identified(curve: Curve) -> tuple[Affine, str]:
    """Return the pre-activation and the name of the activation of ``curve``."""
    if curve.slope is not None:
        return curve.straight(), "identity"
    for stretch in (1.0, *sorted(curve.stretches)):
        for activation in (*CATALOGUE, *OUTPUT_ONLY):
            expected = activation(stretch * GRID)
            with np.errstate(invalid="ignore"):
                error = np.abs(curve.values - expected) / np.maximum(1, np.abs(expected))
            if (error <= SAME_FUNCTION).all():
                base = curve.base if stretch == 1 else curve.base.stretched(np.array(stretch))
                return base, activation.name
    known = ", ".join(activation.name for activation in CATALOGUE)
    raise NotAChain(f"the function computed before it is none of the activations {known}")
