"""How much each neuron does to the answers."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.coarse_answers.rows import AnsweredRows
from unweave.networks.activations import SOFTMAX
from unweave.networks.links import Link
from unweave.networks.parameters import NetworkParameters


def link_of(model: NetworkParameters) -> Link:
    """The last transformation of ``model``."""
    last = model.activations[-1]
    return Link(SOFTMAX if last is None else last.name)


def contributions(model: NetworkParameters, rows: AnsweredRows) -> Array:
    """(m,) standard deviation of each neuron's part of the answers, in sigmas, all outputs together.

    Of a neuron with a kink, what is affine in the inputs does not count: other neurons can make up for it.
    """
    activation = model.activations[0]
    assert activation is not None
    values = activation(rows.points @ model.weights[0] + model.biases[0])
    if not activation.smooth:
        affine = np.column_stack([rows.points, np.ones(len(rows))])
        values = values - affine @ np.linalg.lstsq(affine, values, rcond=None)[0]
    slopes = link_of(model).slope(rows.answers).mean(axis=0) / rows.sigma
    outgoing = np.abs(model.weights[1])
    if model.is_softmax:
        outgoing = np.hstack([outgoing, np.zeros((len(outgoing), 1))])
    return np.asarray(np.linalg.norm(outgoing * slopes, axis=1) * values.std(axis=0))
