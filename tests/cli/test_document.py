"""docs/json.md names every entry of what ``--json`` prints."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

import unweave
from unweave.cli.app import app
from unweave.methods.table import METHODS
from unweave.recovery.describe import evidence_figures

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "json.md"


def documented() -> set[str]:
    return set(re.findall(r"`(\w+)`", DOCUMENT.read_text(encoding="utf-8")))


def test_every_entry_is_documented(tmp_path):
    unweave.random_network([5, 3, 1], seed=1000, outer="normal").save(tmp_path / "net.npz")
    done = CliRunner().invoke(app, ["recover", str(tmp_path / "net.npz"), "--activation", "tanh", "--json"])
    content = json.loads(done.stdout)
    named = documented()
    for part in (content, content["evidence"], content["certificate"][0], content["stages"][0]):
        assert set(part) <= named, set(part) - named
    own = list(unweave.recover(tmp_path / "net.npz", activation="tanh").to_dict())
    assert list(content)[1:-4] == own  # the others are marked "command line only"
    assert [next(iter(content)), *list(content)[-4:]] == ["target", "interrupted", "out", "save", "report"]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_kind_of_evidence_is_documented(method):
    entries = set(evidence_figures(method.evidence()))
    assert entries == {"kind", *(entry.name for entry in fields(method.evidence))} - {"layers"}
    assert entries | {method.evidence.__name__} <= documented()
