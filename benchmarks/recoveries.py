"""Recoveries of many kinds, each measured in a process of its own: what the suite and comparisons run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    "smooth 20-160-1 told": "net([20, 160, 1], 'tanh', outer='ones'), [160], 'tanh'",
    "smooth 30-360-1 told": "net([30, 360, 1], 'tanh', outer='ones'), [360], 'tanh'",
}
"""Arguments of `unweave.recover`, by name."""

RUN = """
import json, os, resource, time
import numpy as np, unweave
truth = None
def net(layers, activation, outer="normal", seed={seed}, bias=0.5, norms=(1, 1)):
    global truth
    truth = unweave.random_network(
        layers, activation=activation, seed=seed, outer=outer, bias=bias, norms=norms
    )
    return truth
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
def reference():
    # CPU seconds of work that never changes: how fast this machine is just now.
    a, began = np.random.default_rng(0).standard_normal((700, 700)), time.process_time()
    for _ in range(6):
        b = np.tanh(a @ a)
    return time.process_time() - began
args, kwargs = call({arguments})
planted = truth
unweave.recover(unweave.random_network([4, 3, 1], seed=0))  # everything is loaded before the clock starts
reference()
load, before = os.getloadavg()[0], reference()
began, wall = time.process_time(), time.perf_counter()
result = unweave.recover(*args, **kwargs)
spent, wall = time.process_time() - began, time.perf_counter() - wall
network = result.network
error = None if network is None else unweave.compare(planted, network).parameter_error
print(json.dumps({
    "cpu_seconds": spent,
    "seconds": wall,
    "rows": result.queries,
    "rows_per_parameter": result.queries / planted.n_parameters,
    "parameters": planted.n_parameters,
    "error": error if error is not None and np.isfinite(error) else None,
    "status": result.status.name,
    "hidden": None if network is None else list(network.hidden),
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    "load": load,
    "reference_seconds": min(before, reference()),
}))
"""


def measured(tree: Path, arguments: str, seed: int = 1000, threads: int = 1) -> dict[str, Any]:
    """Run one recovery with the package of ``tree``; return its cost and what came of it.

    ``arguments`` are those of `unweave.recover`, in the words of `ROWS`; ``seed`` plants the network.
    """
    count = str(threads)
    env = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count}
    code = RUN.replace("{arguments}", arguments).replace("{seed}", str(seed))
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{arguments} must run to its end. Got this instead:\n{done.stderr[-2000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures
