r"""One hidden layer beside an affine part, both under a ridge, fitted to a table.

    minimise  loss(y, T(A^T g(W^T x + b) + S^T x + c))  +  lambda (|W|^2 + |b|^2 + |A|^2)  +  mu |S|^2,

the loss a mean over rows, of squares or of twice the log loss behind a sigmoid or softmax T. The ridge on
both sides of a unit costs 2 lambda |w| |a|, so that units which do not pay vanish: lambda is a choice of
the width, too. Without units this is ridge regression or penalised logistic regression. Several starts are
averaged before T, which is again one hidden layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.networks.activations import Activation, get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFit
from unweave.numerics.least_squares import LevenbergMarquardtOptions, minimise
from unweave.numerics.least_squares.ridged import Ridged
from unweave.numerics.least_squares.solved_steps import SolvedSteps
from unweave.tables.likelihood_fit import LikelihoodFit, log_losses

Loss = Literal["squares", "classes"]

_FORMED = 1000  # parameters up to which factors of J^T J are quicker than many products
_LENGTH = 1.0  # of a random unit's (w, b), for inputs of unit variance
_GONE = 1e-9  # strength |w| |a| of a unit, over that of the strongest, below which it does nothing


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to fit: inputs of unit variance, answers of mean 0 and spread 1 or indicators of classes."""

    x: Array
    """(n, d)"""
    y: Array
    """(n, K)"""
    weights: Array
    """(n,) weights of the rows, with mean 1"""
    loss: Loss

    def rows(self, numbers: IntArray) -> Table:
        """Return the rows with these numbers."""
        return Table(self.x[numbers], self.y[numbers], self.weights[numbers], self.loss)

    @property
    def output(self) -> Activation | None:
        """T; None stands for softmax."""
        if self.loss == "squares":
            return get_activation("identity")
        return get_activation("sigmoid") if self.y.shape[1] == 1 else None

    def losses(self, model: NetworkParameters) -> Array:
        """Return the loss (n,) of every row."""
        values = model.values(self.x)
        if self.loss == "squares":
            return np.asarray(np.mean((values - self.y) ** 2, axis=1))
        return log_losses(self.y, values)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is fitted."""

    skip_ridge: float
    """mu"""
    activation: str | None = None
    """g; None: no units."""
    width: int = 0
    ridge: float = 0.0
    """lambda"""


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """How long a fit goes on."""

    steps: int = 40
    """Steps at most."""
    worthwhile: float = 5e-3
    """Relative decrease of the root of the sum above that is progress."""
    stalls: int = 3
    """Steps in a row without such progress that end the fit."""
    inner_steps: int = 40
    """Conjugate-gradient iterations of a step at most."""
    inner_tolerance: float = 0.1
    """Relative residual of the normal equations."""


def fit_table(
    table: Table,
    setting: Setting,
    rng: np.random.Generator,
    start: NetworkParameters | None = None,
    options: StepOptions | None = None,
) -> NetworkParameters:
    """Fit ``table`` from ``start``, or from random units beside no affine part."""
    options = options or StepOptions()
    model = _random(table, setting, rng) if start is None else start
    kind = ValueFit if table.loss == "squares" else LikelihoodFit
    problem = Ridged(kind(model, table.x, table.y, np.sqrt(table.weights)), _pull(table, setting, model))
    schedule = LevenbergMarquardtOptions(
        steps=options.steps,
        refusals=6,
        stalls=options.stalls,
        worthwhile=options.worthwhile,
        damping=1e-2,
        damping_fall=1 / 5,
        damping_rise=5.0,
        least_damping=1e-8,
        least_raised=1e-4,
        inner_tolerance=options.inner_tolerance,
        inner_steps=options.inner_steps,
        solver="gram" if model.size <= _FORMED else "levenberg",
    )
    descent = _Steps(problem, model.to_vector(), schedule)
    return model.from_vector(minimise(descent, descent.start, schedule).point.vector)


class _Steps(SolvedSteps):
    """Steps that are judged by the deviance where classes are fitted."""

    def size_of(self, vector: Array, residual: Array) -> float:
        ridged = self._problem
        assert isinstance(ridged, Ridged)
        if not isinstance(ridged.problem, LikelihoodFit):
            return super().size_of(vector, residual)
        pulled = float(np.sum((ridged.pull * vector) ** 2))
        return float(np.sqrt((ridged.problem.size_squared(vector) + pulled) / ridged.n_equations))


def _random(table: Table, setting: Setting, rng: np.random.Generator) -> NetworkParameters:
    inputs, columns = table.x.shape[1], table.y.shape[1] - int(table.output is None)
    skip, offset = np.zeros((inputs, columns)), np.zeros(columns)
    if setting.activation is None:
        return NetworkParameters((table.output,), (skip,), (offset,))
    units = rng.standard_normal((inputs + 1, setting.width)) * _LENGTH / np.sqrt(inputs + 1)
    outgoing = rng.standard_normal((setting.width, columns)) * np.sqrt(0.1 / setting.width)
    hidden = get_activation(setting.activation)
    return NetworkParameters((hidden, table.output), (units[:-1], outgoing), (units[-1], offset), skip)


def _pull(table: Table, setting: Setting, model: NetworkParameters) -> Array:
    """Return the roots of the ridges, (P,)."""
    parts = [np.full(shape, setting.ridge) for shape in model.shapes]
    last = parts[-1]
    last[0 if model.depth == 1 else model.width : -1] = setting.skip_ridge
    last[-1] = 0.0
    ridges = np.concatenate([part.reshape(-1) for part in parts])
    return np.asarray(np.sqrt(len(table.x) * ridges))


def averaged(models: Sequence[NetworkParameters]) -> NetworkParameters:
    """Return one model whose last pre-activation is the mean of those of ``models``."""
    first = models[0]
    if len(models) == 1 or first.depth == 1:
        return first
    share = 1 / len(models)
    skips = [model.skip for model in models if model.skip is not None]
    return replace(
        first,
        weights=(
            np.hstack([model.weights[0] for model in models]),
            share * np.vstack([model.weights[1] for model in models]),
        ),
        biases=(
            np.concatenate([model.biases[0] for model in models]),
            share * np.sum([model.biases[1] for model in models], axis=0),
        ),
        skip=share * np.sum(skips, axis=0),
    )


def without_idle_units(model: NetworkParameters) -> NetworkParameters:
    """Drop units that the ridge has made vanish; without any left, the model is affine."""
    if model.depth == 1:
        return model
    incoming = np.linalg.norm(np.vstack([model.weights[0], model.biases[0]]), axis=0)
    strength = incoming * np.linalg.norm(model.weights[1], axis=1)
    kept = strength > _GONE * max(float(strength.max(initial=0.0)), 1.0)
    if kept.any():
        return model.keep(kept)
    assert model.skip is not None
    return NetworkParameters(model.activations[1:], (model.skip,), (model.biases[1],))
