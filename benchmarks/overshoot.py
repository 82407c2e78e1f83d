"""How far past its deadline a recovery runs, and how much memory it takes.

Every case is one call of `unweave.recover` in a process of its own, with nothing told unless its name says
so. "over" is the wall clock beyond the deadline, "CPU over" the processor's seconds after it, which a busy
machine does not stretch, "call" the longest single call of the target: the time may be over by the larger of
one second and that call. "peak" is the largest resident size of the process, "own"
what remains of it without what was there before the recovery began.

    python benchmarks/overshoot.py                          every case at deadlines 2, 5 and 20
    python benchmarks/overshoot.py --only digits --deadlines 5,60
    python benchmarks/overshoot.py --only digits --trace    also print where it is when the time is over
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import resource
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import unweave
from unweave.arrays import Array

Case = tuple[Any, dict[str, Any]]
DEADLINES = (2.0, 5.0, 20.0)
ALLOWED = 1.0  # seconds past the deadline, or one call of the target if that takes longer
KILLED_AFTER = 120.0  # seconds past the deadline after which the process is ended


def planted(*layers: int, activation: str = "tanh", outer: str = "normal") -> unweave.Network:
    """A random network."""
    return unweave.random_network(list(layers), activation=activation, seed=1, outer=outer)


def asked(*layers: int, activation: str = "tanh", **told: Any) -> Callable[[], Case]:
    """A planted network that answers exactly."""
    return lambda: (planted(*layers, activation=activation), told)


def changed(change: Callable[[Array], Array], *layers: int, activation: str = "tanh") -> Callable[[], Case]:
    """A planted network whose answers are changed on their way."""

    def case() -> Case:
        network = planted(*layers, activation=activation)
        return lambda x: change(network(x)), {"input_dim": layers[0]}

    return case


def sampled(
    rows: int, *layers: int, activation: str = "tanh", noise: float = 0.0, **told: Any
) -> Callable[[], Case]:
    """Rows of a planted network."""

    def case() -> Case:
        rng = np.random.default_rng(1)
        network, x = planted(*layers, activation=activation), rng.standard_normal((rows, layers[0]))
        return unweave.Samples(x, network(x) + noise * rng.standard_normal((rows, layers[-1]))), told

    return case


def of_function(function: Callable[[Array], Array], inputs: int) -> Callable[[], Case]:
    """A target that is no network."""
    return lambda: (function, {"input_dim": inputs})


def digits(width: int, activation: str, decimals: int | None = None) -> Callable[[], Case]:
    """A classifier that scikit-learn trained on pictures of digits."""

    def case() -> Case:
        from sklearn.datasets import load_digits
        from sklearn.neural_network import MLPClassifier

        x, y = load_digits(return_X_y=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MLPClassifier(
                hidden_layer_sizes=(width,), activation=activation, max_iter=60, random_state=0
            ).fit(x / 16, y)
        if decimals is None:
            return model.predict_proba, {"input_dim": 64}
        return lambda x: model.predict_proba(x).round(decimals), {"input_dim": 64}

    return case


def float32(*layers: int, activation: str = "tanh") -> Callable[[], Case]:
    """A planted network that computes in float32."""

    def case() -> Case:
        network = planted(*layers, activation=activation)
        weights = [w.astype(np.float32) for w in network.weights]
        biases = [b.astype(np.float32) for b in network.biases]
        act = {"tanh": np.tanh, "relu": lambda z: np.maximum(z, 0)}[activation]

        def answer(x: Array) -> Array:
            hidden = x.astype(np.float32)
            for w, b in zip(weights[:-1], biases[:-1], strict=True):
                hidden = act(hidden @ w + b)
            return hidden @ weights[-1] + biases[-1]

        return answer, {"input_dim": layers[0]}

    return case


def _noisy(scale: float) -> Callable[[Array], Array]:
    rng = np.random.default_rng(2)
    return lambda y: y + scale * rng.standard_normal(y.shape)


CASES: dict[str, Callable[[], Case]] = {
    "digits 64-100-10 relu": digits(100, "relu"),
    "digits 64-100-10 tanh": digits(100, "tanh"),
    "digits 64-100-10 relu, 3 decimals": digits(100, "relu", 3),
    "float32 64-128-64 tanh": float32(64, 128, 64),
    "float32 64-128-64 relu": float32(64, 128, 64, activation="relu"),
    "float32 20-10-1 tanh": float32(20, 10, 1),
    "tanh 50-400-1": asked(50, 400, 1),
    "tanh 30-200-3": asked(30, 200, 3),
    "gelu 40-60-1": asked(40, 60, 1, activation="gelu"),
    "sine 20-60-1": asked(20, 60, 1, activation="sine"),
    "tanh 784-128-10": asked(784, 128, 10),
    "tanh 3-30-1": asked(3, 30, 1),
    "relu 20-200-1": asked(20, 200, 1, activation="relu"),
    "relu 10-300-1": asked(10, 300, 1, activation="relu"),
    "tanh 30-20-12-6-1": asked(30, 20, 12, 6, 1),
    "tanh 40-40-40-1": asked(40, 40, 40, 1),
    "tanh 1-128-128-128-1": asked(1, 128, 128, 128, 1),
    "softplus 20-20-20-1": asked(20, 20, 20, 1, activation="softplus"),
    "relu 20-20-10-1": asked(20, 20, 10, 1, activation="relu"),
    "relu 20-30-20-10-1": asked(20, 30, 20, 10, 1, activation="relu"),
    "tanh 10-20-1, 4 decimals": changed(lambda y: y.round(4), 10, 20, 1),
    "tanh 10-20-1, 2 decimals": changed(lambda y: y.round(2), 10, 20, 1),
    "tanh 10-20-1, noise": changed(_noisy(1e-3), 10, 20, 1),
    "tanh 30-60-1, noise": changed(_noisy(1e-4), 30, 60, 1),
    "relu 10-20-1, 3 decimals": changed(lambda y: y.round(3), 10, 20, 1, activation="relu"),
    "relu 20-60-1, noise": changed(_noisy(1e-3), 20, 60, 1, activation="relu"),
    "steps": of_function(lambda x: (x[:, 0] > 0.3) * 1.0 + (x[:, 1] > -0.5) * 0.5, 4),
    "products": of_function(lambda x: np.sin(x[:, 0] * x[:, 1]) + np.exp(-(x**2).sum(axis=1)), 6),
    "polynomial": of_function(lambda x: (x**3).sum(axis=1) + x[:, 0] * x[:, 1] * x[:, 2], 10),
    "samples 20,000 relu 20-40-1": sampled(20_000, 20, 40, 1, activation="relu"),
    "samples 200,000 relu 10-20-1": sampled(200_000, 10, 20, 1, activation="relu"),
    "samples 5,000 relu 10-20-1, noise": sampled(5_000, 10, 20, 1, activation="relu", noise=0.1),
    "samples 50,000 tanh 20-30-1, told": sampled(50_000, 20, 30, 1, hidden=[30], activation="tanh"),
    "samples 20,000 tanh 10-20-1": sampled(20_000, 10, 20, 1),
    "samples 5,000 quadratic 60-5-1": sampled(5_000, 60, 5, 1, activation="quadratic"),
    "tanh 10,000-4-1": asked(10_000, 4, 1),
    "relu 10,000-4-1": asked(10_000, 4, 1, activation="relu"),
    "relu 25,120-4-1": asked(25_120, 4, 1, activation="relu"),
    "relu 50,240-2-1": asked(50_240, 2, 1, activation="relu"),
    "tanh 100,000-3-1": asked(100_000, 3, 1),
    "relu 100,000-3-1": asked(100_000, 3, 1, activation="relu"),
    "affine 100,000": of_function(lambda x: x.sum(axis=1), 100_000),
}


def run(name: str, deadline: float, trace: bool, options: dict[str, Any]) -> dict[str, Any]:
    """One case, in this process."""
    target, told = CASES[name]()
    longest = 0.0
    if not isinstance(target, unweave.Samples):
        inner = target
        told.setdefault("input_dim", getattr(target, "n_inputs", None))

        def target(x: Array) -> Array:
            nonlocal longest
            began = time.perf_counter()
            answer: Array = inner(x)
            longest = max(longest, time.perf_counter() - began)
            return answer

    recover, before = unweave.recover, _peak()  # what is imported on the way there is not counted
    if trace:
        faulthandler.dump_traceback_later(deadline + ALLOWED, repeat=True)
    began, cpu, at_deadline = time.perf_counter(), time.process_time(), np.inf

    def note() -> None:
        nonlocal at_deadline
        at_deadline = time.process_time()

    timer = threading.Timer(deadline, note)
    timer.daemon = True
    timer.start()
    try:
        result = recover(target, **{**told, **options}, deadline=deadline)
        said = f"{result.status.name}: {result.message}"
    except unweave.UnweaveError as error:
        said = f"{type(error).__name__}: {error}"
    except Exception as error:  # a benchmark tells what should not happen, too
        said = f"FOREIGN {type(error).__name__}: {error}"
    seconds, over, cpu = (
        time.perf_counter() - began,
        time.process_time() - at_deadline,
        time.process_time() - cpu,
    )
    timer.cancel()
    faulthandler.cancel_dump_traceback_later()
    return {
        **{
            "case": name,
            "deadline": deadline,
            "seconds": seconds,
            "cpu": cpu,
            "over": max(0.0, seconds - deadline),
            "cpu_over": max(0.0, over),
        },
        **{"call": longest, "peak_mb": _peak(), "own_mb": _peak() - before, "said": said},
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_a_process(name: str, deadline: float, arguments: argparse.Namespace) -> dict[str, Any]:
    """One case, in another process."""
    command = [sys.executable, str(Path(__file__).resolve()), "--one", name, "--deadlines", str(deadline)]
    command += ["--options", arguments.options] + ["--trace"] * arguments.trace
    row: dict[str, Any] = {"case": name, "deadline": deadline}
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, timeout=deadline + arguments.patience, check=False
        )
    except subprocess.TimeoutExpired:
        return row | {"said": f"ENDED after {deadline + arguments.patience:.0f} s"}
    return json.loads(done.stdout) if done.returncode == 0 else row | {"said": f"KILLED ({done.returncode})"}


def _line(row: dict[str, Any]) -> str:
    figures = [
        f"{row[key]:.2f}" if key in row else "" for key in ("seconds", "cpu", "over", "cpu_over", "call")
    ]
    figures += [f"{row[key]:.0f}" if key in row else "" for key in ("peak_mb", "own_mb")]
    late = "over" not in row or row["cpu_over"] > max(ALLOWED, row["call"])
    return " | ".join(
        [row["case"], f"{row['deadline']:g}", *figures, "LATE" if late else "", row["said"][:90]]
    )


def main() -> None:
    """Print a table."""
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument("--only", default="", help="cases whose names hold one of these, separated by ;")
    reader.add_argument(
        "--deadlines", default=",".join(map(str, DEADLINES)), help="seconds, separated by commas"
    )
    reader.add_argument("--trace", action="store_true", help="print stacks when the time is over")
    reader.add_argument("--options", default="{}", help="further arguments of recover, as JSON")
    reader.add_argument("--patience", type=float, default=KILLED_AFTER, help="seconds past the deadline")
    reader.add_argument("--json", help="also write the rows there")
    reader.add_argument("--one", help=argparse.SUPPRESS)
    arguments = reader.parse_args()
    deadlines = [float(each) for each in arguments.deadlines.split(",")]
    if arguments.one:
        print(json.dumps(run(arguments.one, deadlines[0], arguments.trace, json.loads(arguments.options))))
        return
    print("case | deadline | seconds | CPU s | over | CPU over | call | peak MB | own MB | late | said")
    print("|".join(["---"] * 11), flush=True)
    rows = []
    for name in CASES:
        if any(part in name for part in arguments.only.split(";")):
            for deadline in deadlines:
                rows.append(in_a_process(name, deadline, arguments))
                print(_line(rows[-1]), flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
