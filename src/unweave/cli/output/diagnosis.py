"""A diagnosis for people: findings, methods, and the figures of a known network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.text import Text

from unweave.arrays import Array
from unweave.cli.output.console import Cell, print_line, print_pairs, print_table
from unweave.cli.output.recovery import figure
from unweave.diagnose import DeepDiagnostics, WeightDiagnostics
from unweave.probing.findings import Findings
from unweave.recovery.wording import counted, queries
from unweave.targets.region import Region


@dataclass(frozen=True)
class Choice:
    """Whether a method would be tried, and why or why not."""

    name: str
    tried: bool
    reason: str


def show_findings(console: Console, target: str, findings: Findings) -> None:
    """Print what the look has found."""
    print_line(console, f"{target}: {_shape(findings)}.", "bold")
    console.print()
    rows = [
        ("inputs, outputs", f"{findings.region.n_inputs}, {findings.n_outputs}"),
        ("answers", f"vary by {_span(findings.output_scale)} over the region (standard deviation)"),
        ("precision", _precision(findings)),
        ("region", _region(findings.region, findings.searched)),
        ("kinks", _kinks(findings)),
        ("cost", queries(findings.queries)),
    ]
    print_pairs(console, rows)


def show_methods(console: Console, choices: list[Choice]) -> None:
    """Print which methods would be tried."""
    marks = {True: Text("yes", style="green"), False: Text("no", style="dim")}
    rows = [(choice.name, marks[choice.tried], choice.reason) for choice in choices]
    print_table(console, "Methods", ("method", "tried", "because"), rows)


def show_network(console: Console, weights: WeightDiagnostics) -> None:
    """Print how hard the network in the file is to recover, from its parameters."""
    rows = [*_incoherence_rows(weights), *_curvature_rows(weights)]
    title = "The network in the file (read from its parameters; recovery never does that)"
    print_table(console, title, ("figure", "value", "means"), rows, right=("value",))
    marks = {True: Text("yes", style="green"), False: Text("no", style="dim")}
    theory = [(name, marks[holds], promise) for name, holds, promise in _theory(weights)]
    title = "Theorems for nearly tight frames (sufficient, not necessary)"
    print_table(console, title, ("theorem", "applies", "promises"), theory)


def show_layers(console: Console, layers: DeepDiagnostics) -> None:
    """Print which hypotheses of the identification theorems every hidden layer meets."""
    marks = {True: Text("yes", style="green"), False: Text("no", style="dim")}
    columns = ("layer", "shape", "coherence", "cond. G2", "spark", "unique", "SNM", "DNM")
    rows = [
        (
            str(number),
            f"{layer.incoherence.dimension}-{layer.incoherence.width}",
            figure(layer.incoherence.coherence),
            figure(layer.incoherence.gram2_condition),
            f">= {layer.independence.spark_at_least}",
            marks[layer.independence.only_rank_ones],
            marks[layer.activation.shallow],
            marks[layer.activation.deep],
        )
        for number, layer in enumerate(layers.layers, start=1)
    ]
    print_table(console, "Hypotheses, layer by layer (sufficient, not necessary)", columns, rows)
    shape = "pyramidal" if layers.pyramidal else "not pyramidal: a layer is wider than what it reads"
    print_line(console, f"{layers.units} hidden units, Hessians have room for {layers.shown}; {shape}.")


def _shape(findings: Findings) -> str:
    if findings.constant:
        return "constant, as far as the look went"
    if findings.linear:
        return "affine, as far as the look went"
    if findings.steps or findings.flat:
        return "piecewise constant, with jumps"
    if findings.labels:
        return f"{counted(findings.labels, 'label')}, not numbers"
    return "piecewise smooth, with kinks" if findings.kinks else "curved and smooth"


def _precision(findings: Findings) -> str:
    noise = findings.noise
    kinds = {
        "float64": "float64 arithmetic",
        "float32": "float32 arithmetic",
        "rounded": f"rounded to {counted(noise.decimals or 0, 'decimal')}",
        "noisy": "noisy" if noise.format is None else f"rounded to {noise.format}",
    }
    share = f" ({noise.relative:.2g} of their spread)" if np.isfinite(noise.relative) else ""
    repeats = "the same answer" if noise.repeatable else "different answers"
    return f"{kinds[noise.kind]}, sigma {noise.sigma:.2g}{share}; the same row gets {repeats}"


def _region(region: Region, searched: bool) -> str:
    where = f"inputs around {_span(region.location)}, scale {_span(region.scale)}"
    box = ""
    if region.low is not None and region.high is not None:
        box = f", within [{float(region.low.min()):.3g}, {float(region.high.max()):.3g}]"
    return f"{where}{box}{', searched for' if searched else ''}"


def _kinks(findings: Findings) -> str:
    evidence = findings.kink_evidence
    if not evidence.judged:
        return "nothing to judge by"
    found = "seen" if findings.kinks else "none seen"
    return f"{found}: {evidence.broken} of {evidence.judged} lines have no second derivative somewhere"


def _span(values: Array) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _incoherence_rows(weights: WeightDiagnostics) -> list[tuple[str, Cell, str]]:
    figures = weights.incoherence
    return [
        ("inputs, units", f"{figures.dimension}, {figures.width}", "Hessians can show up to D(D-1)/2 units"),
        ("norms of the weights", _span(weights.norms), "faint units show last"),
        ("coherence", figure(figures.coherence), "1: two units share a direction"),
        ("least possible", figure(figures.welch_bound), "Welch bound on the coherence"),
        ("condition of G2", figure(figures.gram2_condition), "digits lost in the shifts; inf: not separable"),
        ("condition of G3", figure(figures.gram3_condition), "digits lost in the signs"),
        ("frame constant", figure(figures.frame_constant), "0: tight; the theorems want a few hundredths"),
    ]


def _curvature_rows(weights: WeightDiagnostics) -> list[tuple[str, Cell, str]]:
    rows: list[tuple[str, Cell, str]] = []
    if weights.learnability is not None:
        alpha = figure(weights.learnability.alpha)
        rows.append(("learnability", alpha, "small: many or very exact Hessians are needed"))
    if weights.shifts is not None:
        condition = figure(weights.shifts.condition)
        rows.append(("condition of the shifts", condition, "gradient descent is this slow"))
    return rows


def _theory(weights: WeightDiagnostics) -> list[tuple[str, bool, str]]:
    frame = weights.frame
    return [
        ("spectral ascent (2.2)", frame.spectral_ascent.holds, "maximisers are weights or clearly spurious"),
        ("power method (2.7)", frame.power_method.holds, "the same for the subspace power method"),
        ("maximisers (Prop. 2.1)", frame.maximiser.holds, "every weight has a maximiser near it"),
        ("distance (2.6)", frame.distance.holds, "how near a maximiser is to its weight is known beforehand"),
        ("count (2.8)", frame.count.holds, "a threshold finds all weights and nothing else"),
    ]
