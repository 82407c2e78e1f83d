"""What Ctrl-C does: recoveries and commands, interrupted at random instants.

A *route* is one call of `unweave.recover` or `unweave.audit`; a *command* is ``unweave ...`` in a process of
its own. Each is run once to its end. Then it is interrupted at instants drawn from 0.2 CPU seconds (or the
first tenth of a shorter run) to its end. Instants and latencies are CPU seconds, which a busy machine does
not stretch. "stopped" counts the runs that ended as interrupted (`unweave.Interrupted`, an interrupted audit,
exit code 130 with the word "interrupted"), "late" those that took more than 2 s, "kept" those that hand back
what there was: stages, or points of an audit; a command has nothing to keep before it has asked anything.
"ended" are runs that were over before the signal came. A server has no end of its own: it is interrupted
while it starts, or once it has told its address, and then Ctrl-C is its usual end (exit code 0).

    python benchmarks/interrupts.py                             30 instants of everything
    python benchmarks/interrupts.py --only relu --instants 5
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import unweave
from unweave.arrays import Array

Call = Callable[[], Any]
INSTANTS = 30
FIRST = 0.2  # CPU seconds after the start
ALLOWED = 2.0  # CPU seconds from the signal to the end
AFTER_START = 1.5  # a third of a server's interrupts come when it is up
PATIENCE = 600.0  # seconds after which a command is ended


def planted(*layers: int, activation: str = "tanh") -> unweave.Network:
    """A random network."""
    return unweave.random_network(list(layers), activation=activation, seed=1, outer="normal")


def asked(
    *layers: int, activation: str = "tanh", change: Callable[[Array], Array] | None = None, **told: Any
) -> Call:
    """A recovery of a planted network, whose answers may be changed on their way."""
    network = planted(*layers, activation=activation)
    answer = network if change is None else lambda x: change(network(x))
    return lambda: unweave.recover(answer, input_dim=layers[0], **told)


def sampled(rows: int, *layers: int, activation: str, noise: float = 0.0, **told: Any) -> Call:
    """A recovery from rows of a planted network."""
    rng = np.random.default_rng(1)
    network, x = planted(*layers, activation=activation), rng.standard_normal((rows, layers[0]))
    samples = unweave.Samples(x, network(x) + noise * rng.standard_normal((rows, layers[-1])))
    return lambda: unweave.recover(samples, **told)


def _noisy(y: Array) -> Array:
    return y + 1e-3 * np.random.default_rng(int(abs(y).sum() * 1e6)).standard_normal(y.shape)


def _trees() -> Call:
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import RandomForestRegressor

    x, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(5, max_depth=5, random_state=0).fit(x, y)
    return lambda: unweave.recover(model, examples=x)


def _columns() -> Call:
    rng = np.random.default_rng(1)
    network, examples = planted(8, 12, 1), rng.standard_normal((300, 8))
    examples[:, 6:] = rng.integers(0, 4, (300, 2))
    kinds = ["number"] * 6 + ["whole"] * 2
    return lambda: unweave.recover(network, input_dim=8, examples=examples, inputs=kinds)


def _audit() -> Call:
    network = planted(6, 3, 1)
    return lambda: unweave.audit(network, decimals=[3], budgets=[1000, 5000])


ROUTES: dict[str, Callable[[], Call]] = {
    "smooth 30-60-1": lambda: asked(30, 60, 1),
    "deep tanh 20-12-8-1": lambda: asked(20, 12, 8, 1),
    "relu 20-60-1": lambda: asked(20, 60, 1, activation="relu"),
    "relu 10-16-8-1": lambda: asked(10, 16, 8, 1, activation="relu"),
    "tanh 8-6-1, 2 decimals": lambda: asked(8, 6, 1, change=lambda y: y.round(2)),
    "relu 8-6-1, 3 decimals": lambda: asked(8, 6, 1, activation="relu", change=lambda y: y.round(3)),
    "relu 8-6-1, noise": lambda: asked(8, 6, 1, activation="relu", change=_noisy, max_queries=50_000),
    "samples relu 5-6-1": lambda: sampled(1000, 5, 6, 1, activation="relu"),
    "samples tanh 5-4-1": lambda: sampled(1000, 5, 4, 1, activation="tanh"),
    "trees": _trees,
    "columns": _columns,
    "audit": _audit,
}
COMMANDS: dict[str, list[str]] = {
    "unweave recover": ["recover", "deep.npz"],
    "unweave audit": ["audit", "small.npz", "--decimals", "3", "--budget", "1000,5000"],
    "unweave demo": ["demo"],
    "unweave reproduce": ["reproduce", "relu-gate"],
    "unweave diagnose": ["diagnose", "deep.npz"],
    "unweave plan": ["plan", "deep.npz", "--look"],
    "unweave compare": ["compare", "deep.npz", "deep.npz"],
    "unweave serve": ["serve", "--port", "0"],
    "unweave serve-model": ["serve-model", "small.npz"],
}
SERVING = "Serving"  # the first word of a server that has told its address


class Sent:
    """CPU seconds of this process when it was interrupted; None before. The timer may be late by a tick."""

    at: float | None = None


def interrupt(_number: int, _frame: Any) -> None:
    """Send this process SIGINT."""
    Sent.at = time.process_time()
    os.kill(os.getpid(), signal.SIGINT)


def interrupt_after(seconds: float) -> None:
    """Interrupt this process when it has used that many more CPU seconds; 0 not to."""
    if seconds:
        Sent.at = None
    signal.setitimer(signal.ITIMER_PROF, seconds)


def kept_by(end: Any) -> bool:
    """Whether an interrupt, or an interrupted audit, hands back what there was."""
    if isinstance(end, unweave.Audit):
        return bool(end.recovery.stages)
    return isinstance(end, unweave.Interrupted) and bool(end.recovery.stages)


def route_once(call: Call, instant: float) -> dict[str, Any]:
    """Interrupt one call in this process; 0 runs it to its end."""
    began = time.process_time()
    interrupt_after(instant)
    end: Any = None
    try:
        end = call()
    except KeyboardInterrupt as interrupt:
        end = interrupt
    interrupt_after(0)
    now = time.process_time()
    over = now - began if Sent.at is None else now - Sent.at
    stopped = isinstance(end, KeyboardInterrupt) or getattr(end, "interrupted", False)
    said = f"{type(end).__name__}: {getattr(end, 'recovery', end)!r}"
    told = {"stopped": stopped, "kept": kept_by(end), "ended": Sent.at is None}
    return {"instant": instant, "over": over, **told, "said": said[:110]}


def route(name: str, count: int) -> None:
    """Print one JSON line per instant."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPROF, interrupt)
    call = ROUTES[name]()
    call()  # what is loaded on the way there does not count
    whole = route_once(call, 0.0)["over"]
    print(json.dumps({"whole": whole}), flush=True)
    for instant in instants(whole, count):
        print(json.dumps(route_once(call, instant)), flush=True)


