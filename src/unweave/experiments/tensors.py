"""Bias-free networks y = sum_i v_i g(w_i . x), v_i = +-1, from Gaussian samples: [guarantees]."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
import scipy.linalg
from scipy.optimize import linear_sum_assignment

from unweave.arrays import Array, IntArray
from unweave.experiments.experiment import (
    DERIVED,
    Figure,
    Progress,
    at_most,
    close,
    equal,
    printed,
    shown,
    vanishes,
)
from unweave.networks.comparison import compare
from unweave.networks.network import Network
from unweave.tensor_start import (
    DescentOptions,
    empirical_hessian,
    gradient_descent,
    local_convexity,
    recover_from_tensors,
    rho,
    tensor_start,
)
from unweave.tensor_start.initialization import iterated_frame


def run_activation_table(seed: int, progress: Progress) -> Iterator[Figure]:
    """The table of rho(sigma) in [guarantees].

    rho(sigma) > 0 is property P2, under which the loss is strongly convex around the truth. At sigma = 0.1,
    1, 10 by quadrature. Two rows of the table are corrected: the squared ReLU is printed as 0.27 sigma, but
    its derivative is homogeneous of degree one, so that rho grows like sigma^2; the quadratic is printed as
    0, which is one of the three terms whose minimum rho is. Nothing is random: every seed gives the same.
    """
    sigmas = (0.1, 1.0, 10.0)
    printed_values = {
        "relu": ("0.091", "0.091", "0.091"),
        "leaky_relu": ("0.089", "0.089", "0.089"),
        "tanh": ("1.8e-4", "4.9e-2", "5.1e-5"),
        "erf": ("1.9e-4", "5.2e-2", "2.5e-5"),
    }
    # Activation to rho / sigma^2.
    corrected = {
        "squared_relu": (4 / math.pi - 1, "corrected: printed as 0.27 sigma, the same at sigma = 1 only"),
        "quadratic": (-4.0, "corrected: printed as 0; P2 fails either way"),
    }
    # The table's erf has the derivative exp(-z^2), the usual one 2/sqrt(pi) times that; rho is quadratic.
    erf_scale = math.pi / 4
    progress("quadrature")
    for name, values in printed_values.items():
        scale, note = (erf_scale, "erf with derivative exp(-z^2)") if name == "erf" else (1.0, "")
        for sigma, value in zip(sigmas, values, strict=True):
            yield printed(f"rho({sigma:g}), {name}", value, scale * rho(name, sigma).value, note)
    for name, (factor, note) in corrected.items():
        for sigma in sigmas:
            yield close(f"rho({sigma:g}), {name}", factor * sigma**2, rho(name, sigma).value, 1e-9, note)
    for sigma in sigmas:
        yield vanishes(f"rho({sigma:g}), identity", rho("identity", sigma).value, 1e-12)


def run_tensor_initialisation(seed: int, progress: Progress) -> Iterator[Figure]:
    """Tensor initialization and descent ([guarantees]).

    Gaussian samples of a bias-free network; moments give v exactly and W nearly, a local method the rest. The
    printed third moment vanishes for ReLU, whose fourth takes its place, and leaves the sign of v open, which
    the second one tells. One network per setting.
    """
    # Activation, inputs d, units k, samples.
    settings = (("squared_relu", 10, 5, 10_000), ("relu", 10, 5, 30_000), ("squared_relu", 20, 5, 10_000))
    moment_notes = {
        "relu": "corrected: from the fourth moment, as ReLU has no third",
        "squared_relu": "corrected: the sign of v from the second moment",
    }
    for activation, inputs, width, samples in settings:
        cell = f"{activation}, d = {inputs}, k = {width}"
        progress(cell)
        truth = plant(np.random.default_rng([seed, inputs]), inputs, width, activation)
        x = np.random.default_rng([seed, inputs, 1]).standard_normal((samples, inputs))
        found = recover_from_tensors(x, truth(x)[:, 0], width, activation)
        order, errors = matching(truth, found.start.network)
        signs = found.start.network.weights[1][order, 0] == truth.weights[1][:, 0]
        yield equal(f"{cell}: v right", width, int(signs.sum()), moment_notes[activation])
        yield shown(f"{cell}: relative error of the start, median", "small", float(np.median(errors)))
        error = compare(truth, found.network).parameter_error
        yield vanishes(f"{cell}: parameter error at the end", error, 1e-10)


def run_linear_time_start(seed: int, progress: Progress) -> Iterator[Figure]:
    """Time linear in the number of inputs ([guarantees]).

    The leading directions of the second moment by multiplications with the samples, the matrix never formed:
    n d k flops a round. They span what the eigenvectors of the whole matrix span, and the start that follows
    has v right. Squared ReLU, 3 units; samples grow like d, as the theorem asks.
    """
    width, per_input = 3, 200
    for inputs in (50, 200):
        samples = per_input * inputs
        cell = f"d = {inputs}"
        progress(cell)
        truth = plant(np.random.default_rng([seed, inputs]), inputs, width, "squared_relu")
        x = np.random.default_rng([seed, inputs, 1]).standard_normal((samples, inputs))
        y = truth(x)[:, 0]
        began = time.process_time()
        frame = iterated_frame(x, y, width, np.random.default_rng(seed))
        seconds = time.process_time() - began
        rest = y - y.mean() - x @ (x.T @ (y - y.mean()) / samples)
        values, vectors = np.linalg.eigh((x * rest[:, None]).T @ x / samples - rest.mean() * np.eye(inputs))
        wanted = vectors[:, np.argsort(-np.abs(values))[:width]]
        sine = float(np.linalg.norm(wanted - frame @ (frame.T @ wanted), 2))
        yield at_most(f"{cell}: sine of the largest angle to the dense matrix", 1e-3, sine, origin=DERIVED)
        start = tensor_start(x, y, width, "squared_relu", np.random.default_rng(seed)).network
        order, errors = matching(truth, start)
        right = int((start.weights[1][order, 0] == truth.weights[1][:, 0]).sum())
        yield equal(f"{cell}: v right", width, right)
        yield at_most(
            f"{cell}: relative error of the start, largest", 0.5, float(max(errors)), origin=DERIVED
        )
        yield shown(f"{cell}: CPU seconds of the frame", "linear in d", seconds)


_SLOW_ERROR, _SLOW_STEPS = 1e-7, 50  # length of the slowest error, and steps over which it is watched


def run_descent_rate(seed: int, progress: Progress) -> Iterator[Figure]:
    """The rate of gradient descent ([guarantees]).

    Near the truth a step of length 1/M0 leaves at most 1 - m0/M0 of |W - W*|^2, m0 and M0 the extreme
    eigenvalues of the Hessian there. Measured late in a descent from the tensor start, with the Hessian of
    the same samples. The square (1 - m0/M0)^2 holds too, and is what one sees from a start that is off along
    the eigenvector of m0. One network per activation.
    """
    # Activation, inputs d, units k, samples of the start.
    settings = (("squared_relu", 10, 5, 30_000), ("relu", 10, 5, 30_000))
    rows_per_parameter = 20
    # Errors between which the rate is measured.
    late_errors = (1e-6, 1e-10)
    most_steps = 30_000
    sharper = "corrected: the printed bound is the square root of what holds"
    for activation, inputs, width, samples in settings:
        cell = f"{activation}, d = {inputs}, k = {width}"
        progress(cell)
        truth = plant(np.random.default_rng([seed, 2]), inputs, width, activation)
        x = np.random.default_rng([seed, 3]).standard_normal((samples, inputs))
        y = truth(x)[:, 0]
        start = tensor_start(x, y, width, activation).network
        order, _ = matching(truth, start)
        rows = slice(0, rows_per_parameter * inputs * width)
        reached = errors_of_descent(start, x[rows], y[rows], truth.weights[0], order, most_steps)
        expected = local_convexity(truth, x[rows])
        yield at_most(
            f"{cell}: error at the end",
            late_errors[1],
            float(reached[-1]),
            "so small that descent has arrived",
        )
        if reached.min() >= late_errors[1]:
            continue
        early, late = (int(np.argmax(reached < level)) for level in late_errors)
        left = float((reached[late] / reached[early]) ** (2 / (late - early)))
        yield at_most(f"{cell}: left of |W - W*|^2 by a step", 1 - expected.smallest / expected.largest, left)
        left = slowest(truth, x[rows], y[rows])
        # What a step removes, so that a rate near one cannot hide a wrong one.
        removed = 1 - expected.rate
        yield close(f"{cell}: removed by a step, slowest direction", removed, 1 - left, 1e-4, sharper)


def slowest(truth: Network, x: Array, y: Array) -> float:
    """Share of |W - W*|^2 that a step leaves if W - W* is the eigenvector of m0."""
    weights, outer = truth.weights
    vector = scipy.linalg.eigh(empirical_hessian(truth, x), subset_by_index=[0, 0])[1]
    moved = weights + _SLOW_ERROR * vector.reshape(weights.T.shape).T  # parameters come unit by unit
    start = Network([moved, outer], truth.biases, truth.activations)
    errors = errors_of_descent(start, x, y, weights, np.arange(weights.shape[1]), _SLOW_STEPS)
    return float((errors[-1] / errors[0]) ** (2 / (len(errors) - 1)))


def errors_of_descent(start: Network, x: Array, y: Array, truth: Array, order: IntArray, steps: int) -> Array:
    """|W - W*|_F (steps + 1,) of every step, units of W taken in ``order``."""
    errors: list[float] = []
    options = DescentOptions(steps=steps, tolerance=1e-12)

    def on_step(_: int, weights: Array) -> None:
        errors.append(float(np.linalg.norm(weights[:, order] - truth)))

    gradient_descent(start, x, y, options, on_step=on_step)
    return np.array(errors)


def run_flat_directions(seed: int, progress: Progress) -> Iterator[Figure]:
    """Two activations without local strong convexity ([guarantees]).

    With W* = I and v = 1: for g(z) = z the weights of two units may move against each other unseen, for g(z)
    = z^2 they may rotate. The Hessian then has a zero eigenvalue of known multiplicity, d^2 - d and d (d - 1)
    / 2; for squared ReLU and ReLU it has none. The Hessian at the truth, on Gaussian samples.
    """
    inputs, samples = 6, 20_000
    # Activation to the multiplicity of the eigenvalue zero.
    multiplicities = {
        "identity": inputs**2 - inputs,
        "quadratic": inputs * (inputs - 1) // 2,
        "relu": 0,
        "squared_relu": 0,
    }
    zero = 1e-12  # relative to the largest eigenvalue: rounding
    progress("Hessians")
    x = np.random.default_rng(seed).standard_normal((samples, inputs))
    for name, flat in multiplicities.items():
        weights, biases = [np.eye(inputs), np.ones((inputs, 1))], [np.zeros(inputs), np.zeros(1)]
        network = Network(weights, biases, [name, "identity"])
        values = scipy.linalg.eigvalsh(empirical_hessian(network, x))
        yield equal(f"{name}: flat directions", flat, int((values <= zero * values[-1]).sum()))


def plant(rng: np.random.Generator, inputs: int, width: int, activation: str) -> Network:
    """Nearly orthogonal units of lengths 0.8 to 1.3."""
    weights = np.linalg.qr(rng.standard_normal((inputs, width)))[0]
    weights = (weights + 0.15 * rng.standard_normal((inputs, width))) * rng.uniform(0.8, 1.3, width)
    outer = rng.choice([-1.0, 1.0], (width, 1))
    return Network([weights, outer], [np.zeros(width), np.zeros(1)], [activation, "identity"])


def matching(truth: Network, found: Network) -> tuple[IntArray, Array]:
    """Order (k,) of the found units, and the relative error (k,) of each."""
    a, b = truth.weights[0], found.weights[0]
    far = np.linalg.norm(a[:, :, None] - b[:, None, :], axis=0) / np.linalg.norm(a, axis=0)[:, None]
    rows, order = linear_sum_assignment(far)
    return order, np.asarray(far[rows, order])
