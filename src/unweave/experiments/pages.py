"""One HTML page per source from stored results: misses and corrections first, then every table and figure.

A page is one file that fetches nothing. It can be printed, and read without color.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from unweave.errors import InvalidInput
from unweave.experiments.numbers import number
from unweave.experiments.study import Records
from unweave.experiments.summary import Results, Summary, by_source, summaries
from unweave.files.atomic import write_file

PAGES = {
    "Dissertation on network identification": "identification",
    "Appendix on depth-2 ReLU networks with biases": "relu",
    "Recovery guarantees for one-hidden-layer networks": "guarantees",
    "Study of the mathematics of deep learning": "mathematics",
    "Stationary points of quadratic networks": "quadratic",
}
"""Source to the name of its page."""
_WIDE, _NARROW = 9.4, 5.2  # inches of a drawing
_ROW_INCHES, _BASE_INCHES = 2.3, 0.6  # height of a row of panels, and what titles and labels take


def write_pages(folder: str | Path, results: Results) -> list[Path]:
    """Write a page for every source into ``folder``, which is made where it is missing."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"--page must be a folder. Got the file {str(folder)!r} instead.")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for source, items in by_source(summaries(results)):
        path = folder / f"{PAGES[source]}.html"
        write_file(path, page_html(source, items).encode("utf-8"))
        written.append(path)
    return written


def page_html(source: str, items: Sequence[Summary]) -> str:
    """The page of one source as text: same results, same text."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loader = ChoiceLoader([PackageLoader("unweave.experiments"), PackageLoader("unweave.report")])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = number
    return environment.get_template("source.html.j2").render(
        source=source,
        items=items,
        pictures={item.experiment.name: _pictures(item) for item in items},
        misses=[(item, row) for item in items for row in item.rows if row.misses],
        corrections=[(item, row) for item in items for row in _first_of_each_note(item)],
        without=[item for item in items if not item.records],
        partial=[
            item
            for item in items
            if item.records and (item.size == "quick" or len(item.records) < item.asked)
        ],
        decided=sum(item.decided for item in items),
        agreeing=sum(item.agreeing for item in items),
    )


def _first_of_each_note(item: Summary) -> list[Any]:
    notes = {row.note: row for row in reversed(item.rows) if row.corrected}
    return list(notes.values())[::-1]


def _pictures(item: Summary) -> list[Any]:
    from markupsafe import escape

    from unweave.report.picture import Picture, draw

    if item.experiment.study is None or not item.records:
        return []
    drawn = []
    for index, picture in enumerate(item.experiment.study().pictures):
        name = f"{item.experiment.name}-{index}"
        width = _WIDE if picture.wide else _NARROW
        height = _BASE_INCHES + _ROW_INCHES * picture.rows(item.records)
        svg = draw(name, picture.title, partial(_paint, picture.paint, item.records), (width, height))
        drawn.append(Picture(name, picture.title, escape(picture.caption), svg, picture.wide))
    return drawn


def _paint(paint: Callable[[Any, Records], None], records: Records, drawing: Any) -> None:
    paint(drawing, records)