def instants(whole: float, count: int) -> list[float]:
    """Draw instants of a run that takes ``whole`` CPU seconds."""
    rng = np.random.default_rng(0)
    return sorted(float(each) for each in rng.uniform(min(FIRST, whole / 10), whole, count))


def command_once(words: list[str], instant: float | None, folder: Path) -> dict[str, Any]:
    """Run one command, interrupted when it has used so many CPU seconds; None runs it to its end."""
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "unweave", *words],
            cwd=folder,
            stdout=said,
            stderr=said,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background shells ignore it
        )
        sent, used, serves = False, 0.0, words[0].startswith("serve")
        began = time.monotonic()
        while process.poll() is None and time.monotonic() - began < PATIENCE:
            used = max(used, cpu_of(process.pid))
            up = serves and (folder / "said").read_text().startswith(SERVING)
            if up and instant is None:
                break
            if instant is not None and not sent and (used >= instant or up):
                process.send_signal(signal.SIGINT)
                sent, at = True, used
            time.sleep(0.002 if not sent else 0.01)
        if process.poll() is None:
            process.kill()
        code = process.wait()
        said.seek(0)
        text = said.read()
    if instant is None:
        return {"over": used}
    over = used - at if sent else 0.0
    # Python may end by the signal itself, which a shell shows as 130 too.
    stopped = code in (130, -signal.SIGINT) and "interrupted" in text.lower()
    stopped |= code == 0 and text.startswith(SERVING)
    last = ([line for line in text.splitlines() if line] or [""])[-1]
    kept = "queries" in text or "measured so far" in text or text.startswith(SERVING)
    told = {
        "stopped": stopped,
        "kept": kept,
        "traceback": "Traceback" in text,
        "ended": not sent or (code in (0, 1, 3) and not serves),
    }
    return {"instant": instant, "over": over, **told, "said": f"exit {code}: {last[:90]}"}


def cpu_of(pid: int) -> float:
    """CPU seconds that a process has used; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def commands(name: str, count: int) -> tuple[float, list[dict[str, Any]]]:
    """The CPU seconds of one command, and its interrupted runs."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        planted(20, 12, 8, 1).save(folder / "deep.npz")
        planted(6, 3, 1).save(folder / "small.npz")
        whole = command_once(COMMANDS[name], None, folder)["over"]
        last = AFTER_START * whole if "serve" in name else whole
        return whole, [command_once(COMMANDS[name], each, folder) for each in instants(last, count)]


def routes(name: str, count: int) -> tuple[float, list[dict[str, Any]]]:
    """The CPU seconds of one route, and its interrupted runs, in another process."""
    command = [sys.executable, str(Path(__file__).resolve()), "--one", name, "--instants", str(count)]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    return rows[0]["whole"], rows[1:]


def line(name: str, whole: float, rows: list[dict[str, Any]]) -> str:
    """One line of the table."""
    counted = [row for row in rows if not row.get("ended")]
    stopped = [row for row in counted if row["stopped"]]
    worst = max((row["over"] for row in counted), default=0.0)
    late = sum(row["over"] > ALLOWED for row in counted)
    kept = sum(row["kept"] for row in stopped)
    cells = (len(counted), len(stopped), late, f"{worst:.2f}", kept, len(rows) - len(counted))
    return " | ".join([name, f"{whole:.1f}", *map(str, cells)])


def main() -> None:
    """Print a table."""
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument("--only", default="", help="routes and commands whose names hold this")
    reader.add_argument("--instants", type=int, default=INSTANTS)
    reader.add_argument("--json", help="also write every run there")
    reader.add_argument("--verbose", action="store_true", help="print runs that did not stop")
    reader.add_argument("--one", help=argparse.SUPPRESS)
    arguments = reader.parse_args()
    if arguments.one:
        route(arguments.one, arguments.instants)
        return
    print("what | CPU s | interrupted | stopped | late | worst, CPU s | kept | ended")
    print("|".join(["---"] * 8), flush=True)
    held = {}
    for name in (*ROUTES, *COMMANDS):
        if arguments.only not in name:
            continue
        measure = routes if name in ROUTES else commands
        whole, rows = measure(name, arguments.instants)
        held[name] = rows
        print(line(name, whole, rows), flush=True)
        for row in rows:
            if arguments.verbose and not row.get("ended") and (not row["stopped"] or row["over"] > ALLOWED):
                print("   ", row, flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(held, indent=1))


if __name__ == "__main__":
    main()
