"""The wheel holds what it should and works where it is installed; importing unweave stays light."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import unweave

ROOT = Path(__file__).resolve().parents[1]

HEAVY = (
    *("torch", "onnx", "onnxruntime", "safetensors", "keras", "sklearn", "pandas", "cvxpy"),
    *("matplotlib", "jinja2", "dask", "distributed", "httpx", "typer", "rich"),
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_is_typed_and_complete(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    sources = {
        str(path.relative_to(ROOT / "src")).replace(os.sep, "/") for path in (ROOT / "src").rglob("*.py")
    }
    assert sources <= inside
    assert "unweave/py.typed" in inside


def test_the_installed_wheel_recovers_a_network(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "installed"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place), str(wheel)],
        check=True,
    )
    code = (
        "import unweave, pathlib;"
        f"assert pathlib.Path(unweave.__file__).is_relative_to({str(place)!r}), unweave.__file__;"
        "net = unweave.random_network([5, 3, 1], seed=1000, outer='normal');"
        "assert unweave.recover(net).status is unweave.Status.RECOVERED"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(place)}
    )


def test_importing_unweave_loads_nothing_heavy() -> None:
    code = f"import sys, unweave; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_importing_unweave_costs_next_to_nothing() -> None:
    code = "import sys, unweave; names = list(sys.modules);"
    code += "print('numpy' in names, sum(name.startswith('unweave') for name in names))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "1"]


def test_every_public_name_has_one_home() -> None:
    assert sorted(unweave._HOME) == sorted(unweave.__all__)
    assert set(unweave.__all__) | set(unweave._ROOMS) <= set(dir(unweave))
    for name in unweave.__all__:
        assert getattr(unweave, name) is getattr(
            importlib.import_module(f"unweave.{unweave._HOME[name]}"), name
        )
    for room in unweave._ROOMS:
        assert getattr(unweave, room) is importlib.import_module(f"unweave.{room}")
    with pytest.raises(AttributeError, match="no attribute 'recovr'"):
        unweave.recovr  # noqa: B018


def test_no_module_takes_the_place_of_a_public_name() -> None:
    modules = {module.name for module in pkgutil.iter_modules(unweave.__path__)}
    assert not modules & set(unweave.__all__)
