"""How cost grows: CPU seconds, rows and peak memory against inputs, width, depth, outputs and parameters.

    python benchmarks/growth.py [--out docs] [--only width]

Every point is a recovery in a process of its own, one BLAS thread; the median of its runs counts. Exponents
are slopes of least squares on log axes. Beside them stand those of the formulas, evaluated at the same
sizes: there a sum of powers has another slope than its leading term. Rows are those of the search, the first
look and the last check. Seconds are the matrix products of all stages, at the speed that the same process
measured, beside the interpreter's own work, for which a network too small for products to count is measured.
The last column divides the CPU seconds at the largest size by the products alone. Writes growth.md and
growth.png.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from harness import Row, environment, markdown, say
from recoveries import measured
from suite import ROOT, commit_of
from unweave.methods.smooth.random_slice import SliceOptions, slice_parameters

FLOPS_OF_REFERENCE = 6 * 2 * 700**3
"""Of the fixed work of `recoveries`, nearly all of it in matrix products."""
AGREES = 0.3
"""Difference of exponents up to which they agree."""
STARTS_PER_UNIT = 2.2
POWER_STEPS = 45
NEWTON_STEPS = 6
INNER_STEPS = 900
"""Measured means of the searches, in which the bound counts products."""
LOOK_AND_CHECK = 560
"""Rows of the first look at a target and of the last check, which every recovery asks."""
SLICES = SliceOptions()


@dataclass(frozen=True)
class Bound:
    """Rows asked and flops of matrix products at one size, the target's own included."""

    rows: float
    flops: float


@dataclass(frozen=True)
class Sweep:
    """One quantity that grows while all else stays."""

    quantity: str
    values: tuple[int, ...]
    network: Callable[[int], str]
    """Arguments of the recovery at one value, in the words of `recoveries.ROWS`."""
    bound: Callable[[int], Bound]
    small: Callable[[int], str]
    """Arguments of a recovery with few units, whose seconds are the interpreter's and those of long rows."""
    reason: str
    """Where the formula comes from, and why the measured slopes may differ."""
    overhead: Callable[[int], float] = lambda value: 1.0
    """How often the small network's seconds are spent at one value."""
    runs: int = 1


