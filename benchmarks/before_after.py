"""CPU seconds and queries of the same recoveries in two source trees, runs interleaved.

    python benchmarks/before_after.py --before ../before/src --after src [--rows smooth,deep] [--runs 3]

Each run is a process of its own with one BLAS thread. The table gives the medians, their ratio, and whether
queries, status and widths are the same.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROWS = {
    "smooth 20-40-1": "net([20, 40, 1], 'tanh')",
    "smooth 50-100-1": "net([50, 100, 1], 'tanh')",
    "smooth 50-400-1 told": "net([50, 400, 1], 'tanh', outer='ones'), [400], 'tanh'",
    "smooth 784-32-10": "net([784, 32, 10], 'tanh')",
    "smooth softplus 12-30-1": "net([12, 30, 1], 'softplus')",
    "smooth small 6-9-1": "net([6, 9, 1], 'gelu')",
    "values 2-5-1": "net([2, 5, 1], 'tanh')",
    "deep 50-25-10-1": "net([50, 25, 10, 1], 'tanh')",
    "deep 20-15-10-6-2": "net([20, 15, 10, 6, 2], 'tanh')",
    "relu 20-100-1": "net([20, 100, 1], 'relu', outer='signed')",
    "relu 100-50-2": "net([100, 50, 2], 'relu', outer='signed')",
    "relu 784-32-10": "net([784, 32, 10], 'relu', outer='signed')",
    "two relu layers 10-15-15-1": "net([10, 15, 15, 1], 'relu', outer='signed')",
    "coarse tanh, 4 decimals 20-30-1": "rounded(net([20, 30, 1], 'tanh'), 4), [30], 'tanh', input_dim=20",
    "coarse tanh, float32 10-12-1": "single(net([10, 12, 1], 'tanh')), input_dim=10",
    "coarse tanh, noise 10-8-1": "noisy(net([10, 8, 1], 'tanh'), 1e-3), input_dim=10",
    "coarse relu, 3 decimals 10-12-1": "rounded(net([10, 12, 1], 'relu', outer='signed'), 3), input_dim=10",
    "samples relu 10-20-1": "sampled(net([10, 20, 1], 'relu', outer='signed'), 4000), [20], 'relu'",
    "samples relu 30-20-1 untold": "sampled(net([30, 20, 1], 'relu', outer='signed'), 8000)",
    "samples tanh 10-8-1": "sampled(net([10, 8, 1], 'tanh'), 8000), [8], 'tanh'",
}

RUN = """
import json, time
import numpy as np, unweave
def net(layers, activation, outer="normal"):
    return unweave.random_network(layers, activation=activation, seed=1000, outer=outer)
def rounded(f, decimals):
    return lambda x: np.round(f(x), decimals)
def single(f):
    return lambda x: f(x.astype(np.float32)).astype(np.float32)
def noisy(f, sigma):
    rng = np.random.default_rng(1)
    def answer(x):
        y = f(x)
        return y + sigma * rng.standard_normal(y.shape)
    return answer
def sampled(f, rows):
    x = np.random.default_rng(1).standard_normal((rows, f.n_inputs))
    return unweave.Samples(x, f(x))
def call(*args, **kwargs):
    return args, kwargs
args, kwargs = call({arguments})
unweave.recover(net([4, 3, 1], "tanh"))  # everything is loaded before the clock starts
began = time.process_time()
result = unweave.recover(*args, **kwargs)
spent = time.process_time() - began
hidden = None if result.network is None else list(result.network.hidden)
print(json.dumps([spent, result.queries, result.status.name, hidden]))
"""


def measured(tree: Path, arguments: str) -> tuple[float, list[object]]:
    """CPU seconds, and what came of it."""
    env = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    code = RUN.replace("{arguments}", arguments)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    seconds, *rest = json.loads(done.stdout.splitlines()[-1])
    return float(seconds), rest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--after", type=Path, required=True)
    parser.add_argument("--rows", default="", help="parts of names, separated by commas")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    wanted = [part for part in options.rows.split(",") if part]
    print(f"{'row':34} {'before':>8} {'after':>8} {'ratio':>6}  same queries, status, widths")
    for name, arguments in ROWS.items():
        if wanted and not any(part in name for part in wanted):
            continue
        seconds: dict[str, list[float]] = {"before": [], "after": []}
        outcomes = []
        for _ in range(options.runs):
            for which, tree in (("before", options.before), ("after", options.after)):
                spent, outcome = measured(tree.resolve(), arguments)
                seconds[which].append(spent)
                outcomes.append(outcome)
        before, after = (statistics.median(seconds[which]) for which in ("before", "after"))
        same = all(outcome == outcomes[0] for outcome in outcomes)
        told = "yes" if same else f"NO: {outcomes[0]} {outcomes[1]}"
        print(f"{name:34} {before:8.2f} {after:8.2f} {after / before:6.2f}  {told}", flush=True)


if __name__ == "__main__":
    main()
