"""Compare the stored results of two commits: what became slower, dearer in rows, less exact or was lost.

    python benchmarks/compare.py BEFORE AFTER [--slower 1.2] [--store benchmarks/results]

BEFORE and AFTER are files of `suite.py` or beginnings of commits whose files are stored. Per recovery, the
quickest run counts. The ratio of CPU seconds is divided by that of the fixed work done in the same processes:
a busy machine slows both down. The exit status is 1 if anything is worse.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import Row, markdown
from suite import STORE, read_lines

COLUMNS = {
    "case": "recovery",
    "before": "CPU s before",
    "after": "after",
    "ratio": "ratio",
    "rows": "rows before, after",
    "error": "error before, after",
    "worse": "worse",
}
WORTH_TELLING = 0.05
"""CPU seconds by which a recovery must have become slower: shorter differences are the clock's."""
MORE_ROWS = 1.02
"""Ratio of rows from which they count as more."""
LESS_EXACT = 100.0
"""Ratio of parameter errors from which a result counts as less exact: rounding varies by tens."""
LEAST_ERROR = 1e-12
"""Error below which exactness is not compared."""


def stored(name: str, store: Path) -> Path:
    """Return the file called ``name``, or the one of the commit that begins so."""
    if Path(name).is_file():
        return Path(name)
    found = sorted(store.glob(f"{name}*.jsonl"))
    if len(found) != 1:
        known = ", ".join(sorted(file.stem for file in store.glob("*.jsonl"))) or "none"
        raise SystemExit(f"{name!r} must be a file, or begin one stored commit. Stored: {known}.")
    return found[0]


def quickest(lines: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the quickest run of every recovery."""
    best: dict[str, dict[str, Any]] = {}
    for line in lines:
        known = best.get(line["case"])
        if known is None or _pace(line) < _pace(known):
            best[line["case"]] = line
    return best


def _pace(line: dict[str, Any]) -> float:
    """CPU seconds in units of the fixed work."""
    return float(line["cpu_seconds"]) / float(line["reference_seconds"])


def compare(
    before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], slower: float = 1.2
) -> list[Row]:
    """Return a row for every recovery that both have, worst ratio first."""
    first, second = quickest(before), quickest(after)
    rows = [_row(first[case], second[case], slower) for case in first if case in second]
    return sorted(rows, key=lambda row: -row["ratio"])


def _row(before: dict[str, Any], after: dict[str, Any], slower: float) -> Row:
    ratio = _pace(after) / _pace(before)
    longer = after["cpu_seconds"] - before["cpu_seconds"] * (
        after["reference_seconds"] / before["reference_seconds"]
    )
    worse = []
    if ratio > slower and longer > WORTH_TELLING:
        worse.append("slower")
    if after["rows"] > MORE_ROWS * before["rows"]:
        worse.append("more rows")
    if before["status"] == "RECOVERED" != after["status"]:
        worse.append(f"now {after['status']}")
    errors = before["error"], after["error"]
    if None not in errors and errors[1] > LESS_EXACT * max(errors[0], LEAST_ERROR):
        worse.append("less exact")
    return {
        "case": before["case"],
        "before": before["cpu_seconds"],
        "after": after["cpu_seconds"],
        "ratio": ratio,
        "rows": [before["rows"], after["rows"]],
        "error": list(errors),
        "worse": ", ".join(worse),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return how many recoveries are worse."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--slower", type=float, default=1.2, help="ratio that counts as a slow-down")
    parser.add_argument("--store", type=Path, default=STORE)
    arguments = parser.parse_args(argv)
    files = [stored(name, arguments.store) for name in (arguments.before, arguments.after)]
    rows = compare(*(read_lines(file) for file in files), slower=arguments.slower)
    print(markdown(rows, COLUMNS))
    worse = sum(bool(row["worse"]) for row in rows)
    print(f"\n{len(rows)} recoveries, {worse} worse")
    return worse


if __name__ == "__main__":
    sys.exit(bool(main()))
