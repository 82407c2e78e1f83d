"""Recover a tree, or a sum of trees, from rows on which what was found so far is wrong.

One tree of any depth is split where its answers part (`splitting`). A sum of shallow trees is a sparse
polynomial in steps (`sums`), perhaps behind a sigmoid or a softmax. Which of them a target is shows in mixed
differences: where two inputs both matter, their effects add up as soon as they belong to different trees, and
never in a single one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.trees.rows import Answers, RowOptions, TestRows, TreesReason
from unweave.methods.trees.splitting import GrowingTree, SplittingOptions
from unweave.methods.trees.sums import SumOfTrees, Terms
from unweave.methods.trees.thresholds import Thresholds
from unweave.networks.links import Link
from unweave.networks.trees import TreeEnsemble
from unweave.numerics import clock
from unweave.search import Candidate, Check, Context, Evidence, GaveUp, Search

_NARROW_LEAVES = (
    "no row contradicts the tree, but it is {depth} levels deep, and trees as deep as that have leaves for "
    "single training rows, too narrow to be met by chance: pass examples, which show them"
)


@dataclass(frozen=True, kw_only=True)
class TreesOptions:
    """How far the search goes."""

    most_rows: int = 600_000
    """Rows that are asked; beyond, what was found is told as a part."""
    most_terms: int = 20_000
    """Terms of a sum of trees, or leaves of a tree."""
    most_order: int = 6
    """Inputs whose steps a term of a sum multiplies: the depth of its trees."""
    additive_share: float = 0.1
    """Mixed differences that vanish, of all that are looked at, from which a target is a sum of trees."""
    pairs_rows: int = 600
    """Rows from which that is judged."""
    first_at_once: int = 8
    """Wrong rows that are followed at once before it is known whether inputs are rounded to float32."""
    at_once: int = 64
    """Wrong rows that are followed at once: more of them lead to the same thresholds twice."""
    most_at_once: int = 8192
    """Rows drawn at once where all of the last ones agreed."""
    quiet_rows: int = 6000
    """Rows in a row that must agree before the search ends ..."""
    quiet_rows_per_part: float = 48.0
    """... or as many per leaf or threshold, if that is more."""
    most_depth: int = 6
    """Depth up to which a tree counts as found without examples: deeper ones cut off single training rows."""
    descents: int = 12
    """Times that a row of a sum may go down to a lower corner that is wrong."""
    usual_thresholds: int = 30
    """Thresholds per input that a plan counts with ..."""
    rows_per_threshold: int = 45
    """... and rows for each: one bisection, and the corners around it."""
    rows: RowOptions = field(default_factory=RowOptions)
    splitting: SplittingOptions = field(default_factory=SplittingOptions)
    unplaced: float = 4.0
    """Factor of these rows where neither domain nor examples tell the scale of the inputs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TreesEvidence(Evidence):
    """What was measured on the way to trees."""

    thresholds: int | None = None
    """Thresholds found, of all inputs."""
    parts: int | None = None
    """Terms of the sum, or leaves of the tree."""
    quiet: int | None = None
    """Last rows of the search, all of which agreed."""
    additive: float | None = None
    """Share of mixed differences that vanish."""

    def checks(self) -> list[Check]:
        """Report the size of what was found."""
        figures = {
            "thresholds": (self.thresholds, "thresholds found, of all inputs"),
            "parts": (self.parts, "leaves of the tree, or terms of the sum of trees"),
            "agreeing rows of the search": (self.quiet, "last rows of the search: all of them agree"),
        }
        return [
            Check.figure(name, value, said) for name, (value, said) in figures.items() if value is not None
        ]


