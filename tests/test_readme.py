"""The README's Python code runs and does what it says; its command blocks name commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "net.npz").is_file()


def test_make_targets_and_commands_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    from typer.main import get_command

    from unweave.cli.app import app

    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    named = set(re.findall(r"^unweave (\w+)", README, flags=re.MULTILINE))
    assert named
    assert named <= known


def test_a_model_of_ones_own_is_recovered_by_the_commands_of_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    from typer.testing import CliRunner

    from unweave.cli.app import app

    (install, *_) = blocks("sh")
    commands = install.strip().splitlines()
    assert len(commands) < 5  # and the clone before them
    (line,) = [each for each in commands if each.startswith("unweave ")]
    words = line.split()[1:]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    assert "RECOVERED" in told.output
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_pictures_are_there() -> None:
    for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README):
        assert (ROOT / path).is_file()
