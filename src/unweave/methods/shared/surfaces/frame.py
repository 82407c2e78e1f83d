"""From the reduced inputs y = Q^T x back to all inputs.

The first layer reads W = Q W_y + Q' C, with a basis Q' (d, d - r) of what is orthogonal to Q and a small C,
the error of Q. Where no unit switches,

    f(Q y + t q'_j) - f(Q y) = t sum_k df/dz_k(y) C_jk,

so a few points y at which the gradients df/dz tell all units apart give every row of C from as many rows,
however far t reaches: nothing else moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.methods.shared.surfaces.probe import Probe
from unweave.networks.network import Network
from unweave.networks.signs import negative_slope
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class FrameOptions:
    """Where the error of the frame is measured."""

    candidates: int = 2000
    """Points among which those are chosen that tell the units apart."""
    spread: float = 3.0
    """Their standard deviation."""
    room: float = 1e-4
    """Distance, relative to 1 + |x|, from all kinks."""
    step: float = 100.0
    """t"""
    equations: float = 1.5
    """Equations per unknown."""


def in_all_inputs(network: Network, probe: Probe, rng: np.random.Generator, options: FrameOptions) -> Network:
    """Return a network of the reduced inputs as one of all inputs, with what the frame has missed."""
    frame = probe.frame
    inputs, reduced = frame.shape
    beside = np.linalg.qr(frame, mode="complete")[0][:, reduced:]
    points, slopes = _base_points(network, rng, options)
    known = probe(points)
    moved = np.zeros((len(points), inputs - reduced, network.n_outputs))
    for number, point in enumerate(points):
        check()
        rows = frame @ point + options.step * beside.T
        moved[number] = probe.ask_inputs(rows) - known[number]
    right = np.moveaxis(moved, 1, 2).reshape(-1, inputs - reduced) / options.step
    error = np.linalg.lstsq(slopes, right, rcond=1e-9)[0]  # (m, d - r)
    first = frame @ network.weights[0] + beside @ error.T
    return Network([first, *network.weights[1:]], network.biases, network.activations)


def _base_points(network: Network, rng: np.random.Generator, options: FrameOptions) -> tuple[Array, Array]:
    """Return points (n, r) away from kinks, and df/dz (n K, m) of the first layer there."""
    points = options.spread * rng.standard_normal((options.candidates, network.n_inputs))
    slopes: list[Array] = []
    state, clear = points, np.ones(len(points), dtype=bool)
    below = negative_slope(network.activations[0])
    lengths = 1 + np.linalg.norm(points, axis=1)
    size = np.ones(network.n_inputs)
    for weights, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        z = state @ weights + bias
        size = np.linalg.norm(weights, axis=0) if not slopes else np.abs(weights).T @ size
        clear &= (np.abs(z) > options.room * lengths[:, None] * size).all(axis=1)
        slopes.append(np.where(z > 0, 1.0, below))
        state = z * slopes[-1]
    derivative = np.repeat(network.weights[-1].T[None], len(points), axis=0)  # (n, K, m_last)
    for weights, slope in zip(network.weights[:0:-1], slopes[::-1], strict=True):
        if weights is not network.weights[-1]:
            derivative = derivative @ weights.T
        derivative = derivative * slope[:, None, :]
    rows = np.flatnonzero(clear)
    units, outputs = network.hidden[0], network.n_outputs
    flat = derivative[rows].reshape(len(rows), -1)
    order = scipy.linalg.qr(flat.T, mode="r", pivoting=True)[1]
    count = min(len(rows), max(2, int(np.ceil(options.equations * units / outputs))))
    # Points beyond the rank of their gradients are any others: they only repeat what the first ones tell.
    chosen = rows[order[:count]]
    return points[chosen], derivative[chosen].reshape(-1, units)
