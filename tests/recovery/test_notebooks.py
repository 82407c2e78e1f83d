"""Results in a notebook: tables with every text escaped, short reprs, and mistakes that are explained."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import unweave


@pytest.fixture(scope="module")
def net() -> unweave.Network:
    return unweave.random_network([4, 3, 1], activation="tanh", seed=1000, outer="normal")


@pytest.fixture(scope="module")
def result(net) -> unweave.Recovery:
    return unweave.recover(net, hidden=3)


class Closed(HTMLParser):
    """Checks that every tag is closed by its own, and collects the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag in {"div", "b", "table", "thead", "tbody", "tr", "th", "td", "p"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + " "


def test_tables_hold_the_figures(net, result):
    shown = [net, result, result.certificate, unweave.compare(net, result.network), unweave.plan(net)]
    texts = [Closed(each._repr_html_()).text for each in shown]
    assert all("4-3-1" in text for text in texts[:2])
    assert "RECOVERED" in texts[1]
    assert f"{result.queries:,}" in texts[1]
    assert all(check.name in texts[2] for check in result.certificate)
    assert "same network up to symmetry" in texts[3]
    assert "smooth" in texts[4]
    assert "coherence" in Closed(unweave.diagnose(net)._repr_html_()).text


def test_everything_is_escaped(result):
    evil = "<script>alert('&')</script>"
    check = unweave.Check.figure(evil, 1.0, evil)
    shown = replace(
        result,
        message=evil,
        notes=(evil,),
        certificate=unweave.Certificate((check,)),
        settings={"inputs": [evil]},
    )
    for each in (shown, shown.certificate):
        html = each._repr_html_()
        assert "<script" not in html
        assert evil in Closed(html).text.replace("  ", " ")


def test_reprs_are_short(net, result):
    for each in (
        net,
        result,
        result.certificate,
        unweave.compare(net, net),
        unweave.plan(net),
        unweave.diagnose(net),
    ):
        assert len(repr(each)) < 200
        assert "\n" not in repr(each)
    assert re.fullmatch(r"Certificate\(holds, \d+ grounds, 0 against\)", repr(result.certificate))


def test_a_width_may_be_a_number(net, result):
    assert result.network.hidden == (3,)
    assert unweave.plan(net, hidden=3).first.hidden == (3,)
    with pytest.raises(unweave.InvalidInput, match="whole numbers"):
        unweave.recover(net, hidden=True)
    with pytest.raises(unweave.InvalidInput, match="hidden must"):
        unweave.recover(net, hidden=2.5)


@pytest.mark.parametrize("make", [np.asarray, np.ndarray.tolist])
def test_data_in_place_of_a_target_are_explained(make):
    x = np.ones((5, 2))
    with pytest.raises(unweave.InvalidInput, match=r"unweave\.recover\(unweave\.Samples\(X, y\)\)"):
        unweave.recover(make(x), make(np.ones(5)))


def test_the_number_of_inputs_is_that_of_the_examples(net):
    examples = np.random.default_rng(1000).standard_normal((30, 4))
    assert unweave.recover(lambda x: net(x), examples=examples).network.n_inputs == 4
    assert unweave.plan(lambda x: net(x), examples=examples, outputs=1).inputs == 4
    with pytest.raises(unweave.InvalidInput, match="input_dim must be given"):
        unweave.recover(lambda x: net(x))


def test_frames_keep_the_names_of_their_columns(net, tmp_path):
    import pandas

    names = ["age", "income", "height", "weight"]
    x = np.random.default_rng(1000).standard_normal((200, 4))
    frame = pandas.DataFrame(x, columns=names)
    asked = []

    def target(table):
        asked.append(list(table.columns))
        return net(table[names].to_numpy())

    found = unweave.recover(target, examples=frame)
    assert found.status is unweave.Status.RECOVERED
    assert {tuple(each) for each in asked} == {tuple(names)}
    assert found.input_names == tuple(names)
    found.save(tmp_path / "run.npz")
    assert unweave.Recovery.load(tmp_path / "run.npz").input_names == tuple(names)
    samples = unweave.Samples(frame, net(x))
    assert samples.names == tuple(names)
    fitted = unweave.recover(samples, hidden=3, activation="tanh")
    assert fitted.input_names == tuple(names)
    np.testing.assert_array_equal(net.predict(frame), net(x))


def test_diagnose_is_a_room_and_an_answer(net):
    found = unweave.diagnose(net)
    assert found.weights is not None
    assert found.layers.units == 3
    assert unweave.diagnose.diagnose_network(net).norms.shape == (3,)
    with pytest.raises(unweave.InvalidInput, match="Network with a hidden layer"):
        unweave.diagnose(lambda x: x)


def test_summary_counts_every_parameter(net):
    lines = net.summary().splitlines()
    assert len(lines) == 4
    counted = [int(re.split(r"\s{2,}", line)[3].replace(",", "")) for line in lines[1:3]]
    assert sum(counted) == net.n_parameters
    assert lines[-1] == f"{net.n_parameters} parameters"
    skipped = unweave.Network(net.weights, net.biases, net.activations, skip=np.ones((4, 1)))
    assert "skip" in skipped.summary()
