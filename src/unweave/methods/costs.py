"""What each method is expected to cost: rows asked, seconds of computing, memory.

Rows follow from the methods' own formulas where they have them (slices, Hessians, lines) and from measured
tables where the number of attempts decides (several layers, coarse answers). Seconds are for one thread of a
machine of 2020, the target's own time not included; they are orders of magnitude, rows are within a factor
of two where a method succeeds at its first attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from unweave.derivatives.active_subspace import SPARE_GRADIENTS
from unweave.derivatives.jet_sources import FEWEST_SITES
from unweave.methods.relu_coarse.search import FIRST_WIDTHS
from unweave.methods.relu_coarse.search import ROWS_PER_PARAMETER as KINKED_ROWS
from unweave.methods.smooth.hessian_route import SURPLUS
from unweave.methods.smooth.lattice_route import FEWEST_INPUTS, LARGEST_FIT
from unweave.methods.smooth.lattice_step import LINES, ROWS_PER_LINE
from unweave.methods.smooth.random_slice import (
    SliceCost,
    cheapest_slice,
    slice_cost,
    slice_parameters,
    smallest_slice,
)
from unweave.methods.smooth_values.search import rows_for
from unweave.probing.noise import NoiseKind
from unweave.published.shallow.options import PublishedOptions

_FLOPS_PER_SECOND = 4e10  # of matrix products, float32 and float64 mixed
_FIT_STEPS = 8  # Gauss-Newton steps
_CACHE_BYTES = 28  # per row asked, besides its answers
_WORKSPACE_MB = 100.0  # interpreter and libraries
_ACTIVATIONS = 6  # tried when none is known

_AFFINE_SPARE = 8
_LINE_ROWS = 3.1  # per parameter, with a few lines' worth of rows on top
_LINE_ROWS_MORE = 80
_SURFACE_LINES = 400
_SURFACE_KINKS = 3  # seen of every unit after the first layer
_SURFACE_ROWS_PER_KINK = 15  # beside two gradients
_SURFACE_CROSSINGS = 3  # rows per weight of such a unit
_SURFACE_CHECKS = 2000  # fresh rows, at least
_DEEP_SITES = 300  # gradients per hidden layer after the first
_DEEP_SITES_PER_WEIGHT = 1.4  # and per inner weight and output
_COARSE_RADIUS = 5200  # rows that find the best radius
_COARSE_SITES, _COARSE_SURPLUS = 12, 1.25  # Hessians, at least and per neuron
_COARSE_ROWS: dict[NoiseKind, float] = {"float64": 4.0, "float32": 4.0, "rounded": 55.0, "noisy": 32.0}
"""Rows of the final fit per parameter; for rounded answers most of them bisect."""


@dataclass(frozen=True)
class Question:
    """What is to be recovered from what."""

    inputs: int
    outputs: int
    hidden: tuple[int, ...]
    """Widths, told or assumed."""
    told: bool = True
    """Whether the widths are told."""
    one_activation: bool = True
    """Whether the activation is told."""
    noise: NoiseKind = "float64"

    @property
    def parameters(self) -> int:
        """Weights and biases of the network."""
        widths = (self.inputs, *self.hidden, self.outputs)
        return sum((first + 1) * second for first, second in pairwise(widths))


@dataclass(frozen=True)
class Cost:
    """Rows to ask, seconds to compute (the target's own not included), megabytes, and how it comes about."""

    rows: int
    seconds: float
    megabytes: float
    how: str


def affine_cost(question: Question) -> Cost:
    """Least squares on D + 1 rows and a few more."""
    rows = question.inputs + 1 + _AFFINE_SPARE
    return _cost(question, rows, 0.01, 8e-6 * rows * question.inputs, "one row per input, and nine")


def lines_cost(question: Question) -> Cost:
    """A line, every unit's hyperplane twice, and a fit."""
    size, width = question.parameters, max(question.hidden, default=1)
    rows = int(_LINE_ROWS * size) + _LINE_ROWS_MORE
    seconds = 0.05 + 7e-5 * size + 1e-4 * width**2
    return _cost(
        question, rows, seconds, 8e-6 * rows * question.inputs, "kinks on a line, two rows per weight"
    )


def surfaces_cost(question: Question) -> Cost:
    """Lines with their normals, crossings, checks; figures from tables of measured runs."""
    widths = question.hidden if len(question.hidden) > 1 else (*question.hidden, 1)
    kinks = widths[0] + _SURFACE_KINKS * sum(widths[1:])
    rows = _SURFACE_LINES + kinks * (2 * question.inputs + _SURFACE_ROWS_PER_KINK)
    rows += _SURFACE_CROSSINGS * sum(first * second for first, second in pairwise(widths))
    rows += max(_SURFACE_CHECKS, 3 * question.parameters)
    seconds = 0.5 + 3e-6 * question.parameters**2
    how = "kinks on lines, their surfaces followed through the layers before"
    return _cost(question, int(rows), seconds, 32e-6 * question.parameters**2, how)


def shallow_cost(question: Question) -> Cost:
    """The slice route where it runs, else Hessians, in the active subspace if there is one."""
    width = question.hidden[0] if question.hidden else 1
    by_slice = _slice_of(question, width)
    if by_slice is not None:
        rows = by_slice.rows + LINES * ROWS_PER_LINE
        size = slice_parameters(width, by_slice.dimension, question.outputs)
        how = f"lattices on a slice of {by_slice.dimension} of {question.inputs} inputs"
        if question.told:
            how += f"; {by_slice.lattice:,} rows more if they have to be mirrored"
        choices = 1 if question.one_activation else _ACTIVATIONS
        profiles = 4e-3 * choices * width * (1 + question.outputs / 5)
        return _cost(question, rows, 0.2 + profiles + _fit_seconds(size, 1.1 * size), 12e-6 * size**2, how)
    return _hessian_cost(question, width)


def _slice_of(question: Question, width: int) -> SliceCost | None:
    """The slice that would be used, or None."""
    if question.noise != "float64" or question.inputs < FEWEST_INPUTS:
        return None
    if question.told:
        cost = cheapest_slice(question.inputs, width, question.outputs)
    else:
        dimension = smallest_slice(question.inputs, width)
        if dimension is None:
            return None
        cost = slice_cost(question.inputs, width, question.outputs, dimension, mirrored=True)
    if cost is None or slice_parameters(width, cost.dimension, question.outputs) > LARGEST_FIT:
        return None
    return cost


def _hessian_cost(question: Question, width: int) -> Cost:
    inputs, outputs, size = question.inputs, question.outputs, question.parameters
    gradients = (min(width, inputs) + SPARE_GRADIENTS) // outputs + 2
    rows = gradients * (2 * inputs + 1)
    if width <= inputs:
        rows += 5 * (width**2 + width + 1) + 17 * width + int(1.6 * width * (width + 2)) * 2
        how = f"gradients in all inputs, Hessians in the {width} directions that matter"
        fit = width * (width + 1 + outputs)
    else:
        sites = max(FEWEST_SITES, int(SURPLUS * width / outputs))
        rows += (sites + (0 if question.told else 3)) * (inputs**2 + inputs + 1) + size // 2
        how = f"{sites} Hessians in all inputs"
        fit = size
    return _cost(question, rows, 0.5 + _fit_seconds(min(fit, 8000), 2.0 * fit), 8e-6 * inputs**2 * width, how)


def coarse_cost(question: Question) -> Cost:
    """Rotated Hessians with long steps, then a fit to many rows, or bisection of rounded ones."""
    width = question.hidden[0] if question.hidden else 1
    sites = max(_COARSE_SITES, int(_COARSE_SURPLUS * width / question.outputs))
    per_parameter = _COARSE_ROWS[question.noise]
    shared = 1 if question.noise == "rounded" else question.outputs
    rows = _COARSE_RADIUS + sites * (2 * question.inputs**2 + 1)
    rows += int(per_parameter * question.parameters / shared)
    how = f"{sites} Hessians with long steps, {per_parameter:g} rows per parameter"
    fit = min(question.parameters, 8000)
    return _cost(question, rows, 0.5 + _fit_seconds(fit, per_parameter * fit), 12e-6 * fit**2, how)


def kinks_cost(question: Question) -> Cost:
    """Random starts of least squares on random rows, then more rows, or bisection of rounded ones."""
    width = max(
        question.hidden[0] if question.hidden else 1, 1 if question.told else FIRST_WIDTHS[question.noise]
    )
    size = width * (question.inputs + question.outputs) + (question.inputs + 1) * question.outputs
    per_parameter = max(_COARSE_ROWS[question.noise], KINKED_ROWS)
    shared = 1 if question.noise == "rounded" else question.outputs
    rows = int(KINKED_ROWS * size / question.outputs + (per_parameter - KINKED_ROWS) * size / shared)
    how = f"random starts of least squares, {per_parameter:g} rows per parameter"
    return _cost(question, rows, 0.1 + 3e-6 * size**2, 8e-6 * KINKED_ROWS * size**2, how)


def values_cost(question: Question) -> Cost:
    """Random starts of least squares on one set of rows."""
    width = question.hidden[0] if question.hidden and question.told else None
    rows = rows_for(question.inputs, question.outputs, width)
    choices = 1 if question.one_activation else _ACTIVATIONS
    how = "random rows, ten per parameter, and random starts of least squares on them"
    return _cost(question, rows, 3.0 * choices, 8e-6 * rows * question.parameters, how)


def deep_cost(question: Question) -> Cost:
    """Gradients through the layers that are known; figures from tables of measured runs."""
    widths = question.hidden if len(question.hidden) > 1 else (*question.hidden, 1)
    inner = sum(first * second for first, second in pairwise(widths)) / question.outputs
    sites = _DEEP_SITES * len(widths) - 200 + int(_DEEP_SITES_PER_WEIGHT * inner)
    rows = sites * (2 * min(question.inputs, widths[0]) + 1) + int(
        1.5 * question.parameters / question.outputs
    )
    seconds = 0.5 + 3e-7 * question.parameters**2
    how = f"about {sites} gradients through the layers found so far"
    return _cost(question, rows, seconds, 12e-6 * min(question.parameters, 12_000) ** 2, how)


def published_cost(question: Question) -> Cost:
    """Hessians and directional derivatives, as many as published."""
    width = question.hidden[0] if question.hidden else 1
    options, inputs = PublishedOptions(), question.inputs
    hessians = options.hessian_count(inputs, width)
    rows = hessians * (inputs**2 + inputs + 1) + options.sample_count(inputs, width) + 4 * width + 1
    return _cost(question, rows, 1.0, 8e-6 * hessians * inputs**2, f"{hessians} Hessians in all inputs")


def _fit_seconds(parameters: float, rows: float) -> float:
    """Gauss-Newton through J^T J."""
    return _FIT_STEPS * (rows * parameters**2 + parameters**3 / 3) / _FLOPS_PER_SECOND


def _cost(question: Question, rows: int, seconds: float, megabytes: float, how: str) -> Cost:
    cache = 1e-6 * rows * (_CACHE_BYTES + 8 * question.outputs)
    return Cost(int(rows), float(seconds), float(_WORKSPACE_MB + cache + megabytes), how)
