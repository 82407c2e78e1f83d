"""What every result promises, whatever the target: nothing asked contradicts what is called recovered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import unweave
from unweave import Network, Status
from unweave.arrays import Array

INPUTS = 3
FEW = settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
Target = Callable[[Array], Array]


def clipped(y: Array, x: Array, size: float) -> Array:
    return np.clip(y, -size, size)


def stepped(y: Array, x: Array, size: float) -> Array:
    return y + size * (x.sum(axis=1, keepdims=True) > 3)


def bumped(y: Array, x: Array, size: float) -> Array:
    return y + size * np.exp(-20 * np.sum((x - 1) ** 2, axis=1, keepdims=True))


def rounded(y: Array, x: Array, size: float) -> Array:
    return np.round(y, 3)


def halved(y: Array, x: Array, size: float) -> Array:
    return y.astype(np.float16).astype(np.float64)


def untouched(y: Array, x: Array, size: float) -> Array:
    return y


def zero_for_low_inputs(y: Array, x: Array, size: float) -> Array:
    """Answer otherwise where no fresh row comes by: only the rows of a search lie there."""
    return np.where((x < -3).any(axis=1, keepdims=True), 0.0, y)


COARSENESS = {rounded: 1e-3, halved: 1e-2}
defects = st.sampled_from([clipped, stepped, bumped, rounded, halved, untouched, zero_for_low_inputs])
METHOD = {"tanh": "smooth", "gelu": "smooth", "relu": "relu"}
"""One method each: the verdict is in question, and others would search for long."""
networks = st.builds(
    lambda kind, units, seed: unweave.random_network([INPUTS, units, 1], kind, seed=seed, outer="signed"),
    st.sampled_from(["tanh", "relu", "gelu"]),
    st.integers(1, 3),
    st.integers(1000, 1019),
)
SEEN_BY_THE_SEARCH_ONLY = unweave.random_network([INPUTS, 2, 1], "gelu", seed=1000, outer="signed")
"""With zeros for low inputs: fresh rows agree, and answers that were paid for do not."""


@FEW
@example(SEEN_BY_THE_SEARCH_ONLY, zero_for_low_inputs, 1.0, False)
@given(networks, defects, st.sampled_from([0.1, 0.5, 1.0]), st.booleans())
def test_nothing_that_was_asked_contradicts_what_is_recovered(
    network: Network, defect: Any, size: float, with_examples: bool
) -> None:
    asked: list[Array] = []

    def target(x: Array) -> Array:
        asked.append(x.copy())
        return np.asarray(defect(network(x), x, size))

    examples = np.random.default_rng(0).standard_normal((50, INPUTS)) if with_examples else None
    result = unweave.recover(
        target, input_dim=INPUTS, examples=examples, method=METHOD[network.activations[0]]
    )
    assert result.certificate.holds == result.status.is_recovered
    if not result.status.is_recovered:
        return
    assert result.network is not None
    x = np.concatenate([*asked, *([] if examples is None else [examples])])
    x = x[np.abs(x).max(axis=1) <= 10]
    said = defect(network(x), x, size)
    allowed = 1e-6 + 2 * COARSENESS.get(defect, 0.0)
    assert np.abs(result.network(x) - said).max() <= allowed * max(1.0, float(np.abs(said).max()))


def turned(turn: Array) -> Callable[[Target], Target]:
    return lambda target: lambda x: target(x @ turn)


ROTATION = np.linalg.qr(np.random.default_rng(1000).standard_normal((INPUTS, INPUTS)))[0]
TURNS = {
    "permuted": turned(np.eye(INPUTS)[[2, 0, 1]]),
    "scaled": turned(np.diag([0.5, 2.0, 1.0])),
    "rotated": turned(ROTATION),
    "reflected": turned(-np.eye(INPUTS)),
}


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("defect", [untouched, clipped])
@pytest.mark.parametrize("kind", ["tanh", "relu"])
def test_turned_inputs_get_the_same_verdict(turn: str, defect: Any, kind: str) -> None:
    network = unweave.random_network([INPUTS, 2, 1], kind, seed=1001, outer="signed")

    def target(x: Array) -> Array:
        return np.asarray(defect(network(x), x, 0.3))

    expected = defect is untouched
    for each in (target, TURNS[turn](target)):
        result = unweave.recover(each, input_dim=INPUTS, method=METHOD[kind])
        assert result.status.is_recovered == expected, (result, result.message)
        assert (result.status is Status.RECOVERED) == expected
