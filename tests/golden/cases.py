"""Fixed recoveries over every method, precision and kind of target, which `test_golden` repeats.

A case returns whatever it recovered; `outcome` reduces that to what a change of shape must not change. Each
name starts with the method that is expected to answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import unweave
from unweave import Network, Recovery, Samples, random_network

Array = np.ndarray
FINGERPRINTS = 6
"""Random projections of the parameter vector kept beside the digest, which tell rounding from a change."""


@dataclass(frozen=True)
class Case:
    """One recovery to repeat."""

    run: Callable[[], Any]
    slow: bool = False


def planted(layers: list[int], activation: str = "tanh", seed: int = 1000, **more: Any) -> Network:
    """A network whose outgoing weights are random."""
    return random_network(layers, activation=activation, seed=seed, **{"outer": "normal", **more})


def signed(layers: list[int], activation: str = "relu", seed: int = 1000) -> Network:
    """A network with outgoing weights of both signs, for kinked units."""
    return random_network(layers, activation=activation, seed=seed, outer="signed")


def float32(network: Network) -> Callable[[Array], Array]:
    """The network computed in single precision."""
    weights = [w.astype(np.float32) for w in network.weights]
    biases = [b.astype(np.float32) for b in network.biases]
    functions = {"tanh": np.tanh, "relu": lambda z: np.maximum(z, np.float32(0)), "identity": lambda z: z}

    def answer(x: Array) -> Array:
        z = x.astype(np.float32)
        for w, b, name in zip(weights, biases, network.activations, strict=True):
            z = functions[name](z @ w + b)
        return z

    return answer


def rounded(function: Callable[[Array], Array], decimals: int) -> Callable[[Array], Array]:
    """Answers published with so many decimals."""
    return lambda x: np.round(function(x), decimals)


def noisy(function: Callable[[Array], Array], sigma: float) -> Callable[[Array], Array]:
    """Answers with fresh noise."""
    rng = np.random.default_rng(77)

    def answer(x: Array) -> Array:
        y = function(x)
        return y + sigma * rng.standard_normal(y.shape)

    return answer


def with_output(network: Network, output: str) -> Network:
    """The network with another activation at its output."""
    return Network(network.weights, network.biases, (*network.activations[:-1], output))


def drawn(network: Callable[[Array], Array], rows: int, inputs: int, seed: int = 1) -> Samples:
    """Gaussian inputs and their answers."""
    x = np.random.default_rng(seed).standard_normal((rows, inputs))
    return Samples(x, network(x))


def _recover(target: Any, *args: Any, **more: Any) -> Case:
    return Case(partial(unweave.recover, target, *args, **more))


def _slow(case: Case) -> Case:
    return Case(case.run, slow=True)


def cases() -> dict[str, Case]:
    """Every case by name."""
    return {
        **dict(_affine()),
        **dict(_kinked()),
        **dict(_smooth()),
        **dict(_coarse()),
        **dict(_deep()),
        **dict(_samples()),
        **dict(_ends()),
        **dict(_rooms()),
    }


def _affine() -> Iterator[tuple[str, Case]]:
    weights = np.random.default_rng(3).standard_normal((5, 2))
    yield "affine-two-outputs", _recover(lambda x: x @ weights + 1.5, input_dim=5)
    yield "affine-constant", _recover(lambda x: np.full(len(x), 2.5), input_dim=3)
    yield "affine-told-in-a-box", _recover(lambda x: x @ weights, [], input_dim=5, domain=(-1, 2))


def _kinked() -> Iterator[tuple[str, Case]]:
    yield "lines-small", _recover(signed([5, 4, 1]))
    yield "lines-leaky-two-outputs", _recover(signed([6, 8, 2], "leaky_relu"))
    yield "lines-wide", _recover(signed([20, 40, 1]))
    yield "lines-in-a-box", _recover(signed([4, 5, 1]), domain=(-2, 2))
    yield "lines-told-too-wide", _recover(signed([6, 5, 1]), [8], "relu")
    yield (
        "lines-examples",
        _recover(signed([4, 5, 1]), examples=10 + 3 * np.random.default_rng(5).standard_normal((50, 4))),
    )
    yield "lines-published-signs", _recover(signed([30, 60, 1]))
    yield "surfaces-small", _recover(signed([8, 6, 5, 1]))
    yield "surfaces-two-outputs", _recover(signed([10, 15, 15, 3]))
    yield "surfaces-leaky-told", _recover(signed([10, 8, 6, 1], "leaky_relu"), [8, 6], "leaky_relu")
    yield "kinks-float32", _recover(float32(signed([6, 5, 1])), input_dim=6)
    yield "kinks-sigmoid", _recover(with_output(signed([6, 5, 1]), "sigmoid"))
    yield "kinks-softmax", _recover(with_output(signed([6, 6, 3]), "softmax"))
    yield "kinks-three-decimals", _recover(rounded(signed([5, 4, 1]), 3), input_dim=5)
    yield "kinks-noise", _recover(noisy(signed([5, 4, 1]), 1e-4), input_dim=5)


def _smooth() -> Iterator[tuple[str, Case]]:
    yield "shallow-tanh", _recover(planted([6, 4, 1]))
    yield "shallow-more-units-than-inputs", _recover(planted([8, 16, 1]))
    yield "shallow-lattice", _recover(planted([12, 20, 1]))
    yield "shallow-lattice-told", _recover(planted([20, 15, 2]), [15], "tanh")
    yield "shallow-active-subspace", _recover(planted([30, 6, 2], "softplus"))
    yield "shallow-gelu", _recover(planted([7, 5, 1], "gelu"))
    yield "shallow-sine", _recover(planted([7, 5, 1], "sine"))
    yield "shallow-erf", _recover(planted([8, 5, 2], "erf"))
    yield "shallow-sigmoid-told", _recover(planted([6, 5, 1], "sigmoid"), [5], "sigmoid")
    yield "shallow-in-a-box", _recover(planted([6, 4, 1]), domain=(-1.5, 1.5))
    yield "shallow-told-too-wide", _recover(planted([6, 4, 1]), [6], "tanh")
    yield "shallow-autodiff", _recover(planted([6, 8, 1]), derivatives="autodiff")
    yield (
        "shallow-scaled-inputs",
        _recover(lambda x: planted([5, 4, 1])((x - 100) / 20), input_dim=5, examples=100 + 20 * np.eye(5)),
    )
    yield "shallow-large", _recover(planted([50, 80, 1], outer="ones"), [80], "tanh")
    yield "values-one-input", _slow(_recover(planted([1, 2, 1])))
    yield "values-two-inputs", _recover(planted([2, 5, 1]))
    published = random_network([8, 12, 1], activation="tanh", seed=1000)
    yield "published", _recover(published, [12], "tanh", method="published")


def _coarse() -> Iterator[tuple[str, Case]]:
    yield "coarse-float32", _recover(float32(planted([6, 5, 1])), input_dim=6)
    yield "coarse-four-decimals", _recover(rounded(planted([5, 4, 1]), 4), input_dim=5)
    yield (
        "coarse-averaged",
        _recover(rounded(planted([5, 4, 1]), 3), [4], "tanh", input_dim=5, averaging=32),
    )
    yield "coarse-noise", _recover(noisy(planted([6, 4, 1]), 1e-3), input_dim=6)
    yield "coarse-sigmoid-output", _recover(with_output(planted([6, 4, 1]), "sigmoid"))
    yield "coarse-softmax-output", _recover(with_output(planted([6, 5, 3]), "softmax"))


def _deep() -> Iterator[tuple[str, Case]]:
    yield "deep-two-layers", _recover(planted([10, 6, 3, 1]))
    yield "deep-told", _recover(planted([12, 8, 5, 2]), [8, 5], "tanh")
    yield "deep-tanh-output", _slow(_recover(with_output(planted([15, 10, 6, 2]), "tanh")))
    yield "deep-three-layers", _recover(planted([20, 15, 10, 6, 2]))
    yield "deep-in-a-box", _recover(planted([8, 6, 3, 1]), [6, 3], "tanh", domain=(-3, 3))


def _samples() -> Iterator[tuple[str, Case]]:
    yield "samples-relu-told", _recover(drawn(signed([5, 4, 1]), 600, 5), [4], "relu")
    yield "samples-relu-untold", _recover(drawn(signed([4, 3, 1]), 400, 4))
    yield "samples-leaky-two-outputs", _recover(drawn(signed([4, 4, 2], "leaky_relu"), 500, 4), [4])
    yield "samples-squared-relu", _recover(drawn(signed([4, 3, 1], "squared_relu"), 500, 4), [3])
    yield "samples-tanh-told", _recover(drawn(planted([5, 4, 1]), 2000, 5), [4], "tanh")
    yield (
        "samples-softplus-told",
        _recover(drawn(planted([5, 4, 1], "softplus"), 3000, 5), [4], "softplus"),
    )
    yield "samples-tanh-untold", _recover(drawn(planted([4, 3, 1]), 2000, 4))
    quadratic = random_network([6, 3, 1], activation="quadratic", seed=1000, bias=0)
    yield "samples-quadratic", _recover(drawn(quadratic, 200, 6), activation="quadratic")
    yield "samples-decimals", _recover(drawn(rounded(signed([4, 3, 1]), 4), 500, 4), [3], "relu")
    yield "samples-noise", _recover(drawn(noisy(signed([4, 3, 1]), 1e-2), 400, 4), [3], "relu")
    yield "samples-affine", _recover(drawn(lambda x: x @ np.arange(1.0, 5.0), 60, 4), [])
    yield "samples-too-few", _recover(drawn(signed([6, 8, 1]), 60, 6), [8], "relu")


def _ends() -> Iterator[tuple[str, Case]]:
    """Targets that are no networks, and budgets that end."""
    yield "end-labels", _recover(lambda x: (x[:, 0] > 0).astype(int), input_dim=3)
    yield "end-budget", _recover(planted([10, 12, 1]), max_queries=700)
    yield "end-budget-in-the-look", _recover(planted([10, 12, 1]), max_queries=20)
    yield "end-product", _slow(_recover(lambda x: x[:, 0] * x[:, 1] * x[:, 2], input_dim=4))
    yield "end-pure-noise", _recover(noisy(lambda x: x[:, :1], 3.0), input_dim=3)
    yield "end-wrong-width", _recover(signed([6, 5, 1]), [3, 3], "relu")


def _rooms() -> Iterator[tuple[str, Case]]:
    net = planted([4, 3, 1], seed=1001)
    yield "audit", Case(lambda: unweave.audit(net, decimals=[4], budgets=[20_000]))
    yield "audit-of-nothing", Case(lambda: unweave.audit(noisy(lambda x: x[:, :1], 3.0), input_dim=3))
    x = np.random.default_rng(9).standard_normal((20, 2))
    y = np.maximum(x @ [1.0, -1.0], 0) - np.maximum(x @ [0.5, 1.0] + 0.2, 0)
    yield "exact-erm", Case(lambda: unweave.exact.exact_erm(x, y, width=2))
    yield "plan", Case(lambda: unweave.plan(planted([20, 10, 1])))
    yield "plan-with-a-look", Case(lambda: unweave.plan(signed([10, 10, 1]), look=True))


def outcome(result: Any) -> dict[str, Any]:
    """What must stay the same of a result, in words of JSON."""
    if isinstance(result, Recovery):
        return _of_recovery(result)
    if isinstance(result, unweave.Audit):
        points = [[p.way, p.level, p.budget, p.queries] for p in _plain_points(result)]
        return {"recovery": _of_recovery(result.recovery), "points": points}
    if isinstance(result, unweave.Plan):
        entries = [[e.method, list(e.hidden), e.rows, e.tried] for e in result.methods]
        return {"entries": entries, "sent": result.sent}
    return {
        "certified": bool(result.certified),
        "loss": round(float(result.loss), 12),
        **_of_network(result.network),
    }


@dataclass(frozen=True)
class _Point:
    way: str
    level: str
    budget: int
    queries: int


def _plain_points(audit: Any) -> list[_Point]:
    return [_Point(str(p.way), str(p.level), int(p.budget), int(p.queries)) for p in audit.points]


def _of_recovery(result: Recovery) -> dict[str, Any]:
    stages = [stage.name for stage in result.stages]
    return {
        "status": result.status.name,
        "queries": result.queries,
        "probing": result.probing_queries,
        "verification": result.verification_queries,
        "message": _without_figures(result.message),
        "stages": _short(stages),
        "network": _of_network(result.network),
    }


def _short(names: list[str]) -> str:
    """The stages in order, those that repeat named once."""
    kept: list[str] = []
    for name in names:
        if not kept or kept[-1] != name:
            kept.append(name)
    return ", ".join(kept)


def _without_figures(message: str) -> str:
    """The message with every number that is no whole number left out: those change with rounding."""
    return re.sub(r"\d+\.\d+(e[-+]?\d+)?|\d+e[-+]?\d+|\bnan\b|\binf\b", "#", message)


def _of_network(network: Network | None) -> dict[str, Any]:
    if network is None:
        return {"hidden": None}
    parts = [*network.weights, *network.biases, *([] if network.skip is None else [network.skip])]
    vector = np.concatenate([np.ravel(part) for part in parts])
    grid = np.round(vector / 1e-9) + 0.0  # no negative zeros
    rows = np.random.default_rng(0).choice([-1.0, 1.0], (FINGERPRINTS, len(vector)))
    points = np.random.default_rng(1).standard_normal((FINGERPRINTS, network.n_inputs))
    return {
        "hidden": list(network.hidden),
        "activations": list(network.activations),
        "digest": hashlib.sha256(grid.astype("<i8").tobytes()).hexdigest()[:16],
        "fingerprint": [float(value) for value in rows @ vector],
        "size": float(np.abs(vector).max(initial=0.0)),
        "answers": [float(value) for value in network(points)[:, 0]],
    }
