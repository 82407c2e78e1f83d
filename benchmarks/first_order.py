"""First-order methods: certified steps on a known function, and the role of xi and beta_1 on digits.

- **certified**: f = sum x^2/(1 + x^2) in 10 variables: gradients until |grad f| <= eps against the bound T;
  recovered: f never rose and T was kept. The first row goes to 1e-9 and its parameter error is |x|;
- **digits**: a weight-tied ReLU autoencoder (64 inputs, 20 hidden units) on scikit-learn's bundled digits,
  600 images to learn and 1197 to test, 500 full-batch steps. For each setting the best of a grid of steps by
  training loss, as in the published experiments: losses, |grad|, lambda_min and lambda_max of the Hessian at
  the end. Recovered: the loss fell below the variance of the images.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from harness import Row, Run, parser, peak_rss_mb, say, seeds_of, summarise, tell, unasked
from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.optimize.first_order import (
    Adam,
    FirstOrderMethod,
    NesterovGradient,
    RMSProp,
    corrected,
    descend,
)
from unweave.optimize.first_order_autoencoder import TiedAutoencoder
from unweave.optimize.first_order_steps import certified_step
from unweave.optimize.first_order_tracking import curvature_range

DIMENSION = 10
BOUND = math.sqrt(DIMENSION) * 3 * math.sqrt(3) / 8
MOST = 200_000  # gradients
CERTIFIED: tuple[tuple[str, dict[str, Any]], ...] = tuple(
    (name, {**setting, "sharper": sharper})
    for name, setting in (
        ("rmsprop", {"accuracy": 0.01, "shift": 1.0, "beta2": 0.9}),
        ("rmsprop", {"accuracy": 0.01, "shift": 0.1, "beta2": 0.9}),
        ("rmsprop", {"accuracy": 0.01, "shift": 0.01, "beta2": 0.99}),
        ("adam", {"accuracy": 0.3}),
        ("adam", {"accuracy": 0.1}),
    )
    for sharper in (False, True)
)
IMAGES, WIDTH, STEPS = 600, 20, 500
GRID = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0)
Maker = Callable[[float], FirstOrderMethod]
METHODS: dict[str, Maker] = {
    **{
        f"ADAM, beta1={b1:g}, xi={xi:g}": lambda a, b1=b1, xi=xi: Adam(corrected(a, b1, 0.999), b1, 0.999, xi)
        for b1, xi in ((0.9, 1e-8), (0.9, 1e-4), (0.9, 1e-2), (0.9, 1.0), (0.0, 1e-8), (0.99, 1e-8))
    },
    **{f"RMSProp, xi={xi:g}": lambda a, xi=xi: RMSProp(a, 0.9, xi) for xi in (1e-10, 1e-6, 1e-3, 1e-1)},
    **{f"NAG, mu={mu:g}": lambda a, mu=mu: NesterovGradient(a, mu) for mu in (0.9, 0.99)},
}
COLUMNS = {
    "measured": "measured",
    "predicted": "predicted",
    "train": "train loss",
    "test": "test loss",
    "norm": "gradient norm",
    "least": "least norm",
    "lowest": "lambda_min",
    "highest": "lambda_max",
    "step": "step",
}


def value(x: Array) -> float:
    return float(np.sum(x**2 / (1 + x**2)))


def slope(x: Array) -> Array:
    return 2 * x / (1 + x**2) ** 2


def certified(kind: str, options: dict[str, Any], seed: int) -> Run:
    start = np.random.default_rng(seed).standard_normal(DIMENSION)
    options = dict(options)
    accuracy = options.pop("accuracy")
    found = certified_step(kind, 2.0, BOUND, value(start), accuracy, **options)
    values: list[float] = []
    wall, cpu = time.perf_counter(), time.process_time()
    run = descend(
        slope, start, found.method(), MOST, accuracy, lambda state, _: values.append(value(state.x))
    )
    kept = run.reached is not None and run.reached <= found.steps
    falling = bool((np.diff(values) <= 1e-15).all())
    extra = {"measured": run.reached or math.nan, "predicted": found.steps, "least": run.least}
    return Run(
        seed,
        kept and falling,
        float(np.linalg.norm(run.x)),
        seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        extra=extra,
    )


def digits(maker: Maker, seed: int) -> Run:
    from sklearn.datasets import load_digits

    images = load_digits().data / 16
    order = np.random.default_rng([seed, 0]).permutation(len(images))
    learnt, kept = images[order[:IMAGES]], images[order[IMAGES:]]
    model = TiedAutoencoder(learnt, WIDTH)
    start = model.start(np.random.default_rng([seed, 1]))
    wall, cpu = time.perf_counter(), time.process_time()
    runs = []
    for step in GRID:
        try:
            run = descend(model.gradient, start, maker(step), STEPS)
        except InvalidInput:  # diverged
            continue
        runs.append((model.loss(run.x), step, run))
    loss, step, run = min(runs, key=lambda entry: entry[0])
    low, high = curvature_range(model.hessian_product, run.x, np.random.default_rng([seed, 2]), 300)
    extra = {
        "train": loss,
        "test": model.loss(run.x, kept),
        "norm": float(run.norms[-1]),
        "least": run.least,
        "lowest": low,
        "highest": high,
        "step": step,
    }
    variance = float(np.sum(np.var(learnt, axis=0)))
    return Run(
        seed,
        loss < variance,
        seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        extra=extra,
    )


def measure(setting: str, run: Callable[[int], Run], seeds: range) -> Row:
    """The row of one claim: medians of its figures."""
    say(f"first order: {setting}")
    runs = [run(seed) for seed in seeds]
    figures: dict[str, float | None] = {}
    for key in COLUMNS:
        values = [entry.extra[key] for entry in runs if math.isfinite(entry.extra.get(key, math.nan))]
        figures[key] = float(np.median(values)) if values else None
    row = summarise(setting, runs, **figures)
    row["peak_rss_mb"] = peak_rss_mb()
    return row


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:3", "one setting of each kind, 1 seed").parse_args(argv)
    quick, seeds = arguments.quick, seeds_of(arguments, 3, 1)
    claims: list[tuple[str, Callable[[int], Run]]] = [
        ("gradient descent, eps=1e-09", partial(certified, "gradient descent", {"accuracy": 1e-9}))
    ]
    for kind, options in CERTIFIED[:1] if quick else CERTIFIED:
        named = ", ".join(f"{name}={value:g}" for name, value in options.items() if name != "sharper")
        way = "sharper" if options["sharper"] else "published"
        claims.append((f"{kind} {way}, {named}", partial(certified, kind, options)))
    makers = list(METHODS.items())[:1] if quick else METHODS.items()
    claims += [(f"digits, {name}", partial(digits, maker)) for name, maker in makers]
    rows = [measure(setting, run, seeds) for setting, run in claims]
    tell(rows, {**unasked("worst_fresh_error", "seconds"), **COLUMNS}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
