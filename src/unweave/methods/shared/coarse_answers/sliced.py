"""One hidden layer in many inputs from coarse answers: a slice first, then the inputs outside it.

1. A random slice of a few tens of directions shows a network with the same units. Any search for coarse
   answers finds it there (`targets.slice`).
2. Moves along every direction outside, from a few sites of the slice, show the weights' components along it:
   least squares in one number per unit, all else known.
3. Least squares on rows in all inputs makes every parameter as good as the answers allow.

    rows   those of the search in d inputs  +  4 (m / K + 2) (D - d)  +  4 P / K
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.shared.coarse_answers.averaged_fit import fit_to_rows
from unweave.methods.shared.coarse_answers.evidence import CoarseEvidence
from unweave.methods.shared.coarse_answers.refinement import CoarseOptions, Refinement
from unweave.methods.shared.coarse_answers.rows import AnsweredRows, link_of
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.clock import check
from unweave.numerics.least_squares.normal_equations import solve_near
from unweave.probing.findings import Findings
from unweave.probing.noise import Noise
from unweave.search import Candidate, Context, GaveUp, Reason, Search
from unweave.targets.region import NormalisedQueries, Region
from unweave.targets.slice import SliceQueries


@dataclass(frozen=True, kw_only=True)
class SlicedOptions:
    """How a slice is chosen, and how its network is carried over to all inputs."""

    directions: int = 24
    """Directions of the slice: Hessians in so many show some 200 units."""
    most_inputs: int = 4000
    """Number of inputs beyond which none is taken: it comes from a random rotation of all of them."""
    sites_per_unknown: float = 4.0
    """Equations per unit along a direction outside."""
    spare_sites: int = 4
    """Sites beyond those."""
    move: float = 0.15
    """Length of a move outside, times 1 / sqrt(D): how far it moves a unit of norm one."""
    candidates: int = 20
    """Sites from which those are chosen, for each of them."""
    reach: float = 5.0
    """Standard deviations of what a move adds to a unit, within which it is to act at a site: of tens of
    thousands of moves none should turn a unit off everywhere."""
    acting_sites: float = 3.0
    """Sites at which every unit acts, at least."""
    lost: float = 10.0
    """Misfit along a direction, over that along most, at which the descent has lost its way, ..."""
    shorter: float = 0.2
    """... and the length of a second move from which it starts again, over that of the first."""
    steps: int = 12
    """Gauss-Newton steps per direction at most."""
    settled: float = 1e-6
    """Change of the components, relative to their size, that is the last one."""
    rows_per_parameter: float = 4.0
    """Rows per parameter of the fit in all inputs."""
    near_damping: float = 1e-6
    """Its first damping: it starts close."""


def refuses_many_inputs(findings: Findings, most: int) -> str | None:
    """Say why more than ``most`` inputs are too many, or None."""
    inputs = findings.region.n_inputs
    if inputs <= most:
        return None
    if findings.noise.kind not in ("float64", "float32") or findings.region.has_box:
        return (
            f"beyond {most} inputs it needs answers in floating point and no box, and the target has {inputs}"
        )
    if inputs > SlicedOptions().most_inputs:
        return f"it takes up to {SlicedOptions().most_inputs} inputs, and the target has {inputs}"
    return None


class SlicedReason(Reason):
    """Why the network of a slice was not enough."""

    NO_NETWORK = "no network was found on a slice of {directions} directions"
    NOT_EXPLAINED = (
        "the network of a slice, carried over to all inputs, leaves {misfit:.2g} standard deviations of "
        "their answers"
    )


class SlicedSearch(Search):
    """Runs another search on a slice, then finds the weights outside it."""

    single_thread = False

    def __init__(
        self,
        context: Context,
        search: Callable[[Context], Search],
        coarse: CoarseOptions,
        options: SlicedOptions,
    ) -> None:
        super().__init__(context)
        self._options = options
        self._slice = SliceQueries(context.view, options.directions, self.rng)
        region = Region.standard(options.directions)
        self._inner = search(
            replace(
                context,
                view=NormalisedQueries(self._slice, region),  # type: ignore[arg-type]  # a ledger but for inputs
                findings=replace(self.findings, region=region, searched=False),
            )
        )
        self._rows = AnsweredRows(context.view, self.findings.noise, self.rng, coarse.rows)
        self._best = Refinement(context, self._rows, CoarseEvidence(), coarse)

    def so_far(self) -> str:
        """Say what the search on the slice has found."""
        return self._inner.so_far()

    def candidate(self) -> Candidate:
        """Return the network in all inputs, if there is one."""
        found, inner = self._best.candidate(), self._inner.candidate()
        notes = tuple(note for note in inner.notes if note not in found.notes)
        return replace(found, notes=(*found.notes, *notes), ambiguity=inner.ambiguity)

    def run(self) -> None:
        """Search on the slice, leave it, and fit rows in all inputs."""
        self._inner.run()
        found = self._inner.candidate()
        if found.network is None:
            raise GaveUp(SlicedReason.NO_NETWORK, directions=self._options.directions)
        model = NetworkParameters.from_network(found.network)
        with self.journal.stage("other inputs") as stage:
            outside = components_outside(
                model, self._slice, self.findings.noise, self.rng, self._options, self.journal.tell
            )
            stage.figures["directions"] = len(outside)
        in_all = self._in_all_inputs(model, outside)
        evidence = found.evidence
        if isinstance(evidence, CoarseEvidence):
            self._best.evidence = evidence
        with self.journal.stage("fit in all inputs") as stage:
            # A row shows no more than one number per unit about incoming weights.
            outputs = in_all.weights[1].shape[1]
            least = (in_all.n_inputs + 1) * in_all.width / min(in_all.width, outputs)
            self._rows.extend_to(self._options.rows_per_parameter * max(in_all.size / outputs, least))
            fit = fit_to_rows(
                in_all,
                self._rows,
                damping=self._options.near_damping,
                enough=self._rows.acceptable_misfit(),
                on_step=self.on_step,
            )
            self._best.keep(fit)
            stage.figures.update(rows=len(self._rows), steps=len(fit.history) - 1, misfit=fit.misfit)
        if not self._best.is_explained:
            raise GaveUp(SlicedReason.NOT_EXPLAINED, misfit=fit.misfit)

    def _in_all_inputs(self, model: NetworkParameters, outside: Array) -> NetworkParameters:
        """Return ``model`` of the slice with its components along the directions outside."""
        frame = self._slice.frame
        basis = np.hstack([frame / np.einsum("ij,ij->j", frame, frame), self._slice.outside])
        incoming = basis @ np.vstack([model.weights[0], outside[:, : model.width]])
        if model.skip is None:
            return replace(model, weights=(incoming, model.weights[1]))
        skip = basis @ np.vstack([model.skip, outside[:, model.width :]])
        return replace(model, weights=(incoming, model.weights[1]), skip=skip)


def components_outside(
    model: NetworkParameters,
    on_slice: SliceQueries,
    noise: Noise,
    rng: np.random.Generator,
    options: SlicedOptions,
    tell: Callable[[int, int | None, str], None],
) -> Array:
    """Return the components (D - d, m) of all weights along the directions outside, those of a skip behind.

    Equations are written behind the link, each divided by its error:
    z(y_i, t q_j) = V^T g(W^T y_i + b + t u_j) + c + t s_j.
    """
    outputs = model.weights[1].shape[1]
    unknowns = model.width + (0 if model.skip is None else outputs)
    count = int(np.ceil(options.sites_per_unknown * unknowns / outputs)) + options.spare_sites
    beside = _Beside(model, on_slice, _sites(model, count, rng, options), noise, options)
    step, every = options.move * float(np.sqrt(len(on_slice.frame))), np.arange(on_slice.outside.shape[1])
    found, left = beside.solve(every, step, np.zeros((len(every), unknowns)), tell)
    lost = np.flatnonzero(left > options.lost * max(1.0, float(np.median(left))))
    if len(lost):  # too far for Gauss-Newton: a shorter move shows where the longer one leads
        near, _ = beside.solve(lost, options.shorter * step, np.zeros((len(lost), unknowns)), tell)
        found[lost], left[lost] = beside.solve(lost, step, near, tell)
    return found


def _sites(model: NetworkParameters, count: int, rng: np.random.Generator, options: SlicedOptions) -> Array:
    """Return ``count`` random sites (n, d), and more until every unit acts at some, wherever a move leads."""
    candidates = rng.standard_normal((options.candidates * count, len(model.weights[0])))
    before = candidates @ model.weights[0] + model.biases[0]
    reach = options.reach * options.move * np.linalg.norm(model.weights[0], axis=0)
    slopes = np.stack([model.activation.jet(before + shift, 1)[1] for shift in (-reach, 0.0, reach)])
    acting = np.abs(slopes).min(axis=0) ** 2
    acting /= np.maximum(acting.max(axis=0), np.finfo(np.float64).tiny)
    chosen = list(range(count))
    while len(chosen) < len(candidates):
        total = acting[chosen].sum(axis=0)
        weakest = int(np.argmin(total))
        if total[weakest] >= options.acting_sites:
            break
        rest = np.setdiff1d(np.arange(len(candidates)), chosen)
        chosen.append(int(rest[np.argmax(acting[rest, weakest])]))
    return np.asarray(candidates[chosen])


class _Beside:
    """The equations along directions outside: answers at a few sites moved along each of them."""

    def __init__(
        self,
        model: NetworkParameters,
        on_slice: SliceQueries,
        sites: Array,
        noise: Noise,
        options: SlicedOptions,
    ) -> None:
        self._model, self._slice, self._sites = model, on_slice, sites
        self._noise, self._options = noise, options
        self._before = sites @ model.weights[0] + model.biases[0]
        self._offset = model.biases[1] + (0.0 if model.skip is None else sites @ model.skip)

    def solve(
        self, chosen: IntArray, step: float, start: Array, tell: Callable[[int, int | None, str], None]
    ) -> tuple[Array, Array]:
        """Return the components (k, unknowns) along ``chosen`` directions, and what they leave (k,).

        What is left is measured in standard deviations of an answer.
        """
        wanted, weights = self._equations(chosen, step, tell)
        solved = [self._descend(*each, step) for each in zip(start, wanted, weights, strict=True)]
        return np.stack([found for found, _ in solved]), np.array([left for _, left in solved])

    def _equations(
        self, chosen: IntArray, step: float, tell: Callable[[int, int | None, str], None]
    ) -> tuple[Array, Array]:
        """Return V^T g (k, n, K) behind the link, and one over its errors."""
        model, noise, outputs = self._model, self._noise, self._model.weights[1].shape[1]
        link, values, errors = link_of(model), [], []
        for done, site in enumerate(self._sites):
            check()
            answers = self._slice.ask_beside(site, step, chosen)
            reference = answers.shape[1] - 1 if model.is_softmax else None
            seen, error = link.contrasts(answers, noise.sigma_per_output, noise.number_format, reference)
            values.append(seen[:, :outputs])
            errors.append(error[:, :outputs])
            tell(done + 1, len(self._sites), "sites")
        return np.stack(values, axis=1) - self._offset, 1 / np.stack(errors, axis=1)

    def _descend(self, here: Array, wanted: Array, weights: Array, step: float) -> tuple[Array, float]:
        """Return what moves V^T g(z) nearest to ``wanted`` (n, K), by Gauss-Newton, and the misfit."""
        check()
        left = self._left(here, wanted, weights, step)
        for _ in range(self._options.steps):
            move = solve_near(self._jacobian(here, weights, step), left)
            for share in (1.0, 0.5, 0.1):
                there = here + share * move
                rest = self._left(there, wanted, weights, step)
                if rest @ rest < left @ left:
                    break
            else:
                break
            change = float(np.linalg.norm(there - here))
            here, left = there, rest
            if change <= self._options.settled * float(np.linalg.norm(here)):
                break
        return here, float(np.sqrt(np.mean(left**2)))

    def _left(self, unknowns: Array, wanted: Array, weights: Array, step: float) -> Array:
        model = self._model
        values = model.activation(self._before + step * unknowns[: model.width]) @ model.weights[1]
        if model.skip is not None:
            values = values + step * unknowns[model.width :]
        return np.asarray((weights * (wanted - values)).reshape(-1))

    def _jacobian(self, unknowns: Array, weights: Array, step: float) -> Array:
        """(n K, unknowns)"""
        model = self._model
        slopes = step * model.activation.jet(self._before + step * unknowns[: model.width], 1)[1]
        columns = np.einsum("nm,mk->nkm", slopes, model.weights[1])
        if model.skip is not None:
            own = np.tile(step * np.eye(columns.shape[1]), (len(columns), 1, 1))
            columns = np.concatenate([columns, own], axis=2)
        return np.asarray((weights[:, :, None] * columns).reshape(-1, len(unknowns)))
