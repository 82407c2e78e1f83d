"""Follow every link and picture within a built site: python docs/check_links.py docs/_build/html"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """What a page links to, and the anchors that it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note links and anchors."""
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.links.add(value)


def broken_links(site: Path) -> list[str]:
    """Return the links within ``site`` that lead nowhere, as "page: link"."""
    pages = {path: _Page(path) for path in sorted(site.resolve().rglob("*.html"))}
    if not pages:
        return [f"{site}: no pages"]
    broken = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages[place].anchors if place in pages else None
            if not place.exists() or (
                parts.fragment and known is not None and unquote(parts.fragment) not in known
            ):
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    return broken


if __name__ == "__main__":
    found = broken_links(Path(sys.argv[1]))
    print("\n".join(found) if found else "every link within the pages leads somewhere")
    sys.exit(bool(found))
