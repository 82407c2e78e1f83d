"""Networks from samples alone, nothing told: every kind of unit, widths, noise, logged predictions, depth.

    exact:KIND:LAYERS:PER     a random network, PER samples per parameter, standard normal inputs
    noise:KIND:LAYERS:SHARE   the same with normal noise of SHARE of the answers' spread, 20 per parameter
    logged:KIND:DATA-WIDTH    predictions of a scikit-learn regressor trained on DATA, 20 inputs per parameter
                              drawn near its rows
    deep:KIND:LAYERS:PER      two hidden layers, their widths and the activation told
    axis:KIND:open, :told     one network for each of 2 to 32 inputs and 2, 4 or 8 units, 20 samples per
                              parameter, the activation not told or told; a seed is one of these 15 cells

"found" counts networks of the right kind and width; without noise their parameter error must be at most 1e-8,
too. Quadratic units are not unique, so that the error of their function counts. Under noise the table adds
the share of 90 % intervals from ``standard_errors`` that hold the true parameter, and the error on fresh
inputs over that of least squares from the true network: median and most. "wrong" counts networks that are
called recovered and are not.
Seconds are computing time: median, most, and the median when the activation is told.

    python benchmarks/samples_kinds.py [--case exact:tanh:6-3-1:20,...] [--first 0] [--seeds 10] [--told]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment

import unweave
from unweave.arrays import Array
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import fit_values

KINDS = (
    "relu",
    "leaky_relu",
    "tanh",
    "sigmoid",
    "softplus",
    "gelu",
    "swish",
    "erf",
    "sine",
    "quadratic",
)
CASES = (
    *(f"exact:{kind}:{layers}:{per}" for per in (20, 6) for kind in KINDS for layers in ("6-3-1", "10-8-1")),
    *(
        f"exact:{kind}:{layers}:20"
        for kind in ("tanh", "sigmoid", "softplus")
        for layers in ("6-8-1", "8-12-1", "4-12-1", "2-8-1")
    ),
    *(
        f"noise:{kind}:{layers}:{share}"
        for share in (0.001, 0.01, 0.05)
        for kind in ("relu", "tanh", "sigmoid")
        for layers in ("6-4-1", "8-5-1")
    ),
    *(
        f"logged:{kind}:{data}-{width}"
        for kind in ("relu", "tanh", "logistic")
        for data in ("diabetes", "cancer")
        for width in (8, 20)
    ),
    *(f"deep:{kind}:{layers}:50" for kind in ("tanh", "relu") for layers in ("4-6-4-1", "6-8-5-1")),
    *(f"axis:{kind}:{told}" for told in ("told", "open") for kind in ("relu", "tanh", "sigmoid", "softplus")),
)
AXIS = [(inputs, width) for inputs in (2, 4, 8, 16, 32) for width in (2, 4, 8)]
"""Inputs and units of the networks of an axis."""
LARGEST_ERROR = 1e-8
INTERVAL = 1.645
"""Standard errors on either side of an interval that holds the truth nine times in ten."""


def logged(kind: str, data: str, width: int, seed: int) -> tuple[unweave.Network, Array]:
    """Return the network inside a trained regressor, and inputs to log its predictions for."""
    from sklearn.datasets import load_breast_cancer, load_diabetes
    from sklearn.neural_network import MLPRegressor

    x, y = (load_diabetes if data == "diabetes" else load_breast_cancer)(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPRegressor(hidden_layer_sizes=(width,), activation=kind, random_state=seed, max_iter=500)
        fitted = model.fit(x, y)
    net = unweave.Network(fitted.coefs_, fitted.intercepts_, [kind, "identity"])
    rng = np.random.default_rng([seed, 1])
    rows = x[rng.integers(0, len(x), 20 * net.n_parameters)]
    return net, rows + 0.3 * rng.standard_normal(rows.shape)


def samples_of(case: str, seed: int) -> tuple[unweave.Network, Array, Array]:
    """Return the true network and samples of it."""
    family, kind, shape, *rest = case.split(":")
    if family == "logged":
        data, width = shape.split("-")
        net, x = logged(kind, data, int(width), seed)
        return net, x, net(x)
    if family == "axis":
        seed, cell = divmod(seed, len(AXIS))
        layers = [*AXIS[cell], 1]
    else:
        layers = [int(width) for width in shape.split("-")]
    net = unweave.random_network(layers, kind, seed=seed, outer="normal")
    rng = np.random.default_rng([seed, 1])
    per = 20 if family in ("noise", "axis") else int(rest[0])
    x = rng.standard_normal((per * net.n_parameters, layers[0]))
    y = net(x)
    if family == "noise":
        y = y + float(rest[0]) * y.std(axis=0) * rng.standard_normal(y.shape)
    return net, x, y


def has_right_form(truth: unweave.Network, found: unweave.Network | None) -> bool:
    """Return whether kind and widths are right: a tanh network may stand for a sigmoid one."""
    if found is None or found.hidden != truth.hidden:
        return False
    names = [
        {"sigmoid": "tanh", "logistic": "tanh"}.get(net.activations[0], net.activations[0])
        for net in (truth, found)
    ]
    return names[0] == names[1] and (found.skip is None)


def is_right(truth: unweave.Network, found: unweave.Network | None) -> bool:
    """Return whether the network is the true one, to `LARGEST_ERROR`."""
    if found is None or not has_right_form(truth, found):
        return False
    comparison = unweave.compare(truth, found)
    quadratic = truth.activations[0] == "quadratic"
    return bool((comparison.function_error if quadratic else comparison.parameter_error) <= LARGEST_ERROR)


def aligned(truth: unweave.Network, found: unweave.Network) -> unweave.Network:
    """Return the true network with the order, signs and lengths of ``found``'s units."""
    weights, biases, outgoing = truth.weights[0], truth.biases[0], truth.weights[1]
    offset = truth.biases[1]
    if truth.activations[0] == "sigmoid" and found.activations[0] == "tanh":
        offset = offset + outgoing.sum(axis=0) / 2
        weights, biases, outgoing = weights / 2, biases / 2, outgoing / 2
    units, others = np.vstack([weights, biases]), np.vstack([found.weights[0], found.biases[0]])
    cosines = (units / np.linalg.norm(units, axis=0)).T @ (others / np.linalg.norm(others, axis=0))
    odd = found.activations[0] == "tanh"
    order = linear_sum_assignment(-np.abs(cosines) if odd else -cosines)[0][
        np.argsort(linear_sum_assignment(-np.abs(cosines) if odd else -cosines)[1])
    ]
    sign = np.sign(cosines[order, np.arange(len(order))]) if odd else np.ones(len(order))
    if found.activations[0] == "relu":
        sign = 1 / np.linalg.norm(weights[:, order], axis=0)
    return unweave.Network(
        [weights[:, order] * sign, outgoing[order] / sign[:, None]],
        [biases[order] * sign, offset],
        found.activations,
    )


