"""The first hidden layer, up to signs: the kinks of lines whose surface is a whole hyperplane.

The surface of a first-layer unit is a hyperplane; that of a deeper one bends wherever it meets the surface
of a unit before it. So a kink (p, n) belongs to the first layer if there is a kink at points of the
hyperplane n . (x - p) = 0 all over the region: a random walk of +1 for each that shows one and -2 for each
that does not decides, 5 rows for a hit and 3 for a miss. (Not every point must show it: what reads the unit
may be off there.)
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import BoolArray
from unweave.methods.relu_deep.lifted import Layer
from unweave.methods.relu_deep.probing import Kink, Probe

_SPREADS = (2.0, 5.0, 10.0)  # of the points that are moved onto a hyperplane
_STEP = 1e-3  # of 1 + |x|, across the hyperplane
_HIT, _MISS = 1, -2
_ACCEPTED, _REFUSED = 5, -3
_MOST_POINTS = 30
_SAME_DIRECTION = 1e-6  # of 1 - |cos|
_SAME_BIAS = 1e-4  # relative to 1 + |b|


def are_hyperplanes(probe: Probe, kinks: list[Kink], rng: np.random.Generator) -> BoolArray:
    """(n,) which of the kinks lie on a hyperplane that is a surface as a whole."""
    scores = np.zeros(len(kinks), dtype=int)
    for number in range(_MOST_POINTS):
        rows = np.flatnonzero((scores > _REFUSED) & (scores < _ACCEPTED))
        if not len(rows):
            break
        anchors = np.stack([kinks[row].point for row in rows])
        normals = np.stack([kinks[row].normal for row in rows])
        points = _SPREADS[number % len(_SPREADS)] * rng.standard_normal(anchors.shape)
        points -= np.einsum("nd,nd->n", points - anchors, normals)[:, None] * normals
        steps = _STEP * (1 + np.abs(points).max(axis=1))
        scores[rows] += np.where(probe.have_kinks(points, normals, steps), _HIT, _MISS)
    return scores >= _ACCEPTED


def with_hyperplanes(layer: Layer, kinks: list[Kink]) -> Layer:
    """The layer with the hyperplanes of the kinks that it does not hold yet, as units of weight one."""
    weights, biases = layer.weights, layer.biases
    for kink in sorted(kinks, key=lambda kink: kink.error):
        if not holds(Layer(weights, biases), kink):
            weights = np.hstack([weights, kink.normal[:, None]])
            biases = np.append(biases, -float(kink.normal @ kink.point))
    return Layer(weights, biases)


def holds(layer: Layer, kink: Kink) -> bool:
    """Whether a kink is that of a unit of the layer, whose weights have length one."""
    cosine = kink.normal @ layer.weights
    same = 1 - np.abs(cosine) < _SAME_DIRECTION
    apart = np.abs(layer.biases + np.sign(cosine) * float(kink.normal @ kink.point))
    return bool((same & (apart < _SAME_BIAS * (1 + np.abs(layer.biases)))).any())
