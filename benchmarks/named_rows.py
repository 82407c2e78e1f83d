"""Tables whose rows have names: chosen with --rows, run one by one, and not again once they are in a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from harness import Row, write_rows

T = TypeVar("T")


def print_rows(doc: str, rows: Iterable[str], header: str, measure: Callable[[str, int], None]) -> None:
    """Print a table whose rows say themselves what they measure, on seeds 0 to --seeds - 1."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--rows", default=",".join(rows), help="rows of the table, with commas between them")
    parser.add_argument("--seeds", type=int, default=10, help="0 to SEEDS - 1")
    arguments = parser.parse_args()
    print(header, "|---" * (header.count("|") - 1) + "|", sep="\n", flush=True)
    for row in arguments.rows.split(","):
        measure(row, arguments.seeds)


def read_rows(
    options: argparse.ArgumentParser,
    settings: Iterable[Any],
    quick: Iterable[Any],
    argv: Sequence[str] | None,
) -> tuple[argparse.Namespace, dict[str, Any]]:
    """What was typed, and the settings to run by their ``name``: all, those of --rows, or the quick ones."""
    known = {setting.name: setting for setting in settings}
    options.add_argument("--rows", type=chosen_from(known), metavar="NAME,..", help="only these rows")
    arguments = options.parse_args(argv)
    if arguments.rows is not None:
        return arguments, {name: known[name] for name in arguments.rows}
    return arguments, {setting.name: setting for setting in quick} if arguments.quick else known


def chosen_from(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Reader of --rows for an argument parser."""
    names = list(known)

    def read(text: str) -> list[str]:
        asked = text.split(",")
        if unknown := [name for name in asked if name not in names]:
            raise argparse.ArgumentTypeError(
                f"rows must be names of the table. Got {unknown[0]!r} instead. Choose from "
                f"{', '.join(names)}."
            )
        return asked

    return read


def measure_all(
    settings: Mapping[str, T],
    measure: Callable[[T, range], Row],
    seeds: range,
    file: Path | None,
    order: Sequence[str] | None = None,
) -> list[Row]:
    """The rows of ``settings`` (by name), those that ``file`` holds for these seeds read from there.

    They are run in ``order`` (default: as they stand) and returned as they stand.
    """
    rows: list[Row] = json.loads(file.read_text()) if file is not None and file.exists() else []

    def done() -> dict[str, Row]:
        return {row["name"]: row for row in rows if row["seeds_run"] == list(seeds)}

    for name in order if order is not None else settings:
        if name in done():
            continue
        rows.append({**measure(settings[name], seeds), "name": name, "seeds_run": list(seeds)})
        if file is not None:
            write_rows(rows, file)
    finished = done()
    return [finished[name] for name in settings]