def coverage(truth: unweave.Network, result: unweave.Recovery) -> Array:
    """Return, for every parameter, whether its 90 % interval holds the truth."""
    if result.standard_errors is None or result.network is None:
        return np.zeros(0, dtype=bool)
    net, true, errors = result.network, aligned(truth, result.network), result.standard_errors
    parts = zip(
        [*net.weights, *net.biases],
        [*true.weights, *true.biases],
        [*errors.weights, *errors.biases],
        strict=True,
    )
    return np.concatenate([(np.abs(a - b) <= INTERVAL * c).reshape(-1) for a, b, c in parts])


def over_least_squares(truth: unweave.Network, found: unweave.Network, x: Array, y: Array) -> float:
    """Return the error on fresh inputs over that of least squares that starts at the truth."""
    best = fit_values(NetworkParameters.from_network(truth), x, y).model.to_network()
    fresh = np.random.default_rng(12345).standard_normal((4000, x.shape[1]))
    true = truth(fresh)
    return float(np.sqrt(np.mean((found(fresh) - true) ** 2) / np.mean((best(fresh) - true) ** 2)))


def measure(case: str, seeds: range, told: bool) -> None:
    """Print one line of the table, and what failed below it."""
    family, kind = case.split(":")[:2]
    found, wrong, seconds, seconds_told, failures = 0, 0, [], [], []
    held: list[Array] = []
    ratios: list[float] = []
    for seed in seeds:
        truth, x, y = samples_of(case, seed)
        says = {"hidden": list(truth.hidden), "activation": kind} if family == "deep" else {}
        says |= {"activation": kind} if case.endswith(":told") else {}
        began = time.process_time()
        result = unweave.recover(unweave.Samples(x, y), **says)
        seconds.append(time.process_time() - began)
        right = (has_right_form if family == "noise" else is_right)(truth, result.network)
        found += right
        wrong += result.status.is_recovered and not right
        if not right:
            failures.append(f"    seed {seed}: {result.status.name} {result.network}: {result.message[:120]}")
        if family == "noise" and right and result.network is not None:
            held.append(coverage(truth, result))
            ratios.append(over_least_squares(truth, result.network, x, y))
        if told:
            began = time.process_time()
            unweave.recover(unweave.Samples(x, y), activation=kind, hidden=says.get("hidden"))
            seconds_told.append(time.process_time() - began)
    extra = " | "
    if held:
        extra = f"{np.concatenate(held).mean():.0%} | {np.median(ratios):.2f}, {max(ratios):.2f}"
    cost = f"{np.median(seconds):.1f}, {max(seconds):.1f}"
    cost += f", {np.median(seconds_told):.1f}" if told else ""
    print(f"| {case} | {found} of {len(seeds)} | {wrong} | {extra} | {cost} |", flush=True)
    for text in failures:
        print(text, flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--case", default=",".join(CASES), help="cases, or beginnings of their names, with commas"
    )
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
    parser.add_argument("--told", action="store_true", help="time the same with the activation told")
    arguments = parser.parse_args()
    print(
        "| case | found | wrong | coverage | over least squares | CPU s |\n|---|---|---|---|---|---|",
        flush=True,
    )
    for wanted in arguments.case.split(","):
        for case in [each for each in CASES if each.startswith(wanted)] or [wanted]:
            measure(case, range(arguments.first, arguments.first + arguments.seeds), arguments.told)


if __name__ == "__main__":
    main()
