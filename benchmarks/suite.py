"""All recoveries of the suite, with stored results: one JSON line per run, in a file per commit.

    python benchmarks/suite.py [--rows smooth,deep] [--runs 3] [--store benchmarks/results]

A line holds the commit, the load of the machine, CPU seconds, rows asked, the parameter error, the status and
the peak of memory of one recovery in a process of its own, one BLAS thread. It also holds the CPU seconds of
fixed work in the same process, so that `compare` sees through a machine that was busy. Lines are appended as
runs end: a suite that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from harness import say
from recoveries import ROWS, measured

ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / "benchmarks" / "results"


def commit_of(root: Path = ROOT) -> str:
    """Return the commit of the source tree, with a plus if files differ from it; "unknown" without git."""
    commit = _git(root, "rev-parse", "--short=12", "HEAD")
    if commit is None:
        return "unknown"
    return commit + ("+" if _git(root, "status", "--porcelain", "--", "src") else "")


def _git(root: Path, *arguments: str) -> str | None:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the stored runs; none if there is no such file."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines() if line]


def run(rows: Sequence[str], runs: int, store: Path, seed: int = 1000) -> Path:
    """Run what the file of this commit lacks; return the file."""
    store.mkdir(parents=True, exist_ok=True)
    commit = commit_of()
    file = store / f"{commit}.jsonl"
    done = {(line["case"], line["run"]) for line in read_lines(file)}
    for which in range(runs):
        for case in rows:
            if (case, which) in done:
                continue
            figures = measured(ROOT / "src", ROWS[case], seed)
            line = {"commit": commit, "case": case, "run": which, "seed": seed, **figures, **_machine()}
            with file.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
            say(f"{case}: {figures['status']}, {figures['cpu_seconds']:.2f} CPU s, {figures['rows']:,} rows")
    return file


def _machine() -> dict[str, Any]:
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "threads": 1,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def main(argv: Sequence[str] | None = None) -> Path:
    """Run the suite and name its file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default="", help="parts of names, separated by commas")
    parser.add_argument("--runs", type=int, default=1, help="runs per row; compare takes the quickest")
    parser.add_argument("--store", type=Path, default=STORE)
    arguments = parser.parse_args(argv)
    wanted = [part for part in arguments.rows.split(",") if part]
    rows = [name for name in ROWS if not wanted or any(part in name for part in wanted)]
    file = run(rows, arguments.runs, arguments.store)
    print(file)
    return file


if __name__ == "__main__":
    main()
