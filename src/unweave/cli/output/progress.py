"""Signs of life on stderr while a recovery runs: one line, only where somebody can see it."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from unweave.search.journal import Progress

_LEAST_STAGE_SECONDS = 1.0  # before the pace of a stage is believed


class StageLine:
    """Turns each `Progress` into the one line that is shown: stage, done of total, queries, time left.

    Time left is that of the stage, at its pace so far; it is shown when the total is known.
    """

    def __init__(self, bar: Bar, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar = bar
        self._clock = clock
        self._task = bar.add_task("starting", total=None, amount="", queries="", left="")
        self._stage = ""
        self._began = clock()

    def __call__(self, progress: Progress) -> None:
        """Show ``progress``."""
        now = self._clock()
        if progress.stage != self._stage:
            self._stage, self._began = progress.stage, now
        self._bar.tasks[0].total = progress.total  # update() would keep the last total where this is None
        self._bar.update(
            self._task,
            description=progress.stage,
            completed=progress.done,
            amount=amount(progress),
            queries=f"{progress.queries:,} queries",
            left=time_left(progress, now - self._began),
        )


def amount(progress: Progress) -> str:
    """Return ``80 / 115 Hessians``, or ``80 Hessians`` if the total is unknown."""
    if not progress.unit:
        return ""
    total = "" if progress.total is None else f" / {progress.total:,}"
    return f"{progress.done:,}{total} {progress.unit}"


def time_left(progress: Progress, seconds: float) -> str:
    """Return ``12 s left`` at the pace of ``seconds`` for what is done; empty where that cannot be said."""
    if not progress.total or not 0 < progress.done < progress.total or seconds < _LEAST_STAGE_SECONDS:
        return ""
    left = seconds * (progress.total - progress.done) / progress.done
    return f"{left:.0f} s left" if left < 120 else f"{left / 60:.0f} min left"


@contextmanager
def watching(show: bool, verbosity: int) -> Iterator[Callable[[Progress], None] | None]:
    """Give a progress callback, or None if it would not be seen, and log to stderr if ``verbosity`` > 0.

    Meanwhile what the target prints goes to stderr: stdout belongs to the result.
    """
    console = Console(stderr=True)
    with redirect_stdout(sys.stderr), _logging(console, verbosity):
        if not (show and console.is_terminal):
            yield None
            return
        with _bar(console) as bar:
            yield StageLine(bar)


def _bar(console: Console) -> Bar:
    return Bar(
        TextColumn("{task.description:<12}", style="bold"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[amount]:<20}"),
        TextColumn("{task.fields[queries]:>15}", style="dim"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", style="dim"),
        console=console,
        transient=True,
    )


@contextmanager
def _logging(console: Console, verbosity: int) -> Iterator[None]:
    """Log the library's messages for as long as this lasts."""
    if verbosity < 1:
        yield
        return
    logger, handler = logging.getLogger("unweave"), _ConsoleHandler(console)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s", "%H:%M:%S"))
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


class _ConsoleHandler(logging.Handler):
    """Logs through the console that draws the bar, so that neither overwrites the other."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(self.format(record), markup=False, highlight=False, soft_wrap=True)
