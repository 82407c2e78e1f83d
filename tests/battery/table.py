"""Print outcomes as a table by family, and every bad case: ``python -m battery.table results.jsonl``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from battery.catalogue import FAMILIES
from battery.judge import BAD

Outcome = dict[str, Any]
WORDS = ("wrong", "structure", "crash", "far", "thin", "missed")
"""Verdicts that are counted, the worst first."""


def read(path: Path) -> list[Outcome]:
    """Outcomes of a file with one per line."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def table(outcomes: Sequence[Outcome]) -> str:
    """One line per family and one for all."""
    head = ("family", "n", "in class", "recovered", *WORDS, "late", "CPU s", "longest")
    rows = [head]
    for family in [*FAMILIES, ""]:
        chosen = [each for each in outcomes if family in ("", each["family"])]
        if chosen:
            rows.append((family or "all", *_counts(chosen)))
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(lines)


def _counts(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    def count(holds: Callable[[Outcome], bool]) -> str:
        return str(sum(map(holds, outcomes)) or "")

    seconds = [each["cpu"] for each in outcomes]
    return (
        str(len(outcomes)),
        count(lambda each: each["in_class"]),
        count(lambda each: each["status"].startswith("RECOVERED")),
        *(count(lambda each, word=word: each["verdict"] == word) for word in WORDS),
        count(lambda each: each["late"]),
        f"{np.nanmean(seconds):.2f}",
        f"{np.nanmax(seconds):.1f}",
    )


def bad_cases(outcomes: Sequence[Outcome]) -> str:
    """One line for every case that is not as it should be, the worst first."""
    shown = [each for each in outcomes if each["verdict"] in WORDS or each["late"]]
    shown.sort(key=lambda each: ((*WORDS, "ok").index(each["verdict"]), each["family"], each["index"]))
    return "\n".join(describe(each) for each in shown)


def describe(outcome: Outcome) -> str:
    """Index, family, verdict and why, status and network."""
    late = f" LATE {outcome['wall']:.0f} s" if outcome["late"] else ""
    told = f"{outcome['status']} {outcome.get('network') or ''}"
    judged = f"{outcome['index']:5d} {outcome['family']}: {outcome['verdict']}{late}: {outcome['reason']}"
    return f"{judged} | {told} | {outcome.get('message', '')}"


def is_bad(outcome: Outcome) -> bool:
    """Whether this may not happen."""
    return outcome["verdict"] in BAD or bool(outcome["late"])


def main() -> None:
    """Print the table of a file."""
    outcomes = read(Path(sys.argv[1]))
    print(table(outcomes), bad_cases(outcomes), sep="\n\n")


if __name__ == "__main__":
    main()
