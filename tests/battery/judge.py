"""What a result is worth, found without the package: functions are compared on rows of our own.

A result that is called recovered is

    wrong      if it differs from the truth on a row that was asked, an example, a corner of a declared box,
               or on more of the region than the n rows of its trial exclude (3 / n), or if the target says
               otherwise when it is asked again;
    far        if it differs only on asked rows that lie far outside the region;
    thin       if it differs only where nothing was asked, on less of the region than that;
    structure  if the function is right, but a unit is merged or missing, or the truth is of no such kind.

A target that must be recovered and is not is missed. An error that is not the package's own is a crash.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from battery.case import Array, Asked, Case, Function, Rng

BAD = ("wrong", "structure", "crash")
"""What may not happen."""
EXACT = 1e-6
"""Relative error that no right network shows where answers are float64."""
OVER_COARSENESS = 20.0
"""Largest error of a right network in units of the answers' coarseness: averaging makes it smaller than one,
leverage of the fit larger."""
RMS_OVER_COARSENESS = 2.0
"""Its root mean square over the rows within that: least squares on enough rows stays below one."""
NEAR = 10.0
"""Distance up to which asked rows count like rows of the region."""
FARTHEST = 1e4
"""Distance up to which they count at all."""
FAR_ERROR = 1e-2
"""Relative error there that no leverage excuses."""
DENSE_ROWS = 20_000
"""Rows of the region."""
MOST_CORNERS = 2**14
"""Corners of a declared box."""
MANY_CORNERS = 500
"""Corners that must have been asked, of a box with more, before those that were not may be called thin."""
EXCLUDED = 3.0
"""n agreeing rows exclude, at 95 %, a wrong share of this over n."""
_CLIMBERS, _CLIMBS = 16, 60  # rows that search for larger errors, and steps each takes
_AGAIN = 100  # rows asked again


@dataclass(frozen=True)
class Verdict:
    """One word, and why."""

    word: str
    reason: str = ""


def judge(case: Case, result: Any, asked: Asked | None) -> Verdict:
    """Judge a result of the package, from the rows it asked and rows of our own."""
    if not result.status.is_recovered:
        return Verdict("missed" if case.must_recover else "ok")
    rng = np.random.default_rng(0)
    log = case.samples if asked is None else asked.log()
    if asked is not None and case.changes:
        return _steady(asked, log) or Verdict("ok")
    with np.errstate(all="ignore"):
        found = _function(case, result, log, rng)
    return found or _structure(case, result) or Verdict("ok")


class _Errors:
    """Errors of a network in units of what is allowed."""

    def __init__(self, case: Case, network: Function, size: Array) -> None:
        self._case, self._network, self._size = case, network, size
        self.coarse = case.relative + case.absolute / float(size.min())
        self.allowed = max(EXACT, OVER_COARSENESS * self.coarse)

    def relative(self, x: Array) -> Array:
        """(n,) error relative to the size of the answers; infinite where it is no number."""
        truth = self._case.truth(x)
        off = np.abs(self._network(x) / self._size - truth / self._size)
        off /= np.maximum(1, np.abs(truth / self._size))
        return np.nan_to_num(off.max(axis=1), nan=np.inf)

    def wrong(self, x: Array) -> Array:
        """(n,) whether the error is beyond the precision; parameters' errors grow with the distance."""
        leverage = np.maximum(1, self._case.region.distance(x)) if self.coarse > 0 else 1.0
        return self.relative(x) > self.allowed * leverage


def _function(case: Case, result: Any, log: tuple[Array, Array] | None, rng: Rng) -> Verdict | None:
    region = case.region
    dense = region.draw(rng, DENSE_ROWS)
    size = np.abs(case.truth(dense))
    size = size[np.isfinite(size).all(axis=1)].max(axis=0)
    size = np.where(size > 0, size, size.max() or 1.0)
    errors = _Errors(case, result.network, size)
    if log is not None:
        x = log[0][np.isfinite(log[0]).all(axis=1)]
        verdict = _asked_rows(errors, x, region.distance(x))
        if verdict is not None:
            return verdict
    examples = case.arguments.get("examples")
    if examples is not None and (off := errors.wrong(examples)).any():
        return Verdict(
            "wrong", f"{off.sum()} of {len(off)} examples, by up to {errors.relative(examples).max():.2g}"
        )
    corners_asked = 0 if log is None else _corners_among(case, log[0])
    return _region_rows(case, errors, dense, _trial_rows(result), corners_asked, rng)


def _asked_rows(errors: _Errors, x: Array, distance: Array) -> Verdict | None:
    """What rows that were asked say, near and far."""
    near = x[distance <= NEAR]
    off = errors.wrong(near)
    if off.any():
        worst = errors.relative(near).max()
        return Verdict("wrong", f"{off.sum()} of {len(near)} near asked rows, by up to {worst:.2g}")
    far = x[(distance > NEAR) & (distance <= FARTHEST)]
    off = errors.relative(far) > np.maximum(FAR_ERROR, errors.allowed * 100)
    if off.any():
        worst = errors.relative(far).max()
        return Verdict("far", f"{off.sum()} of {len(far)} far asked rows, by up to {worst:.2g}")
    return None


