"""Signs of life on stderr while a recovery runs: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from unweave.recovery.wording import queries
from unweave.search.journal import Progress

_PLURAL = re.compile(r"s\b")  # as in "steps, residual 1e-3"
_LEAST_STAGE_SECONDS = 1.0  # before the pace of a stage is believed
_FIRST_LINE_SECONDS = 10.0  # before the first line where there is no terminal
_MOST_LINE_SECONDS = 300.0  # between two such lines


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
            queries=queries(progress.queries),
            left=time_left(progress, now - self._began),
        )


class PlainLines:
    """Prints a line now and then where there is no terminal: soon after the start, then ever more rarely."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._began = clock()
        self._due = _FIRST_LINE_SECONDS

    def __call__(self, progress: Progress) -> None:
        """Print ``progress`` if it is time."""
        passed = self._clock() - self._began
        if passed < self._due:
            return
        self._due = passed + min(max(passed, _FIRST_LINE_SECONDS), _MOST_LINE_SECONDS)
        parts = (progress.stage, amount(progress), queries(progress.queries))
        self._write(f"{passed:.0f} s: {', '.join(part for part in parts if part)}")


def amount(progress: Progress) -> str:
    """Return ``80 / 115 Hessians``, or ``80 Hessians`` (``1 Hessian``) if the total is unknown."""
    if not progress.unit:
        return ""
    unit, total = progress.unit, progress.total
    if (progress.done if total is None else total) == 1:
        unit = _PLURAL.sub("", unit, count=1)
    return f"{progress.done:,}{'' if total is None else f' / {total:,}'} {unit}"


def time_left(progress: Progress, seconds: float) -> str:
    """Return ``12 s left`` at the pace of ``seconds`` for what is done; empty where that cannot be said."""
    if not progress.total or not 0 < progress.done < progress.total or seconds < _LEAST_STAGE_SECONDS:
        return ""
    left = seconds * (progress.total - progress.done) / progress.done
    return f"{left:.0f} s left" if left < 120 else f"{left / 60:.0f} min left"


@contextmanager
def watching(show: bool, verbosity: int) -> Iterator[Callable[[Progress], None] | None]:
    """Give a progress callback, or None unless ``show``, and log to stderr if ``verbosity`` > 0.

    Meanwhile what the target prints goes to stderr: stdout belongs to the result.
    """
    console = Console(stderr=True)
    with redirect_stdout(sys.stderr), _logging(console, verbosity):
        if not show:
            yield None
            return
        if not console.is_terminal:
            yield PlainLines(lambda text: print(text, file=sys.stderr, flush=True))
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
