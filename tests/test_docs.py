"""The pages for those who carry on hold: their code runs, and what they name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PLACES = "Alg|Thm|Theorem|Sec|Lemma|Prop|Table|Fig|Def|Eq|Ch|Cor|Claim|App"


def python_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)


SMALL_TARGET = "import unweave\ntarget = unweave.random_network([3, 2, 1], seed=0, outer='normal')\n"
PRELUDES = {
    "audit.md": "import unweave\nclass model:\n    predict = unweave.random_network([30, 2, 1], seed=0)\n",
    "files.md": SMALL_TARGET + "unweave.random_network([20, 30, 1], 'gelu', seed=0).save('net.safetensors')",
    "report.md": SMALL_TARGET + "unweave.recover(target).save('run.npz')\n",
    "running.md": SMALL_TARGET,
}
"""What a reader has before the page begins: a model, a file, a run."""
NOT_RUN = {
    "http.md": "it names endpoints that are not there; tests/targets covers each option",
    "verdict.md": "another test runs it and reads what it prints",
}
PAGES = [path.name for path in sorted(DOCS.glob("*.md")) if python_blocks(path.name)]


SLOW = {"audit.md", "cost.md"}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page in SLOW)) for page in PAGES if page not in NOT_RUN],
)
def test_code_on_the_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n".join([PRELUDES.get(page, ""), *python_blocks(page)])
    exec(compile(code, page, "exec"), {"__name__": __name__})


def test_the_method_on_the_page_is_short() -> None:
    assert len(python_blocks("add-a-method.md")[0].splitlines()) < 80


def test_the_drawing_names_every_room() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.parent.name for path in (ROOT / "src" / "unweave").glob("*/__init__.py")}
    assert {room for room in rooms if not re.search(rf"\b{room}\b", text)} == set()


def test_every_citation_is_resolved() -> None:
    text = (DOCS / "references.md").read_text(encoding="utf-8")
    keys = set(re.findall(r"^\| \[([a-z-]+)\] \|", text, flags=re.MULTILINE))
    cited: dict[str, Path] = {}
    for path in (ROOT / "src").rglob("*.py"):
        for key in re.findall(rf"\[([a-z][a-z-]+)\] (?:{PLACES})", path.read_text(encoding="utf-8")):
            cited[key] = path
    assert {key: path.name for key, path in cited.items() if key not in keys} == {}
    assert {"identification", "hermite", "guarantees", "mathematics", "quadratic"} <= keys


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_links_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (DOCS / target).exists(), target


def test_the_page_on_verdicts_says_what_happens(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "verdict.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(compile("\n".join(blocks), "verdict.md", "exec"), {})
    assert capsys.readouterr().out.split() == ["RECOVERED", "APPROXIMATE"]


def test_the_page_on_samples_says_what_happens(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(python_blocks("samples.md")), "samples.md", "exec"), {"__name__": "samples"})
    assert capsys.readouterr().out.splitlines() == [
        "RECOVERED (4,) True",
        "RECOVERED ('relu', 'softmax')",
        "APPROXIMATE",
        "True True",
        "(143, 2) True",
        "1000 1,000 of 100,000 rows were kept, drawn at random",
    ]
    assert (tmp_path / "cancer.npz").is_file()
