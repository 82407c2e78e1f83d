"""``unweave reproduce``: published tables, figures and claims, measured again."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from unweave.cli.console import print_line, stdout_console
from unweave.cli.exits import DONE, INTERRUPTED, NOT_EXACT
from unweave.cli.jsonable import print_json
from unweave.cli.show_figures import show_catalogue, show_figures, summary
from unweave.errors import InvalidInput
from unweave.experiments import EXPERIMENTS, Experiment, Figure, agree

ALL = "all"
"""The name that stands for every experiment."""


@dataclass(frozen=True)
class ReproduceOptions:
    """What was typed."""

    name: str | None
    list_only: bool = False
    seed: int = 0
    quiet: bool = False
    as_json: bool = False


@dataclass(frozen=True)
class Measured:
    """An experiment and what became of it."""

    experiment: Experiment
    figures: tuple[Figure, ...]
    seconds: float
    interrupted: bool

    def to_dict(self) -> dict[str, Any]:
        """The same in words that JSON has."""
        return {
            **describe(self.experiment),
            "figures": list(self.figures),
            "agrees": agree(self.figures),
            "seconds": self.seconds,
            "interrupted": self.interrupted,
        }


def run_reproduce(options: ReproduceOptions) -> int:
    """List the experiments or run some; 0 only if every figure agrees, 130 after Ctrl-C."""
    if options.name is None or options.list_only:
        _list(options)
        return DONE
    chosen = chosen_experiments(options.name)
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
    """An experiment as its entry in the list."""
    return {
        "name": experiment.name,
        "source": experiment.source,
        "claim": experiment.claim,
        "setting": experiment.setting,
        "about_seconds": experiment.seconds,
    }


def chosen_experiments(name: str) -> list[Experiment]:
    """The experiment of this name, or all of them."""
    if name == ALL:
        return list(EXPERIMENTS.values())
    if name in EXPERIMENTS:
        return [EXPERIMENTS[name]]
    near = difflib.get_close_matches(name, EXPERIMENTS, cutoff=0.6)
    near += [known for known in EXPERIMENTS if name.lower() in known and known not in near]
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
        with threadpool_limits(limits=1):
            for figure in experiment.run(seed, progress):
                figures.append(figure)
    except KeyboardInterrupt:  # `unweave.Interrupted` is one too
        interrupted = True
    return Measured(experiment, tuple(figures), time.perf_counter() - began, interrupted)


def _tell(console: Console, options: ReproduceOptions, done: list[Measured], asked: int) -> int:
    """The last line, or the document; and the exit code."""
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


def _list(options: ReproduceOptions) -> None:
    if options.as_json:
        print_json({"experiments": [describe(experiment) for experiment in EXPERIMENTS.values()]})
        return
    console = stdout_console()
    show_catalogue(console, list(EXPERIMENTS.values()))
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
