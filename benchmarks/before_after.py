"""CPU seconds and queries of the same recoveries in two source trees, runs interleaved.

    python benchmarks/before_after.py --before ../before/src --after src [--rows smooth,deep] [--runs 3]

Each run is a process of its own with one BLAS thread. The table gives the medians, their ratio, and whether
queries, status and widths are the same.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from recoveries import ROWS, measured


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
                figures = measured(tree.resolve(), arguments)
                seconds[which].append(figures["cpu_seconds"])
                outcomes.append([figures[key] for key in ("rows", "status", "hidden")])
        before, after = (statistics.median(seconds[which]) for which in ("before", "after"))
        same = all(outcome == outcomes[0] for outcome in outcomes)
        told = "yes" if same else f"NO: {outcomes[0]} {outcomes[1]}"
        print(f"{name:34} {before:8.2f} {after:8.2f} {after / before:6.2f}  {told}", flush=True)


if __name__ == "__main__":
    main()
