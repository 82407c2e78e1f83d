"""The line that is shown while a recovery runs, and where it is not shown."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import Progress as Bar

from unweave.cli.output.progress import PlainLines, StageLine, amount, time_left, watching
from unweave.search.journal import Progress


def at(done, total, unit="Hessians", stage="Hessians"):
    return Progress(stage, done, total, unit, 1234, 5.0)


def test_amount():
    assert amount(at(80, 1150)) == "80 / 1,150 Hessians"
    assert amount(at(80, None)) == "80 Hessians"
    assert amount(at(0, None, "")) == ""
    assert amount(at(1, None, "steps, residual 1e-03")) == "1 step, residual 1e-03"
    assert amount(at(1, 2)) == "1 / 2 Hessians"


@pytest.mark.parametrize(
    ("done", "total", "seconds", "expected"),
    [
        (25, 100, 10.0, "30 s left"),
        (1, 100, 10.0, "16 min left"),
        (25, None, 10.0, ""),
        (0, 100, 10.0, ""),
        (100, 100, 10.0, ""),
        (25, 100, 0.5, ""),
    ],
)
def test_time_left(done, total, seconds, expected):
    assert time_left(at(done, total), seconds) == expected


def test_line_measures_each_stage_on_its_own():
    now = [0.0]
    bar = Bar(console=Console(file=io.StringIO()))
    line = StageLine(bar, clock=lambda: now[0])
    line(at(0, 100))
    now[0] = 10.0
    line(at(50, 100))
    assert bar.tasks[0].fields["left"] == "10 s left"
    assert bar.tasks[0].fields["queries"] == "1,234 queries"
    line(at(1, 2, "steps", "polish"))
    assert bar.tasks[0].description == "polish"
    assert bar.tasks[0].total == 2
    assert bar.tasks[0].fields["left"] == ""
    line(at(3, None, "steps", "polish"))
    assert bar.tasks[0].total is None


def test_without_a_terminal_a_line_now_and_then(capsys):
    with watching(True, 0) as progress:
        assert isinstance(progress, PlainLines)
        progress(at(80, 115))  # too early to tell
        print("from the target")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "from the target\n")


def test_plain_lines_become_rare():
    now, lines = [0.0], []
    tell = PlainLines(lines.append, lambda: now[0])
    for second in range(0, 1000, 2):
        now[0] = float(second)
        tell(at(80, 115))
    assert "80 / 115 Hessians" in lines[0]
    assert [int(line.split()[0]) for line in lines] == [10, 20, 40, 80, 160, 320, 620, 920]


def test_bar_on_a_terminal_only_if_wanted(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes rich take the captured stream for a terminal
    with watching(False, 0) as progress:
        assert progress is None
    with watching(True, 0) as progress:
        assert isinstance(progress, StageLine)
        progress(at(80, 115))
    captured = capsys.readouterr()
    assert "80 / 115 Hessians" in captured.err
    assert captured.out == ""
