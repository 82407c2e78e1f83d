"""Rows per second through an HTTP endpoint, beside what the model and its server could do without a network.

The reference server runs in a process of its own on loopback; the adapter asks it for networks of 10-8-1,
50-100-1 and 784-32-10. Yardsticks, both in one process and one thread: the model alone (rows in, answers
out), and the server's function (JSON text in, JSON text out), which every request has to go through. CPU
seconds are those of the client. The time is the fastest of the repetitions (--seeds), since nothing can make
it too small. In JSON, "recovered" says whether all answers are those of the model, bit for bit.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import unweave
from harness import COMMON, Row, parser, peak_rss_mb, say, seeds_of, tell
from unweave.serving import load_model
from unweave.serving.model import answer_body
from unweave.targets import HttpOptions, open_http_target
from unweave.targets.adapters.http_messages import request_body

SETTINGS = (((10, 8, 1), 50_000), ((50, 100, 1), 20_000), ((784, 32, 10), 2_000))
"""Widths, rows per repetition."""
QUICK = ((10, 8, 1), 5_000)
CONCURRENCY = 2
COLUMNS = {
    "setting": "setting",
    "seeds": "repetitions",
    "rows": "rows",
    "batch_rows": "rows per request",
    "adapter_rows_per_second": "adapter, rows/s",
    "server_rows_per_second": "server's function, rows/s",
    "model_rows_per_second": "model alone, rows/s",
    "of_server": "adapter / server's function",
    "of_model": "adapter / model",
    "cpu_seconds": "client CPU s",
    "connections": "connections",
    "worst_parameter_error": "largest difference of answers",
}


def fastest(repetitions: int, ask: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds of the fastest of several calls."""
    best, best_cpu = math.inf, math.inf
    for _ in range(repetitions):
        wall, cpu = time.perf_counter(), time.process_time()
        ask()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if wall < best:
            best, best_cpu = wall, cpu
    return best, best_cpu


def measure(widths: Sequence[int], rows: int, repetitions: int) -> Row:
    """The row of one setting."""
    name = "-".join(map(str, widths))
    say(f"http_throughput: {name}, {rows} rows")
    x = np.random.default_rng(0).standard_normal((rows, widths[0]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.npz"
        unweave.random_network(list(widths), activation="tanh", seed=0, outer="normal").save(path)
        model = load_model(path)
        alone, _ = fastest(repetitions, lambda: model(x))
        command = [sys.executable, "-m", "unweave", "serve-model", str(path), "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
            try:
                url = json.loads(process.stdout.readline())["url"]  # type: ignore[union-attr]
                with open_http_target(url, HttpOptions(concurrency=CONCURRENCY)) as target:
                    difference = float(np.abs(target(x) - model(x)).max())
                    seconds, cpu = fastest(repetitions, lambda: target(x))
                    size = target.batch_rows
                    requests = target.requests
            finally:
                process.terminate()
        bodies = [
            request_body({"instances": "$rows"}, x[start : start + size]) for start in range(0, rows, size)
        ]
        server, _ = fastest(repetitions, lambda: [answer_body(model, body) for body in bodies])
    return {
        **dict.fromkeys(COMMON),
        "setting": name,
        "seeds": repetitions,
        "recovered": int(difference == 0) * repetitions,
        "wrong": 0,
        "worst_parameter_error": difference,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "stage_seconds": {},
        "peak_rss_mb": peak_rss_mb(),
        "rows": rows,
        "requests": requests,
        "connections": CONCURRENCY,
        "batch_rows": size,
        "adapter_rows_per_second": rows / seconds,
        "server_rows_per_second": rows / server,
        "model_rows_per_second": rows / alone,
        "of_server": server / seconds,
        "of_model": alone / seconds,
    }


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "5 repetitions", "10-8-1 only, 2 repetitions").parse_args(argv)
    settings = (QUICK,) if arguments.quick else SETTINGS
    repetitions = len(seeds_of(arguments, 5, 2))
    rows = [measure(widths, count, repetitions) for widths, count in settings]
    tell(rows, COLUMNS, arguments.json)
    return rows


if __name__ == "__main__":
    main()
