"""``unweave reproduce``: published tables, figures and claims, measured again."""

from __future__ import annotations

import difflib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from unweave.cli.exits import DONE, INTERRUPTED, NOT_EXACT
from unweave.cli.options import AsJson, Quiet, Seed
from unweave.cli.output.console import print_line, stdout_console
from unweave.cli.output.document import print_json
from unweave.cli.output.figures import StoredRow, show_catalogue, show_figures, show_stored, summary
from unweave.errors import InvalidInput, UnweaveError
from unweave.experiments import EXPERIMENTS, Experiment, Figure, agree
from unweave.numerics import interrupts

if TYPE_CHECKING:
    from unweave.experiments.stored import Task
    from unweave.experiments.study import Record

ALL = "all"
"""The name that stands for every experiment."""
_PUBLISHED_SEEDS = 10  # networks per cell of most published tables


class SizeName(StrEnum):
    """Sizes of the studies."""

    QUICK = "quick"
    PUBLISHED = "published"


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """Options of ``unweave reproduce``."""

    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name of an experiment, or all; without it the list is shown.",
            show_default=False,
        ),
    ] = None
    list_only: Annotated[bool, typer.Option("--list", help="Show the list only.")] = False
    seed: Seed = 0
    size: Annotated[
        SizeName,
        typer.Option(help="Small cells, or those of the source, which take hours; published needs --store."),
    ] = SizeName.QUICK
    seeds: Annotated[
        str | None, typer.Option(metavar="A:B", help="Measure all seeds from A to B - 1; needs --store.")
    ] = None
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep results here (JSON lines); run again to measure what is missing."
        ),
    ] = None
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write one HTML page per source from what --store holds, for any browser."
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Measure in N processes; needs --store and Dask."),
    ] = None
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Measure on a Dask cluster; needs --store.")
    ] = None
    quiet: Quiet = False
    as_json: AsJson = False


@dataclass(frozen=True)
class Measured:
    """An experiment and what became of it."""

    experiment: Experiment
    figures: tuple[Figure, ...]
    seconds: float
    interrupted: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            **describe(self.experiment),
            "figures": list(self.figures),
            "agrees": agree(self.figures),
            "seconds": self.seconds,
            "interrupted": self.interrupted,
        }


def run_reproduce(options: ReproduceOptions, experiments: Mapping[str, Experiment] = EXPERIMENTS) -> int:
    """Measure published tables, figures and claims again, and show published and measured figures together.

    Each experiment takes between a fraction of a second and half a minute. With --size published, tables and
    figures have the size that --list names, which takes hours; --store keeps what is measured, and a run that
    is started again measures what is missing. Ctrl-C shows what was measured so far. Exit code 0: every
    figure agrees; 1: at least one does not.

    \b
    Examples:
      unweave reproduce --list
      unweave reproduce wide-layers
      unweave reproduce all --json
      unweave reproduce all --seeds 0:10 --store results.jsonl --workers 2
      unweave reproduce entangled-tables --size published --store results.jsonl
      unweave reproduce --store results.jsonl --page pages
    """
    if options.name is None and options.page is not None and options.store is not None:
        from unweave.experiments.pages import write_pages
        from unweave.experiments.stored import ResultFile

        for path in write_pages(options.page, ResultFile(options.store).results()):
            print_line(stdout_console(), str(path))
        return DONE
    if options.name is None or options.list_only:
        _list(options, list(experiments.values()))
        return DONE
    chosen = chosen_experiments(options.name, experiments)
    if options.store is not None:
        return _measure_missing(options, chosen)
    needs = (options.seeds, options.workers, options.scheduler, options.page)
    if any(value is not None for value in needs) or options.size is not SizeName.QUICK:
        raise InvalidInput(
            "--size published, --seeds, --page, --workers and --scheduler must be given together with "
            "--store. Add --store and the name of a file for the results."
        )
    done: list[Measured] = []
    console = stdout_console()
    with _spinner(not (options.quiet or options.as_json)) as say:
        for index, experiment in enumerate(chosen, 1):
            place = f"{index}/{len(chosen)} " if len(chosen) > 1 else ""
            done.append(measure(experiment, options.seed, partial(say, place)))
            if not (options.as_json or options.quiet):
                say("", "")  # nothing is left of it above the table
                show_figures(console, experiment, done[-1].figures, done[-1].seconds)
            if done[-1].interrupted:
                break
    return _tell(console, options, done, len(chosen))


def describe(experiment: Experiment) -> dict[str, Any]:
    """Return an experiment as its entry in the list."""
    return {
        "name": experiment.name,
        "source": experiment.source,
        "claim": experiment.claim,
        "setting": experiment.setting,
        "about_seconds": experiment.seconds,
    }


def chosen_experiments(name: str, experiments: Mapping[str, Experiment]) -> list[Experiment]:
    """Return the experiment of this name, or all of them."""
    if name == ALL:
        return list(experiments.values())
    if name in experiments:
        return [experiments[name]]
    near = [known for known in experiments if name.lower() in known]
    near += [known for known in difflib.get_close_matches(name, experiments, cutoff=0.6) if known not in near]
    meant = f"Did you mean {' or '.join(near)}?" if near else "See unweave reproduce --list."
    raise InvalidInput(f"NAME must be an experiment, or {ALL}. Got {name!r} instead. {meant}")


