"""The page: nothing made up, nothing fetched, legible without pictures."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

import unweave
from unweave.report.facts import Facts


class Reader(HTMLParser):
    """Collects what the page holds."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "path", "use", "rect", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in ("meta", "path", "use", "rect", "br"):
            return
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(audited):
    return audited.to_html()


@pytest.fixture(scope="module")
def tags(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader.tags


def test_every_number_is_in_the_json(audited, tags):
    facts = Facts(json.loads(json.dumps(audited.to_dict())))
    shown = [attributes for tag, attributes in tags if tag == "data"]
    assert len(shown) > 50
    for attributes in shown:
        value = facts.get(attributes["data-path"])
        given = json.loads(attributes["value"]) if attributes["value"] != "null" else None
        assert given == value, attributes


def test_nothing_is_fetched(page, tags):
    assert not re.search(r"\b(?:src|action|data)=", page)
    links = [attributes.get("href") or attributes.get("xlink:href") for _, attributes in tags]
    assert all(link is None or link.startswith("#") for link in links)
    assert "url(http" not in page
    assert "@import" not in page
    assert "<script" not in page
    assert len(page.encode()) < 2**20


def test_pictures_have_words(tags):
    pictures = [attributes for tag, attributes in tags if tag == "svg"]
    captions = {attributes.get("id") for tag, attributes in tags if tag == "figcaption"}
    assert len(pictures) == 3
    for attributes in pictures:
        assert attributes["role"] == "img"
        assert attributes["aria-label"]
        assert attributes["aria-describedby"] in captions


def test_tables_have_headings(tags):
    tables = sum(tag == "table" for tag, _ in tags)
    assert sum(tag == "caption" for tag, _ in tags) == tables
    assert all(attributes.get("scope") in ("row", "col") for tag, attributes in tags if tag == "th")


def test_page_says_the_verdict_and_the_price(audited, page):
    assert audited.verdict.split(".")[0] in page
    assert "The attacks asked it nothing" in page
    assert "by bisection" in page
    for defence in audited.defences:
        assert defence.name in page


def test_same_audit_same_page_in_a_file(audited, page, tmp_path):
    audited.save_html(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page
    with pytest.raises(unweave.InvalidInput, match="path must end in"):
        audited.save_html(tmp_path / "a.pdf")


def test_without_curve(planted):
    found = unweave.audit(planted, decimals=[3], seed=1000, max_queries=50)
    page = found.to_html()
    assert "There is no leakage curve" in page
    assert "<svg" not in page
