"""The files of a result: the network in every format, the result itself, the report.

What cannot be written is told, and costs nothing of the rest.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unweave.errors import UnweaveError
from unweave.files import FORMATS
from unweave.recovery.result import Recovery
from unweave.web.run_folder import LOG, write_json

REPORT, RESULT, FACTS = "report.html", "result.npz", "result.json"
NETWORK = "network"
FILES: dict[str, tuple[str, str]] = {
    f"{NETWORK}.npz": ("Network as .npz (NumPy)", "application/octet-stream"),
    f"{NETWORK}.json": ("Network as .json", "application/json"),
    f"{NETWORK}.onnx": ("Network as .onnx", "application/octet-stream"),
    f"{NETWORK}.safetensors": ("Network as .safetensors (PyTorch)", "application/octet-stream"),
    RESULT: ("Whole result as .npz", "application/octet-stream"),
    FACTS: ("Whole result as .json, without the parameters", "application/json"),
    REPORT: ("Report as one .html file", "text/html; charset=utf-8"),
    LOG: ("Log of the run", "text/plain; charset=utf-8"),
}
"""Name of a file that may be downloaded -> what the page calls it, and its type. There are no others."""


def write_results(recovery: Recovery, place: Path) -> dict[str, Any]:
    """Write all files to the folder ``place``; return the facts, and what could not be written."""
    facts = recovery.to_dict()
    writers: dict[str, Callable[[Path], None]] = {
        RESULT: recovery.save,
        FACTS: lambda path: write_json(path, facts),
        REPORT: recovery.save_report,
    }
    if recovery.network is not None:
        writers |= {f"{NETWORK}{ending}": recovery.network.save for ending in FORMATS}
    problems = []
    for name, write in writers.items():
        try:
            write(place / name)
        except (UnweaveError, OSError) as error:
            problems.append(f"{name} could not be written: {error}".replace(str(place / name), name))
        except Exception as error:  # a defect in one of the writers must not cost what was found
            traceback.print_exc()
            problems.append(f"{name} could not be written: {type(error).__name__}: {error}")
    return {"recovery": facts, "problems": problems}
