"""Run the battery, from ``tests``: ``python -m battery.run --stop 2000 --jobs 2 --out results.jsonl``.

``--only 17`` runs one case again and prints everything about it.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from battery.catalogue import COUNT, FAMILIES, family_of
from battery.pool import outcomes
from battery.table import bad_cases, table

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""The matrices are small: a second thread only waits."""


def main() -> None:
    """Run what the command line says."""
    arguments = _arguments()
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")  # read by the processes that compute, which start after this
    if arguments.only is not None:
        for outcome in outcomes([arguments.only], arguments.deadline, 1):
            print(json.dumps(outcome, indent=2))
        return
    indices = [
        index
        for index in range(arguments.start, arguments.stop)
        if arguments.family in (None, family_of(index))
    ]
    done = []
    with arguments.out.open("w") as file:
        for outcome in outcomes(indices, arguments.deadline, arguments.jobs):
            done.append(outcome)
            print(json.dumps(outcome), file=file, flush=True)
    print(table(done), bad_cases(done), sep="\n\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--stop", type=int, default=COUNT)
    parser.add_argument("--family", choices=list(FAMILIES))
    parser.add_argument("--only", type=int, metavar="INDEX")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--deadline", type=float, default=30.0, help="seconds per case")
    parser.add_argument("--out", type=Path, default=Path("results.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
