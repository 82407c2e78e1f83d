"""One run in a process of its own.

    python -m unweave.web.worker RUN_FOLDER ATTEMPT MOST_BYTES MOST_SECONDS

takes no more memory and time than that. It reads ``state.json``, writes into ``attempt-N``: progress.json
while it runs, then the results, then, when all of them are there, outcome.json. A line "cancel" on stdin
interrupts it; the end of stdin means that the server is gone, and ends it at once: the answers are in the
checkpoint, and the run can be resumed.
"""

from __future__ import annotations

import _thread
import logging
import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from unweave.errors import Interrupted, UnweaveError
from unweave.recovery.recover import recover
from unweave.recovery.result import Recovery
from unweave.targets.adapters.file_target import open_file_target
from unweave.targets.budget import within
from unweave.web.hidden_keys import Hide, hide_in_log
from unweave.web.limits import limit_memory
from unweave.web.progress_file import ProgressFile, Watched
from unweave.web.results import write_audit, write_facts, write_results
from unweave.web.run_folder import OUTCOME, PROGRESS, RunFolder, RunStatus, write_json
from unweave.web.run_request import AUDIT, COMPARE, ENDPOINT, PLAN, RECOVER, TABLE, RunRequest
from unweave.web.upload_check import open_table, worded

CANCEL = "cancel"
"""The line that interrupts a run."""
_MATRICES_SHARE = 0.5  # of the memory, for matrices; the rest is for rows, answers and libraries
_SERVER_IS_GONE = 3  # exit code


def run(folder: RunFolder, request: RunRequest, place: Path, most_bytes: int, hide: Hide) -> None:
    """Do what ``request`` asks, and write everything about it to ``place``."""
    done: Callable[[], dict[str, Any]] = dict
    status, message = RunStatus.FINISHED, ""
    try:
        done = _TASKS[request.task](folder, request, place, most_bytes)
    except Interrupted as interrupt:
        status, message = RunStatus.CANCELLED, "Cancelled. What was found until then is not verified."
        done = _written(interrupt.recovery, request, place)
    except KeyboardInterrupt:
        status, message = RunStatus.CANCELLED, "Cancelled before anything was found."
    except (UnweaveError, OSError) as error:
        traceback.print_exc()
        status, message = RunStatus.FAILED, worded(error, folder.target(request), request.name)
    except MemoryError:
        traceback.print_exc()
        status = RunStatus.FAILED
        message = (
            f"A run must fit into {most_bytes / 2**20:g} MB of memory. This one needs more. "
            "Serve the page with a larger --max-memory-mb."
        )
    except Exception as error:
        traceback.print_exc()
        status = RunStatus.FAILED
        message = f"A defect in unweave: {type(error).__name__}: {error}. Please report it, with the log."
    # From here on there is something to write, and nothing to interrupt any more.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    outcome: dict[str, Any] = {"status": status.name, "message": hide(message), "recovery": None, **done()}
    write_json(place / OUTCOME, outcome)


def _written(recovery: Recovery, request: RunRequest, place: Path) -> Callable[[], dict[str, Any]]:
    return lambda: write_results(_as_named(recovery, request), place)


def _recover(
    folder: RunFolder, request: RunRequest, place: Path, most_bytes: int
) -> Callable[[], dict[str, Any]]:
    """Recover the target; return what writes the result."""
    progress = ProgressFile(place / PROGRESS)
    told = {**_told(request), "progress": progress, "max_memory": _MATRICES_SHARE * most_bytes}
    if request.kind == TABLE:
        return _written(recover(open_table(folder.target(request), request.outputs), **told), request, place)
    with _opened(folder, request) as target:
        recovery = recover(
            Watched(target, progress),
            **told,
            **_asked(request),
            max_queries=request.max_queries,
            output_activation=request.output_activation,
            averaging=request.averaging,
            checkpoint=folder.checkpoint,
        )
    return _written(recovery, request, place)


def _audit(
    folder: RunFolder, request: RunRequest, place: Path, most_bytes: int
) -> Callable[[], dict[str, Any]]:
    """Audit the target; return what writes the result."""
    from unweave.audits.run import DECIMALS, audit  # a task loads what it needs: every run starts sooner

    progress = ProgressFile(place / PROGRESS)
    with _opened(folder, request) as target:
        found = audit(
            Watched(target, progress),
            DECIMALS if request.decimals is None else request.decimals,
            request.noise or (),
            request.budgets,
            **_told(request),
            **_asked(request),
            max_queries=request.max_queries,
            output_activation=request.output_activation,
            checkpoint=folder.checkpoint,
            progress=progress,
        )
    settings = {**found.settings, "target": _name(request)}
    named = replace(found, settings=settings, recovery=_as_named(found.recovery, request))

    def written() -> dict[str, Any]:
        outcome = write_audit(named, place)
        if not named.interrupted:
            return outcome
        cut = "Cancelled. What was done until then is shown."
        return {**outcome, "status": RunStatus.CANCELLED.name, "message": cut}

    return written


