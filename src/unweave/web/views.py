"""Runs as the page shows them, in words of JSON."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from unweave.recovery.result import Status
from unweave.web.results import AUDIT_PAGE, FILES, REPORT, is_picture_name, picture_file
from unweave.web.run_folder import ENDED, RESUMABLE, RunState, RunStatus
from unweave.web.run_queue import Runs
from unweave.web.run_request import TABLE, RunRequest

_SHOWN_OPTIONS = (
    ("hidden", "Hidden widths"),
    ("activation", "Activation"),
    ("output_activation", "Output activation"),
    ("inputs", "Inputs"),
    ("outputs", "Answers per row"),
    ("domain", "Domain"),
    ("max_queries", "Maximum queries"),
    ("deadline", "Maximum seconds"),
    ("averaging", "Averaging"),
    ("http_request", "Request"),
    ("http_answers", "Place of the answers"),
    ("token_env", "Variable with the key"),
    ("decimals", "Decimals"),
    ("noise", "Noise"),
    ("budgets", "Queries per client"),
    ("seed", "Seed"),
)

_FOUND_OUT = ("hidden", "activation")
_FACTS = ("recovery", "audit", "comparison", "plan")
"""What an outcome holds, one of these per task."""
_TONES = {"RECOVERED": "good", "RECOVERED_UP_TO_AMBIGUITY": "good", "APPROXIMATE": "fair"}


def summary_of(state: RunState) -> dict[str, Any]:
    """Return a run as a line of the list."""
    return {
        "id": state.id,
        "name": state.request.name,
        "kind": state.request.kind,
        "task": state.request.task,
        "tone": _tone(state),
        "status": state.status.name,
        "verdict": state.verdict,
        "words": _verdict(state)[0],
        "summary": state.summary,
        "created": state.created,
        "active": state.status not in ENDED,
    }


def details_of(runs: Runs, state: RunState) -> dict[str, Any]:
    """Return a run with everything about it."""
    outcome = None if state.status not in ENDED else runs.outcome(state)
    place = runs.place(state)
    names = [name for name in FILES if (place / name).is_file()] if state.attempt else []
    return {
        **summary_of(state),
        "message": state.message,
        "explanation": _verdict(state)[1],
        "attempt": state.attempt,
        "found": state.found,
        "options": _options(state.request),
        "elapsed": _elapsed(state),
        "waiting_before": runs.waiting_before(state) if state.status is RunStatus.QUEUED else 0,
        "stopping": runs.is_stopping(state),
        "progress": runs.progress(state) if state.status is RunStatus.RUNNING else None,
        **{name: None if outcome is None else outcome.get(name) for name in _FACTS},
        "pictures": [] if outcome is None else _pictures(outcome, place),
        "problems": [] if outcome is None else outcome.get("problems", []),
        "report": outcome is not None and (REPORT in names or AUDIT_PAGE in names),
        "files": [{"name": n, "label": FILES[n][0], "bytes": (place / n).stat().st_size} for n in names],
        "can_cancel": state.status not in ENDED,
        "can_resume": state.status in RESUMABLE,
        "keeps_answers": state.request.kind != TABLE,
        "can_delete": state.status in ENDED,
    }


def _pictures(outcome: dict[str, Any], place: Path) -> list[dict[str, Any]]:
    """Return the pictures that were drawn, in words of JSON."""
    told = [entry for entry in outcome.get("pictures", []) if is_picture_name(str(entry.get("name")))]
    return [entry for entry in told if (place / picture_file(entry["name"])).is_file()]


def _tone(state: RunState) -> str:
    """Return good, fair, bad, busy or idle: how a run is colored, beside the words that say it."""
    if state.status not in ENDED:
        return "busy" if state.status is RunStatus.RUNNING else "idle"
    if state.status is not RunStatus.FINISHED:
        return "bad" if state.status is RunStatus.FAILED else "fair"
    return state.tone or _TONES.get(state.verdict or "", "bad")


def _verdict(state: RunState) -> tuple[str, str]:
    """Return how it went, in a few words, and what that means; the state and nothing without a verdict."""
    if state.words and state.status is RunStatus.FINISHED:
        return state.words, ""
    if state.verdict is None or state.status is not RunStatus.FINISHED:
        return state.status.value, ""
    words, _, meaning = str(Status[state.verdict]).partition(": ")
    return words, f"{meaning[:1].upper()}{meaning[1:]}."


def _elapsed(state: RunState) -> float | None:
    if state.started is None or state.status is RunStatus.QUEUED:
        return None
    return max(0.0, (time.time() if state.ended is None else state.ended) - state.started)


def _options(request: RunRequest) -> list[list[str]]:
    """Return the options of the request as pairs of label and text."""
    shown = [["Task", request.task], ["Target", request.name]]
    if request.other_name:
        return [*shown, ["Compared with", request.other_name]]
    for name, label in _SHOWN_OPTIONS:
        value = getattr(request, name)
        if value is None:
            if name in _FOUND_OUT:
                shown.append([label, "find out"])
            continue
        if isinstance(value, tuple):
            value = ", ".join(f"{entry:g}" for entry in value) or "none"
        shown.append([label, str(value)])
    return shown
