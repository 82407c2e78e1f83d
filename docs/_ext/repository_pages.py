"""Show pages that live outside of docs (CONTRIBUTING, CHANGELOG, ...) on the site, and lead links to them.

Files of the repository link to each other as files do. Here such a link leads to the page, if there is one;
links to code and folders become plain text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

PAGES = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changes.md",
    "benchmarks/README.md": "project/benchmarks.md",
}
"""File of the repository, and its page."""
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)")


def relinked(text: str, source: Path, page: Path, root: Path, docs: Path) -> str:
    """Return ``text`` of the file ``source`` with links that hold on ``page``."""

    def link(found: re.Match[str]) -> str:
        label, target, anchor = found[1], found[2], found[3] or ""
        if "://" in target:
            return found[0]
        place = (source.parent / target).resolve()
        if not place.is_relative_to(root):
            return found[0]
        name = place.relative_to(root).as_posix()
        if name in PAGES:
            place = docs / PAGES[name]
        elif not place.is_relative_to(docs):
            return label if label.startswith("`") else f"{label} (`{name}`)" if name not in label else label
        return f"[{label}]({Path(os.path.relpath(place, page.parent)).as_posix()}{anchor})"

    return _LINK.sub(link, text)


def _write_pages(app: Sphinx) -> None:
    docs = Path(app.srcdir)
    for name, page in PAGES.items():
        source, place = docs.parent / name, docs / page
        text = relinked(source.read_text(encoding="utf-8"), source, place, docs.parent, docs)
        place.parent.mkdir(exist_ok=True)
        if not place.is_file() or place.read_text(encoding="utf-8") != text:
            place.write_text(text, encoding="utf-8")


def _read(app: Sphinx, docname: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".md":
        docs = Path(app.srcdir)
        source[0] = relinked(source[0], page, page, docs.parent, docs)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Write the pages before anything is read."""
    app.connect("builder-inited", _write_pages)
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