def _compare(
    folder: RunFolder, request: RunRequest, place: Path, most_bytes: int
) -> Callable[[], dict[str, Any]]:
    """Compare the two files; return what writes the result."""
    from unweave.files import load
    from unweave.networks.comparison import compare
    from unweave.recovery.describe import describe

    first, second = load(folder.target(request)), load(folder.other(request))
    found = compare(first, second)
    names = ("parameter_error", "weight_error", "bias_error", "output_error", "function_error", "tolerance")
    figures = {name: getattr(found, name) for name in names}
    facts = {
        "is_same": found.is_same,
        **{name: value if math.isfinite(value) else None for name, value in figures.items()},
        "reason": found.reason,
        "first": f"{describe(first)}, {first.n_parameters:,} parameters",
        "second": f"{describe(second)}, {second.n_parameters:,} parameters",
    }
    words = "the same network" if found.is_same else "different networks"
    told = {"words": words, "tone": "good" if found.is_same else "bad", "summary": request.other_name}
    return lambda: {**write_facts("comparison", facts, place), **told}


def _plan(
    folder: RunFolder, request: RunRequest, place: Path, most_bytes: int
) -> Callable[[], dict[str, Any]]:
    """Estimate what a recovery would cost, after a look; return what writes the result."""
    from unweave.recovery.plan import plan

    progress = ProgressFile(place / PROGRESS)
    told = {name: value for name, value in _told(request).items() if name != "deadline"}
    with _opened(folder, request) as target, within(request.deadline):
        made = plan(Watched(target, progress), look=True, **told, **_asked(request))
    methods = [
        {
            "method": entry.method,
            "hidden": list(entry.hidden),
            "parameters": entry.parameters,
            "tried": entry.tried,
            "why": entry.why,
            "rows": entry.rows,
            "seconds": entry.seconds,
            "megabytes": entry.cost.megabytes,
        }
        for entry in made.methods
    ]
    facts = {
        "inputs": made.inputs,
        "outputs": made.outputs,
        "precision": made.precision,
        "sent": made.sent,
        "methods": methods,
        "assumptions": list(made.assumptions),
    }
    tried = sum(entry.tried for entry in made.methods)
    words = "planned" if tried else "no method applies"
    told_words = {"words": words, "tone": "good" if tried else "fair"}
    return lambda: {**write_facts("plan", facts, place), **told_words}


_TASKS = {RECOVER: _recover, AUDIT: _audit, COMPARE: _compare, PLAN: _plan}


def _told(request: RunRequest) -> dict[str, Any]:
    """Return what every task on a target takes."""
    return {
        "hidden": None if request.hidden is None else list(request.hidden),
        "activation": request.activation,
        "seed": request.seed,
        "deadline": request.deadline,
    }


def _asked(request: RunRequest) -> dict[str, Any]:
    """Return what only a target that is asked takes."""
    return {"input_dim": request.inputs, "domain": request.domain}


@contextmanager
def _opened(folder: RunFolder, request: RunRequest) -> Iterator[Any]:
    """Open the target; an endpoint is closed afterwards."""
    if request.kind != ENDPOINT:
        yield open_file_target(folder.target(request))
        return
    from unweave.targets.adapters.http_options import HttpOptions
    from unweave.targets.adapters.http_target import open_http_target

    given = {
        "request": request.http_request,
        "answers": request.http_answers,
        "token_env": request.token_env,
        "n_inputs": request.inputs,
    }
    options = HttpOptions(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    with within(request.deadline):
        opened = open_http_target(request.url or "", options)
    with opened as target:
        yield target


def _as_named(recovery: Recovery, request: RunRequest) -> Recovery:
    """Return the result with the user's name of the target instead of the path in the run's folder."""
    settings = dict(recovery.settings)
    settings["target"] = _name(request)
    arguments = settings.get("arguments", {})
    settings["arguments"] = {name: value for name, value in arguments.items() if name != "checkpoint"}
    return replace(recovery, settings=settings)


def _name(request: RunRequest) -> dict[str, str]:
    kind = {ENDPOINT: "url", TABLE: "table"}.get(request.kind, "file")
    return {"kind": kind, "name": request.name}


def _listen() -> None:
    """Obey the server, in a thread of its own, for as long as there is one."""
    for line in sys.stdin:
        if line.strip() == CANCEL:
            if hasattr(signal, "pthread_kill"):  # wakes the main thread where it waits
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            else:
                _thread.interrupt_main()
    os._exit(_SERVER_IS_GONE)


def main(folder: Path, attempt: int, most_bytes: int, most_seconds: float) -> None:
    """Run the run in ``folder``, in ``most_bytes`` of memory and ``most_seconds``."""
    limit_memory(most_bytes)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a server in the background may ignore it
    threading.Thread(target=_listen, daemon=True).start()
    run_folder = RunFolder(folder)
    request = replace(run_folder.read_state().request, deadline=most_seconds)
    hide = Hide(request)
    streams = hide_in_log(hide)
    logging.basicConfig(format="%(asctime)s %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("unweave").setLevel(logging.INFO)
    logging.Formatter.converter = time.gmtime
    run(run_folder, request, run_folder.attempt(attempt), most_bytes, hide)
    for stream in streams:
        stream.finish()
    os._exit(0)  # the listening thread waits for a line and would hold the process up


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
