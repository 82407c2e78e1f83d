"""The gallery's examples run and draw something."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["construct_sawtooth", "certify_noise_and_depth"])
def test_example_runs(name: str, monkeypatch) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = []
    monkeypatch.setattr(
        pyplot, "show", lambda: shown.append([axis.lines or axis.collections for axis in pyplot.gcf().axes])
    )
    try:
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    finally:
        pyplot.close("all")
    assert len(shown) >= 2
    assert all(drawn[0] for drawn in shown)
