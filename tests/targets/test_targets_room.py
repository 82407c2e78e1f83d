"""What the room gives, and that adapters are loaded only when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from unweave import targets


def test_every_name_is_there():
    for name in targets.__all__:
        assert getattr(targets, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'HttpOption'"):
        targets.HttpOption  # noqa: B018


def test_adapters_are_loaded_when_they_are_used():
    code = "import sys, unweave.targets; print([name for name in ('torch', 'httpx') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
