"""What a type checker sees of the public names: their types, though they are loaded when first used."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path

import pytest

import unweave

MODULES = {name for name in unweave._ROOMS if name != "diagnose"}
SCRIPT = """\
import numpy as np

import unweave

net = unweave.random_network([4, 3, 1], activation="tanh", seed=0)
result: unweave.Recovery = unweave.recover(net, hidden=3)
status: unweave.Status = result.status
found: unweave.Network = unweave.load("net.npz")
table: str = found.summary()
error: float = unweave.compare(net, found).parameter_error
rows: int = unweave.plan(net).sent
passive: unweave.Recovery = unweave.recover(unweave.Samples(np.ones((3, 2)), np.ones(3)), hidden=[2])
units: int = unweave.diagnose(net).layers.units
unweave.plot.spectrum(result).set_title("spectrum")
loss: float = unweave.exact.exact_erm(np.ones((3, 1)), np.ones(3), width=1).loss
"""


def public_names() -> list[str]:
    names = list(unweave.__all__)
    for room in sorted(unweave._ROOMS):
        listed = getattr(importlib.import_module(f"unweave.{room}"), "__all__", ())
        names += [room, *(f"{room}.{name}" for name in listed)]
    return names


@pytest.mark.slow
def test_a_script_with_every_public_name(tmp_path, monkeypatch):
    """No error under --strict, and no type that is lost: no ``object``, and no ``Any`` but in diagnose."""
    api = pytest.importorskip("mypy.api")
    names = public_names()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + "".join(f"reveal_type(unweave.{name})\n" for name in names), encoding="utf-8")
    source = Path(unweave.__file__).parents[1]
    monkeypatch.setenv("MYPYPATH", str(source))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")]))
    (tmp_path / "mypy.ini").write_text("[mypy]\n", encoding="utf-8")  # not this project's settings
    arguments = ["--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    told, problems, _ = api.run([*arguments, "--config-file", str(tmp_path / "mypy.ini"), str(script)])
    assert not problems
    assert re.findall(r"script\.py:\d+: error: .*", told) == []
    revealed = re.findall(r'Revealed type is "(.*)"', told)
    assert len(revealed) == len(names)
    lost = [
        name
        for name, kind in zip(names, revealed, strict=True)
        if kind in ("builtins.object", "object") or (kind == "Any" and not name.startswith("diagnose."))
    ]
    assert lost == []


def test_every_room_is_declared_for_type_checkers():
    text = Path(unweave.__file__).read_text(encoding="utf-8")
    declared = set(re.findall(r"^    from unweave import (\w+) as \1$", text, re.M))
    assert declared == MODULES
    assert "    diagnose: DiagnoseRoom\n" in text


def test_names_that_do_not_exist_are_refused():
    with pytest.raises(AttributeError, match="has no attribute 'recoverr'"):
        unweave.recoverr  # noqa: B018
