"""Run the package on one case and judge what it returns."""

from __future__ import annotations

import time
import traceback
from typing import Any

from battery.case import Asked, Case
from battery.catalogue import FAMILIES, family_of, make
from battery.judge import Verdict, judge
from unweave import Samples, UnweaveError, recover  # by name: they are loaded before any clock starts

OVERSHOOT = 1.0
"""Seconds beyond the deadline that are allowed, or one call of the target if that takes longer. Of the time
beyond, the share counts in which the process had a processor: a busy machine is not the package's fault."""


def attempt(index: int, deadline: float) -> dict[str, Any]:
    """Everything worth keeping about case ``index``, ready for JSON."""
    case = make(index)
    asked = None if case.samples is not None else Asked(case.answer or case.truth)
    wall, cpu = time.perf_counter(), time.process_time()
    result, raised = None, None
    try:
        result = _recover(case, asked, deadline)
    except UnweaveError as error:
        raised = error
        verdict = Verdict("missed" if case.must_recover else "ok", f"{type(error).__name__}: {error}")
    except Exception as error:  # whatever it is, it is a finding
        raised = error
        verdict = crashed(error)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if result is not None:
        verdict = judge(case, result, asked)
    longest = 0.0 if asked is None else asked.longest_call
    return {
        "index": index,
        "family": family_of(index),
        "seed": index // len(FAMILIES),
        "in_class": case.must_recover,
        "verdict": verdict.word,
        "reason": verdict.reason,
        "late": (wall - deadline) * min(cpu / wall, 1.0) > max(OVERSHOOT, longest),
        "wall": round(wall, 2),
        "cpu": round(cpu, 2),
        **(_told(result) if result is not None else {"status": type(raised).__name__}),
    }


def _recover(case: Case, asked: Asked | None, deadline: float) -> Any:
    if asked is None:
        assert case.samples is not None
        return recover(Samples(*case.samples), deadline=deadline)
    return recover(asked, input_dim=case.inputs, deadline=deadline, **case.arguments)


def _told(result: Any) -> dict[str, Any]:
    """What the package says of its result."""
    return {
        "status": result.status.name,
        "network": repr(result.network),
        "error": float(result.error),
        "queries": int(result.queries),
        "message": result.message,
        "stages": [stage.name for stage in result.stages],
    }


def crashed(error: Exception) -> Verdict:
    """Say where an exception came from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else "?"
    return Verdict("crash", f"{type(error).__name__} at {place}: {error}")
