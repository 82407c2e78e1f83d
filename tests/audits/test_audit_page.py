"""The page: nothing made up, nothing fetched, legible without pictures."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from planted_attacks import ALARM, BUDGETS, LEVELS, random_points, summary

import unweave
from unweave.audits.curve import EXACT
from unweave.audits.level import Level
from unweave.recovery.wording import percent
from unweave.report.facts import Facts, text_of


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


def numbers_outside(page):
    """Digits that the page says and no ``<data>`` element holds."""
    body = page[page.index("<body>") :]
    for element in ("svg", "code", "data"):
        body = re.sub(rf"<{element}[ >].*?</{element}>", "", body, flags=re.DOTALL)
    body = re.sub(r'<span class="label">.*?</span>', "", body)  # counts of what the page itself shows
    said = html.unescape(re.sub(r"<[^>]*>", " ", body)).replace("OWASP AISVS 1.0", "")
    return re.findall(r"\S*\d\S*", said)


def test_no_number_stands_outside_of_what_the_json_has(page):
    assert numbers_outside(page) == []


@pytest.mark.parametrize("seed", range(4))
def test_any_outcome_makes_a_page_whose_numbers_are_in_the_json(audited, seed):
    points = tuple(random_points(seed))
    summaries = tuple(summary(level, points) for level in LEVELS)
    made = replace(audited, points=points, levels=LEVELS, budgets=BUDGETS, summaries=summaries, alarm=ALARM)
    page = made.to_html()
    assert numbers_outside(page) == []
    facts = Facts(json.loads(json.dumps(made.to_dict(), allow_nan=False)))
    shown = re.findall(r'<data[^>]* data-path="([^"]*)" value="([^"]*)">([^<]*)<', page)
    assert len(shown) > 100
    for path, value, text in shown:
        held = facts.get(path)
        assert json.loads(html.unescape(value)) == held
        if isinstance(held, float):
            assert text in (percent(held), text_of(held)), path
        elif isinstance(held, int) and not isinstance(held, bool):
            assert int(text.replace(",", "")) == held, path
    most = max(BUDGETS)
    leaking = [point.leak(ALARM) for level in LEVELS if (point := made.best(level, most)) is not None]
    word = "LEAKS" if "weights" in leaking else "COPIED" if "function" in leaking else "HELD"
    assert made.headline.startswith(word)


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
    assert len(pictures) == 1  # two levels are no curve against decimals
    for attributes in pictures:
        assert attributes["role"] == "img"
        assert attributes["aria-label"]
        assert attributes["aria-describedby"] in captions


def test_columns_agree_with_each_other(audited):
    """What a cell shows and after how many queries it is reached say the same."""
    for level in audited.levels:
        entry = audited.summary(level)
        for budget in audited.budgets:
            best = audited.best(level, budget)
            own = best.level == level
            assert not own or best.has_network == (entry.first_network <= budget)
            leak = best.leak(audited.alarm)
            copied = audited.first_to("function_after", level)
            assert (leak != "nothing") == (copied is not None and copied.function_after <= budget)
            taken = audited.first_to("alarm_after", level)
            if taken is None or not taken.alarm_predicted:
                assert (leak == "weights") == (taken is not None and taken.alarm_after <= budget)
            if best.median_weight_error <= EXACT:
                assert audited.first_to("exact_after", level).exact_after <= budget


def test_an_attack_on_coarser_answers_counts_for_finer_ones(audited):
    fine, coarse = Level(decimals=2), Level(noise=1.0)
    entry = replace(audited.summaries[0], function_after=None, alarm_after=None, exact_after=None)
    there = replace(entry, level=coarse, alarm_after=900)
    both = replace(audited, summaries=(replace(entry, level=fine), there))
    assert both.first_to("alarm_after", fine) is there
    assert both.first_to("exact_after", fine) is None
    assert both.first_to("alarm_after", coarse) is there


def test_no_row_of_the_table_of_attacks_is_told_twice(page):
    table = page[page.index("All attacks") : page.index("How this was measured")]
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", table, flags=re.DOTALL)
    figures = [
        re.findall(r'value="([^"]*)"', row)[:1] + re.findall(r'value="([^"]*)"', row)[3:] for row in rows
    ]
    figures = [entry for entry, row in zip(figures, rows, strict=True) if "no network" not in row]
    assert len(figures) > 5
    assert len({tuple(entry) for entry in figures}) == len(figures)


def test_tables_have_headings(tags):
    tables = sum(tag == "table" for tag, _ in tags)
    assert sum(tag == "caption" for tag, _ in tags) == tables
    assert all(attributes.get("scope") in ("row", "col") for tag, attributes in tags if tag == "th")


def test_page_says_the_verdict_and_the_price(audited, page):
    assert audited.verdict.split(".")[0] in page
    assert "The attacks asked it nothing" in page
    assert "by bisection" in page
    assert audited.recommendation in html.unescape(page)
    assert audited.headline in page
    assert audited.settings["date"] in page
    assert "unweave.networks.network:Network" in page
    assert "AML.T0024.002 Extract AI Model" in page
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
