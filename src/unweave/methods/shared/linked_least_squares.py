"""Least squares on what lies behind a link: z = T^{-1}(y) is linear in features of the inputs.

Every row's equation has the weight that its answer deserves: one over the standard deviation of z there. Rows
on which the link is saturated count for nothing. Behind a softmax the log ratios to one class are linear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.networks.activations import SOFTMAX
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.probing.findings import Findings
from unweave.probing.noise import Noise
from unweave.search import Context, Evidence, GaveUp, Reason

LINK_NAMES = {SOFTMAX: "a softmax", "exp": "an exponential", "sigmoid": "a sigmoid", "tanh": "a tanh"}
"""How notes call them."""


@dataclass(frozen=True, kw_only=True)
class LinkedRows:
    """How many rows are asked."""

    spare_rows: int = 8
    """Rows beyond those that determine the features' weights, which show whether there is more to it."""
    rows_per_unknown: float = 1.0
    """Rows per feature of float64 answers, ..."""
    single_rows: float = 2.0
    """... and of float32 answers, whose rounding is averaged out."""
    well_read: float = 1e4
    """Standard deviation of z, in eps of the answers, up to which a row counts among those needed."""
    attempts: int = 6
    """Times that rows are asked, where the link is saturated on too many."""
    most_rounding: float = 10.0
    """Rounding of precise answers, over what was measured of it, that the residual may show."""


class LinkedReason(Reason):
    """Why nothing was solved for."""

    SATURATED = "the link is saturated nearly everywhere in the region: too few rows tell its argument"


@dataclass(frozen=True, eq=False)
class LinkedSolution:
    """Weights of the features, and the rows that they were solved from."""

    points: Array
    """(n, D)"""
    answers: Array
    """(n, K)"""
    weights: Array
    """(P, K), of mean zero over the classes of a softmax."""
    error_bar: float | None = None
    """The largest standard error of a weight, behind a link."""


def solve_linked(
    context: Context, link: Link, features: Callable[[Array], Array], unknowns: int, options: LinkedRows
) -> LinkedSolution:
    """Ask random rows until ``unknowns`` features (n, P) of them are determined, and solve."""
    region, noise, rng = context.findings.region, context.findings.noise, context.rng
    number = noise.number_format
    per_unknown = options.single_rows if noise.kind == "float32" else options.rows_per_unknown
    count = int(per_unknown * unknowns)
    well_read = np.inf if number is None or link.name == "identity" else options.well_read * number.eps
    points, missing = np.empty((0, region.n_inputs)), count + options.spare_rows
    for _ in range(options.attempts):
        points = np.concatenate([points, region.sample(missing, rng)])
        answers = context.view(points)
        values, errors = _read(link, answers, noise)
        well = int((errors <= well_read).sum(axis=0).min())
        missing = min(count + options.spare_rows // 2 - well, unknowns)
        if missing <= 0:
            break
    if np.isfinite(errors).sum(axis=0).min() < unknowns + options.spare_rows // 2:
        raise GaveUp(LinkedReason.SATURATED)
    solution, bar = _least_squares(features(points), values, errors, weighted=link.name != "identity")
    if link.name == SOFTMAX:
        solution = solution - solution.mean(axis=1, keepdims=True)
    return LinkedSolution(points, answers, solution, bar)


def evidence_of(
    found: LinkedSolution, network: Network, unknowns: int, findings: Findings, options: LinkedRows
) -> Evidence:
    """Measure ``network`` on the rows it was solved from; ``unknowns`` of them determine it."""
    noise = findings.noise
    residual = np.sqrt(np.mean((found.answers - network(found.points)) ** 2, axis=0))
    # The rows' rounding, which grows by sqrt(P / (n - P)) in a prediction.
    spare = max(len(found.points) - unknowns, options.spare_rows)
    sigma = np.maximum(noise.sigma_per_output, _rounding(found.answers, noise.number_format))
    # Sums of many terms round more than one answer does: the spare rows show how much.
    left = residual * np.sqrt(len(found.points) / spare)
    measured = np.clip(left, sigma, options.most_rounding * sigma)
    return Evidence(
        fit_history=(float(np.max(residual / findings.spread)),),
        fit_floor=float(np.max(sigma / findings.spread)),
        prediction_floor=float(np.max(measured / findings.spread)) * float(np.sqrt(unknowns / spare)),
        parameter_error_bar=found.error_bar,
        answer_sigma=None if noise.number_format is None else measured,
    )


def _read(link: Link, answers: Array, noise: Noise) -> tuple[Array, Array]:
    """Return what is linear (n, K) and its standard deviations; of a softmax against its surest class."""
    reference = int(np.argmax(answers.min(axis=0))) if link.name == SOFTMAX else None
    return link.contrasts(answers, noise.sigma_per_output, noise.number_format, reference)


def _rounding(answers: Array, number: np.finfo[Any] | None) -> Array:
    """Return the rounding (K,) of these answers, which may be larger than where noise was measured."""
    if number is None:
        return np.zeros(answers.shape[1])
    return np.asarray(number.eps / 4 * np.sqrt(np.mean(answers**2, axis=0)))


def _least_squares(
    design: Array, values: Array, errors: Array, *, weighted: bool
) -> tuple[Array, float | None]:
    """Solve for (P, K), each column with its own weights, and tell the largest standard error."""
    if not weighted:
        return np.asarray(np.linalg.lstsq(design, values, rcond=None)[0], dtype=np.float64), None
    columns, bars = [], []
    for value, error in zip(values.T, errors.T, strict=True):
        seen = np.isfinite(error)
        weight = 1 / np.maximum(error[seen, None], np.finfo(np.float64).tiny)
        q, r = np.linalg.qr(design[seen] * weight)
        columns.append(np.linalg.solve(r, q.T @ (value[seen] * weight[:, 0])))
        bars.append(float(np.linalg.norm(np.linalg.inv(r), axis=1).max()))
    return np.stack(columns, axis=1), max(bars)
