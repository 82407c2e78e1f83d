"""Planted networks of few units, and the optimum by brute force."""

from __future__ import annotations

import itertools

import numpy as np

import unweave
from unweave.arrays import Array
from unweave.exact.cone_program import cone_program, predictions
from unweave.exact.cone_projection import project_on_cone


def planted(inputs: int, width: int, samples: int, noise: float, seed: int):
    """Network, x (N, d), y (N,): every unit acts on more than d + 1 points, and not on all but one."""
    rng = np.random.default_rng(seed)
    while True:
        x = rng.standard_normal((samples, inputs))
        weights = rng.standard_normal((inputs, width))
        biases = 0.5 * rng.standard_normal(width)
        signs = rng.choice([-1.0, 1.0], width)
        active = np.sum(x @ weights + biases > 0, axis=0)
        if np.all((active > inputs + 1) & (active < samples - 1)):
            break
    network = unweave.Network([weights, signs[:, None]], [biases, [0.0]], ["relu", "identity"])
    return network, x, network(x)[:, 0] + noise * rng.standard_normal(samples)


def planted_elsewhere(samples: int, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """Rows a (2, 2), biases b (2,), x (N, 2), y (N,) of two units as an independent program draws them."""
    while True:
        x, a = rng.standard_normal((samples, 2)), rng.standard_normal((2, 2))
        b, s = 0.5 * rng.standard_normal(2), rng.choice([-1, 1], 2)
        active = np.sum(x @ a.T + b > 0, axis=0)
        if np.all((active > 3) & (active < samples - 1)):
            break
    return a, b, x, np.maximum(x @ a.T + b, 0) @ s


def brute_force(x: Array, y: Array, width: int) -> float:
    """Least squared loss over all 2^N patterns per unit and all signs, recomputed from the networks.

    Nothing is pruned but tuples whose unconstrained least squares value is no better than the best so far.
    """
    n = len(y)
    z = np.column_stack([x, np.ones(n)])
    patterns = np.array(list(itertools.product((False, True), repeat=n)))
    tuples = list(itertools.combinations_with_replacement(range(len(patterns)), width))
    values = np.empty(len(tuples))
    for k, units in enumerate(tuples):
        design = np.hstack([patterns[i][:, None] * z for i in units])
        values[k] = np.sum((y - design @ np.linalg.lstsq(design, y, rcond=1e-12)[0]) ** 2)
    best = float(y @ y)
    for k in np.argsort(values, kind="stable"):
        if values[k] >= best:
            break
        for signs in itertools.product((1.0, -1.0), repeat=width):
            program = cone_program(patterns[list(tuples[k])], np.array(signs), z, y)
            answer = project_on_cone(program.design, y, program.conditions)
            if answer is not None:
                units = program.signs[:, None] * answer[0].reshape(width, -1)
                best = min(best, float(np.sum((predictions(units, program.signs, z) - y) ** 2)))
    return best
