"""How the page starts processes: the same package, one BLAS thread, nothing from the current folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import unweave

OWNER_ONLY = 0o077
"""Mask of the rights that files of runs do not give: targets and answers are nobody else's business."""
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
_THREADS = ("VECLIB_MAXIMUM_THREADS", *(f"{library}_NUM_THREADS" for library in _LIBRARIES))


def start_module(
    module: str, *words: str, without: Iterable[str] = (), **pipes: Any
) -> subprocess.Popen[str]:
    """Start ``python -m module words``; its environment lacks the variables ``without``.

    It is in a session of its own, so that Ctrl-C in the terminal of the server does not reach it.
    """
    environment = {name: value for name, value in os.environ.items() if name not in set(without)}
    environment |= dict.fromkeys(_THREADS, "1")
    root = str(Path(unweave.__file__).resolve().parents[1])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
    # -P: a file of the current folder that is called like a module must not be taken for it.
    command = [sys.executable, "-P", "-m", module, *words]
    return subprocess.Popen(
        command, env=environment, text=True, start_new_session=True, umask=OWNER_ONLY, **pipes
    )
