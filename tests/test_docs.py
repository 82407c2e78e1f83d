"""The pages for those who carry on hold: their code runs, and what they name is there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PLACES = "Alg|Thm|Theorem|Sec|Lemma|Prop|Table|Fig|Def|Eq|Ch|Cor|Claim|App"


WRITTEN_BY_THE_BUILD = {"_build", "api", "gallery", "project"}
"""Folders of docs that `make docs` fills."""
ALL_PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.md")
    if path.relative_to(DOCS).parts[0] not in WRITTEN_BY_THE_BUILD
)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def python_blocks(page: str) -> list[str]:
    return blocks(page, "python")


SMALL_TARGET = "import unweave\ntarget = unweave.random_network([3, 2, 1], seed=0, outer='normal')\n"
PRELUDES = {
    "audit.md": "import unweave\nclass model:\n    predict = unweave.random_network([30, 2, 1], seed=0)\n",
    "files.md": SMALL_TARGET + "unweave.random_network([20, 30, 1], 'gelu', seed=0).save('net.safetensors')",
    "report.md": SMALL_TARGET + "unweave.recover(target).save('run.npz')\n",
    "running.md": SMALL_TARGET,
}
"""What a reader has before the page begins: a model, a file, a run."""
NOT_RUN = {
    "choose.md": "a program that reads its input; test_page_commands asks it",
    "http.md": "it names endpoints that are not there; tests/targets covers each option",
    "samples.md": "another test runs it and reads what it prints",
    "verdict.md": "another test runs it and reads what it prints",
}
PAGES = [page for page in ALL_PAGES if python_blocks(page)]


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


@pytest.mark.parametrize("page", [*ALL_PAGES, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md"])
def test_links_lead_somewhere(page: str) -> None:
    path = DOCS / page
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        place = (path.parent / target).resolve()
        written = place.is_relative_to(DOCS) and place.relative_to(DOCS).parts[0] in WRITTEN_BY_THE_BUILD
        if "://" not in target and not written:  # make docs follows the others
            assert place.exists(), target


def options_of(command: str) -> set[str]:
    from importlib import import_module

    import typer

    from unweave.cli.command import as_app

    word = command.replace("-", "_")
    run = getattr(import_module(f"unweave.cli.{word}"), f"run_{word}")
    return {name for each in typer.main.get_command(as_app(run)).params for name in each.opts} | {"--help"}


def test_commands_on_the_pages_exist() -> None:
    from unweave.cli.app import COMMANDS

    texts = {page: blocks(page, "sh") for page in [*ALL_PAGES, "../README.md"]}
    lines = [
        (page, line)
        for page, found in texts.items()
        for text in found
        for line in text.replace("\\\n", " ").splitlines()
        if line.startswith("unweave ")
    ]
    assert len(lines) > 30
    known = {name: options_of(name) for name in COMMANDS}
    for page, line in lines:
        command, *words = line.split("#")[0].split()[1:]
        if command == "--version":
            continue
        assert command in known, (page, line)
        assert {word for word in words if word.startswith("--")} <= known[command], (page, line)


def test_every_method_has_a_page_of_theory() -> None:
    from unweave.methods.table import METHODS

    titles = [path.read_text(encoding="utf-8").splitlines()[0] for path in (DOCS / "theory").glob("*.md")]
    told = {name for title in titles for name in re.findall(r"`(\w+)`", title)}
    assert told == {method.name for method in METHODS}


def test_every_page_is_in_the_contents() -> None:
    listed = "\n".join(
        text for page in ("index.md", "theory/index.md") for text in blocks(page, r"\{toctree\}")
    ).split()
    pages = {page.removesuffix(".md") for page in ALL_PAGES if not page.endswith("index.md")}
    assert {
        page for page in pages if page not in listed and page.removeprefix("theory/") not in listed
    } == set()


GALLERY = sorted((ROOT / "examples").glob("plot_recover_*.py"))


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_the_gallery_is_led_by_the_main_verb_and_writes_where_it_is_told(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.search(r"unweave\.(recover|audit)\(", text)
    assert re.findall(r"(\w+)\.savefig\((.*?)\)", text) == [("figure", "sys.argv[1]")]
    assert not re.search(r"plt\.show|open\(|\.save\(|use\(", text)


def test_the_gallery_has_every_kind_of_target() -> None:
    kinds = {path.stem.removeprefix("plot_recover_") for path in GALLERY}
    assert kinds >= {"smooth", "relu", "two_decimals", "deep", "samples", "torch", "http", "audit"}


def test_an_example_dirties_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "MPLBACKEND": "agg"}
    script = ROOT / "examples" / "plot_recover_relu.py"
    before = set((ROOT / "examples").iterdir())
    subprocess.run([sys.executable, script, "picture.png"], cwd=tmp_path, env=environment, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]
    assert set((ROOT / "examples").iterdir()) == before


NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def test_there_are_five_notebooks() -> None:
    assert len(NOTEBOOKS) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_results(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    source = "\n".join("".join(cell["source"]) for cell in code)
    compile(source, path.name, "exec")
    assert "unweave.recover(" in source


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("check_links", DOCS / "check_links.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "a.html").write_text('<a href="b.html#there">b</a><a href="b.html#not">b</a><p id="here">')
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1><a href="a.html#here"></a><img src="no.png">')
    assert module.broken_links(tmp_path) == ["a.html: b.html#not", "b.html: no.png"]


def test_the_page_on_verdicts_says_what_happens(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "verdict.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(compile("\n".join(blocks), "verdict.md", "exec"), {})
    assert capsys.readouterr().out.split() == ["RECOVERED", "APPROXIMATE"]


def test_the_page_on_samples_says_what_happens(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
