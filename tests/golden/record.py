"""Write the record that `test_golden` compares with: ``python -m golden.record [NAME ...]`` in tests/.

Without names every case is run again. Record only what a change is meant to change, and say why.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from pathlib import Path

import numpy as np
import scipy
from threadpoolctl import threadpool_info, threadpool_limits

from golden.cases import cases, outcome

RECORD = Path(__file__).with_name("record.json")


def architecture() -> str:
    """What decides how products and functions round: the processor, its BLAS kernel, NumPy and SciPy.

    Processors of one kernel have rounded otherwise, so that units came in another order. Thread pools of
    other kinds do not count: torch brings one along, and whether a test before has loaded it must not decide
    how strictly this one compares.
    """
    blas = [info for info in threadpool_info() if info["user_api"] == "blas"]
    kernels = sorted({str(info.get("architecture", "?")) for info in blas})
    return ", ".join([processor(), *kernels, f"numpy {np.__version__}", f"scipy {scipy.__version__}"])


def processor() -> str:
    """Name of the processor's model; of its family where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def main(names: list[str]) -> None:
    """Run the cases and write what came of them."""
    every = cases()
    kept = json.loads(RECORD.read_text()) if RECORD.is_file() else {"architecture": "", "cases": {}}
    kept["architecture"] = architecture()
    with threadpool_limits(1):
        for name in names or every:
            began = time.process_time()
            kept["cases"][name] = outcome(every[name].run())
            print(f"{name}: {time.process_time() - began:.1f} CPU s", flush=True)
            RECORD.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
