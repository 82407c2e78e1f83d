"""Every example in a docstring runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "src"
SLOW = {"unweave.audits.run"}
MODULES = [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    for path in sorted(SOURCES.rglob("*.py"))
    if any(">>> " in line and "+SKIP" not in line for line in path.read_text(encoding="utf-8").splitlines())
]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in MODULES]
)
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert outcome.failed == 0
