"""Read docstrings as the plain text they are.

Docstrings of this package are written for `help` and for the reader of the code: formulas stand as they are,
lists and formulas may be indented, names stand in single or double backquotes. Only sections with underlines
and examples with ``>>>`` are markup.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

_HEADING = re.compile(r"(Args|Attributes|Example|Examples|Parameters|Raises|Returns|Yields):")
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
    underlined = len(block) > 1 and re.fullmatch(r"-{3,}", block[1].strip()) is not None
    return underlined or _HEADING.fullmatch(block[0].strip()) is not None


def _in_section(block: list[str]) -> list[str]:
    if any(line.lstrip().startswith(">>> ") for line in block):
        return block
    return [line if set(line.strip()) == {"-"} else _line(line) for line in block]


def _paragraph(block: list[str]) -> list[str]:
    """Return a paragraph; what is indented keeps its lines, since it is a formula or a table."""
    if block[0].lstrip().startswith(">>> "):
        return block
    depths = [len(line) - len(line.lstrip()) for line in block]
    if all(re.match(r"(\d+\.|-) |\s", line) for line in block) and not depths[0]:
        return [_line(line) for line in block]  # a list
    if any(depths):
        return [f"| {' ' * depth}{_line(line.lstrip())}" for depth, line in zip(depths, block, strict=True)]
    return [_line(line) for line in block]


def _rewrite(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    written: list[str] = []
    in_section = False
    for block in filter(None, blocks):
        indented = block[0].startswith(" ")
        in_section = _is_section(block) or (in_section and (indented or not _HEADING.match(block[0])))
        written += [*(_in_section(block) if in_section else _paragraph(block)), ""]
    lines[:] = written


def _rejoin(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Put words before a colon back where they were: of an attribute, they are read as its type."""
    for place, line in enumerate(lines):
        if what in ("attribute", "property", "data") and line.startswith(":type: "):
            del lines[place]
            first = next((i for i, each in enumerate(lines) if each.strip()), None)
            if first is not None:
                lines[first] = f"{line.removeprefix(':type: ')}: {lines[first]}"
            return


def _with_plain_names(
    app: Sphinx, what: str, name: str, obj: object, options: object, signature: str, result: str
) -> tuple[str | None, str | None]:
    """Write names of array types as they are in the code."""
    plain = [text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, result)]
    return plain[0], plain[1]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Run before sections are read."""
    app.connect("autodoc-process-docstring", _rewrite, priority=100)
    app.connect("autodoc-process-docstring", _rejoin, priority=900)
    app.connect("autodoc-process-signature", _with_plain_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
