"""The wheel holds what it should and works where it is installed; importing unweave stays light."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import unweave
from unweave.errors import install_hint

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


def test_the_source_archive_is_complete(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert inside >= {
        *(
            "pyproject.toml",
            "hatch_build.py",
            "Makefile",
            "README.md",
            "LICENSE",
            "CHANGELOG.md",
            "CITATION.cff",
        ),
        *("CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", ".ci/run", "docs/conf.py"),
        *("docs/index.md", "docs/recovery.png", "docs/theory/smooth.md", "docs/notebooks/theory.ipynb"),
        *("examples/my_model.py", "benchmarks/README.md", "tests/conftest.py", "src/unweave/py.typed"),
    }
    generated = ("docs/_build", "docs/api", "docs/gallery", "docs/project")
    assert not [name for name in inside if name.startswith(generated)]


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_description_shows_pictures_only_where_they_are(hook: ModuleType) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "![" in readme
    plain = hook.description(readme, None)
    assert "![" not in plain
    assert not re.search(r"\]\((?!https?:|#)", plain)
    placed = hook.description(readme, "https://code.example/unweave/")
    assert "(https://code.example/unweave/raw/main/docs/recovery.png)" in placed
    assert "(https://code.example/unweave/blob/main/docs/start.md)" in placed
    assert not re.search(r"\]\((?!https?:|#)", placed)
    assert hook.links(None) == {}
    assert hook.links("https://code.example/unweave")["Source"] == "https://code.example/unweave"


def test_messages_name_extras_that_exist() -> None:
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    named = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        named |= set(re.findall(r"install_hint\('(\w+)'\)", text))
        assert "pip install" not in text or path.name == "errors.py", path
    assert {"onnx", "torch", "web", "dask", "sklearn"} <= named <= extras
    assert "pip install -e '.[onnx]'" in install_hint("onnx")


def test_all_means_every_extra_of_a_user() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (named,) = re.findall(r"unweave\[(.*)\]", extras["all"][0])
    assert set(named.split(",")) == set(extras) - {"all", "docs", "test"}


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
