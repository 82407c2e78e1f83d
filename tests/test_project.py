"""The files that people and hosts look for are there, can be read, and say what they should."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
yaml = pytest.importorskip("yaml")


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_citation_names_the_version_and_the_sources() -> None:
    citation = read("CITATION.cff")
    assert citation["version"] == PROJECT["version"]
    references = citation["references"]
    assert len(references) == 5
    assert all(each["title"] and each["authors"] and 2017 <= each["year"] <= 2022 for each in references)
    bibliography = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    for each in references:
        assert each["title"] in bibliography
        assert all(author["family-names"] in bibliography for author in each["authors"])


def test_hosted_checks_cover_every_python_and_the_oldest_dependencies() -> None:
    matrix = read(".github/workflows/ci.yml")["jobs"]["tests"]["strategy"]["matrix"]
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert matrix["python"] == declared == ["3.11", "3.12", "3.13", "3.14"]
    assert {"python": "3.11", "dependencies": "minimal"} in matrix["include"]


def test_the_oldest_dependencies_are_those_that_are_declared() -> None:
    text = (ROOT / "constraints" / "minimal.txt").read_text(encoding="utf-8")
    oldest = dict(re.findall(r"^([\w-]+)==([\d.]+)\.\*$", text, flags=re.MULTILINE))
    declared = dict(re.findall(r"([\w-]+)>=([\d.]+)", "\n".join(PROJECT["dependencies"])))
    assert oldest == declared


def test_hooks_before_a_commit_fetch_nothing() -> None:
    (only,) = read(".pre-commit-config.yaml")["repos"]
    assert only["repo"] == "local"
    assert {hook["entry"].split()[0] for hook in only["hooks"]} <= {
        ".venv/bin/ruff",
        ".venv/bin/mypy",
        ".venv/bin/python",
    }


def test_templates_for_issues_can_be_read() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        template = read(str(path.relative_to(ROOT)))
        assert path.stem == "config" or {"name", "description", "body"} <= set(template)


def test_a_change_must_pass_tests_documentation_and_demo() -> None:
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^make (\S+)", run, flags=re.MULTILINE) == ["test", "test-long", "docs", "demo"]
