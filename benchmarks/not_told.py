"""A hundred planted networks with nothing told: are precision, width and activation found?

Case s (also the seed of the network) has the s-th combination of answers (float64, float32, 4, 3, 2 decimals,
noise 1e-2), units (tanh, logistic, erf, softplus, gelu, swish, sine) and sizes (12-16-1, 10-6-2, 16-24-1). A
row gathers the cases of one precision; softplus at noise 1e-2, whose curvature hardly shows, has its own.
"wrong" are networks called RECOVERED with another width, activation or a parameter off by more than its
standard error can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import unweave
from coarse_answers import coarse, describe, judged, planted, verdict_figures
from harness import Row, Run, parser, run_recovery, say, seeds_of, summarise, tell

CASES = 100
MODES = ("f64", "f32", "d4", "d3", "d2", "n1e-2")
KINDS = {"f64": "float64", "f32": "float32", "d": "rounded", "n": "noisy"}
UNITS = ("tanh", "logistic", "erf", "softplus", "gelu", "swish", "sine")
SIZES = ((12, 16, 1), (10, 6, 2), (16, 24, 1))


@dataclass(frozen=True)
class Case:
    """One target."""

    mode: str
    activation: str
    inputs: int
    width: int
    outputs: int

    @property
    def kind(self) -> str:
        """The class of noise that should be found."""
        return KINDS.get(self.mode) or KINDS[self.mode[0]]

    @property
    def apart(self) -> bool:
        """Whether it has a row of its own."""
        return self.mode == "n1e-2" and self.activation == "softplus"

    @property
    def found_as(self) -> str:
        """Logistic units come back as tanh: the two are one family."""
        return "tanh" if self.activation == "logistic" else self.activation


def case_of(seed: int) -> Case:
    """The combination of number ``seed``: all 126 in turn, neighbours different in everything."""
    combination = seed // len(UNITS)
    size = SIZES[(seed + seed // (len(UNITS) * len(MODES))) % len(SIZES)]
    return Case(MODES[combination % len(MODES)], UNITS[seed % len(UNITS)], *size)


def run_case(case: Case, seed: int) -> Run:
    """One recovery, with what was found beside what is right."""
    truth = planted(case.inputs, case.width, case.outputs, seed, case.activation)

    def figures(result: unweave.Recovery) -> dict[str, Any]:
        found = verdict_figures(result)
        noise = next((stage.figures.get("noise") for stage in result.stages if stage.name == "look"), None)
        return found | {
            "kind_right": noise == case.kind,
            "width_right": found["width"] == [case.width],
            "activation_right": found["activation"] == case.found_as,
        }

    say(f"not_told: {case}")
    target = coarse(truth, case.mode, seed)
    run = run_recovery(truth, seed, target=target, input_dim=case.inputs, extra=figures)
    return judged(truth, run, case.found_as)


def row_of(label: str, runs: Sequence[Run], cases: Sequence[Case]) -> Row:
    """The row of one precision."""
    counts = {
        key: sum(bool(run.extra.get(key)) for run in runs)
        for key in ("kind_right", "width_right", "activation_right")
    }
    odd = [
        f"{run.seed}: {case.activation} {case.inputs}-{case.width}-{case.outputs}, {run.extra.get('message')}"
        for run, case in zip(runs, cases, strict=True)
        if not (run.recovered and run.same)
    ]
    return summarise(label, runs, **counts, odd=odd)


COLUMNS = {
    "setting": "answers",
    "seeds": "cases",
    "kind_right": "precision right",
    "width_right": "width right",
    "activation_right": "activation right",
    "recovered": "recovered",
    "wrong": "recovered but wrong",
    "worst_parameter_error": "worst parameter error",
    "median_parameter_error": "median",
    "queries_per_parameter": "queries per parameter",
    "cpu_seconds": "CPU s",
    "not_recovered": "cases not recovered",
}


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run all cases and print the table."""
    arguments = parser(__doc__, f"0:{CASES}", "2 cases").parse_args(argv)
    seeds = list(seeds_of(arguments, CASES, 2))
    cases = [case_of(seed) for seed in seeds]
    runs = [run_case(case, seed) for case, seed in zip(cases, seeds, strict=True)]
    rows = []
    for mode in MODES:
        for apart in (False, True):
            chosen = [i for i, case in enumerate(cases) if case.mode == mode and case.apart == apart]
            if chosen:
                label = describe(mode) + (", softplus" if apart else "")
                rows.append(row_of(label, [runs[i] for i in chosen], [cases[i] for i in chosen]))
    tell(rows, COLUMNS, arguments.json)
    for line in (line for row in rows for line in row["odd"]):
        say(line)
    return rows


if __name__ == "__main__":
    main()
