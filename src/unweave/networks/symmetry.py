"""The symmetries of a network's parameters, and the canonical form that removes them.

Different parameters can describe one function. What is removed here, per hidden unit a g(<w, x> + b):

- a unit without incoming weights is a constant, without outgoing ones nothing, and two equal ones are one;
- sigmoid(z) = (1 + tanh(z/2)) / 2, so that the two are one family, and so are hard tanh, ReLU6 and hard
  sigmoid (`clipped_units`);
- a reflection g(-z) = s g(z) + c + m z lets (w, b) change sign; the affine rest c + m z moves on into the
  next bias and, if the unit reads the inputs and feeds the outputs, into the skip matrix;
- a homogeneous g lets the length of (w, b) move into a; sine lets b move by half turns;
- softmax does not see what is added to all classes;
- a hidden layer of identities is a factor of a matrix product, which has many.

The order of units is not touched: sorting would be at the mercy of rounding. `unweave.compare` matches them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.networks.activations import SOFTMAX, Activation, Reflection, get_activation
from unweave.networks.clipped_units import CLIPPED
from unweave.networks.network import Network

SAME = 1e-12
"""Relative difference up to which two units count as equal, or a weight as zero: a thousand rounding errors.
What is written twice differs by a few; units of a generic network, even at width 10^4, by 1e-3 and more."""


def canonical(network: Network) -> Network:
    """Return the same function in canonical form.

    Linear hidden layers are multiplied out, dead units are dropped and duplicates merged (both to within a
    relative `SAME`), sigmoid layers become tanh layers, units of odd activations have a positive first
    nonzero outgoing weight, those of other activations with a reflection a positive first nonzero incoming
    weight (only in networks with one hidden layer if the reflection has an affine rest), homogeneous ones
    unit incoming weight, sine biases lie in (-pi, pi], softmax outputs are centered over classes, and a skip
    matrix of zeros is None. Where no unit of some hidden layer is alive, no hidden layer is left: the outputs
    depend on the inputs by a skip at most.

    Cost: O(n_parameters) per pass and layer, a few passes.
    """
    layers = Layers.of(network)
    layers.multiply_out_linear_layers()
    layers.center_classes()
    for index in layers.hidden:
        layers.rewrite_sigmoid(index)
        layers.rewrite_clipped(index)
    links = None
    # What dies in one layer may kill units of its neighbours, so passes go on while links get fewer.
    while links != (links := layers.count_links()):
        for index in layers.hidden:
            layers.normalize(index)
            layers.merge_duplicates(index)
            layers.drop_dead(index)
    layers.drop_what_reaches_nothing()
    # The sign of an outgoing weight depends on the signs of the next layer: last layer first.
    for index in reversed(layers.hidden):
        layers.make_outgoing_positive(index)
    return layers.to_network()


@dataclass
class Layers:
    """A network taken apart, to be rewritten in place; every method leaves its function as it is."""

    weights: list[Array]
    biases: list[Array]
    activations: list[str]
    skip: Array
    skip_mass: Array  # sum of the sizes of the terms of skip: what its rounding errors are measured against

    @classmethod
    def of(cls, network: Network) -> Layers:
        """Take a network apart."""
        network.require_floats("canonical")
        weights = [w.copy() for w in network.weights]
        skip = np.zeros((network.n_inputs, network.n_outputs))
        if network.skip is not None:
            skip += network.skip
        biases = [b.copy() for b in network.biases]
        return cls(weights, biases, list(network.activations), skip, np.abs(skip))

    def to_network(self) -> Network:
        """Put the network together again."""
        kept = self._skip_above_rounding()
        return Network(self.weights, self.biases, self.activations, kept if kept.any() else None)

    def _skip_above_rounding(self) -> Array:
        return np.where(np.abs(self.skip) > SAME * self.skip_mass, self.skip, 0.0)

    @property
    def hidden(self) -> range:
        """Indices of the hidden layers."""
        return range(len(self.weights) - 1)

    def count_links(self) -> list[tuple[int, int]]:
        """Return the width of every layer and the number of nonzero weights into it."""
        return [(w.shape[1], int(np.count_nonzero(w))) for w in self.weights]

    def reflection(self, index: int) -> Reflection | None:
        """Return the reflection that units of hidden layer ``index`` may undergo, None if none.

        An affine rest m z has a place to go only in a network with one hidden layer.
        """
        rule = self.activation(index).reflection
        return None if rule is not None and rule.slope != 0 and len(self.weights) != 2 else rule

    def activation(self, index: int) -> Activation:
        """Return the activation of hidden layer ``index``."""
        return get_activation(self.activations[index])

    def reflect(self, index: int, units: BoolArray) -> None:
        """Change the sign of (w, b) of the units marked in ``units`` (m,) and make up for it further on."""
        rule = self.reflection(index)
        if rule is None or not units.any():
            return
        outgoing = self.weights[index + 1][units]
        if rule.constant:
            self.biases[index + 1] += rule.constant * outgoing.sum(axis=0)
        if rule.slope:
            # In terms of the old z the rule reads g(z) = s g(-z) + c - m z.
            incoming, bias = self.weights[index][:, units], self.biases[index][units]
            self.skip -= rule.slope * incoming @ outgoing
            self.skip_mass += abs(rule.slope) * np.abs(incoming) @ np.abs(outgoing)
            self.biases[index + 1] -= rule.slope * bias @ outgoing
        self.weights[index + 1][units] *= rule.sign
        self.weights[index][:, units] *= -1
        self.biases[index][units] *= -1

    def permute(self, index: int, order: IntArray) -> None:
        """Put the units of hidden layer ``index`` into another order (m,)."""
        self.weights[index] = self.weights[index][:, order]
        self.biases[index] = self.biases[index][order]
        self.weights[index + 1] = self.weights[index + 1][order]

    def half_turns(self, index: int, turns: Array) -> None:
        """Add ``turns`` (m,) times pi to the biases of a sine layer; odd numbers change the outgoing sign."""
        self.biases[index] += math.pi * turns
        self.weights[index + 1] *= np.where(turns % 2 == 0, 1.0, -1.0)[:, None]

    def center_classes(self) -> None:
        """Subtract the mean over classes from everything that feeds a softmax."""
        if self.activations[-1] != SOFTMAX:
            return
        for array in (self.weights[-1], self.biases[-1], self.skip):
            size = np.abs(array).max(axis=-1, keepdims=True)
            array -= array.mean(axis=-1, keepdims=True)
            array[np.abs(array) <= SAME * size] = 0

    def multiply_out_linear_layers(self) -> None:
        """Put W V in the place of a hidden layer W of identities and the layer V behind it."""
        for index in reversed(self.hidden):
            if self.activations[index] != "identity":
                continue
            self.biases[index + 1] += self.biases[index] @ self.weights[index + 1]
            self.weights[index + 1] = self.weights[index] @ self.weights[index + 1]
            del self.weights[index], self.biases[index], self.activations[index]
        if len(self.weights) == 1:
            self.weights[0] += self.skip
            self.skip[...] = 0

    def rewrite_sigmoid(self, index: int) -> None:
        """Turn a sigmoid layer into a tanh layer: a sigmoid(z) = (a/2) tanh(z/2) + a/2."""
        if self.activations[index] != "sigmoid":
            return
        self.activations[index] = "tanh"
        self.weights[index] /= 2
        self.biases[index] /= 2
        self.weights[index + 1] /= 2
        self.biases[index + 1] += self.weights[index + 1].sum(axis=0)

    def rewrite_clipped(self, index: int) -> None:
        """Turn a layer of ReLU6 or hard sigmoid units into one of hard tanh units."""
        kind = CLIPPED.get(self.activations[index])
        if kind is None or self.activations[index] == "hard_tanh":
            return
        self.activations[index] = "hard_tanh"
        self.biases[index] = kind.stretch * self.biases[index] + kind.shift
        self.weights[index] *= kind.stretch
        self.biases[index + 1] += kind.constant * self.weights[index + 1].sum(axis=0)
        self.weights[index + 1] *= kind.height

    def drop_dead(self, index: int) -> None:
        """Drop units without outgoing weights or, their constant moving on, without incoming ones.

        Sizes are compared within the layer, so homogeneous units must have been normalised before.
        """
        incoming, outgoing = self.weights[index], self.weights[index + 1]
        size = np.abs(incoming).max(axis=0)
        constant = size <= SAME * size.max()
        useless = (np.abs(outgoing) <= SAME * np.abs(outgoing).max(axis=0)).all(axis=1)
        if constant.any():
            values = self.activation(index)(self.biases[index][constant])
            self.biases[index + 1] += values @ outgoing[constant]
        self._keep(index, ~(constant | useless))

    def drop_what_reaches_nothing(self) -> None:
        """Leave the last layer alone with the skip if a hidden layer passes nothing on.

        Its constants have moved on to the last biases before.
        """
        if all(self.weights[index + 1].any() for index in self.hidden):
            return
        self.weights, self.biases = [self._skip_above_rounding()], self.biases[-1:]
        self.activations, self.skip = self.activations[-1:], np.zeros_like(self.skip)

    def normalize(self, index: int) -> None:
        """Choose length and direction of every unit and, for sine, its phase in (-pi/2, pi/2]."""
        power = self.activation(index).homogeneity
        if power is not None:
            length = np.linalg.norm(self.weights[index], axis=0)
            # Zero: dead units. One up to rounding: normalised before, and to be left as it is.
            length[(length == 0) | (np.abs(length - 1) <= 4 * np.finfo(np.float64).eps)] = 1
            self.weights[index] /= length
            self.biases[index] /= length
            self.weights[index + 1] *= length[:, None] ** power
        self.reflect(index, first_nonzero(self.weights[index].T) < 0)
        if self.activations[index] == "sine":
            self.half_turns(index, -np.ceil(self.biases[index] / math.pi - 0.5))

    def merge_duplicates(self, index: int) -> None:
        """Keep the first one of units with equal incoming weights and bias; outgoing weights add up."""
        weights, biases, outgoing = self.weights[index], self.biases[index], self.weights[index + 1]
        if self.activations[index] == "sine":
            # equal for biases that differ by half turns
            signature = np.vstack([weights, np.cos(2 * biases), np.sin(2 * biases)]).T
        else:
            signature = np.vstack([weights, biases]).T
        groups = equal_rows(signature)
        keep = np.ones(len(signature), dtype=bool)
        for first, *others in groups:
            members = outgoing[[first, *others]]
            if self.activations[index] == "sine":
                members[1:] *= np.cos(biases[others] - biases[first]).round()[:, None]
            total, mass = members.sum(axis=0), np.abs(members).sum(axis=0)
            outgoing[first] = np.where(np.abs(total) > SAME * mass, total, 0.0)
            keep[others] = False
        self._keep(index, keep)

    def make_outgoing_positive(self, index: int) -> None:
        """Where reflection changes the outgoing sign, make the first nonzero outgoing weight positive."""
        rule = self.reflection(index)
        if rule is None or rule.sign > 0:
            return
        negative = first_nonzero(self.weights[index + 1]) < 0
        if self.activations[index] != "sine":
            self.reflect(index, negative)
            return
        # A half turn leaves the direction of w alone; it stays as it was normalised.
        self.half_turns(index, np.where(negative, np.where(self.biases[index] > 0, -1.0, 1.0), 0.0))
        self.biases[index][self.biases[index] <= -math.pi] = math.pi

    def _keep(self, index: int, units: BoolArray) -> None:
        if units.all():
            return
        incoming, outgoing = self.weights[index][:, units], self.weights[index + 1][units]
        bias = self.biases[index][units]
        if not units.any():
            incoming, outgoing = np.zeros((incoming.shape[0], 1)), np.zeros((1, outgoing.shape[1]))
            bias = np.zeros(1)
        self.weights[index], self.biases[index], self.weights[index + 1] = incoming, bias, outgoing


def first_nonzero(rows: Array) -> Array:
    """Return the first entry of each row (m, n) above the row's rounding noise, 0 if there is none; (m,)."""
    size = np.abs(rows)
    counts = size > SAME * size.max(axis=1, keepdims=True)
    first = np.argmax(counts, axis=1)
    return np.where(counts.any(axis=1), rows[np.arange(len(rows)), first], 0.0)


def equal_rows(rows: Array) -> list[list[int]]:
    """Return the groups, two or more each, of rows (m, n) that agree to `SAME` times their largest entry.

    Equal rows have equal projections onto a direction drawn at random, so only neighbours in that order are
    compared: O(m n + m log m) where few rows are near each other.
    """
    direction = np.random.default_rng(0).uniform(-1, 1, rows.shape[1])
    size = np.abs(rows).max(axis=1)
    projection = rows @ direction
    order = np.argsort(projection, kind="stable")
    # Entries may differ by SAME * size each; rounding of the projection itself is far below that.
    apart = np.diff(projection[order]) > SAME * size.max() * np.abs(direction).sum()
    groups = []
    for run in np.split(order, np.flatnonzero(apart) + 1):
        pending = np.sort(run)
        while len(pending) > 1:
            first = pending[0]
            equal = np.abs(rows[pending] - rows[first]).max(axis=1) <= SAME * size[first]
            if equal.sum() > 1:
                groups.append([int(unit) for unit in pending[equal]])
            pending = pending[~equal]
    return groups