def smooth_bound(inputs: int, width: int, outputs: int = 1, told: bool = True) -> Bound:
    """One smooth hidden layer through lattices on a slice."""
    cost = SLICES.cheapest(inputs, width, outputs)
    assert cost is not None
    d = cost.dimension
    packed = d * (d + 1) // 2
    side = min(width, packed - width, packed // 2)
    step = 4 * packed * side
    newton = 2 * d * d * (2 * min(width, packed - width) + d)
    power = STARTS_PER_UNIT * width * (POWER_STEPS * step + NEWTON_STEPS * newton)
    members = cost.lattice / math.comb(d + 3, 3) * (d + 1) * outputs
    span = 6 * members * packed * min(members, packed)
    parameters = slice_parameters(width, d, outputs)
    if SLICES.fits_slopes(width, d, outputs):
        fit = INNER_STEPS * 12.0 * SLICES.stars_needed(width, d, outputs) * d * width * outputs
    else:
        fit = 2.0 * SLICES.surplus * parameters**3
    asked = 2.0 * cost.rows * width * (inputs + outputs)
    return Bound(cost.rows + LOOK_AND_CHECK, power + span + fit + asked)


def deep_bound(widths: Sequence[int]) -> Bound:
    """Rows per parameter and Gauss-Newton through J^T J, which are the same for every depth."""
    parameters = sum((a + 1) * b for a, b in pairwise(widths))
    return Bound(parameters * len(widths) + LOOK_AND_CHECK, 10.0 * parameters**3)


def relu_bound(inputs: int, width: int) -> Bound:
    """Rows and products of one long line and the units it meets."""
    rows = 3.1 * width * (inputs + 2) + LOOK_AND_CHECK
    return Bound(rows, 2.0 * width**3 + rows * 2 * width * inputs)


def full_width(inputs: int) -> int:
    """Return 2/5 D^2, the width of the headline."""
    return math.ceil(0.4 * inputs**2 - 1e-9)


def pyramid(depth: int) -> list[int]:
    """Return the widths of ``depth`` hidden layers."""
    return [14, *(12 - 2 * layer for layer in range(depth)), 1]


SWEEPS = {
    "inputs": Sweep(
        "D",
        (20, 40, 80, 160, 320),
        lambda v: f"net([{v}, 24, 1], 'tanh', outer='signed'), [24], 'tanh'",
        lambda v: smooth_bound(v, 24),
        lambda v: f"net([{v}, 4, 1], 'tanh', outer='signed'), [4], 'tanh'",
        "24 tanh units, told: a slice of few directions costs the same for all D, then 1.1 m (D - d) rows. "
        "Seconds are those of the slice, of the interpreter and, where rows are long, of copying them, which "
        "the formula takes from networks of 4 units; they ask fewer rows, so that its slope is flatter.",
    ),
    "width": Sweep(
        "m",
        (20, 40, 80, 160, 320),
        lambda v: f"net([30, {v}, 1], 'tanh', outer='ones'), [{v}], 'tanh'",
        lambda v: smooth_bound(30, v),
        lambda v: "net([30, 4, 1], 'tanh', outer='signed'), [4], 'tanh'",
        "30 inputs, told: the slice has d ~ sqrt(2.5 m) directions, so that lattices take m d^2 / 6 ~ m^2 "
        "rows, beside 1.1 m (D - d) ~ m. The power method is m p^2 ~ m^3, a factored fit m^3 d^3, which "
        "conjugate gradients replace beyond 6,000 parameters: that is a step down between 160 and 320.",
    ),
    "full width": Sweep(
        "D",
        (25, 30, 35, 40),
        lambda v: f"net([{v}, {full_width(v)}, 1], 'tanh', outer='ones'), [{full_width(v)}], 'tanh'",
        lambda v: smooth_bound(v, full_width(v)),
        lambda v: f"net([{v}, 4, 1], 'tanh', outer='signed'), [4], 'tanh'",
        "m = 2/5 D^2, told: 1.1 m D^2 / 6 ~ D^4 rows, m p^2 ~ D^6 products in the power method, which "
        "is first at D = 50 only, and m^2 D ~ D^5 per product of conjugate gradients in the fit. Smaller "
        "networks have a factored fit, which costs as much as D = 25 does: they are left out. What is no "
        "product, asking and differences of rows above all, grows like the rows: seconds are between both.",
    ),
    "outputs": Sweep(
        "K",
        (1, 2, 4, 8, 16),
        lambda v: f"net([20, 40, {v}], 'tanh', outer='normal'), [40], 'tanh'",
        lambda v: smooth_bound(20, 40, v),
        lambda v: f"net([20, 4, {v}], 'tanh', outer='signed'), [4], 'tanh'",
        "20-40-K, told: every lattice row shows K members of the span, so that rows fall until three sites "
        "are left. Generic outer weights mirror the lattices where few outputs are seen, which doubles rows "
        "there.",
    ),
    "depth": Sweep(
        "layers",
        (1, 2, 3, 4),
        lambda v: f"net({pyramid(v)}, 'tanh', outer='normal'), {pyramid(v)[1:-1]}, 'tanh'",
        lambda v: deep_bound(pyramid(v)),
        lambda v: "net([14, 4, 1], 'tanh', outer='normal'), [4], 'tanh'",
        "tanh pyramids 14-12-10-8-6-1, told: each layer is peeled with its own rows. One layer goes through "
        "a slice, two and more through the far field, so that the first step is a change of method. "
        "What lies behind the first layer is fitted under a falling ridge, with surplus units that are left "
        "out again: hundreds of steps for four layers, which no formula counts, so that seconds rise faster.",
    ),
    "width, ReLU": Sweep(
        "m",
        (40, 80, 160, 320),
        lambda v: f"net([160, {v}, 1], 'relu', outer='signed')",
        lambda v: relu_bound(160, v),
        lambda v: "net([160, 40, 1], 'relu', outer='signed')",
        "160 inputs, nothing told: 3.1 rows per parameter. Seconds are those of the interpreter and of "
        "copying rows, unit by unit, so that they grow with m; products would grow with m^2. Smaller "
        "layers are polished with all parameters at once, which costs more than all else, and are left out.",
        overhead=lambda v: v / 40,
    ),
}


def exponent(sizes: Sequence[float], figures: Sequence[float]) -> float:
    """Slope of log figures over log sizes."""
    return float(np.polyfit(np.log(sizes), np.log(figures), 1)[0])


def points_of(sweep: Sweep) -> list[Row]:
    """Measure a sweep; one row per value."""
    rows, small = [], dict.fromkeys(map(sweep.small, sweep.values), 0.0)
    for case in small:
        small[case] = measured(ROOT / "src", case, 0)["cpu_seconds"]
    for value in sweep.values:
        runs = [measured(ROOT / "src", sweep.network(value), seed) for seed in range(sweep.runs)]
        bound = sweep.bound(value)
        row: Row = {
            key: statistics.median(run[key] for run in runs)
            for key in ("cpu_seconds", "rows", "peak_mb", "parameters", "reference_seconds")
        }
        speed = FLOPS_OF_REFERENCE / row["reference_seconds"]
        row |= {
            "value": value,
            "recovered": f"{sum(run['status'] == 'RECOVERED' for run in runs)} of {len(runs)}",
            "error": max((run["error"] for run in runs if run["error"] is not None), default=None),
            "load": max(run["load"] for run in runs),
            "bound_rows": bound.rows,
            "product_seconds": bound.flops / speed,
            "bound_seconds": bound.flops / speed + small[sweep.small(value)] * sweep.overhead(value),
            "ratio": row["cpu_seconds"] * speed / bound.flops,
        }
        say(f"  {sweep.quantity} = {value}: {row['recovered']}, {row['cpu_seconds']:.2f} CPU s")
        rows.append(row)
    return rows


def summary(name: str, sweep: Sweep, rows: Sequence[Row]) -> Row:
    """Exponents of one sweep beside those of its formulas."""
    sizes = [row["value"] for row in rows]
    fitted = {key: exponent(sizes, [row[key] for row in rows]) for key in ("rows", "cpu_seconds", "peak_mb")}
    theory = {
        "rows": exponent(sizes, [row["bound_rows"] for row in rows]),
        "cpu_seconds": exponent(sizes, [row["bound_seconds"] for row in rows]),
    }
    agree = [key for key in theory if abs(fitted[key] - theory[key]) <= AGREES]
    return {
        "sweep": f"{name} ({sweep.quantity})",
        "rows": f"{fitted['rows']:.2f} [{theory['rows']:.2f}]",
        "cpu": f"{fitted['cpu_seconds']:.2f} [{theory['cpu_seconds']:.2f}]",
        "memory": f"{fitted['peak_mb']:.2f}",
        "agrees": "both"
        if len(agree) == 2
        else {"rows": "rows", "cpu_seconds": "seconds"}.get(*agree, "-")
        if agree
        else "neither",
        "ratio": rows[-1]["ratio"],
    }


def draw(measured_rows: Mapping[str, Sequence[Row]], sweeps: Mapping[str, Sweep], file: Path) -> None:
    """Draw every sweep on log axes: measured points, and formulas through the last one."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    figures = {"rows": "rows asked", "cpu_seconds": "CPU seconds", "peak_mb": "peak MB"}
    figure, axes = plt.subplots(
        len(measured_rows), 3, figsize=(10, 2.4 * len(measured_rows)), squeeze=False, layout="constrained"
    )
    for line, (name, rows) in zip(axes, measured_rows.items(), strict=True):
        sizes = [row["value"] for row in rows]
        for axis, (key, title) in zip(line, figures.items(), strict=True):
            axis.loglog(sizes, [row[key] for row in rows], "o-", label="measured")
            formula = {"rows": "bound_rows", "cpu_seconds": "bound_seconds"}.get(key)
            if formula is not None:
                axis.loglog(sizes, [row[formula] for row in rows], "--", color="gray", label="formula")
            axis.set_xticks(sizes, [str(size) for size in sizes])
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
            for side in (axis.xaxis, axis.yaxis):
                side.set_minor_formatter(NullFormatter())
            axis.set_xlabel(f"{name}: {sweeps[name].quantity}")
            axis.set_ylabel(title)
    axes[0][0].legend()
    figure.savefig(file, dpi=90)
    plt.close(figure)


POINTS = {
    "value": "size",
    "parameters": "parameters",
    "recovered": "recovered",
    "error": "worst error",
    "rows": "rows",
    "bound_rows": "formula",
    "cpu_seconds": "CPU s",
    "bound_seconds": "formula's s",
    "product_seconds": "products alone",
    "peak_mb": "peak MB",
}
SUMMARY = {
    "sweep": "what grows",
    "rows": "rows",
    "cpu": "CPU seconds",
    "memory": "peak memory",
    "agrees": "within 0.3",
    "ratio": "CPU s / products at the largest size",
}

MANY_MACHINES = """## Where one machine ends

What is shared out are blocks of 256 starts of the power method, profiles of units, and the target's own
rows; the final fit stays on one machine, because its products touch all units and sites at every step.
With t seconds per task and o of overhead per task, N workers turn a stage of T seconds into T/N (1 +
o/t) at best. A block of 256 starts takes 0.4 s at D = 30, m = 360 and 1.5 s at D = 50, m = 1000, and
there are about 2.2 m / 256 of them: 9 for the largest network, so that more than 9 workers gain nothing
there. A thousand workers pay where the target itself is slow: its rows are independent, and 10 rows per
parameter at 10 ms each are 1.4 hours on one worker and 5 s on a thousand for m = 1000, D = 50. What they
do not speed up is the fit, 40 CPU seconds there.
"""


def page(measured_rows: Mapping[str, Sequence[Row]], sweeps: Mapping[str, Sweep]) -> str:
    """Return the page in Markdown."""
    load = max(row["load"] for rows in measured_rows.values() for row in rows)
    everything = [row for rows in measured_rows.values() for row in rows]
    by_parameters = [
        exponent([row["parameters"] for row in rows], [row["rows"] for row in rows])
        for rows in measured_rows.values()
    ]
    pooled = exponent([row["parameters"] for row in everything], [row["rows"] for row in everything])
    lines = [
        "# How cost grows",
        "",
        f"Written by `python benchmarks/growth.py` at {commit_of()}. {environment()}; seed 0. "
        f"The load of the machine was up to {load:.1f}: CPU seconds are given, not wall-clock ones, "
        "and busy cores make them longer. In brackets are the exponents of the formulas at the same sizes: "
        "rows of the search, the first look and the last check; seconds of the matrix products of all "
        "stages and of the interpreter, measured on a network too small for products to count. Memory "
        "includes some 110 MB of the interpreter, so that its exponents are small.",
        "",
        markdown([summary(name, sweeps[name], rows) for name, rows in measured_rows.items()], SUMMARY),
        "",
        f"Rows against the number of parameters P: exponent {pooled:.2f} over all points, "
        f"{min(by_parameters):.2f} to {max(by_parameters):.2f} within the sweeps.",
        "",
        "![Cost against size](growth.png)",
        "",
    ]
    for name, rows in measured_rows.items():
        lines += [f"## {name}", "", sweeps[name].reason, "", markdown(rows, POINTS), ""]
    return "\n".join([*lines, MANY_MACHINES])


def main(argv: Sequence[str] | None = None, sweeps: Mapping[str, Sweep] = SWEEPS) -> dict[str, Any]:
    """Measure all sweeps, write the page and its picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    parser.add_argument("--only", default="", help="sweeps, separated by commas")
    arguments = parser.parse_args(argv)
    wanted = [part.strip() for part in arguments.only.split(";") if part.strip()]
    chosen = {name: sweep for name, sweep in sweeps.items() if not wanted or name in wanted}
    results = {}
    for name, sweep in chosen.items():
        say(f"growth: {name}")
        results[name] = points_of(sweep)
    (arguments.out / "growth.md").write_text(page(results, chosen))
    draw(results, chosen, arguments.out / "growth.png")
    print(markdown([summary(name, chosen[name], rows) for name, rows in results.items()], SUMMARY))
    return results


if __name__ == "__main__":
    main()