def measure(experiment: Experiment, seed: int, progress: Callable[[str], None]) -> Measured:
    """Run one experiment; Ctrl-C keeps the figures measured so far."""
    from threadpoolctl import threadpool_limits

    figures: list[Figure] = []
    began = time.perf_counter()
    interrupted = False
    try:
        # One thread is as fast at these sizes, and does not collapse where the cores are busy.
        with interrupts.remembered(), threadpool_limits(limits=1):
            for figure in experiment.run(seed, progress):
                figures.append(figure)
                interrupts.look()
    except KeyboardInterrupt:  # `unweave.Interrupted` is one too
        interrupted = True
    return Measured(experiment, tuple(figures), time.perf_counter() - began, interrupted)


def _measure_missing(options: ReproduceOptions, chosen: list[Experiment]) -> int:
    """Measure what the file of results lacks, one cell a task, and sum it up."""
    from unweave.cli.option_groups import RunningOptions
    from unweave.execution.executor import SerialExecutor
    from unweave.experiments.stored import ResultFile, figures_of, tasks
    from unweave.experiments.study import named

    assert options.store is not None
    seeds = _seeds(options)
    file = ResultFile(options.store)
    wanted = tasks(chosen, options.size.value, seeds)
    missing = file.missing(wanted)
    console, interrupted, failed = stdout_console(), False, list[str]()
    with (
        _spinner(not (options.quiet or options.as_json)) as say,
        RunningOptions(options.workers, options.scheduler).executor() as executor,
    ):
        results = (executor or SerialExecutor()).completed(_measure_one, missing)
        try:
            for done, (index, record) in enumerate(results, 1):
                name, cell = missing[index]
                if isinstance(record, str):
                    failed.append(f"{name}, {named(cell)}: {record}")
                else:
                    file.append(name, record)
                say(f"{done}/{len(missing)} ", f"{name}, seed {cell['seed']}: done")
        except KeyboardInterrupt:
            interrupted = True
    held = file.of(wanted)
    figures = {experiment.name: figures_of(experiment, held[experiment.name]) for experiment in chosen}
    asked = Counter(name for name, _ in wanted)
    if options.page is not None:
        from unweave.experiments.pages import write_pages

        write_pages(options.page, file.results())
    if options.as_json:
        print_json(
            {
                "store": options.store,
                "size": options.size.value,
                "seeds": [seeds.start, seeds.stop],
                "experiments": {
                    experiment.name: {
                        "cells": asked[experiment.name],
                        "measured": len(held[experiment.name]),
                        "agrees": agree(figures[experiment.name]),
                        "seconds": round(sum(record.seconds for record in held[experiment.name]), 3),
                        "figures": figures[experiment.name],
                    }
                    for experiment in chosen
                },
                "failed": failed,
                "interrupted": interrupted,
            }
        )
    else:
        show_stored(
            console,
            [
                StoredRow(
                    name,
                    len(held[name]),
                    asked[name],
                    sum(record.seconds for record in held[name]),
                    found,
                )
                for name, found in figures.items()
            ],
        )
        for line in failed:
            print_line(console, f"not measured: {line}", "red")
    if interrupted:
        return INTERRUPTED
    return DONE if all(agree(found) for found in figures.values()) and not failed else NOT_EXACT


def _measure_one(task: Task) -> Record | str:
    """Measure one cell, here or in a worker; what stood in its way, so that the others are measured."""
    from unweave.experiments.stored import measure_cell

    name, cell = task
    try:
        return measure_cell(EXPERIMENTS[name], cell)
    except UnweaveError as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return str(error)


def _seeds(options: ReproduceOptions) -> range:
    """The seeds asked for; the published size takes ten, as many as most of the tables."""
    if options.seeds is None:
        count = 1 if options.size is SizeName.QUICK else _PUBLISHED_SEEDS
        return range(options.seed, options.seed + count)
    first, colon, last = options.seeds.partition(":")
    if not (colon and first.isdigit() and last.isdigit() and int(first) < int(last)):
        raise InvalidInput(
            f"--seeds must be A:B with A below B. Got {options.seeds!r} instead. For example 0:10."
        )
    return range(int(first), int(last))


def _tell(console: Console, options: ReproduceOptions, done: list[Measured], asked: int) -> int:
    """Print the last line, or the JSON document, and return the exit code."""
    interrupted = any(entry.interrupted for entry in done)
    figures = [figure for entry in done for figure in entry.figures]
    if options.as_json:
        print_json(
            {
                "seed": options.seed,
                "experiments": [entry.to_dict() for entry in done],
                "agrees": agree(figures),
                "interrupted": interrupted,
            }
        )
    else:
        if not options.quiet:
            console.print()
        complete = sum(not entry.interrupted for entry in done)
        text, style = summary(figures, complete, asked, interrupted)
        print_line(console, text, style)
    if interrupted:
        return INTERRUPTED
    return DONE if agree(figures) else NOT_EXACT


def _list(options: ReproduceOptions, experiments: list[Experiment]) -> None:
    if options.as_json:
        print_json({"experiments": [describe(experiment) for experiment in experiments]})
        return
    console = stdout_console()
    show_catalogue(console, experiments)
    if not options.quiet:
        console.print()
        print_line(console, f"Run one with unweave reproduce NAME, every one with unweave reproduce {ALL}.")


@contextmanager
def _spinner(show: bool) -> Iterator[Callable[[str, str], None]]:
    """Give a way to say on stderr what is measured now, seen only on a terminal."""
    console = Console(stderr=True)
    if not (show and console.is_terminal):
        yield lambda place, text: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", style="bold"), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def say(place: str, text: str) -> None:
            bar.update(task, description=f"{place}{text}", visible=bool(text))
            if not text:
                bar.refresh()

        yield say
