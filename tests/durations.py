"""Choose the tests that `make test` leaves to `make test-long`, from measured seconds.

    python tests/durations.py results.xml [--seconds 500]

reads what ``pytest --junitxml=results.xml`` wrote and lists in ``tests/long_tests.txt`` the longest cases,
until the others together take ``--seconds`` of one core. A function that has several cases keeps its
quickest one.
"""

from __future__ import annotations

import argparse
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

LIST = Path(__file__).with_name("long_tests.txt")


def long_tests() -> frozenset[str]:
    """Return the listed cases, each as ``package.module::name[case]``."""
    return frozenset(LIST.read_text().splitlines()) if LIST.exists() else frozenset()


def longest(seconds: dict[str, float], allowed: float) -> list[str]:
    """Return the cases to leave out so that the others take no more than ``allowed`` seconds."""
    cases = defaultdict(list)
    for name in seconds:
        cases[name.partition("[")[0]].append(name)
    kept = {min(names, key=lambda name: seconds[name]) for names in cases.values() if len(names) > 1}
    left, total = [], sum(seconds.values())
    for name in sorted(seconds, key=lambda name: -seconds[name]):
        if total <= allowed:
            break
        if name not in kept:
            left.append(name)
            total -= seconds[name]
    return sorted(left)


def measured(results: Iterable[ElementTree.Element]) -> dict[str, float]:
    """Return the seconds of every case."""
    return {
        f"{case.get('classname', '').removeprefix('tests.')}::{case.get('name')}": float(case.get("time", 0))
        for case in results
    }


def main() -> None:
    """Write the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--seconds", type=float, default=500.0, help="of the tests that stay")
    arguments = parser.parse_args()
    seconds = measured(ElementTree.parse(arguments.results).iter("testcase"))
    chosen = longest(seconds, arguments.seconds)
    LIST.write_text("".join(f"{name}\n" for name in chosen))
    rest = sum(seconds.values()) - sum(seconds[name] for name in chosen)
    print(f"{len(chosen)} of {len(seconds)} cases are long; the others take {rest:.0f} s")


if __name__ == "__main__":
    main()
