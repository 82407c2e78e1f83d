"""Find a region in which a link is not saturated, for a target that is a link and an affine map.

Behind a sigmoid or softmax z may be in the hundreds at ordinary inputs, and every answer 0 or 1. Halving the
way between two rows that differ leads to where two classes are about equally likely. Steps along every axis
from there, of the size that changes their log ratio by about one, give its gradient. Rows on which all of
those known so far are equally likely form a plane, along which some further class wins sooner or later. The
region is put where all are equal. Of the precision nothing needs to be known but that it is 0.01 or better.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.errors import NonFiniteAnswers
from unweave.networks.activations import SOFTMAX
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import fit_values
from unweave.targets.region import NormalisedQueries, Region

Contrast = Callable[[Array], Array]
Visible = Callable[[Array], BoolArray]

_LEAST = 0.02  # probability that is read
_EVEN = 0.1  # probability of the less likely side where a gradient is taken
_STEPS = 10.0 ** np.arange(-2.0, 9.0)  # along a line on which another class is looked for
_DIRECTIONS = 3  # lines that are tried for it
_HALVINGS = 60
_ATTEMPTS = 3  # from different rows
_MOST_FITTED = 2000  # parameters that are fitted to rows asked on the way, where that was too long
_FARTHEST_FITTED = 3.0  # distance of such rows, over that of the point in question
_LEAST_CHANGE = 0.7  # of a log ratio that gives a slope ...
_BEST_CHANGE = 1.5  # ... and the one that steps are made for
_CORRECTIONS = 30  # of the way to where all are equal
_CLEAR_CHANGE = 0.03  # of a log ratio that tells how much longer the step must be
_ROUNDS = 14  # of steps along the axes
_LONGEST_STEP = 1e9
_LONGEST_MOVE = 10.0  # of an input on the way to where all classes are equal, over that of most inputs
_LONGEST_SCALE = 1e3  # of an input, over that of most
_SPREAD = {"exp": 1.0}  # standard deviation of z in the region that is found
_OTHER_SPREAD = 2.0
_MODERATE_LOGS = (-1.0, 9.0)  # logarithms of answers of an exponential where a gradient is taken


def find_moderate_region(
    view: NormalisedQueries, link: str, rows: Array, answers: Array, rng: np.random.Generator
) -> Region | None:
    """Return a region where z varies by about two around zero, or None if it is not found.

    ``rows`` (n, D) of the view with ``answers`` (n, K) are known. Cost: about 2.5 D + 30 rows per output.
    """
    if link == "identity":
        return None
    found = None
    for _ in range(_ATTEMPTS):
        search = _Search(view, link, rows, answers, rng)
        try:
            with np.errstate(all="ignore"):  # what cannot be read is left out
                found = search.run()
                if found is not None and link == SOFTMAX and not search.sees_all(found[0]):
                    found = search.fitted(found[0])
                if found is None or search.sees_all(found[0]):
                    break
        except NonFiniteAnswers:
            return None
        order = rng.permutation(len(rows))  # the way there was too long for its slopes: another one
        rows, answers = rows[order], answers[order]
    if found is None:
        return None
    center, slopes = found
    size = np.sqrt(np.mean(slopes**2, axis=1))
    active = int((size > 0).sum())
    if not active:
        return None
    scale = _SPREAD.get(link, _OTHER_SPREAD) / np.sqrt(active) * _lengths(size, _LONGEST_SCALE)
    region = view.region
    return Region(region.to_inputs(center[None])[0], region.scale * scale)


def _lengths(slopes: Array, longest: float) -> Array:
    """Return steps (D,) that change a contrast of ``slopes`` (D,) by one, none much longer than most."""
    seen = slopes > 0
    steps = 1 / np.where(seen, slopes, 1.0)
    typical = float(np.median(steps[seen])) if seen.any() else 1.0
    return np.where(seen, np.minimum(steps, longest * typical), typical)


def _log_ratio(one: int, other: int) -> Contrast:
    return lambda p: np.asarray(np.log(p[:, one] / p[:, other]))


def _both_seen(one: int, other: int) -> Visible:
    return lambda p: np.asarray((p[:, one] > _LEAST) & (p[:, other] > _LEAST))


class _Search:
    """Contrasts c(x) = c_0 + g.(x - x_0) found so far, one per output, or per further class."""

    def __init__(
        self, view: NormalisedQueries, link: str, rows: Array, answers: Array, rng: np.random.Generator
    ) -> None:
        self._ask, self._link, self._rng = view, link, rng
        self._rows, self._answers = rows, self._probabilities(answers)
        self._gradients: list[Array] = []
        self._zeros: list[float] = []
        """g . x where the contrast is zero."""
        self._pairs: list[tuple[int, int]] = []
        """Classes whose log ratio each contrast is, of a softmax."""
        self._asked_rows: list[tuple[Array, Array]] = [(rows, answers)]
        self._contrasts: list[tuple[Contrast, Visible]] = []
        """What each contrast is, and where it can be read."""

    def run(self) -> tuple[Array, Array] | None:
        """Return a point (D,) where all contrasts vanish and their gradients (D, C)."""
        outputs = self._answers.shape[1]
        center: Array | None = None
        if self._link == SOFTMAX:
            known = {int(self._answers[0].argmax())}
            while len(known) < outputs:
                here = self._rows[0] if center is None else center
                reached = self._new_class(here, known)
                if reached is None:
                    return None
                point, row = reached
                pair = int(np.argsort(row)[-1]), int(np.argsort(row)[-2])
                if len(set(pair) & known) != 1:
                    return None
                known |= set(pair)
                self._pairs.append(pair)
                center = self._add(point, _log_ratio(*pair), _both_seen(*pair))
        else:
            for output in range(outputs):
                start = self._moderate_row(output, center)
                if start is None:
                    return None
                center = self._add(start, partial(self._undone, output), partial(self._seen, output))
        if center is None:
            return None
        return center, np.stack(self._gradients, axis=1)

    def sees_all(self, center: Array) -> bool:
        """Whether all contrasts can be read at ``center`` (D,)."""
        return self._read_again(center, self._asked(center[None]))

    def _probabilities(self, answers: Array) -> Array:
        return (answers + 1) / 2 if self._link == "tanh" else answers

    def _asked(self, points: Array) -> Array:
        answers = self._ask(points)
        self._asked_rows.append((points, answers))
        return self._probabilities(answers)

    def fitted(self, center: Array) -> tuple[Array, Array]:
        """Fit all rows asked so far, from the contrasts found, and return what `run` does."""
        if len(center) * self._answers.shape[1] > _MOST_FITTED:
            return center, np.stack(self._gradients, axis=1)
        pairs = np.array(self._pairs)
        differences = np.zeros((len(pairs), self._answers.shape[1]))
        differences[np.arange(len(pairs)), pairs[:, 0]] = 1.0
        differences[np.arange(len(pairs)), pairs[:, 1]] = -1.0
        undo = np.linalg.pinv(differences).T
        weights, bias = np.stack(self._gradients, axis=1) @ undo, -np.array(self._zeros) @ undo
        points, answers = (np.concatenate(parts) for parts in zip(*self._asked_rows, strict=True))
        # Far out a slope's last digit decides the answer: rows that are near have the say.
        near = np.abs(points - center).max(axis=1) <= _FARTHEST_FITTED * (1 + np.abs(center).max())
        start = NetworkParameters.from_network(Network([weights], [bias], [SOFTMAX]))
        network = fit_values(start, points[near], answers[near]).model.to_network()
        self._gradients = list((network.weights[0] @ differences.T).T)
        self._zeros = list(-differences @ network.biases[0])
        return self._where_all_vanish(center), np.stack(self._gradients, axis=1)

    def _undone(self, output: int, answers: Array) -> Array:
        p = answers[:, output]
        if self._link == "exp":
            return np.asarray(np.log(p))
        return np.asarray(np.log(p / (1 - p)) / (2.0 if self._link == "tanh" else 1.0))

    def _seen(self, output: int, answers: Array) -> BoolArray:
        p = answers[:, output]
        if self._link == "exp":
            return np.asarray((p > np.exp(_MODERATE_LOGS[0] - 1)) & (p < np.exp(_MODERATE_LOGS[1] + 2)))
        return np.asarray((p > _LEAST) & (p < 1 - _LEAST))

    def _add(self, point: Array, value: Contrast, seen: Visible) -> Array:
        """Measure the contrast ``value`` around ``point`` (D,), and return where all are zero."""
        answers = self._asked(point[None])
        self._read_again(point, answers)
        at_point = float(value(answers)[0])
        gradient = self._gradient(point, at_point, value, seen)
        self._gradients.append(gradient)
        zero = gradient @ point - (0.0 if self._link == "exp" else at_point)
        self._zeros.append(float(zero))
        self._contrasts.append((value, seen))
        return point if self._link == "exp" else self._approached(point)

    def _approached(self, point: Array) -> Array:
        """Go to where all contrasts vanish, in steps so short that none is lost from sight on the way."""
        share = 1.0
        for _ in range(_CORRECTIONS):
            center = self._where_all_vanish(point)
            ahead = point + share * (center - point)
            if self._read_again(ahead, self._asked(ahead[None])):
                if share == 1:
                    return self._where_all_vanish(ahead)
                point, share = ahead, min(1.0, 2 * share)
            else:
                share /= 2
        return self._where_all_vanish(point)

    def _read_again(self, point: Array, answers: Array) -> bool:
        """Let contrasts that ``answers`` (1, K) show at ``point`` (D,) start from there; say if all do."""
        readable = [bool(seen(answers)[0]) for _, seen in self._contrasts]
        for number, (value, _) in enumerate(self._contrasts):
            if readable[number]:
                self._zeros[number] = float(self._gradients[number] @ point - value(answers)[0])
        return all(readable)

    def _where_all_vanish(self, point: Array) -> Array:
        """Return the point nearest to ``point`` where all contrasts are zero; steps count by their effect."""
        slopes = np.stack(self._gradients)  # (C, D)
        metric = _lengths(np.sqrt(np.mean(slopes**2, axis=0)), _LONGEST_MOVE)
        missing = np.array(self._zeros) - slopes @ point
        step: Array = metric * np.linalg.lstsq(slopes * metric, missing, rcond=1e-6)[0]
        return point + step

    def _gradient(
        self,
        point: Array,
        at_point: float,
        value: Contrast,
        seen: Visible,
    ) -> Array:
        """Return the slope (D,) of the contrast along every axis, 0 where no step changes it."""
        inputs = len(point)
        steps, slopes, best = np.ones(inputs), np.zeros(inputs), np.zeros(inputs)
        shrunk, axes = np.zeros(inputs, dtype=np.bool_), np.arange(inputs)
        for _ in range(_ROUNDS):
            if not len(axes):
                break
            moved = np.repeat(point[None], len(axes), axis=0)
            moved[np.arange(len(axes)), axes] += steps[axes]
            answers = self._asked(moved)
            taken = moved[np.arange(len(axes)), axes] - point[axes]
            readable = seen(answers)
            change = np.where(readable, value(answers) - at_point, 0.0)
            better = np.abs(change) > np.maximum(best[axes], _CLEAR_CHANGE)
            slopes[axes[better]] = change[better] / taken[better]
            best[axes[better]] = np.abs(change[better])
            enough = readable & ((np.abs(change) >= _LEAST_CHANGE) | shrunk[axes])
            clear = readable & (np.abs(change) > _CLEAR_CHANGE)
            factor = np.where(clear, _BEST_CHANGE / np.maximum(np.abs(change), _CLEAR_CHANGE), 10.0)
            shrunk[axes[~readable]] = True
            steps[axes] *= np.where(readable, factor, 0.1)
            axes = axes[~enough & (steps[axes] <= _LONGEST_STEP)]
        return slopes

    def _moderate_row(self, output: int, center: Array | None) -> Array | None:
        """Return a point where answer ``output`` is moderate."""
        start = self._rows[0] if center is None else center
        if self._link == "exp":
            logs = np.log(np.maximum(self._answers[:, output], np.finfo(np.float64).tiny))
            nearest = int(np.argmin(np.abs(logs - np.mean(_MODERATE_LOGS))))
            if _MODERATE_LOGS[0] < logs[nearest] < _MODERATE_LOGS[1]:
                return np.asarray(self._rows[nearest])
            low, high = int(np.argmin(logs)), int(np.argmax(logs))
            if not logs[low] < np.mean(_MODERATE_LOGS) < logs[high]:
                return None
            reached = self._between(
                self._rows[low],
                self._rows[high],
                lambda p: bool(np.log(max(p[output], 1e-300)) < np.mean(_MODERATE_LOGS)),
                lambda p: bool(_MODERATE_LOGS[0] < np.log(max(p[output], 1e-300)) < _MODERATE_LOGS[1]),
            )
            return None if reached is None else np.asarray(reached[0])
        side = bool(self._asked(start[None])[0, output] < 0.5)
        other = self._elsewhere(start, lambda p: (p[:, output] < 0.5) != side)
        if other is None:
            return None
        reached = self._between(
            start,
            other,
            lambda p: bool((p[output] < 0.5) == side),
            lambda p: bool(min(p[output], 1 - p[output]) > _EVEN),
        )
        return None if reached is None else np.asarray(reached[0])

    def _new_class(self, start: Array, known: set[int]) -> tuple[Array, Array] | None:
        """Return a point where a known class and a new one are likely, and the probabilities there."""
        old = np.array(sorted(known))
        other = self._elsewhere(start, lambda p: ~np.isin(p.argmax(axis=1), old))
        if other is None:
            return None
        return self._between(
            start,
            other,
            lambda p: int(p.argmax()) in known,
            lambda p: bool(np.sort(p)[-2] > _EVEN and len(set(np.argsort(p)[-2:].tolist()) & known) == 1),
        )

    def _elsewhere(self, start: Array, wanted: Callable[[Array], BoolArray]) -> Array | None:
        """Return a row that is ``wanted``: known ones first, then along lines that keep all contrasts."""
        if not self._gradients:
            known = np.flatnonzero(wanted(self._answers))
            if len(known):
                return np.asarray(self._rows[known[0]])
        directions = self._rng.standard_normal((_DIRECTIONS, len(start)))
        if self._gradients:
            slopes = np.stack(self._gradients)
            metric = _lengths(np.sqrt(np.mean(slopes**2, axis=0)), _LONGEST_MOVE)
            basis = np.linalg.qr((slopes * metric).T)[0]
            directions = (directions - directions @ basis @ basis.T) * metric
        for steps in np.split(_STEPS, [len(_STEPS) // 2]):  # near ones on all lines first
            t = np.stack([steps, -steps], axis=1).reshape(-1, 1, 1)
            points = (start + t * directions).reshape(-1, len(start))
            found = np.flatnonzero(wanted(self._asked(points)))
            if len(found):
                return np.asarray(points[found[0]])
        return None

    def _between(
        self,
        start: Array,
        end: Array,
        like_start: Callable[[Array], bool],
        good: Callable[[Array], bool],
    ) -> tuple[Array, Array] | None:
        """Halve the way until a point is ``good``; None where the answers jump."""
        for _ in range(_HALVINGS):
            middle = (start + end) / 2
            row = self._asked(middle[None])[0]
            if good(row):
                return middle, row
            if like_start(row):
                start = middle
            else:
                end = middle
        return None
