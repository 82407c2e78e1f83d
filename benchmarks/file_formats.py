"""Files: is every format exact, how long do writing and reading take, and how long does `import unweave`.

- **.npz, .json, .onnx, .safetensors**: networks with every activation in turn, with and without a skip,
  written and read back; *recovered* counts the seeds at which every parameter came back bit for bit.
- **onnxruntime**: the same networks as ONNX models, run by onnxruntime in float64 and float32, against NumPy
  on the parameters written: the largest difference over max(1, largest answer), in units of the precision
  (*ulps*). Needs onnxruntime.
- **import**: CPU seconds of a new process, in which the modules that unweave promises not to load are absent;
  those of the first use of `recover`; and those of NumPy and the parts of SciPy that unweave is built on.
  A *seed* is one process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import unweave
from harness import COMMON, Row, Run, parser, peak_rss_mb, say, seeds_of, summarise, tell
from unweave.files import DTYPES, FORMATS, Dtype

LAYERS, QUICK_LAYERS = (200, 300, 100, 10), (6, 5, 4, 2)
POINTS = 200
MOST_ULPS = 400
"""Of the largest answer: three layers, each a sum of up to 300 terms, with cubes among the activations."""

OPTIONAL = ("torch", "onnx", "onnxruntime", "safetensors", "keras", "sklearn", "matplotlib", "dask", "httpx")
IMPORTS = {
    "import unweave": "import unweave",
    "first use of unweave.recover": "import unweave; unweave.recover",
    "import of what it is built on": "import numpy, scipy.special, scipy.linalg, scipy.optimize",
}
COLUMNS = {
    "setting": "setting",
    "seeds": "seeds",
    "recovered": "exact, within bounds, or light",
    "write_seconds": "write s",
    "read_seconds": "read s",
    "megabytes": "MB",
    "ulps": "worst ulps",
    "seconds": "seconds",
    "cpu_seconds": "CPU s",
}


def networks(layers: Sequence[int], seed: int) -> list[unweave.Network]:
    """One network per activation; every other one has a skip."""
    rng = np.random.default_rng(seed)
    result = []
    for number, name in enumerate(unweave.activation_names()):
        net = unweave.random_network(layers, name, seed=rng, outer="unit")
        skip = rng.standard_normal((net.n_inputs, net.n_outputs)) if number % 2 else None
        result.append(unweave.Network(net.weights, net.biases, net.activations, skip))
    return result


def round_trips(ending: str, layers: Sequence[int], seed: int) -> Run:
    """Write and read all networks of one seed in one format."""
    spent = {"write": 0.0, "read": 0.0}
    exact, size = True, 0
    wall, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"net{ending}"
        for net in networks(layers, seed):
            began = time.process_time()
            net.save(path)
            written = time.process_time()
            exact &= unweave.load(path) == net
            spent["write"] += written - began
            spent["read"] += time.process_time() - written
            size += path.stat().st_size
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    extra = {"write_seconds": spent["write"], "read_seconds": spent["read"], "megabytes": size / 1e6}
    return Run(
        seed,
        exact,
        0.0 if exact else 1.0,
        seconds=wall,
        cpu_seconds=cpu,
        extra=extra,
        peak_rss_mb=peak_rss_mb(),
    )


def onnx_answers(dtype: Dtype, layers: Sequence[int], seed: int) -> Run:
    """Run all networks of one seed in onnxruntime, and in NumPy on the parameters that were written."""
    import onnxruntime

    worst, wall, cpu = 0.0, time.perf_counter(), time.process_time()
    x = np.random.default_rng(seed).standard_normal((POINTS, layers[0])).astype(dtype)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        for net in networks(layers, seed):
            net.save(path, dtype)
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            expected = unweave.load(path)(x)
            error = np.abs(session.run(None, {"input": x})[0] - expected).max() / max(
                1.0, np.abs(expected).max()
            )
            worst = max(worst, float(error / np.finfo(dtype).eps))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    error = worst * float(np.finfo(dtype).eps)
    return Run(
        seed,
        worst <= MOST_ULPS,
        error,
        seconds=wall,
        cpu_seconds=cpu,
        extra={"ulps": worst},
        peak_rss_mb=peak_rss_mb(),
    )


def imported(statement: str, seed: int) -> Run:
    """CPU and wall seconds of ``statement`` in a new process, measured inside it."""
    code = (
        "import sys, time; wall, cpu = time.perf_counter(), time.process_time(); "
        f"{statement}; "
        "print(time.perf_counter() - wall, time.process_time() - cpu, "
        f"*[name for name in {OPTIONAL!r} if name in sys.modules])"
    )
    # Compiled files are kept, as they are for a user: without them, most of the time is the compiler's.
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    for _ in range(2):  # the first one compiles what has changed
        told = subprocess.run(command, check=True, capture_output=True, text=True, env=variables)
    wall, cpu, *loaded = told.stdout.split()
    return Run(seed, not loaded, 0.0, seconds=float(wall), cpu_seconds=float(cpu), peak_rss_mb=peak_rss_mb())


def row(setting: str, runs: list[Run]) -> Row:
    """Medians of what was spent, the worst of what was measured."""
    more: dict[str, Any] = {}
    for key in runs[0].extra:
        values = [run.extra[key] for run in runs]
        more[key] = float(max(values) if key == "ulps" else np.median(values))
    say(f"file_formats: {setting}, {sum(run.recovered for run in runs)} of {len(runs)}")
    return summarise(setting, runs, **more)


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:5", f"layers {QUICK_LAYERS}, 1 seed").parse_args(argv)
    layers = QUICK_LAYERS if arguments.quick else LAYERS
    seeds = seeds_of(arguments, 5, 1)
    rows = [row(ending, [round_trips(ending, layers, seed) for seed in seeds]) for ending in FORMATS]
    for dtype in DTYPES:
        rows.append(row(f"onnxruntime {dtype}", [onnx_answers(dtype, layers, seed) for seed in seeds]))
    for setting, statement in IMPORTS.items():
        rows.append(row(setting, [imported(statement, seed) for seed in seeds]))
    assert all(COMMON.keys() <= entry.keys() for entry in rows)
    tell(rows, COLUMNS, arguments.json)
    return rows


if __name__ == "__main__":
    main()
