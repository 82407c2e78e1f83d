"""How the page starts processes: the same package, one BLAS thread, nothing from the current folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import unweave

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def start_module(
    module: str, *arguments: str, without: Iterable[str] = (), **pipes: Any
) -> subprocess.Popen[str]:
    """Start ``python -m module arguments``; its environment lacks the variables ``without``.

    It is in a session of its own, so that Ctrl-C in the terminal of the server does not reach it.
    """
    environment = {name: value for name, value in os.environ.items() if name not in set(without)}
    environment |= dict.fromkeys(_THREADS, "1")
    root = str(Path(unweave.__file__).resolve().parents[1])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
    # -P: a file of the current folder that is called like a module must not be taken for it.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        env=environment,
        text=True,
        start_new_session=True,
        **pipes,
    )
