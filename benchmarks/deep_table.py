"""Networks of two to five hidden layers, widths told, nothing else: one row per architecture.

    weight vectors uniform on the sphere times lengths U(0.6, 1.6), biases N(0, 0.5^2), in every layer
    "unit": lengths 1, biases N(0, 0.05^2) (the source's law);   "steep": lengths U(2, 5), for sigmoid units

Brackets list all layers, the output last; the number before them is that of the inputs. Units are tanh and
outputs linear unless the row says otherwise; the recovery is told neither. Three groups of rows go past a
plain pyramid: five hidden layers or a width that falls by one, one output alone, and equal widths in a row.

``--rows 20:20-15-1,30:30-20-12-6`` chooses rows. With --json the file is written after every row, and rows
that it already holds are not run again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

import unweave
from harness import COMMON, Row, Run, parser, run_recovery, say, seeds_of, summarise, tell
from named_rows import measure_all, read_rows
from planted import LAWS, planted_network

COLUMNS = {
    **COMMON,
    "max_seconds": "most seconds",
    "stage_queries": "queries per stage",
    "most_attempts": "most attempts at a layer",
    "retried": "seeds with a second attempt",
    "failed_seeds": "seeds not recovered",
}
"""Columns of all benchmarks of the deep route."""

_ORDER = ("look", "one layer", "layer", "output", "polish", "verification")
_SHARED = ("look", "polish", "verification")  # stages of every method


@dataclass(frozen=True)
class Setting:
    """What one row plants; ``widths`` has the output's last."""

    inputs: int
    widths: tuple[int, ...]
    output: str = "identity"
    law: str = "generic"
    activation: str = "tanh"

    @property
    def name(self) -> str:
        """What --rows calls it, such as 50:50-25-10:tanh:unit."""
        return ":".join([str(self.inputs), "-".join(map(str, self.widths)), *self._unusual(tanh="tanh")])

    @property
    def label(self) -> str:
        """What the table calls it."""
        widths = ",".join(map(str, self.widths))
        return ", ".join([f"{self.inputs} [{widths}]", *self._unusual(tanh="tanh output")])

    def _unusual(self, tanh: str) -> list[str]:
        parts = [
            (tanh, self.output == "tanh"),
            (self.law, self.law != "generic"),
            (self.activation, self.activation != "tanh"),
        ]
        return [part for part, holds in parts if holds]

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return sum((n_in + 1) * n_out for n_in, n_out in pairwise((self.inputs, *self.widths)))

    def plant(self, seed: int) -> unweave.Network:
        """The network of one seed."""
        return planted_network(
            self.inputs, self.widths, LAWS[self.law], seed, self.activation, output=self.output
        )


SETTINGS = (
    *(
        Setting(50, widths, output, "unit")
        for widths in ((50, 25, 10), (50, 25, 50), (50, 35, 25, 10))
        for output in ("tanh", "identity")
    ),
    Setting(50, (50, 35, 25, 10)),
    Setting(20, (20, 15, 1)),
    Setting(20, (15, 10, 1)),
    Setting(20, (10, 5, 1)),
    Setting(50, (50, 25, 1)),
    Setting(30, (30, 20, 12, 6)),
    Setting(30, (30, 20, 12, 1)),
    Setting(40, (40, 30, 20, 10, 5)),
    Setting(36, (36, 28, 20, 14, 8, 3)),
    Setting(20, (20, 19, 18, 4)),
    Setting(20, (20, 20, 5)),
    Setting(20, (20, 15, 15, 5)),
    Setting(20, (20, 20, 12, 5)),
    Setting(20, (20, 12, 3), law="steep", activation="sigmoid"),
    Setting(30, (30, 20, 12, 6), law="steep", activation="sigmoid"),
    Setting(20, (20, 12, 3), activation="erf"),
)
QUICK = (20, (10, 5, 1))


