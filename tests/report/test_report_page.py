"""Reports of every kind of result: their numbers, their structure, and that they stand alone."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from reading_reports import KINDS, at_pointer, parsed

import unweave
from unweave import InvalidInput, Recovery, Status
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.span_evidence import SpanEvidence
from unweave.report import report_html
from unweave.report.advice import suggestions
from unweave.report.charts import is_worth_drawing

LARGEST = 1_000_000
"""Bytes that a report may have."""
NOT_SAID = ("svg", "pre", "code", "style", "head")
"""Elements whose digits are no statement of the page: axes of pictures, commands, style."""
PICTURES = {
    "shallow": {"spectrum", "objective", "profile", "fresh", "weights", "stages"},
    "deep": {"fresh", "weights", "stages"},
    "relu": {"fresh", "kinks", "weights", "stages"},
    "samples": {"convergence", "fresh", "weights", "stages"},
    "rounded": {"spectrum", "profile", "convergence", "fresh", "weights", "stages"},
    "noisy": {"spectrum", "profile", "convergence", "fresh", "errors", "weights", "stages"},
    "out_of_budget": {"stages"},
}
STATUS = {"failed": Status.FAILED, "out_of_budget": Status.FAILED}

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_the_case_is_the_one_meant(kind, recovery_of):
    assert recovery_of(kind).status is STATUS.get(kind, Status.RECOVERED)


@every_kind
def test_every_number_is_the_one_of_the_json(kind, recovery_of, page_of):
    content = json.loads(json.dumps(recovery_of(kind).to_dict(), allow_nan=False))
    shown = parsed(page_of(kind)).all("data")
    assert len(shown) > 20
    for node in shown:
        value, text = at_pointer(content, node.attributes["data-path"]), node.text()
        assert json.loads(node.attributes["value"]) == value, node.attributes["data-path"]
        if isinstance(value, bool) or value is None:
            assert text == {True: "yes", False: "no", None: "not measured"}[value]
        elif isinstance(value, str):
            assert text == value
        elif isinstance(value, int):
            assert int(text.replace(",", "")) == value
        else:  # three digits: off by at most half a unit of the third
            assert float(text) == pytest.approx(value, rel=5.001e-3, abs=0)


@every_kind
def test_no_number_stands_outside_of_what_the_json_has(kind, page_of):
    (body,) = parsed(page_of(kind)).all("body")
    said = body.text(without=(*NOT_SAID, "data"), without_classes=("formula", "label"))
    assert re.findall(r"\S*\d\S*", said) == []


@every_kind
def test_the_answer_comes_first_and_the_way_to_repeat_it_last(kind, recovery_of, page_of):
    recovery, page = recovery_of(kind), parsed(page_of(kind))
    headings = [node.text() for node in page.all("h2")]
    assert headings[0] == "The answer"
    assert headings[-1] == "How to repeat it"
    (status,) = [node for node in page.all("span") if "status" in node.attributes.get("class", "").split()]
    assert status.text().strip() == str(recovery.status).partition(":")[0].capitalize()
    tones = {"RECOVERED": "good", "APPROXIMATE": "fair", "FAILED": "bad"}
    assert tones[recovery.status.name] in status.attributes["class"].split()
    questions = [node.text() for node in page.all("table")[0].all("th")]
    assert questions == ["Status", "Recovered", "How certain", "Cost", "What remains open"]
    assert ("What to try" in headings) == (recovery.network is None)


@every_kind
def test_target_date_and_command_stand_at_the_top(kind, recovery_of, page_of):
    (header,) = parsed(page_of(kind)).all("header")
    settings, text = recovery_of(kind).settings, header.text()
    assert settings["date"] in text
    assert settings["target"]["name"] in text
    assert f"seed={settings['arguments']['seed']}" in text
    typed = replace(recovery_of(kind), settings={**settings, "command": "unweave recover net.onnx --seed 7"})
    assert "unweave recover net.onnx --seed 7" in parsed(report_html(typed)).all("header")[0].text()


@pytest.mark.parametrize("kind", ["rounded", "noisy"])
def test_coarse_answers_lead_with_the_error_of_the_weights(kind, recovery_of, page_of):
    recovery = recovery_of(kind)
    (header,) = parsed(page_of(kind)).all("header")
    assert f"The answers are {kind}; the weights are known to" in " ".join(header.text().split())
    (shown,) = [n for n in header.all("data") if "/weights/largest" in n.attributes["data-path"]]
    assert float(shown.attributes["value"]) == max(w.max() for w in recovery.standard_errors.weights)


@pytest.mark.parametrize("seed", range(6))
def test_standard_errors_are_told_as_what_they_are(seed, recovery_of):
    """The equations of the flips leave these errors, and no sentence says that something else would."""
    rounded, rng = recovery_of("rounded"), np.random.default_rng(seed)
    errors = rounded.standard_errors
    varied = unweave.Network(
        [np.abs(rng.standard_normal(w.shape)) for w in errors.weights],
        [np.abs(rng.standard_normal(b.shape)) for b in errors.biases],
        errors.activations,
    )
    text = " ".join(
        parsed(report_html(replace(rounded, standard_errors=varied))).text(without=NOT_SAID).split()
    )
    parts = [
        f"{w.max():.3g} (weights) and {b.max():.3g} (biases)"
        for w, b in zip(varied.weights, varied.biases, strict=True)
    ]
    sentence = f"in the target's own inputs: {parts[0]} in hidden layer 1 ; {parts[1]} in the output layer"
    assert sentence in text
    assert f"are known to {max(w.max() for w in varied.weights):.3g} (largest standard error)" in text
    assert "averaging alone" not in text


@pytest.mark.parametrize("points", range(2, 7))
def test_no_picture_is_almost_empty(points, recovery_of):
    history = tuple(10.0 ** -np.arange(points))
    (chart,) = [
        chart
        for chart in replace(recovery_of("shallow").evidence, fit_history=history).charts(None)
        if chart.name == "convergence"
    ]
    assert is_worth_drawing(chart) == (points >= 4)


@pytest.mark.parametrize("kind", PICTURES)
def test_the_pictures_that_belong_to_the_method_are_there(kind, page_of):
    names = {
        node.attributes["id"].removeprefix("caption-") for node in parsed(page_of(kind)).all("figcaption")
    }
    assert names == PICTURES[kind]


@every_kind
def test_a_screen_reader_finds_its_way(kind, page_of):
    page = parsed(page_of(kind))
    assert page.all("html")[0].attributes["lang"] == "en"
    assert page.all("title")[0].text().startswith("unweave report")
    assert len(page.all("main")) == 1
    levels = [int(node.tag[1]) for node in page.all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    identifiers = [node.attributes["id"] for node in page.all() if "id" in node.attributes]
    assert len(identifiers) == len(set(identifiers))
    for picture in page.all("svg"):
        assert picture.attributes["role"] == "img"
        assert picture.attributes["aria-label"]
        assert picture.attributes["aria-describedby"] in identifiers
    for caption in page.all("figcaption"):
        assert len(caption.text().split()) > 5
        assert re.search(r"\d", caption.text())
    for table in page.all("table"):
        assert table.all("caption")[0].text()
        assert all(cell.attributes.get("scope") in ("row", "col") for cell in table.all("th"))


@every_kind
def test_nothing_is_loaded_from_anywhere(kind, page_of):
    html = page_of(kind)
    page = parsed(html)
    assert "http://" not in html
    assert "https://" not in html
    assert "@import" not in html
    assert not page.all("script", "link", "iframe", "object", "embed", "img", "audio", "video")
    policy = next(node for node in page.all("meta") if "http-equiv" in node.attributes)
    assert policy.attributes["content"].startswith("default-src 'none'")
    for node in page.all():
        for name, value in node.attributes.items():
            if name in ("src", "href", "xlink:href"):
                assert value.startswith(("#", "data:image/png;base64,")), value
            assert not name.startswith("on")
            assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", value))


@every_kind
def test_it_is_small(kind, page_of):
    assert len(page_of(kind).encode()) < LARGEST / 2


def test_same_recovery_same_bytes(recovery_of, page_of):
    assert report_html(recovery_of("samples")) == page_of("samples")


@pytest.mark.parametrize("kind", ["rounded", "out_of_budget"])
def test_a_loaded_recovery_has_the_same_report(kind, recovery_of, page_of, tmp_path):
    recovery_of(kind).save(tmp_path / "run.npz")
    Recovery.load(tmp_path / "run.npz").save_report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page_of(kind)


def test_a_failure_says_what_was_seen_why_it_stopped_and_what_to_try(recovery_of, page_of):
    page = parsed(page_of("out_of_budget"))
    text = page.text(without=NOT_SAID)
    assert recovery_of("out_of_budget").message in text
    assert "Raise max_queries" in text
    assert "What was seen" in parsed(page_of("failed")).text(without=NOT_SAID)


def test_an_ambiguity_is_named():
    rng = np.random.default_rng(1008)
    x, weights = rng.standard_normal((40, 4)), rng.standard_normal((4, 2))
    data = unweave.Samples(x, ((x @ weights) ** 2).sum(axis=1))
    recovery = unweave.recover(data, activation="quadratic")
    assert recovery.status is Status.RECOVERED_UP_TO_AMBIGUITY
    answer = parsed(report_html(recovery)).all("table")[0]
    assert "only W W^T is determined" in answer.all("td")[-1].text()


def test_an_approximate_network_is_never_called_sure_and_words_are_no_markup(recovery_of):
    words, network = "off by <b>much</b> & more", recovery_of("samples").network
    settings = {"target": {"kind": "file", "name": "<i>x</i>.npz"}, "arguments": {"seed": 1}, "versions": {}}
    recovery = replace(
        recovery_of("out_of_budget"),
        status=Status.APPROXIMATE,
        message=words,
        network=network,
        settings=settings,
    )
    page = parsed(report_html(recovery))
    assert "Whether this is the network" in page.text(without=NOT_SAID)
    assert words in page.text()
    assert "recover('<i>x</i>.npz', seed=1)" in page.text()
    assert not page.all("b", "i")


def test_a_bare_result_has_a_report(tmp_path):
    net = unweave.random_network([3, 2, 1], seed=1000)
    bare = Recovery(net, Status.APPROXIMATE, np.nan, "", 0, 0, 0, 0.0, (), unweave.Certificate())
    bare.save_report(tmp_path / "bare.html")
    text = parsed((tmp_path / "bare.html").read_text(encoding="utf-8")).text(without=NOT_SAID)
    assert "does not say how it was asked for" in text
    assert "Nothing was verified" in text


@dataclass(frozen=True, eq=False, kw_only=True)
class EveryPicture(SpanEvidence, KinkedEvidence):
    """All that any method can draw."""


def test_a_large_network_stays_under_a_megabyte():
    net = unweave.random_network([784, 1000, 10], "relu", seed=1000)
    rng = np.random.default_rng(1000)
    evidence = EveryPicture(
        spectrum=np.sort(rng.random(5000))[::-1],
        width=1000,
        gap=2.0,
        misalignment=rng.random(1000),
        rejected=rng.random(3000),
        fit_history=tuple(rng.random(400)),
        fresh_errors=rng.random(40_000),
        profile_samples=np.sort(rng.random((2, 200))),
        profile_curve=np.sort(rng.random((2, 200))),
        profile_order=2,
        kinks=rng.standard_normal(1000),
        line=rng.standard_normal((2, 784)),
    )
    stages = tuple(unweave.Stage(f"line {i % 30}", 0.1, 50, {"kinks": 3, "width": i}) for i in range(120))
    recovery = Recovery(
        net, Status.RECOVERED, 1e-13, "", 10**6, 0, 0, 1.0, stages, unweave.Certificate(), (), evidence
    )
    html = report_html(recovery)
    assert len(html.encode()) < LARGEST
    assert len(parsed(html).all("svg")) == 8


def test_only_html_files_are_written(tmp_path, recovery_of):
    with pytest.raises(InvalidInput, match=r"path must end in \.html"):
        recovery_of("samples").save_report(tmp_path / "report.pdf")
    with pytest.raises(InvalidInput, match="can be written"):
        recovery_of("samples").save_report(tmp_path / "missing" / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_finished_leaves_the_old_one(tmp_path, recovery_of, monkeypatch):
    place = tmp_path / "report.html"
    place.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InvalidInput, match="No space left"):
        recovery_of("out_of_budget").save_report(place)
    assert place.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


def test_a_target_that_no_method_can_use_is_not_told_to_try_harder():
    refused = unweave.recover(lambda x: np.sign(x.sum(axis=1)), input_dim=3)
    assert [stage.name for stage in refused.stages] == ["look"]
    told = suggestions(refused)
    assert "what to change" in told[0]
    assert not any("averaging" in tip or "hidden" in tip for tip in told)
