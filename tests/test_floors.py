"""Imports go down the floors, no method imports a sibling, and every public room says what is public.

The table is the drawing in docs/architecture.md: a room may import the rooms before it.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import unweave

PACKAGE = Path(unweave.__file__).parent
FLOORS: dict[int, tuple[str, ...]] = {
    0: ("errors", "arrays"),
    1: ("numerics",),
    2: (
        *(
            "networks",
            "files",
            "execution",
            "subspace",
            "derivatives",
            "targets",
            "tables",
            "probing",
            "search",
        ),
        *("optimize", "construct", "exact", "gates", "certify", "diagnose", "sparse_coding"),
        *("tensor_start", "quadratic"),
    ),
    3: ("published", "methods"),
    4: (
        *("recovery", "report", "audits", "plot", "serving", "experiments", "sklearn", "web", "cli"),
        "__main__",
    ),
}
LATE = {("networks", "files"), ("recovery", "report")}
"""Rooms whose functions, when called, load a room above: a network saves itself, a result reports itself."""
ROOMS = [room for floor in sorted(FLOORS) for room in FLOORS[floor]]


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), path


MODULES = dict(modules())


@cache
def imported(path: Path, *, late: bool) -> tuple[str, ...]:
    return tuple(_imported(path, late))


def _imported(path: Path, late: bool) -> Iterator[str]:
    """Modules of the package that ``path`` imports at its top, or (``late``) inside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in _top(tree)}
    typing = {id(node) for part in tree.body if _is_for_typing(part) for node in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in typing:
            continue
        if isinstance(node, ast.ImportFrom) and (id(node) in top) != late:
            module = node.module or ""
            if module == "unweave" or module.startswith("unweave."):
                inner = module.removeprefix("unweave").removeprefix(".")
                for alias in node.names:
                    longer = f"{inner}.{alias.name}".removeprefix(".")
                    yield longer if longer in MODULES else inner


def _top(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run on import."""
    for node in tree.body:
        if isinstance(node, ast.Try):
            yield from node.body
        else:
            yield node


def _is_for_typing(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def room(module: str) -> str:
    return module.split(".")[0]


def test_every_module_stands_on_a_floor() -> None:
    assert sorted({room(module) for module in MODULES if module}) == sorted(ROOMS)
    at_the_top = {path.stem for path in PACKAGE.glob("*.py")}
    assert at_the_top == {"__init__", "__main__", "errors", "arrays", "sklearn"}


@pytest.mark.parametrize("module", [module for module in MODULES if module])
def test_imports_go_down(module: str) -> None:
    own = ROOMS.index(room(module))
    above = {other for other in imported(MODULES[module], late=False) if _is_above(other, own)}
    assert not above
    late = {
        (room(module), room(other)) for other in imported(MODULES[module], late=True) if _is_above(other, own)
    }
    assert late <= LATE


def _is_above(module: str, own: int) -> bool:
    return bool(module) and ROOMS.index(room(module)) > own


def test_no_module_imports_in_a_circle() -> None:
    graph = {module: set(imported(path, late=False)) - {module} for module, path in MODULES.items() if module}
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("module", [module for module in MODULES if module.startswith("methods.")])
def test_a_method_imports_no_sibling(module: str) -> None:
    own = module.split(".")[1]
    inside = (other for other in imported(MODULES[module], late=False) if other.startswith("methods."))
    if own != "table":
        assert {other.split(".")[1] for other in inside} <= {own, "shared"}


@pytest.mark.parametrize("name", [info.name for info in pkgutil.iter_modules(unweave.__path__) if info.ispkg])
def test_a_public_room_says_what_is_public(name: str) -> None:
    package = importlib.import_module(f"unweave.{name}")
    public = getattr(package, "__all__", None)
    if public is None:
        # A room without names of its own is a folder: what is in it is documented module by module.
        assert [part for part in vars(package) if not part.startswith("_") and part not in _parts(name)] == []
    else:
        assert len(set(public)) == len(public)
        assert all(hasattr(package, each) or each in _parts(name) for each in public)


def _parts(name: str) -> set[str]:
    return {info.name for info in pkgutil.iter_modules([str(PACKAGE / name)])}


def test_tests_mirror_the_rooms() -> None:
    tests = Path(__file__).parent
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    beside = {Path("."), Path("golden"), Path("battery"), Path("benchmarks"), Path("fuzzing")}
    assert {folder for folder in folders - beside if not (PACKAGE / folder).is_dir()} == set()


@pytest.mark.parametrize(
    ("method", "most"), [("smooth", 25), ("relu_coarse", 18), ("samples_relu", 20), ("relu", 11)]
)
def test_a_newcomer_opens_few_files_for_a_method(method: str, most: int) -> None:
    reached, pending = set(), [f"methods.{method}.method"]
    while pending:
        module = pending.pop()
        reached.add(module)
        inside = {each for each in imported(MODULES[module], late=False) if each.startswith("methods.")}
        pending += inside - reached
    assert len({module for module in reached if MODULES[module].stem != "__init__"}) <= most
