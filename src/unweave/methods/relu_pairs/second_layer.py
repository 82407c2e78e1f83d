"""The layers behind a first one that is known up to signs, as one hidden layer with known inputs.

Whatever the signs of the first layer's units z_i are, what the second layer reads is affine in

    phi(x) = (|z|, x)    or (|z|, z), where there are no more units than inputs (`features`),

so that the answers are those of one hidden layer of kinked units at inputs phi(x), which is fitted to rows
from anywhere. Nothing is followed, and nothing needs the precision of a normal: least squares over thousands
of rows averages errors out. What a unit of the second layer reads of |z_i| and of x then tells the signs of
the first layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_pairs.features import FirstUnits
from unweave.methods.shared.kinked.sample_fit import SampleFit, fit_samples
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.network import Network
from unweave.networks.signs import negative_slope, solve_signs, to_form, to_network
from unweave.numerics.sign_search import SignOptions
from unweave.numerics.variable_projection.search import SearchOptions


@dataclass(frozen=True, kw_only=True)
class SecondLayerOptions:
    """How the second layer is fitted, and what counts as read."""

    rows_per_parameter: float = 7.0
    """Rows of the fit, for every parameter of the second layer and output."""
    starts: int = 3
    """Random starts with widths that were told."""
    widths: tuple[float, ...] = (1.0, 1.6)
    """Widths that are tried without, in units of that of the first layer."""
    widths_again: tuple[float, ...] = (1.3, 2.0)
    """The same once signs are known, in units of what was seen before: weak units were left out."""
    repairs: int = 2
    """Stalls after which a start is given up."""
    coarse_floors: tuple[float, ...] = (3e-3, 1e-4)
    """Residuals, relative to the spread, of fits that tell the signs of the first layer; the second where the
    first leaves them open."""
    hopeless: float = 0.03
    """The same residual beyond which there are not two layers, or planes of the first are missing."""
    unread: float = 2e-3
    """What the second layer reads of a unit, relative to the most, up to which the unit is an accident."""
    told_apart: float = 2.0
    """Factor between misfits of two activations that tells which it is."""
    residuals: float = 10.0
    """The same in residuals of the fit."""
    sign_tolerance: float = 0.1
    """Relative misfit of the signs' equations; wrong signs leave more than one."""
    margin: float = 4.0
    """Factor beyond the rows that were asked up to which a unit that is always active stays so."""
    nothing: float = 1e-3
    """Singular value of an affine rest, relative to the largest one, that is error."""
    signs: SignOptions = field(default_factory=SignOptions)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two hidden layers and an affine output."""

    network: Network
    residual: float
    """Of the fit of the second layer, relative to the spread of the answers."""
    signs_solved: bool
    """Whether signs of both layers explain all of the affine parts."""
    signs_unique: bool


def rows_wanted(first: int, second: int, inputs: int, outputs: int, options: SecondLayerOptions) -> int:
    """Return the number of rows that a second layer of so many units is fitted to."""
    features = first + min(first, inputs)
    parameters = second * (features + 1 + outputs) + (features + 1) * outputs
    return int(options.rows_per_parameter * parameters / min(outputs, 4)) + 200


class Behind:
    """What lies behind a first layer, from values (n, K) at points (n, d)."""

    def __init__(
        self,
        points: Array,
        values: Array,
        width: int | None,
        rng: np.random.Generator,
        options: SecondLayerOptions,
        on_step: Callable[[int, float], None] | None = None,
    ) -> None:
        self._points, self._values, self._width = points, values, width
        self._rng, self._options, self._on_step = rng, options, on_step
        self._seen = 0

    def signed(self, layer: FirstUnits, names: tuple[str, ...]) -> tuple[FirstUnits, str, bool] | None:
        """Give the units of ``layer`` that are read their signs; name the activation, say if that is all.

        None if there is nothing behind them.
        """
        options = self._options
        found: tuple[FirstUnits, str, bool] | None = None
        for floor in options.coarse_floors:
            fit = self._grown(layer, floor, options.widths, layer.width)
            behind, residual = fit.network, fit.search.fit.residual
            if not behind.hidden or residual > options.hopeless:
                return found
            self._seen = behind.hidden[0]
            form = layer.absolute_form(behind.weights[0], behind.biases[0])
            # What a unit reads is known as well as it acts, and as many rows lie on either side of it.
            heights = layer.values(self._points) @ behind.weights[0] + behind.biases[0]
            active = (heights > 0).mean(axis=0)
            outgoing = np.linalg.norm(behind.weights[1], axis=1) * np.minimum(active, 1 - active)
            reads = (np.abs(form.heights) * outgoing).max(axis=1)
            form = form.keep(reads > max(options.unread, options.residuals * residual) * reads.max())
            form = replace(form, heights=form.heights * outgoing, slope=form.slope * outgoing)
            found = _with_signs(form, names, options)
            if found[2]:
                break
        return found

    def pair(self, known: FirstUnits, name: str, clear: bool, floor: float) -> Pair | None:
        """Fit the layers behind a signed one; None if there is nothing."""
        fit = self._grown(known, floor, self._options.widths_again, self._seen)
        if not fit.network.hidden:
            return None
        slope, options = negative_slope(name), self._options
        form = to_form(fit.network)
        solution = solve_signs(form, slope, options.sign_tolerance, options=options.signs)
        behind = to_network(form, solution, name)
        if behind.skip is not None:
            behind = _with_always_active(behind, known.values(self._points), options)
        network = Network(
            [known.weights, *behind.weights], [known.biases, *behind.biases], [name, name, "identity"]
        )
        unique = solution.unique and solution.solved
        return Pair(network, fit.search.fit.residual, clear and solution.solved, unique)

    def _grown(self, known: FirstUnits, floor: float, factors: tuple[float, ...], guess: int) -> SampleFit:
        """Fit as many units as were told, or as were guessed and, where these are too few, more."""
        if self._width is not None:
            return self._fit(known, floor, self._width, self._options.starts)
        fits = []
        for factor in factors:
            fits.append(self._fit(known, floor, int(np.ceil(factor * guess)), 1))
            if fits[-1].search.fit.residual <= floor:
                break
        return min(fits, key=lambda fit: fit.search.fit.residual)

    def _fit(self, known: FirstUnits, floor: float, width: int, starts: int) -> SampleFit:
        options = self._options
        search = SearchOptions(
            starts=starts, repairs=options.repairs, rows_per_parameter=options.rows_per_parameter
        )
        features = known.values(self._points)
        name = None if known.slope is None else "leaky_relu" if known.slope else "relu"
        fit = fit_samples(
            features,
            self._values,
            width,
            name,
            floor=floor,
            rng=self._rng,
            options=search,
            on_step=self._on_step,
        )
        if fit.search.interrupted:
            raise KeyboardInterrupt
        return fit


def _with_signs(
    form: AbsoluteForm, names: tuple[str, ...], options: SecondLayerOptions
) -> tuple[FirstUnits, str, bool]:
    """Return a first layer with the signs that explain ``form``, its activation, and if they are clear."""
    solutions = [
        solve_signs(form, negative_slope(name), options.sign_tolerance, options=options.signs)
        for name in names
    ]
    best = min(range(len(names)), key=lambda i: (not solutions[i].solved, solutions[i].residual))
    solution, name = solutions[best], names[best]
    signs = solution.signs
    signed = FirstUnits(form.weights * signs, form.biases * signs, negative_slope(name))
    others = [each.residual for each in solutions if each is not solution]
    apart = all(residual >= options.told_apart * solution.residual for residual in others)
    return signed, name, solution.solved and solution.unique and apart


def _with_always_active(network: Network, states: Array, options: SecondLayerOptions) -> Network:
    """Return the network with units that are active at all states (n, m) in place of its skip matrix."""
    assert network.skip is not None
    left, sizes, right = np.linalg.svd(network.skip, full_matrices=False)
    count = int((sizes > options.nothing * sizes[0]).sum())
    columns, outer = left[:, :count], sizes[:count, None] * right[:count]
    bias = options.margin * np.abs(states @ columns).max(axis=0) + 1
    (incoming, outgoing), (biases, offset) = network.weights, network.biases
    return Network(
        [np.hstack([incoming, columns]), np.vstack([outgoing, outer])],
        [np.append(biases, bias), offset - bias @ outer],
        network.activations,
    )
