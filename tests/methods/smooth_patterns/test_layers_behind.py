from __future__ import annotations

import numpy as np

from unweave.methods.smooth_patterns.layers_behind import BehindOptions, BehindSearch, LayersBehind

UNITS = 12


def nearly_straight(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Signs and the answers of tanh units of length 0.2 with much in common, like trained logistic ones."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((UNITS, 1))
    weights = common + rng.standard_normal((UNITS, UNITS))
    weights *= 0.2 / np.linalg.norm(weights, axis=0)
    signs = np.unique(rng.choice([-1.0, 1.0], (3000, UNITS)), axis=0)
    rng.shuffle(signs)
    outgoing = rng.uniform(0.05, 0.2, (UNITS, 1)) * rng.choice([-1.0, 1.0], (UNITS, 1))
    return signs, np.tanh(signs @ weights + rng.uniform(-0.3, 0.3, UNITS)) @ outgoing


def found(seed: int) -> LayersBehind:
    signs, answers = nearly_straight(seed)
    search = BehindSearch(
        lambda count: (signs[:count], answers[:count]),
        "tanh",
        (UNITS, UNITS, 1),
        1e-16,
        np.random.default_rng(seed),
        BehindOptions(),
        None,
    )
    result = search.advance()
    while result.model is None and search.goes_on:
        result = search.advance()
    return result


def test_nearly_straight_units_come_apart_before_surplus_ones_are_left_out() -> None:
    result = found(1003)
    assert result.units == (UNITS,)
    assert result.residual < 1e-13
    assert result.model is not None