def stage_groups(result: unweave.Recovery) -> tuple[dict[str, float], dict[str, int]]:
    """Seconds and queries by group: look, layer 1, layer 2, .., output, polish, verification.

    "one layer" is what an attempt to explain the target by a single hidden layer took, its own fit and
    verification included; there is none when the depth is told.
    """
    seconds: dict[str, float] = {}
    queries: dict[str, int] = {}
    one_layer = False
    for stage in result.stages:
        group = _group(stage.name)
        if group not in _SHARED:
            one_layer = group == "one layer"
        elif one_layer and stage.name != "look":
            group = "one layer"
        seconds[group] = seconds.get(group, 0.0) + stage.seconds
        queries[group] = queries.get(group, 0) + stage.queries
    return seconds, queries


def _group(stage: str) -> str:
    words = stage.split()
    if words[0] == "layer":
        return " ".join(words[:2])
    if stage == "output layer":
        return "output"
    return stage if stage in _SHARED else "one layer"


def _place(group: str) -> tuple[int, int]:
    """Where a group stands in a row: the output is tried after every layer, and shown after the last."""
    if group.startswith("layer "):
        return _ORDER.index("layer"), int(group.split()[1])
    return _ORDER.index(group), 0


def deep_figures(result: unweave.Recovery) -> dict[str, Any]:
    """What a row of the deep route needs beyond what every row holds."""
    seconds, queries = stage_groups(result)
    recovered = result.status is unweave.Status.RECOVERED
    if not recovered:
        say(f"  {result.status.name}: {result.message}")
    return {
        "hidden": None if result.network is None else list(result.network.hidden),
        "group_seconds": seconds,
        "group_queries": queries,
        "attempts": max((layer.attempts for layer in result.evidence.layers), default=0),
        "message": None if recovered else "; ".join((result.message, *result.notes)),
    }


def deep_row(setting: str, runs: Sequence[Run], **more: Any) -> Row:
    """The row of one setting, with stages by group; messages of failures go to the file only."""
    attempts = [run.extra.get("attempts", 0) for run in runs]
    failures = {
        str(run.seed): run.extra.get("message") or "raised an error" for run in runs if not run.recovered
    }
    return summarise(
        setting,
        runs,
        **{
            "stage_seconds": _medians(run.extra.get("group_seconds", {}) for run in runs),
            "stage_queries": _medians(run.extra.get("group_queries", {}) for run in runs),
            "max_seconds": max((run.seconds for run in runs if math.isfinite(run.seconds)), default=None),
            "most_attempts": max(attempts),
            "retried": sum(count > 1 for count in attempts),
            "failures": failures,
            "failed_seeds": list(failures),
            **more,
        },
    )


def _medians(groups: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Median of every group over the runs, in the order of the layers; a run without it counts as 0."""
    known = list(groups)
    names = sorted({name for entry in known for name in entry}, key=_place)
    return {name: float(np.median([entry.get(name, 0) for entry in known])) for name in names}


def measure(setting: Setting, seeds: range) -> Row:
    """The row of one architecture."""
    say(f"deep_table: {setting.label}")
    hidden = setting.widths[:-1]
    runs = [run_recovery(setting.plant(seed), seed, hidden=hidden, extra=deep_figures) for seed in seeds]
    return deep_row(
        setting.label, runs, inputs=setting.inputs, widths=list(setting.widths), output=setting.output
    )


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the rows that are not done and print the table."""
    options = parser(__doc__, "0:10", f"{Setting(*QUICK).label} only, 2 seeds")
    arguments, settings = read_rows(options, SETTINGS, [Setting(*QUICK)], argv)
    # Small ones first: the memory's high-water mark then belongs to the row beside which it is printed.
    order = sorted(settings, key=lambda name: settings[name].parameters)
    rows = measure_all(settings, measure, seeds_of(arguments, 10, 2), arguments.json, order)
    tell(rows, COLUMNS)
    return rows


if __name__ == "__main__":
    main()