def _region_rows(
    case: Case, errors: _Errors, dense: Array, rows: int, corners_asked: int, rng: Rng
) -> Verdict | None:
    """What rows of the region say that were not asked."""
    off, relative = errors.wrong(dense), errors.relative(dense)
    share, least = float(off.mean()), EXCLUDED / rows
    if share >= least:
        return Verdict("wrong", f"on a share {share:.2g} of the region, by up to {relative.max():.2g}")
    rms = float(np.sqrt(np.mean(relative[~off] ** 2)))
    if errors.coarse > 0 and rms > max(EXACT, RMS_OVER_COARSENESS * errors.coarse):
        return Verdict(
            "wrong", f"by {rms / errors.coarse:.1f} times the coarseness of the answers in the mean"
        )
    corners = _corners(case, rng)
    if len(corners) and (off := errors.wrong(corners)).any():
        covered = corners_asked >= MANY_CORNERS and off.mean() < EXCLUDED / corners_asked
        word = "thin" if covered else "wrong"
        worst = errors.relative(corners).max()
        said = f"at {off.sum()} of {len(off)} corners of the box, by up to {worst:.2g}; {corners_asked} asked"
        return Verdict(word, said)
    start = np.vstack(
        [dense, *([] if case.witness is None else [case.witness]), *([corners] * bool(len(corners)))]
    )
    found = _climb(case, errors, start, rng)
    if errors.wrong(found).any():
        worst = errors.relative(found).max()
        return Verdict("thin", f"on a share {share:.2g} of the region, untouched, by up to {worst:.2g}")
    return None


def _trial_rows(result: Any) -> int:
    """How many rows agreed when the package judged."""
    for check in result.certificate:
        counted = re.search(r"on (\d+) rows", check.implies)
        if check.name in ("fresh error", "held-out error") and counted:
            return int(counted[1])
    return max(int(result.verification_queries), 1)


def _corners_among(case: Case, x: Array) -> int:
    """How many corners of the declared box were asked."""
    if not case.region.declared:
        return 0
    at_corner = ((x == case.region.low) | (x == case.region.high)).all(axis=1)
    return len(np.unique(x[at_corner], axis=0))


def _corners(case: Case, rng: Rng) -> Array:
    """Corners of the box that was declared: all of them, or some and those where something acts."""
    inputs = case.inputs
    if not case.region.declared:
        return np.empty((0, inputs))
    if 2**inputs <= MOST_CORNERS:
        bits = (np.arange(2**inputs)[:, None] >> np.arange(inputs)) & 1
    else:
        bits = rng.integers(2, size=(MOST_CORNERS, inputs))
    corners = np.where(bits, case.region.high, case.region.low)
    return corners if case.witness is None else np.vstack([corners, case.witness])


def _climb(case: Case, errors: _Errors, start: Array, rng: Rng) -> Array:
    """Search for larger errors: random steps that shrink, from the rows with the largest."""
    region, off = case.region, errors.relative(start)
    best = np.argsort(off)[-_CLIMBERS:]
    x, value = start[best], off[best]
    for step in np.geomspace(0.5, 0.005, _CLIMBS):
        trial = x + step * region.scale * rng.standard_normal(x.shape)
        trial = np.clip(trial, region.low, region.high)
        new = errors.relative(trial)
        x, value = np.where((new > value)[:, None], trial, x), np.maximum(new, value)
    return x


def _steady(asked: Asked, log: tuple[Array, Array] | None) -> Verdict | None:
    """Ask early rows again, and some others."""
    assert log is not None
    x, said = log
    rng = np.random.default_rng(0)
    rows = np.unique(np.append(np.arange(min(_AGAIN // 2, len(x))), rng.integers(len(x), size=_AGAIN // 2)))
    again = np.asarray(asked(x[rows])).reshape(len(rows), -1)
    off = np.abs(again - said[rows]).max() / max(np.abs(said[rows]).max(), np.finfo(np.float64).tiny)
    if off > EXACT:
        return Verdict("wrong", f"the target, asked again, differs by {off:.2g} from what it said")
    return None


def _structure(case: Case, result: Any) -> Verdict | None:
    """Whether the network is the one that was planted, where its function is right."""
    network, unique = result.network, result.status.name == "RECOVERED"
    if type(network).__name__ == "TreeEnsemble":
        said = f"steps at thresholds of single inputs, {network!r}, of what has none"
        return None if case.stepped else Verdict("structure", said)
    if case.foreign:
        return Verdict("structure", f"an imitator, {network!r}, of what no such network is")
    coarse = case.absolute + case.relative > 0
    kind = network.activations[0]
    if case.kind is not None and _family(kind) != _family(case.kind) and (unique or coarse):
        return Verdict("structure", f"{kind} units instead of {case.kind}")
    if case.hidden is not None and network.hidden != case.hidden and unique:
        return Verdict("structure", f"hidden {network.hidden} instead of {case.hidden}")
    if case.digit and unique:
        return _half_a_digit(case, result)
    return None


def _half_a_digit(case: Case, result: Any) -> Verdict | None:
    """Whether answers were read as rounded to nearest that are not, and nothing says so."""
    x = case.region.draw(np.random.default_rng(1), 1000)
    offset = float(np.abs((result.network(x) - case.truth(x)).mean(axis=0)).max())
    said = " ".join([result.message, *result.notes])
    if offset > case.digit / 4 and case.rule not in said:
        return Verdict(
            "structure", f"off by {offset / case.digit:.2g} digits after {case.rule}, which is not named"
        )
    return None


def _family(kind: str) -> str:
    """Kinds whose units are sums of each other's."""
    return {"sigmoid": "tanh", "leaky_relu": "relu"}.get(kind, kind)
