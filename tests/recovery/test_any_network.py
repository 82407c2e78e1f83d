"""Networks of every kind, most of them out of reach: each ends in a verdict, and in no wrong one.

Widths, depths, activations, precisions and twists (duplicates, dead or weak units, parallel or nearly
parallel ones, skips, large scales, offsets) are drawn at random; what is told varies too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unweave

ACTIVATIONS = (
    *("tanh", "sigmoid", "erf", "softplus", "gelu", "swish", "sine", "relu", "leaky_relu"),
    *("squared_relu", "quadratic", "cubic", "identity"),
)
TWISTS = (
    *("none", "none", "none", "duplicate", "dead", "weak", "skip"),
    *("parallel", "nearly parallel", "scale", "shift"),
)
PRECISIONS = (*["float64"] * 6, "float32", "6 decimals", "3 decimals", "noise 1e-6", "noise 1e-2")
ALLOWED = {"float64": 1e-6, "float32": 1e-3, "6 decimals": 1e-3}
"""Largest error of a recovered function over its spread; coarser answers than these only have to end."""
SECONDS = 5.0
MET_BEFORE = (1051, 1304, 1336)  # each of them once ended in an error of NumPy's or SciPy's


def drawn(seed: int) -> tuple[unweave.Network, str, dict[str, Any]]:
    """A network, the precision of its answers, and what the recovery is told."""
    rng = np.random.default_rng(seed)
    inputs, outputs = int(rng.integers(1, 16)), int(rng.choice([1, 1, 1, 2, 3]))
    widths = [int(rng.integers(1, 14)) for _ in range(int(rng.choice([1, 1, 1, 1, 2, 3])))]
    activation = str(rng.choice(ACTIVATIONS[:9] if rng.random() < 0.85 else ACTIVATIONS))
    norms = ((1, 1), (0.5, 2), (0.1, 5))[int(rng.integers(3))]
    bias, outer = float(rng.choice([0.1, 0.5, 2, 5])), str(rng.choice(["ones", "unit", "normal"]))
    network = unweave.random_network(
        [inputs, *widths, outputs], activation, seed=seed, outer=outer, norms=norms, bias=bias
    )
    network = twisted(network, str(rng.choice(TWISTS)), rng)
    last = str(rng.choice(["identity"] * 6 + ["tanh", "sigmoid"]))
    if network.skip is None and outputs == 1:
        network = unweave.Network(network.weights, network.biases, [*network.activations[:-1], last])
    precision = str(rng.choice(PRECISIONS))
    told: dict[str, Any] = {"input_dim": inputs, "seed": int(rng.integers(1000))}
    kind = rng.random()
    if kind < 0.15:
        told["domain"] = (-2, 2)
    elif kind < 0.3:
        told["examples"] = rng.standard_normal((50, inputs))
    if rng.random() < 0.2:
        told["hidden"] = widths
    if rng.random() < 0.2:
        told["activation"] = activation
    if rng.random() < 0.1:
        told["max_queries"] = int(10 ** rng.uniform(1, 4))
    return network, precision, told


def twisted(network: unweave.Network, twist: str, rng: np.random.Generator) -> unweave.Network:
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    first, width, skip = weights[0], network.hidden[0], None
    if twist == "duplicate" and width > 1:
        first[:, 1], biases[0][1] = first[:, 0], biases[0][0]
    elif twist == "dead":
        weights[1][0] = 0
    elif twist == "weak":
        weights[1][0] *= 10.0 ** -rng.integers(2, 9)
    elif twist == "skip":
        skip = rng.standard_normal((network.n_inputs, network.n_outputs))
    elif twist == "parallel" and width > 1:
        first[:, 1] = -first[:, 0] * rng.uniform(0.3, 3)
    elif twist == "nearly parallel" and width > 2:
        first[:, 2] = first[:, 0] + 1e-3 * first[:, 1]
    elif twist == "scale":
        weights[-1] *= 10.0 ** rng.integers(-8, 9)
    elif twist == "shift":
        biases[0] -= first.T @ (rng.standard_normal(network.n_inputs) * 10.0 ** rng.integers(0, 4))
    return unweave.Network(weights, biases, network.activations, skip)


def answering(network: unweave.Network, precision: str, seed: int) -> Any:
    rng = np.random.default_rng([seed, 1])

    def answer(x: np.ndarray) -> np.ndarray:
        y = network(x)
        if precision == "float32":
            return y.astype(np.float32).astype(np.float64)
        if precision.endswith("decimals"):
            return np.round(y, int(precision[0]))
        if precision.startswith("noise"):
            return y + float(precision.split()[1]) * rng.standard_normal(y.shape)
        return y

    return answer


def check(seed: int) -> None:
    network, precision, told = drawn(seed)
    try:
        result = unweave.recover(answering(network, precision, seed), deadline=SECONDS, **told)
    except unweave.TargetError:
        return  # answers that overflow where the target was looked at
    assert result.message or result.status is unweave.Status.RECOVERED
    assert result.queries <= told.get("max_queries", np.inf)
    if precision not in ALLOWED or not result.status.name.startswith("RECOVERED"):
        return
    rng = np.random.default_rng([seed, 2])
    shape = (1000, network.n_inputs)
    x = rng.uniform(-2, 2, shape) if "domain" in told else rng.standard_normal(shape)
    if "decimals" in precision:
        allowed = 10.0 ** -int(precision[0])
    else:
        spread = float(np.ptp(network(x), axis=0).max())
        allowed = ALLOWED[precision] * max(spread, 1e-6 * float(np.abs(network(x)).max()))
    assert float(np.abs(result.network(x) - network(x)).max()) <= allowed


@pytest.mark.parametrize("seed", [*MET_BEFORE, *range(2000, 2020)])
def test_it_ends_in_a_verdict_and_no_wrong_one(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_so_do_hundreds_of_others(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", [1000, 1001, 1002])
def test_cubic_units_are_found_without_being_told(seed: int) -> None:
    network = unweave.random_network([4, 3, 1], "cubic", seed=seed, outer="signed")
    result = unweave.recover(network)
    assert result.status.is_recovered, result.message
    assert result.network.activations[0] == "cubic"
    x = np.random.default_rng(seed).standard_normal((100, 4))
    np.testing.assert_allclose(result.network(x), network(x), rtol=1e-9, atol=1e-9)
