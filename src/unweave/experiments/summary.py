"""Stored results for readers: one row per figure over all seeds, misses and corrections, by source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from unweave.experiments.catalogue import EXPERIMENTS
from unweave.experiments.experiment import Experiment, Figure, Value
from unweave.experiments.stored import cell_key, figures_of
from unweave.experiments.study import Record

Results = Mapping[str, Sequence[Record]]
"""Records by the name of their experiment."""


@dataclass(frozen=True)
class Row:
    """One figure over all seeds that were measured."""

    quantity: str
    published: Value
    relation: str
    measured: Value
    """Of the first seed, or over all cells of a study."""
    agreeing: int
    """Seeds with which it agrees, of ``decided``."""
    decided: int
    rule: str
    note: str
    origin: str

    @property
    def misses(self) -> bool:
        """Whether some seed disagrees."""
        return self.agreeing < self.decided

    @property
    def corrected(self) -> bool:
        """Whether the published value or claim was corrected."""
        return self.note.startswith("corrected")

    @property
    def verdict(self) -> str:
        """``yes``, ``NO``, or ``9 of 10``; empty where nothing is decided."""
        if not self.decided:
            return ""
        if self.decided == 1:
            return "yes" if self.agreeing else "NO"
        return f"{self.agreeing} of {self.decided}"


@dataclass(frozen=True)
class Summary:
    """What is stored of one experiment."""

    experiment: Experiment
    rows: tuple[Row, ...]
    records: tuple[Record, ...]
    asked: int
    """Cells of the published size with as many seeds as were measured; for a claim, its seeds."""
    size: str
    """``published``, ``quick``, or empty where nothing is stored."""

    @property
    def seeds(self) -> int:
        """Number of seeds among the records."""
        return len({record.cell["seed"] for record in self.records})

    @property
    def seconds(self) -> float:
        """Seconds of all records together."""
        return sum(record.seconds for record in self.records)

    @property
    def agreeing(self) -> int:
        """Figures that agree with every seed."""
        return sum(bool(row.decided) and not row.misses for row in self.rows)

    @property
    def decided(self) -> int:
        """Figures with a rule."""
        return sum(bool(row.decided) for row in self.rows)


def summaries(results: Results, experiments: Iterable[Experiment] = EXPERIMENTS.values()) -> list[Summary]:
    """Sum up every experiment; those without results have no rows."""
    return [_summary(experiment, list(results.get(experiment.name, ()))) for experiment in experiments]


def by_source(items: Sequence[Summary]) -> list[tuple[str, list[Summary]]]:
    """Summaries by the name of their source, in the order of the catalogue."""
    return [
        (source, list(group))
        for source, group in groupby(items, key=lambda item: item.experiment.source.partition(",")[0])
    ]


def _summary(experiment: Experiment, records: list[Record]) -> Summary:
    if experiment.study is None:
        return Summary(
            experiment,
            _rows(experiment, records),
            tuple(records),
            len(records),
            "published" if records else "",
        )
    study = experiment.study()
    last = max((int(record.cell["seed"]) for record in records), default=-1)
    wanted = {cell_key(cell) for cell in study.cells("published", range(max(10, last + 1)))}
    published = [record for record in records if cell_key(record.cell) in wanted]
    kept, size = (published, "published") if published else (records, "quick" if records else "")
    seeds = {record.cell["seed"] for record in kept}
    asked = sum(cell["seed"] in seeds for cell in study.cells("published", range(max(10, last + 1))))
    return Summary(experiment, _rows(experiment, kept), tuple(kept), asked, size)


def _rows(experiment: Experiment, records: Sequence[Record]) -> tuple[Row, ...]:
    groups: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures_of(experiment, records):
        groups.setdefault((figure.quantity, figure.relation), []).append(figure)
    rows = []
    for figures in groups.values():
        first = figures[0]
        decided = [figure for figure in figures if figure.agrees is not None]
        agreeing = sum(bool(figure.agrees) for figure in decided)
        rows.append(
            Row(
                first.quantity,
                first.published,
                first.relation,
                first.measured,
                agreeing,
                len(decided),
                first.rule,
                first.note,
                first.origin or experiment.origin,
            )
        )
    return tuple(rows)


def markdown(items: Sequence[Summary]) -> str:
    """Tables of all experiments, source by source: what was measured, how much agrees, what does not."""
    lines = [
        "| name | place in the source | lines | measured | agree | what does not agree |",
        "|---|---|---|---|---|---|",
    ]
    for source, group in by_source(items):
        lines.append(f"| **{source}** | | | | | |")
        for item in group:
            place = item.experiment.source.partition(", ")[2]
            against = "; ".join(row.quantity for row in item.rows if row.misses)
            agree = f"{item.agreeing} of {item.decided}" if item.records else ""
            name = f"`{item.experiment.name}`"
            cells = (name, place, item.experiment.origin, _measured(item), agree, against)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _measured(item: Summary) -> str:
    """How much was run, in words."""
    if not item.records:
        return "not run"
    seeds = f"{item.seeds} seed" + ("" if item.seeds == 1 else "s")
    if item.experiment.study is None:
        return seeds
    cells = f"{len(item.records)} of {item.asked} cells" if item.size == "published" else "quick cells"
    return f"{cells}, {seeds}"
