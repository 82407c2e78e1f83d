"""The completion: fit scales and shifts of the reparametrized network to answers ([identification] (4.66)).

    minimize  sum_i | f(x_i) - f~(x_i; L, R, tau) |^2,      x_i ~ N(0, I),

from L = R = I, tau = 0. The source does this by stochastic gradients; Adam with a falling rate and
Levenberg-Marquardt reach the same minimum sooner. All of them stop at the error of the entangled weights,
which the parametrization keeps fixed; only with exact ones do they go to rounding.

There are L directions along which the function does not change, (L_l, R_l, L_{l+1}) -> (c L_l, R_l / c,
L_{l+1} / c), so Levenberg-Marquardt relies on its damping there.

Without training, one Hessian and one gradient at x* give scales and shifts in closed form, which is not part
of the source. Let v be a unit entangled direction of hidden layer l, n its true length, H_k = sum s_kv v v^T
the least-squares expansion of the outputs' Hessians at x*, and p_kv the coordinate of grad f_k on v in V~^l.
Then

    s_kv = n^2 (d f_k / d y) g''(z),    p_kv = n (d f_k / d y) g'(z),    so  s_kv / p_kv = n g''(z) / g'(z)

for every output k: the ratio gives z (tanh: g''/g' = -2 tanh z), hence the shift, layer by layer,

    L_{l+1} = 1 / g'(z^l),   R_l = n_l,   tau^l = z^l - (W^l)^T y^{l-1}(x*).

Hidden weights must have unit length (that fixes n_l); the output layer's lengths follow from the gradients,
n_k = |grad f_k| / g_L'(z_k), z^L = g_L^{-1}(f(x*)). Signs of directions come out as a network that is the
same function for activations with g(-z) = c - g(z). The error is that of the entangled weights, as after
training.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput, OutOfTime
from unweave.networks.activations import Activation, get_activation
from unweave.numerics.least_squares import (
    FormedJacobian,
    LevenbergMarquardtOptions,
    Linearisation,
    levenberg_marquardt,
)
from unweave.published.deep.options import PublishedDeepOptions
from unweave.published.deep.reparametrization import (
    DiagonalParameters,
    Reparametrisation,
    forward,
    gradient,
    jacobian,
)
from unweave.subspace.symmetric import symmetric_packing

Clock = Callable[[], float]

_LEARNING_RATES = {"sgd": 0.05, "adam": 0.01}  # Adam's falls to zero along a cosine over the time or steps
_ADAM_BETA1, _ADAM_BETA2, _ADAM_SHIFT = 0.9, 0.999, 1e-8  # the customary values
_RMS_ROUNDING = 1e-15  # root mean square residual over the answers: a smaller one is rounding
_LARGEST_RATIO = 1 - 1e-12  # ratios and answers are clipped to it, inside the open ranges of the inverses

_RATIO_INVERSES: dict[str, Callable[[Array], Array]] = {
    "tanh": lambda ratio: -np.arctanh(np.clip(ratio / 2, -_LARGEST_RATIO, _LARGEST_RATIO)),
    "sigmoid": lambda ratio: -2 * np.arctanh(np.clip(ratio, -_LARGEST_RATIO, _LARGEST_RATIO)),
    "erf": lambda ratio: -ratio / 2,
}
"""z from g''(z) / g'(z), by activation."""

OUTPUT_RANGES = {
    "identity": (-np.inf, np.inf),
    "tanh": (-_LARGEST_RATIO, _LARGEST_RATIO),
    "sigmoid": (1 - _LARGEST_RATIO, _LARGEST_RATIO),
    "erf": (-_LARGEST_RATIO, _LARGEST_RATIO),
}
"""Answers that are inverted as they are, by output activation; others go to the nearer end."""


@dataclass(frozen=True, eq=False)
class CompletionFit:
    """End point of a completion."""

    parameters: DiagonalParameters
    history: tuple[float, ...]
    """Root mean square residual over all training answers: at the start, then after every epoch or step."""
    steps: int
    """Gradient steps, or accepted Levenberg-Marquardt steps."""
    seconds: float