class TreesSearch(Search):
    """Grow a tree or a sum of trees until no drawn row contradicts it."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._options: TreesOptions = context.options
        self._thresholds = Thresholds(self.findings.region.n_inputs)
        self._rows = TestRows(self.findings, self._thresholds, self.rng, self._options.rows)
        self._model: GrowingTree | SumOfTrees | None = None
        self._link, self._quiet, self._additive = Link("identity"), 0, 0.0
        self._sent = 0

    def run(self) -> None:
        """Find out which of the two it is, then grow it."""
        self._sent = self.context.view.sent
        with self.journal.stage("kind of trees") as stage:
            self._link, self._additive = self._most_additive()
            stage.figures.update(link=self._link.name, additive=self._additive)
        ask = Answers(self.context.view, self.findings, self._link, self._options.rows)
        if self._additive >= self._options.additive_share:
            with self.journal.stage("sum of trees") as stage:
                order = self._options.most_order
                self._model = SumOfTrees(
                    ask, self._rows, self._thresholds, self.rng, order, self._options.descents
                )
                self._grow(stage)
        else:
            with self.journal.stage("tree") as stage:
                start = self._rows.draw(1)[0]
                self._model = GrowingTree(
                    ask, self._rows, self._thresholds, self.rng, start, self._options.splitting
                )
                self._grow(stage)

    def candidate(self) -> Candidate:
        """Return what was grown so far."""
        model = self._model
        if model is None:
            return Candidate()
        inputs, output = self.findings.region.n_inputs, self._link.name
        if isinstance(model, GrowingTree):
            trees = _single(model, inputs, output)
        else:
            trees = ensemble_of(model.terms, inputs, output)
        evidence = TreesEvidence(
            thresholds=len(self._thresholds),
            parts=self._parts(),
            quiet=self._quiet,
            additive=self._additive,
        )
        notes = [f"the target answers in steps: {trees.describe()}, {len(self._thresholds)} thresholds"]
        if isinstance(model, SumOfTrees):
            notes.append(
                "the steps and the value of every cell between them are unique; how they are shared out "
                "among trees is not: every tree here is one product of steps"
            )
        if self._thresholds.single:
            notes.append("the target rounds its inputs to float32 before it compares them")
        deep = trees.depth > self._options.most_depth and self.findings.examples is None
        objection = _NARROW_LEAVES.format(depth=trees.depth) if deep else None
        return Candidate(trees, evidence, tuple(notes), objection=objection)

    def so_far(self) -> str:
        """Say how much was found."""
        return f"{self._parts()} leaves or terms were found so far"

    def _parts(self) -> int:
        model = self._model
        if model is None:
            return 0
        return len(model.leaves) if isinstance(model, GrowingTree) else len(model.terms)

    def _grow(self, stage: Any) -> None:
        """Draw rows and learn from those that are wrong, until enough of them in a row are right."""
        model, options, count, first = self._model, self._options, self._options.at_once, True
        assert model is not None
        while True:
            clock.check()
            parts = self._parts()
            x = self._rows.draw(count)
            if isinstance(model, GrowingTree):
                x = np.concatenate([x, model.inside(self.rng.permutation(model.leaves)[: 4 * count])])
            wrong = model.wrong(x)
            if not wrong.any():
                self._quiet += len(x)
                count = min(2 * count, options.most_at_once)
                x = self._rows.examples()
                wrong = model.wrong(x)
            if wrong.any():
                x = self.rng.permutation(x[wrong])
                model.learn(x[: options.first_at_once if first else options.at_once])
                self._quiet, first = 0, False
                count = max(options.at_once, count // 2)
            stage.figures.update(parts=self._parts(), thresholds=len(self._thresholds))
            self.journal.tell(self._parts(), None, "leaves or terms")
            few = options.quiet_rows * (options.unplaced if self._rows.unplaced else 1.0)
            wanted = max(few, options.quiet_rows_per_part * max(parts, len(self._thresholds)))
            if self._quiet >= wanted:
                # Rows asked for other reasons are free, and one that contradicts is a way to what is missing.
                x = self._rows.bounded(self.context.view.ledger.witnesses.rows()[0])
                wrong = model.wrong(x)
                if not wrong.any():
                    return
                model.learn(self.rng.permutation(x[wrong])[: options.at_once])
                self._quiet = 0
            if isinstance(model, SumOfTrees) and model.too_high > max(8, parts):
                raise GaveUp(TreesReason.TOO_LARGE, limit=options.most_order, what="inputs in one term")
            if self._parts() > options.most_terms:
                raise GaveUp(TreesReason.TOO_LARGE, limit=options.most_terms, what="leaves or terms")
            if self.context.view.sent - self._sent > options.most_rows:
                raise GaveUp(TreesReason.TOO_LARGE, limit=options.most_rows, what="rows")

    def _most_additive(self) -> tuple[Link, float]:
        """Return the link behind which most mixed differences vanish, and their share."""
        corners = self._corners()
        if not len(corners):
            return Link("identity"), 0.0
        best, share = Link("identity"), 0.0
        for name in self.findings.links:
            link = Link(name)
            z = link.inverse(corners.reshape(-1, corners.shape[-1])).reshape(corners.shape)
            if not np.isfinite(z).all():
                continue
            mixed = np.abs(z[:, 0] - z[:, 1] - z[:, 2] + z[:, 3]).max(axis=1)
            size = np.abs(z).max()
            found = float(np.mean(mixed <= 1e-9 * size))
            if found > share:
                best, share = link, found
        return (best, share) if share >= self._options.additive_share else (Link("identity"), share)

    def _corners(self) -> Array:
        """Return answers (n, 4, K) at rows, with one input moved, with another, and with both."""
        ask, inputs = self.context.view.ledger, self.findings.region.n_inputs
        count = int(np.clip(self._options.pairs_rows // inputs, 4, 48))
        base, other = self._rows.draw(count), self._rows.draw(count)
        moved = np.repeat(base[:, None, :], inputs, axis=1)
        every = np.arange(inputs)
        moved[:, every, every] = other
        at_base = ask(base)
        answers = ask(moved.reshape(-1, inputs)).reshape(count, inputs, -1)
        seen = (answers != at_base[:, None]).any(axis=2)
        pairs = _pairs(seen, self.rng)
        if not len(pairs):
            return np.empty((0, 4, at_base.shape[1]))
        row, one, two = pairs.T
        both = base[row]
        both[np.arange(len(row)), one] = other[row, one]
        both[np.arange(len(row)), two] = other[row, two]
        return np.stack([at_base[row], answers[row, one], answers[row, two], ask(both)], axis=1)


def _pairs(seen: BoolArray, rng: np.random.Generator, most: int = 3) -> IntArray:
    """Return up to ``most`` pairs of inputs that both matter, of every row: (n, 3) row, input, input."""
    found = []
    for row, which in enumerate(seen):
        inputs = rng.permutation(np.flatnonzero(which))
        found += [(row, inputs[k], inputs[k + 1]) for k in range(0, min(len(inputs) - 1, 2 * most), 2)]
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def _single(tree: GrowingTree, n_inputs: int, output: str) -> TreeEnsemble:
    feature = np.array(tree.feature)
    value = np.where(feature[:, None] < 0, np.array(tree.value), 0.0)
    threshold = np.nan_to_num(np.array(tree.threshold))
    return TreeEnsemble(feature, threshold, tree.left, tree.right, value, [0], n_inputs, output)


def ensemble_of(terms: Terms, n_inputs: int, output: str) -> TreeEnsemble:
    """Return one tree per product of steps: a chain whose last leaf holds the coefficient."""
    feature: list[int] = []
    threshold: list[float] = []
    left: list[int] = []
    right: list[int] = []
    value: list[Sequence[float]] = []
    roots: list[int] = []
    zero = [0.0] * len(terms.coefficients[0])
    for inputs, limits, coefficient in zip(terms.inputs, terms.thresholds, terms.coefficients, strict=True):
        roots.append(len(feature))
        for each, limit in zip(inputs, limits, strict=True):
            place = len(feature)  # its left child is the next node, a leaf; its right child the one after
            feature += [each, -1]
            threshold += [limit, 0.0]
            left += [place + 1, -1]
            right += [place + 2, -1]
            value += [zero, zero]
        feature.append(-1)
        threshold.append(0.0)
        left.append(-1)
        right.append(-1)
        value.append(coefficient.tolist())
    return TreeEnsemble(feature, threshold, left, right, value, roots, n_inputs, output)
