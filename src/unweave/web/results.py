"""The files of a result: the network in every format, the result itself, the report.

What cannot be written is told, and costs nothing of the rest.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.errors import UnweaveError
from unweave.files import FORMATS
from unweave.files.atomic import write_file
from unweave.recovery.result import Recovery
from unweave.web.run_folder import LOG, write_json

if TYPE_CHECKING:  # drawing is loaded by the process of a run, never by the server
    from unweave.audits.result import Audit
    from unweave.report.picture import Picture

REPORT, RESULT, FACTS = "report.html", "result.npz", "result.json"
AUDIT_PAGE, TRACE = "audit.html", "trace.jsonl"
NETWORK = "network"
FILES: dict[str, tuple[str, str]] = {
    f"{NETWORK}.npz": ("Network as .npz (NumPy)", "application/octet-stream"),
    f"{NETWORK}.json": ("Network as .json", "application/json"),
    f"{NETWORK}.onnx": ("Network as .onnx", "application/octet-stream"),
    f"{NETWORK}.safetensors": ("Network as .safetensors (PyTorch)", "application/octet-stream"),
    RESULT: ("Whole result as .npz", "application/octet-stream"),
    FACTS: ("Whole result as .json, without the parameters", "application/json"),
    REPORT: ("Report as one .html file", "text/html; charset=utf-8"),
    AUDIT_PAGE: ("Audit as one .html file", "text/html; charset=utf-8"),
    TRACE: ("Every row that was asked, for a detector (.jsonl)", "application/jsonl"),
    LOG: ("Log of the run", "text/plain; charset=utf-8"),
}
"""Name of a file that may be downloaded -> what the page calls it, and its type. There are no others."""


_PICTURE_NAME = re.compile(r"[a-z]{1,30}")


def picture_file(name: str) -> str:
    """Return the name of the file that holds a picture."""
    return f"picture-{name}.svg"


def is_picture_name(name: str) -> bool:
    """Whether ``name`` can be that of a picture: lower-case letters only, so it cannot leave a folder."""
    return _PICTURE_NAME.fullmatch(name) is not None


Writer = Callable[[Path], object]


def write_results(recovery: Recovery, place: Path) -> dict[str, Any]:
    """Write all files to the folder ``place``; return the facts, and what could not be written."""
    from unweave.report import report_html, report_pictures

    facts, pictures = recovery.to_dict(), report_pictures(recovery)
    writers: dict[str, Writer] = {
        RESULT: recovery.save,
        FACTS: lambda path: write_json(path, facts),
        REPORT: lambda path: write_text(path, report_html(recovery, pictures)),
        **_picture_writers(pictures),
    }
    if recovery.network is not None:
        writers |= {f"{NETWORK}{ending}": recovery.network.save for ending in FORMATS}
    return {"recovery": facts, "problems": _write(writers, place), "pictures": _told(pictures)}


def write_audit(audit: Audit, place: Path) -> dict[str, Any]:
    """Write the files of an audit to ``place``; return its facts, and what could not be written."""
    from unweave.audits.page import audit_html, audit_pictures

    facts, pictures = audit.to_dict(), audit_pictures(audit)
    writers: dict[str, Writer] = {
        FACTS: lambda path: write_json(path, facts),
        AUDIT_PAGE: lambda path: write_text(path, audit_html(audit, pictures)),
        TRACE: audit.save_trace,
        **_picture_writers(pictures),
    }
    shape = audit.recovery.to_dict()["architecture"] or ""
    word = audit.headline.split()[0]
    return {
        "audit": facts,
        "words": audit.headline,
        "tone": {"HELD": "good", "LEAKS": "bad"}.get(word, "fair"),
        "summary": shape,
        "problems": _write(writers, place),
        "pictures": _told(pictures),
    }


def write_facts(name: str, facts: dict[str, Any], place: Path) -> dict[str, Any]:
    """Write facts that need no page; return them under ``name``, and what could not be written."""
    return {name: facts, "problems": _write({FACTS: lambda path: write_json(path, facts)}, place)}


def write_text(path: Path, text: str) -> None:
    """Write ``text``, whole or not at all."""
    write_file(path, text.encode("utf-8"))


def _picture_writers(pictures: list[Picture]) -> dict[str, Writer]:
    from unweave.report.picture import svg_file

    return {picture_file(p.name): partial(_write_drawing, svg_file(p)) for p in pictures}


def _write_drawing(drawing: str, path: Path) -> None:
    write_text(path, drawing)


def _told(pictures: list[Picture]) -> list[dict[str, Any]]:
    """Return name, title and caption of pictures as plain text, which a page sets as text."""
    return [
        {"name": p.name, "title": p.title, "caption": p.caption.striptags(), "wide": p.wide} for p in pictures
    ]


def _write(writers: dict[str, Writer], place: Path) -> list[str]:
    """Write everything that can be written; return what could not."""
    problems = []
    for name, write in writers.items():
        try:
            write(place / name)
        except (UnweaveError, OSError) as error:
            problems.append(f"{name} could not be written: {error}".replace(str(place / name), name))
        except Exception as error:  # a defect in one of the writers must not cost what was found
            traceback.print_exc()
            problems.append(f"{name} could not be written: {type(error).__name__}: {error}")
    return problems