def training_count(model: Reparametrisation, options: PublishedDeepOptions) -> int:
    """Number of training inputs that the options ask for."""
    if options.training_samples is not None:
        return options.training_samples
    if options.completion in _LEARNING_RATES:
        return sum(model.widths[1:]) * model.widths[0] ** 2
    return max(200, -(-4 * model.n_parameters // model.widths[-1]))


def complete(
    model: Reparametrisation,
    points: Array,
    answers: Array,
    rng: np.random.Generator,
    options: PublishedDeepOptions | None = None,
    start: DiagonalParameters | None = None,
    clock: Clock = time.perf_counter,
) -> CompletionFit:
    """Fit the free numbers to ``answers`` (n, K) at ``points`` (n, D) by the method in ``options``."""
    options = options or PublishedDeepOptions()
    start = start or model.identity()
    if options.completion == "levenberg-marquardt":
        return complete_by_levenberg_marquardt(model, points, answers, start, options, clock)
    if options.completion in _LEARNING_RATES:
        return complete_by_stochastic_gradients(model, points, answers, start, rng, options, clock)
    raise InvalidInput(
        f"completion must be 'levenberg-marquardt', 'sgd' or 'adam' to be fitted. Got {options.completion!r} "
        "instead. The closed form is `complete_in_closed_form`."
    )


def complete_by_levenberg_marquardt(
    model: Reparametrisation,
    points: Array,
    answers: Array,
    start: DiagonalParameters,
    options: PublishedDeepOptions,
    clock: Clock = time.perf_counter,
) -> CompletionFit:
    """Second-order fit: O(n K P^2) flops per step."""
    began = clock()
    reached = [start.to_vector()]
    problem = _ReparametrisedFit(model, points, answers, reached)
    history: list[float] = []

    def on_step(steps: int, rms: float) -> None:
        history.append(rms)
        if clock() - began > options.seconds:
            raise OutOfTime

    first = float(np.sqrt(np.mean(problem.residual(reached[0]) ** 2)))
    limits = LevenbergMarquardtOptions(
        steps=options.max_steps or 100,
        damping=1e-2,
        floor=_RMS_ROUNDING * float(np.sqrt(np.mean(answers**2))),
    )
    try:
        vector = levenberg_marquardt(problem, reached[0], limits, on_step).vector
    except OutOfTime:
        vector = reached[-1]
    return CompletionFit(model.from_vector(vector), (first, *history), len(history), clock() - began)


def complete_by_stochastic_gradients(
    model: Reparametrisation,
    points: Array,
    answers: Array,
    start: DiagonalParameters,
    rng: np.random.Generator,
    options: PublishedDeepOptions,
    clock: Clock = time.perf_counter,
    on_epoch: Callable[[int, DiagonalParameters], None] | None = None,
) -> CompletionFit:
    """SGD or Adam on mini-batches of the mean over rows of |f - f~|^2, epoch by epoch.

    ``on_epoch`` is called with the steps taken and the parameters, at the start and after every epoch.
    """
    began = clock()
    vector = start.to_vector()
    adam = options.completion == "adam"
    rate = options.learning_rate or _LEARNING_RATES["adam" if adam else "sgd"]
    mean, square = np.zeros_like(vector), np.zeros_like(vector)
    history = [_rms(model, vector, points, answers)]
    steps, running = 0, True
    if on_epoch is not None:
        on_epoch(0, start)
    while running:
        order = rng.permutation(len(points))
        for first in range(0, max(len(points) - options.batch, 0) + 1, options.batch):
            spent = _spent(steps, clock() - began, options)
            if spent >= 1:
                running = False
                break
            batch = order[first : first + options.batch]
            slope = _batch_gradient(model, vector, points[batch], answers[batch])
            steps += 1
            if adam:
                mean = _ADAM_BETA1 * mean + (1 - _ADAM_BETA1) * slope
                square = _ADAM_BETA2 * square + (1 - _ADAM_BETA2) * slope**2
                unbiased = mean / (1 - _ADAM_BETA1**steps)
                size = np.sqrt(square / (1 - _ADAM_BETA2**steps)) + _ADAM_SHIFT
                vector = vector - rate * (1 + np.cos(np.pi * spent)) / 2 * unbiased / size
            else:
                vector = vector - rate * slope
        history.append(_rms(model, vector, points, answers))
        if on_epoch is not None:
            on_epoch(steps, model.from_vector(vector))
        running = running and np.isfinite(history[-1])
    return CompletionFit(model.from_vector(vector), tuple(history), steps, clock() - began)


def _spent(steps: int, seconds: float, options: PublishedDeepOptions) -> float:
    """Part of the allowed time or steps that is gone, whichever is more."""
    by_steps = steps / options.max_steps if options.max_steps else 0.0
    return max(seconds / options.seconds, by_steps)


def _batch_gradient(model: Reparametrisation, vector: Array, points: Array, answers: Array) -> Array:
    parameters = model.from_vector(vector)
    passed = forward(model, parameters, points)
    return gradient(model, parameters, passed, 2 * (passed.answers - answers) / len(points))


def _rms(model: Reparametrisation, vector: Array, points: Array, answers: Array) -> float:
    difference = forward(model, model.from_vector(vector), points).answers - answers
    return float(np.sqrt(np.mean(difference**2)))


class _ReparametrisedFit:
    """The least-squares problem; it remembers the last accepted point."""

    def __init__(self, model: Reparametrisation, points: Array, answers: Array, reached: list[Array]) -> None:
        self._model, self._points, self._answers, self._reached = model, points, answers, reached

    @property
    def n_equations(self) -> int:
        return int(self._answers.size)

    def residual(self, vector: Array) -> Array:
        passed = forward(self._model, self._model.from_vector(vector), self._points)
        return (self._answers - passed.answers).ravel()

    def linearise(self, vector: Array) -> Linearisation:
        self._reached[:] = [vector]
        parameters = self._model.from_vector(vector)
        passed = forward(self._model, parameters, self._points)
        return FormedJacobian(jacobian(self._model, parameters, passed).reshape(-1, len(vector)))


def complete_in_closed_form(
    model: Reparametrisation,
    layers: Sequence[Array],
    anchor: Array,
    values: Array,
    gradients: Array,
    hessians: Array,
) -> DiagonalParameters:
    """The free numbers of ``model`` from derivatives at ``anchor`` (D,).

    Args:
        layers: unit columns (D, m_l) per layer, those that ``model`` was made of.
        values, gradients, hessians: (K,), (K, D) and packed (K, p) at the anchor.
    """
    _require_known_activations(model)
    coefficients = rank_one_coefficients(layers, hessians, get_activation(model.activations[-1]).name)
    left, right, shifts = [np.ones(len(anchor))], [], []
    state, previous_right = anchor, np.ones(len(anchor))
    last = len(layers) - 1
    for layer, (directions, matrix) in enumerate(zip(layers, model.matrices, strict=True)):
        activation = get_activation(model.activations[layer])
        incoming = (left[layer] / previous_right)[:, None] * matrix  # W^l up to the lengths of its columns
        if layer < last:
            lengths = 1 / np.linalg.norm(incoming, axis=0)
            sensitivities = scipy.linalg.lstsq(directions, gradients.T, check_finite=False)[0]  # (m_l, K)
            ratio = np.sum(coefficients[layer] * sensitivities, axis=1) / np.sum(sensitivities**2, axis=1)
            argument = _RATIO_INVERSES[activation.name](ratio / lengths)
        else:
            argument = _output_argument(activation, values)
            lengths = np.linalg.norm(gradients, axis=1) / activation.jet(argument, 1)[1]
        right.append(lengths)
        shifts.append(argument - state @ (incoming * lengths))
        state, slope = activation.jet(argument, 1)
        if layer < last:
            left.append(1 / slope)
        previous_right = lengths
    return DiagonalParameters(tuple(left), tuple(right), tuple(shifts))


def rank_one_coefficients(
    layers: Sequence[Array], hessians: Array, output_activation: str
) -> tuple[Array, ...]:
    """(m_l, K) least-squares coefficients of packed Hessians (K, p) on the squares of all curved units."""
    curved = layers[:-1] if output_activation == "identity" else layers
    packing = symmetric_packing(layers[0].shape[0])
    columns = np.concatenate([packing.outer(np.ascontiguousarray(layer.T)) for layer in curved]).T
    solution = scipy.linalg.lstsq(columns, hessians.T, check_finite=False)[0]
    return tuple(np.split(solution, np.cumsum([layer.shape[1] for layer in curved])[:-1]))


def _output_argument(activation: Activation, values: Array) -> Array:
    """z (K,) with g(z) = values."""
    assert activation.inverse is not None
    return activation.inverse(np.clip(values, *OUTPUT_RANGES[activation.name]))


def _require_known_activations(model: Reparametrisation) -> None:
    names = [get_activation(name).name for name in model.activations]
    if any(name not in _RATIO_INVERSES for name in names[:-1]) or names[-1] not in OUTPUT_RANGES:
        raise InvalidInput(
            f"hidden activations must be among {', '.join(_RATIO_INVERSES)} and the output's among "
            f"{', '.join(OUTPUT_RANGES)} for the closed form. Got {', '.join(names)} instead. "
            "Fit the completion instead."
        )
