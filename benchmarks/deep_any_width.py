"""Hidden layers of smooth units, of any widths, with nothing told: two that level off, or more that rectify.

A row is KIND:SHAPE, with "/float32", "/torch" or "/onnx" at its end for answers that NumPy, torch or
onnxruntime computes in float32. Kinds:

- tanh, logistic, erf, softplus, gelu, swish, mish, elu, selu: random weights of norm 0.6 to 1.6 (logistic:
  1.2 to 3.2), biases 0.5 N(0, 1), outgoing weights N(0, 1/m2), some of which are tiny; a linear output, or
  after a "+" a tanh, sigmoid or softmax one; any number of hidden layers; "tanh>erf" has tanh units in the
  first of them and erf units behind;
- policy: weights and biases uniform in +-1/sqrt(what a layer reads), as torch begins with;
- diabetes, cancer, iris, wine: scikit-learn's ``MLPRegressor`` (tanh, or logistic after a "+"), fitted to the
  data, standardized (classes of the last two one-hot), and asked through ``predict``.

Rows per parameter count all rows: the look and the verification as well. Seconds are computing time of whole
recoveries. Parameter errors are those of `unweave.compare`.

    python benchmarks/deep_any_width.py [--rows tanh:8-16-16-1,policy:8-64-64-2] [--seeds 10] [--first 0]
        [--deadline 60]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import pairwise

import numpy as np

import unweave
from many_inputs import in_onnx, in_torch
from unweave.arrays import Array

ROWS = (
    "tanh:3-2-2-1",
    "erf:3-3-2-2",
    "tanh:4-3-3-1",
    "logistic:4-3-2-2",
    "tanh:5-4-4-1",
    "tanh:4-8-6-1",
    "tanh:6-12-12-1",
    "tanh:8-16-16-1",
    "tanh:8-12-20-1",
    "tanh:13-30-30-1",
    "logistic:6-12-12-1",
    "erf:6-12-12-1",
    "tanh>erf:6-12-12-1",
    "tanh>sine:6-12-12-1",
    "erf>tanh:6-12-12-1",
    "tanh:20-20-20-12-5",
    "tanh:20-20-20-20-5",
    "tanh:8-16-16-16-1",
    "tanh:8-12-12-12-12-1",
    "tanh+tanh:6-12-12-1",
    "tanh+sigmoid:6-12-12-1",
    "tanh+softmax:8-10-6-3",
    "policy:8-64-64-2",
    "policy:4-64-64-2",
    "policy:17-64-64-6",
    "iris:4-64-64-3",
    "wine:13-64-64-3",
    "diabetes:10-64-64-1",
    "diabetes:10-16-16-1",
    "diabetes:10-30-30-1",
    "diabetes:10-50-50-1",
    "diabetes:10-100-1",
    "cancer:30-16-16-1",
    "cancer:30-30-30-1",
    "cancer:30-50-50-1",
    "cancer:30-100-1",
    "diabetes+logistic:10-16-16-1",
    "diabetes+logistic:10-30-30-1",
    "cancer+logistic:30-16-16-1",
    *(
        f"{kind}:{shape}"
        for kind in ("softplus", "gelu", "swish")
        for shape in ("6-12-8-1", "10-20-10-1", "13-30-30-1")
    ),
    "mish:10-20-10-1",
    "elu:10-20-10-1",
    "selu:10-20-10-1",
    "gelu:8-16-16-16-1",
    "tanh:6-12-12-1/float32",
    "tanh:8-16-16-1/float32",
    "diabetes:10-16-16-1/float32",
    "diabetes:10-30-30-1/float32",
    *(
        f"{data}:{shape}/{runtime}"
        for data, shapes in (("diabetes", ("10-16-16-1", "10-30-30-1")), ("cancer", ("30-16-16-1",)))
        for shape in shapes
        for runtime in ("torch", "onnx")
    ),
)
TRAINED = ("diabetes", "cancer", "iris", "wine")
SINGLES = ("float32", "torch", "onnx")
Target = Callable[[Array], Array]


def planted(kind: str, output: str, layers: list[int], seed: int) -> unweave.Network:
    """Return a random network."""
    rng = np.random.default_rng(seed)
    first, _, second = kind.partition(">")
    activation = {"logistic": "sigmoid", "policy": "tanh"}.get(first, first)
    weights, biases = [], []
    for read, width in pairwise(layers):
        last = len(weights) == len(layers) - 2
        if kind == "policy":
            bound = 1 / np.sqrt(read)
            weights.append(rng.uniform(-bound, bound, (read, width)))
            biases.append(rng.uniform(-bound, bound, width))
            continue
        drawn = rng.standard_normal((read, width))
        norms = rng.uniform(0.6, 1.6, width) * (2 if kind == "logistic" else 1)
        weights.append(drawn / np.sqrt(read) if last else drawn * norms / np.linalg.norm(drawn, axis=0))
        biases.append(0.5 * rng.standard_normal(width))
    behind = [second or activation] * (len(layers) - 3)
    return unweave.Network(weights, biases, [activation, *behind, output])


def trained(data: str, activation: str, hidden: list[int], seed: int) -> tuple[Target, unweave.Network]:
    """Return ``predict`` of a trained regressor, and the network inside."""
    from sklearn import datasets
    from sklearn.neural_network import MLPRegressor

    x, y = getattr(datasets, f"load_{'breast_cancer' if data == 'cancer' else data}")(return_X_y=True)
    y = np.eye(3)[y] if data in ("iris", "wine") else y
    model = MLPRegressor(
        hidden_layer_sizes=hidden, activation=activation, alpha=1e-3, max_iter=400, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit((x - x.mean(0)) / x.std(0), (y - y.mean(0)) / y.std(0))
    return model.predict, unweave.Network(
        model.coefs_, model.intercepts_, [*[activation] * len(hidden), "identity"]
    )


def in_single(network: unweave.Network) -> tuple[Target, unweave.Network]:
    """Return the network as float32 computes it, and with its parameters rounded."""
    weights = [weight.astype(np.float32) for weight in network.weights]
    biases = [bias.astype(np.float32) for bias in network.biases]
    functions = [unweave.networks.activations.get_activation(name) for name in network.activations]

    def answer(x: Array) -> Array:
        state = np.asarray(x, dtype=np.float32)
        for weight, bias, function in zip(weights, biases, functions, strict=True):
            state = function(state @ weight + bias).astype(np.float32)
        return state.astype(np.float64)

    rounded = [[part.astype(np.float64) for part in parts] for parts in (weights, biases)]
    return answer, unweave.Network(*rounded, network.activations)


def target_of(row: str, seed: int) -> tuple[Target, unweave.Network]:
    """Return what is asked, and the truth."""
    name, _, runtime = row.partition("/")
    kind, shape = name.split(":")
    kind, _, more = kind.partition("+")
    layers = [int(width) for width in shape.split("-")]
    if kind in TRAINED:
        target, truth = trained(kind, more or "tanh", layers[1:-1], seed)
    else:
        target = truth = planted(kind, more or "identity", layers, seed)
    if runtime:
        target, truth = in_single(truth)
    if runtime in ("torch", "onnx"):
        target = (in_torch if runtime == "torch" else in_onnx)(truth)
    return target, truth


def measure(row: str, seeds: range, deadline: float | None) -> None:
    """Print one line of the table, and what failed below it; ``deadline`` in seconds of each recovery."""
    precise = 1e-3 if row.endswith(SINGLES) else 1e-9
    recovered, wrong, errors, rows, seconds, failures = 0, 0, [], [], [], []
    for seed in seeds:
        target, truth = target_of(row, seed)
        began = time.process_time()
        result = unweave.recover(target, input_dim=truth.n_inputs, seed=1_000_003 + seed, deadline=deadline)
        seconds.append(time.process_time() - began)
        rows.append(result.queries / truth.n_parameters)
        if result.status is unweave.Status.RECOVERED and result.network is not None:
            recovered += 1
            errors.append(unweave.compare(truth, result.network).parameter_error)
            wrong += not errors[-1] < precise
        else:
            failures.append(f"    seed {seed}: {result.status.name}: {result.message}")
    spread = f"{np.median(errors):.1e}, {max(errors):.1e}" if errors else "-"
    per, cpu = (f"{np.median(each):.1f}, {max(each):.1f}" for each in (rows, seconds))
    print(f"| {row} | {recovered} of {len(seeds)} | {wrong} | {spread} | {per} | {cpu} |", flush=True)
    for text in failures:
        print(text, flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default=",".join(ROWS), help="rows of the table, with commas between them")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--deadline", type=float, help="seconds of a recovery; none if not given")
    arguments = parser.parse_args()
    print("| case | recovered | wrong | parameter error | rows per parameter | CPU s |", flush=True)
    print("|---|---|---|---|---|---|", flush=True)
    for row in arguments.rows.split(","):
        measure(row, range(arguments.first, arguments.first + arguments.seeds), arguments.deadline)


if __name__ == "__main__":
    main()
