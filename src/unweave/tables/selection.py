"""Choose ridges, kind and width of a table's network on rows that the fits do not see.

Affine maps come first. Then units of every kind under a ridge that falls, until held-out rows get worse;
then more units, while that helps. The least mean loss over the folds wins, so that an affine map stays
where units do not pay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.clock import out_of_time, time_limit
from unweave.tables.penalised_fit import Setting, StepOptions, Table, averaged, fit_table, without_idle_units

_WORTHWHILE = 1e-3  # relative decrease of the loss for which a later setting is taken
_WORSE_IN_A_ROW = 2  # ridges in a row that did not help, after which lower ones are not tried


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """What is tried."""

    activations: tuple[str, ...] = ("tanh", "relu")
    """Kinds of units."""
    width: int | None = None
    """Number of units; None: found by doubling."""
    first_width: int = 16
    """Number of units that is tried first ..."""
    most_width: int = 128
    """... and the largest one."""
    skip_ridges: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    """Ridges on the affine part."""
    ridges: tuple[float, ...] = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
    """Ridges on units, falling."""
    folds: int = 5
    """Parts of the rows of which each is held out once."""
    members: int = 5
    """Starts that are averaged in the end; settings are compared with one start per fold."""
    most_rows: int = 20_000
    """Rows, drawn at random, that settings are compared on."""
    steps: StepOptions = field(default_factory=StepOptions)


@dataclass(frozen=True)
class Scored:
    """A setting and its loss on rows that were held out."""

    setting: Setting
    loss: float
    """Mean over the rows: of squares in units of the answers' variance, or the log loss."""
    by_fold: tuple[float, ...]
    """Mean over the rows of every fold."""

    @property
    def error(self) -> float:
        """Standard error of the mean, from the folds."""
        return float(np.std(self.by_fold, ddof=1) / np.sqrt(len(self.by_fold)))

    def takes_over(self, best: Scored) -> bool:
        """Whether it is worth being taken instead of ``best``, which is simpler."""
        if self.setting.width and not best.setting.width:
            gains = np.subtract(best.by_fold, self.by_fold)
            doubt = float(np.std(gains, ddof=1) / np.sqrt(len(gains)))
            return bool(gains.mean() > max(doubt, _WORTHWHILE * best.loss))
        return self.loss < (1 - _WORTHWHILE) * best.loss


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen model and what it was compared with."""

    model: NetworkParameters
    scored: tuple[Scored, ...]
    """In the order in which they were tried; empty where the rows were too few to compare."""
    best: Scored | None


def choose_model(table: Table, options: SelectionOptions, seed: int) -> Choice:
    """Return the best model for ``table``, fitted to all rows."""
    rng = np.random.default_rng(seed)
    compared = table
    if len(table.x) > options.most_rows:
        compared = table.rows(np.sort(rng.permutation(len(table.x))[: options.most_rows]))
    scored: list[Scored] = []
    folds = _folds(compared, options.folds, rng)
    if folds:
        for setting in _settings(options, scored):
            latest = _scored(compared, folds, setting, options, seed)
            if out_of_time():
                break  # the latest fits were cut short and say nothing about their setting
            scored.append(latest)
    best = _best(scored) if scored else None
    setting = Setting(skip_ridge=options.skip_ridges[-1]) if best is None else best.setting
    members = 1 if out_of_time() else options.members
    with time_limit(None):  # one fit is handed back, whatever the time
        model = _fitted(table, setting, members, options.steps, seed)
    return Choice(without_idle_units(model), tuple(scored), best)


def _settings(options: SelectionOptions, scored: list[Scored]) -> Iterator[Setting]:
    """Yield settings; ``scored`` holds what came of all earlier ones."""
    for ridge in sorted(options.skip_ridges, reverse=True):
        yield Setting(skip_ridge=ridge)
    skip = _best(scored).setting.skip_ridge
    width = options.first_width if options.width is None else options.width
    if width == 0:
        return
    for activation in options.activations:
        begun = len(scored)
        for ridge in options.ridges:
            yield Setting(skip_ridge=skip, activation=activation, width=width, ridge=ridge)
            losses = [each.loss for each in scored[begun:]]
            if len(losses) - 1 - int(np.argmin(losses)) >= _WORSE_IN_A_ROW:
                break
    if options.width is not None:
        return
    while width < options.most_width and _best(scored).setting.width == width:
        width *= 2
        best = _best(scored).setting
        lower = [ridge for ridge in options.ridges if ridge < best.ridge][:1]
        for ridge in (best.ridge, *lower):
            yield replace(best, width=width, ridge=ridge)


def _best(scored: Sequence[Scored]) -> Scored:
    """Return the best one; simpler ones, which come first, stay where nothing is gained."""
    best = scored[0]
    for each in scored[1:]:
        if each.takes_over(best):
            best = each
    return best


def _scored(
    table: Table, folds: Sequence[IntArray], setting: Setting, options: SelectionOptions, seed: int
) -> Scored:
    everything, losses, weights = np.arange(len(table.x)), [], []
    for held in folds:
        fitted = table.rows(np.setdiff1d(everything, held, assume_unique=True))
        model = _fitted(fitted, setting, 1, options.steps, seed)
        rows = table.rows(held)
        losses.append(float(np.average(rows.losses(model), weights=rows.weights)))
        weights.append(float(rows.weights.sum()))
    return Scored(setting, float(np.average(losses, weights=weights)), tuple(losses))


def _fitted(table: Table, setting: Setting, members: int, steps: StepOptions, seed: int) -> NetworkParameters:
    """Fit ``members`` starts and average them; an affine map needs one."""
    count = members if setting.activation is not None else 1
    starts = [np.random.default_rng([seed, member]) for member in range(count)]
    return averaged([fit_table(table, setting, rng, options=steps) for rng in starts])


def _folds(table: Table, count: int, rng: np.random.Generator) -> list[IntArray]:
    """Return row numbers of each part; every class is spread over all parts. None where rows are too few."""
    rows = len(table.x)
    count = min(count, rows // 2)
    if count < 2:
        return []
    order = rng.permutation(rows)
    if table.loss == "classes":
        order = order[np.argsort(_class_numbers(table.y)[order], kind="stable")]
    part = np.empty(rows, dtype=np.int64)
    part[order] = np.arange(rows) % count
    return [np.flatnonzero(part == number) for number in range(count)]


def _class_numbers(indicators: Array) -> IntArray:
    if indicators.shape[1] == 1:
        return np.asarray(indicators[:, 0] > 0.5, dtype=np.int64)
    return np.asarray(indicators.argmax(axis=1), dtype=np.int64)
