"""Write the reference of every public name: one page for the package, one for each of its rooms."""

from __future__ import annotations

import importlib
import inspect
from enum import Enum
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from typer.testing import CliRunner

import unweave
from unweave.cli.app import COMMANDS, app

ALSO = ("audits", "files", "recovery", "search", "serving", "tables")
"""Modules with public names that are no lazy rooms."""


def _is_module(module: ModuleType, name: str) -> bool:
    return isinstance(getattr(module, name, ModuleType(name)), ModuleType)  # not loaded yet: a module


def _entry(module: ModuleType, name: str) -> list[str]:
    value, path = getattr(module, name), f"{module.__name__}.{name}"
    if module is not unweave and getattr(unweave, name, None) is value:
        return [f"``{name}``: see :py:obj:`unweave.{name}`.", ""]
    if inspect.isclass(value):
        options = ["   :members:", *(["   :undoc-members:"] if issubclass(value, Enum) else [])]
        return [f".. autoclass:: {path}", *options, ""]
    if callable(value):
        return [f".. autofunction:: {path}", ""]
    return [f".. autodata:: {path}", "   :no-value:", ""]


def page(module: ModuleType) -> str:
    """Return the page of ``module`` and all names that it exports."""
    title = module.__name__
    lines = [title, "=" * len(title), "", f".. automodule:: {title}", "   :no-members:", "   :no-index:", ""]
    for name in module.__all__:
        if not _is_module(module, name):
            lines += _entry(module, name)
    return "\n".join(lines)


def commands() -> str:
    """Return the page of the command line: the help of every command, as it prints it."""
    runner = CliRunner(env={"COLUMNS": "96", "TERMINAL_WIDTH": "96", "NO_COLOR": "1"})
    lines = ["# Commands", "", "`unweave COMMAND --help` prints what stands here.", ""]
    for words in ([], *([name] for name in COMMANDS)):
        told = runner.invoke(app, [*words, "--help"], prog_name="unweave")
        assert told.exit_code == 0, told.output
        lines += [f"## {' '.join(['unweave', *words])}", "", "```text", told.output.strip("\n"), "```", ""]
    return "\n".join(lines)


def _with_parts(name: str) -> list[ModuleType]:
    """Return a module and those that it exports."""
    module = importlib.import_module(name)
    parts = [f"{name}.{each}" for each in getattr(module, "__all__", []) if _is_module(module, each)]
    return [module, *(part for path in parts for part in _with_parts(path))]


def _modules() -> list[ModuleType]:
    rooms = [f"unweave.{name}" for name in sorted({*unweave._ROOMS, *ALSO})]
    found = [module for name in ("unweave", *rooms) for module in _with_parts(name)]
    return [module for module in found if getattr(module, "__all__", None)]


def _write(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    modules = _modules()
    for module in modules:
        (folder / f"{module.__name__}.rst").write_text(page(module), encoding="utf-8")
    names = [f"   {module.__name__}" for module in modules]
    intro = ["Python reference", "================", "", "Every public name, room by room.", ""]
    toctree = [".. toctree::", "   :maxdepth: 1", "", *names, ""]
    (folder / "commands.md").write_text(commands(), encoding="utf-8")
    (folder / "index.rst").write_text("\n".join([*intro, *toctree]), encoding="utf-8")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Write the pages before anything is read."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
