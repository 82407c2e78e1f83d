"""Read docstrings as the plain text they are.

Docstrings of this package are written for `help` and for the reader of the code: formulas stand as they are,
lists and formulas may be indented, names stand in single or double backquotes. Only sections with underlines
and examples with ``>>>`` are markup.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

_NAME = re.compile(r"(``[^`]+``)|`([^`]+)`")


def _escaped(text: str) -> str:
    text = re.sub(r"([*|\\])", r"\\\1", text)
    return re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", text)


def _line(line: str) -> str:
    pieces, last = [], 0
    for found in _NAME.finditer(line):
        pieces += [_escaped(line[last : found.start()]), found[1] or f"``{found[2]}``"]
        last = found.end()
    return "".join([*pieces, _escaped(line[last:])])


def _is_section(block: list[str]) -> bool:
    return len(block) > 1 and re.fullmatch(r"-{3,}", block[1].strip()) is not None


def _written(block: list[str]) -> list[str]:
    """Return one paragraph: as it is if it is an example or a section, word for word if indented, else escaped."""
    if block[0].lstrip().startswith(">>> ") or _is_section(block):
        return [line if ">>>" in line or set(line.strip()) == {"-"} else _line(line) for line in block]
    depth = len(block[0]) - len(block[0].lstrip())
    uneven = any(len(line) - len(line.lstrip()) != depth for line in block)
    listed = re.match(r"(\d+\.|-) ", block[0].lstrip())
    if depth == 0 and listed and all(re.match(r"(\d+\.|-) |\s", line) for line in block):
        return [_line(line) for line in block]
    if depth or uneven:
        return [f"| {' ' * (len(line) - len(line.lstrip()))}{_line(line.lstrip())}" for line in block]
    return [_line(line) for line in block]


def _rewrite(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    blocks: list[list[str]] = [[]]
    in_section = False
    for line in lines:
        if line.strip():
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    written: list[str] = []
    for block in filter(None, blocks):
        in_section = in_section or _is_section(block)
        written += [*([_line(line) for line in block] if in_section and not _is_section(block) else _written(block)), ""]
    lines[:] = written


def setup(app: Sphinx) -> ExtensionMetadata:
    """Run before sections are read."""
    app.connect("autodoc-process-docstring", _rewrite, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
