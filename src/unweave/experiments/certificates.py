"""Theorems with known constants: [mathematics] chapters 4 to 6."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.certify import (
    draw_mixture,
    draw_noise,
    margin_pac_bayes_bound,
    mixture_resilience_sigma,
    nice_margins,
    noise_resilience_sigma,
    pac_bayes_bound,
    shrunk_posterior,
)
from unweave.certify.perturbation import Form
from unweave.experiments.experiment import Figure, Progress, at_most, close, equal, shown, vanishes
from unweave.networks.network import Network
from unweave.optimize.first_order import State, descend
from unweave.optimize.first_order_steps import CertifiedStep, StepKind, certified_step
from unweave.sparse_coding import (
    SparseModel,
    certify_support_recovery,
    near_dictionary,
    spikes_and_waves,
    support_rates,
)


def run_support_recovery(seed: int, progress: Progress) -> Iterator[Figure]:
    """[mathematics] Thm. 4.3.1: one ReLU layer recovers the support of sparse codes.

    y = A x with unit columns of coherence mu, k values in [8, 10]; an encoder whose rows are within delta of
    the columns. Where the theorem's condition holds, its bias finds every support; so does every bias in the
    interval of the exact certificate. Spikes and waves ([I | Hadamard], mu = 1/sqrt(n)), 2000 codes each.
    Fresh codes per setting.
    """
    # Inputs n, sparsity k, distance delta.
    settings = ((256, 2, 0.0), (1024, 3, 0.0), (1024, 3, 0.01))
    low, high, code_count = 8.0, 10.0, 2000
    union_note = "corrected: the printed probability is per coordinate, not for all"
    for inputs, sparsity, distance in settings:
        cell = f"n = {inputs}, k = {sparsity}, delta = {distance:g}"
        progress(cell)
        rng = np.random.default_rng([seed, inputs, sparsity])
        model = SparseModel(spikes_and_waves(inputs), sparsity, low, high)
        encoder = near_dictionary(model.dictionary, distance, rng).T
        found = certify_support_recovery(encoder, model.dictionary, sparsity, low, high)
        codes = model.codes(code_count, rng)
        signals = model.signals(codes)
        yield equal(f"{cell}: condition of the theorem holds", True, found.theorem_holds)
        printed_bias = (low + high) * sparsity * (found.distance + 1 / math.sqrt(inputs))
        yield close(f"{cell}: theorem's bias, 2 m1 k (delta + mu)", printed_bias, found.theorem_bias, 1e-12)
        rates = support_rates(encoder, signals, codes, found.theorem_bias)
        yield equal(f"{cell}: supports found, theorem's bias", 1.0, rates.exact, union_note)
        bias = found.theorem_bias if found.bias is None else found.bias
        rates = support_rates(encoder, signals, codes, bias)
        yield equal(f"{cell}: certified", True, found.certified)
        yield equal(f"{cell}: supports found, certified bias", 1.0, rates.exact)


_MAX_GRADIENTS = 60_000  # gradients, above every certified T here


def bowl(x: Array) -> float:
    """f"""
    return float(np.sum(x**2 / (1 + x**2)))


def bowl_gradient(x: Array) -> Array:
    """grad f"""
    return np.asarray(2 * x / (1 + x**2) ** 2)


def run_certified_steps(seed: int, progress: Progress) -> Iterator[Figure]:
    """[mathematics] Thms. 5.4.1 and 5.4.3: steps for RMSProp and ADAM.

    f(x) = sum x_i^2/(1 + x_i^2) in 10 variables, L = 2. With the published steps f never rises and a gradient
    of norm eps is met within T steps. The T of ADAM is corrected: the printed 9 L sigma^2 Delta/eps^6 has
    lost a square. One Gaussian start.
    """
    dimension, smoothness = 10, 2.0
    largest_gradient = math.sqrt(dimension) * 3 * math.sqrt(3) / 8
    # Method, eps, xi.
    settings: tuple[tuple[StepKind, float, float | None], ...] = (
        ("rmsprop", 0.01, 1.0),
        ("rmsprop", 0.01, 0.1),
        ("adam", 0.3, None),
    )
    corrected = "corrected: T = (9/2) L (eps + 2 sigma)^4 Delta/eps^6"
    start = np.random.default_rng(seed).standard_normal(dimension)
    for kind, accuracy, shift in settings:
        cell = f"{kind}, eps = {accuracy:g}" + ("" if shift is None else f", xi = {shift:g}")
        progress(cell)
        step = certified_step(
            kind, smoothness, largest_gradient, bowl(start), accuracy, shift=shift, sharper=False
        )
        yield vanishes(
            f"{cell}: first step beside the printed formula, relative",
            first_step_error(start, step, smoothness, largest_gradient, accuracy, shift),
            1e-12,
        )
        reached, rise = first_passage(start, step, accuracy)
        note = corrected if kind == "adam" else ""
        yield at_most(f"{cell}: steps", round(step.steps), reached, note=note)
        rule = "f never rises, up to rounding"
        yield at_most(f"{cell}: largest rise of f", 1e-15, rise, rule, published="none")


def first_step_error(
    start: Array, step: CertifiedStep, smoothness: float, sigma: float, accuracy: float, shift: float | None
) -> float:
    """Relative difference of the first step from the source's, written out once more."""
    method = step.method()
    gradient = bowl_gradient(start)
    taken = start - method.step(method.begin(start), gradient).x
    if shift is not None:  # RMSProp: alpha g / sqrt(v), v = (1 - beta2) (g^2 + xi)
        alpha = (1 - step.beta2) * shift / (smoothness * math.sqrt(sigma**2 + shift))
        wanted = alpha * gradient / np.sqrt((1 - step.beta2) * (gradient**2 + shift))
    else:  # ADAM: alpha_1 m / (sqrt(v) + xi), m = (1 - beta1) g, v = (1 - beta2) g^2
        beta1, edge = accuracy / (accuracy + 2 * sigma), accuracy + 2 * sigma
        alpha = float(gradient @ gradient) / (smoothness * (1 - beta1) ** 2) * 4 * accuracy / (3 * edge**2)
        scale = math.sqrt(1 - step.beta2) * np.abs(gradient) + 2 * sigma
        wanted = alpha * (1 - beta1) * gradient / scale
    return float(np.linalg.norm(taken - wanted) / np.linalg.norm(wanted))


def first_passage(start: Array, step: CertifiedStep, accuracy: float) -> tuple[float, float]:
    """Steps until |grad f| <= accuracy, infinite if too many, and the largest rise of f in one of them."""
    values: list[float] = []

    def on_step(state: State, _: float) -> None:
        values.append(bowl(state.x))

    found = descend(bowl_gradient, start, step.method(), _MAX_GRADIENTS, accuracy, on_step)
    return math.inf if found.reached is None else found.reached, float(np.diff(values).max())


def run_noise_resilience(seed: int, progress: Progress) -> Iterator[Figure]:
    """[mathematics] Thm. 6.2.1: noise that a network's parameters bear.

    With Gaussian noise of the theorem's deviation on all weights the answers move by more than the margin
    with probability at most 1/2. The proof takes all layers to have one spectral norm "without loss of
    generality"; the noise does not rescale with the layers, so that for layers scaled by 100 and 1/100 the
    form that this library proves is checked instead. Two layers of 30 units, inputs of norm one.
    """
    units, margin, failure, draws, points = 30, 0.5, 0.5, 100, 500
    # Form of the deviation, and c: layers are scaled by c and 1/c.
    cases: tuple[tuple[Form, float], ...] = (
        ("published", 1.0),
        ("closed", 1.0),
        ("closed", 100.0),
        ("recursion", 1.0),
        ("recursion", 100.0),
    )
    names = {"published": "printed form", "closed": "form per layer", "recursion": "recursion"}
    for form, factor in cases:
        cell = f"{names[form]}, layers scaled by {factor:g} and {1 / factor:g}"
        progress(cell)
        rng = np.random.default_rng(seed)
        first, second = rng.standard_normal((2, units, units))
        weights = [factor * first / np.linalg.norm(first, 2), second / np.linalg.norm(second, 2) / factor]
        net = Network(weights, [np.zeros(units)] * 2, ["relu", "identity"])
        x = rng.standard_normal((points, units))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        sigma = noise_resilience_sigma(net, 1.0, margin, failure, form)
        if form == "published":
            mean = math.sqrt(float(np.prod([np.linalg.norm(w, 2) for w in weights])))
            smallest = min(mean / 2, margin / (math.e * 2 * mean))
            wanted = smallest / math.sqrt(2 * units * math.log(4 * units / failure))
            yield close(f"{cell}: deviation, as printed", wanted, sigma, 1e-12)
        answers = net(x)
        moved = [np.linalg.norm(draw_noise(net, sigma, rng)(x) - answers, axis=1).max() for _ in range(draws)]
        exceeded = float(np.mean(np.array(moved) > margin))
        note = "" if form == "published" else "corrected: holds for layers of any norms"
        yield at_most(f"{cell}: draws beyond the margin", failure, exceeded, note=note)


def run_noisy_mixtures(seed: int, progress: Progress) -> Iterator[Figure]:
    """[mathematics] Thms. 6.1.1, 6.1.2 and 6.2.1: posteriors, and noise around one of several networks.

    Coins of 16 known risks with posteriors that follow 40 samples; the loss at margin 0 of a posterior
    conditioned on small moves, beside that at gamma/2; a mixture around four networks that answer alike,
    which leaves 2 gamma with probability delta at most. With unequal weights the printed deviation does not:
    two networks that are one function on the samples, the second with a long direction that none shows.
    """
    rng = np.random.default_rng(seed)
    progress("coins")
    risks, m, delta = np.linspace(0.3, 0.6, 16), 40, 0.2
    missed = []
    for _ in range(400):
        seen = rng.binomial(m, risks) / m
        q = np.exp(-50 * (seen - seen.min()))
        q /= q.sum()
        divergence = float(np.sum(q * np.log(np.maximum(16 * q, 1e-300))))
        excess = float(q @ risks) - pac_bayes_bound(float(q @ seen), divergence, m, delta)
        missed.append(excess > 0)
    yield at_most("coins: draws beyond the bound", delta, float(np.mean(missed)))
    yield close(
        "bound of Thm. 6.1.2, loss 0.1, KL 30, m = 1000, delta = 0.05",
        0.1 + math.sqrt((30 + math.log(3 * 1000 / 0.05)) / 999),
        margin_pac_bayes_bound(0.1, 30.0, 1000, 0.05),
        1e-12,
        origin="formula, L3375",
    )
    progress("a posterior that is shrunk")
    units, inputs = 12, 6
    center = plain_network([rng.standard_normal((inputs, units)), rng.standard_normal((units, 3))])
    x = rng.standard_normal((100, inputs))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    labels = np.argmax(center(x), axis=1)
    gamma = 2.0
    found = shrunk_posterior(center, lambda r: draw_noise(center, 0.04, r), x, gamma, 20, rng)
    largest = max(margin_share(other(x), labels, 0.0) for other in found.networks)
    half = margin_share(center(x), labels, gamma / 2)
    yield at_most("shrunk posterior: largest loss at margin 0", half, largest)
    progress("a mixture")
    forms: tuple[tuple[Form, str], ...] = (("published", "printed form"), ("recursion", "proved form"))
    cluster = [draw_noise(center, 0.02, rng) for _ in range(4)]
    margin, failure = 1.01 * nice_margins(center, cluster, x)[1], 0.1
    for form, name in forms:
        sigma = mixture_resilience_sigma(cluster, 1.0, margin, failure, None, form)
        moved = [largest_move(center, draw_mixture(cluster, sigma, rng), x) for _ in range(100)]
        exceeded = float(np.mean(np.array(moved) > 2 * margin))
        yield at_most(f"equal weights, {name}: draws beyond 2 gamma", failure, exceeded)
    progress("unequal weights")
    first, second = hidden_direction(rng)
    rows = np.concatenate([rng.standard_normal((50, 2)), np.zeros((50, 1))], axis=1)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    weights, failure, margin = (0.998, 0.002), 0.0005, 0.01
    for form, name in forms:
        sigma = mixture_resilience_sigma([first, second], 1.0, margin, failure, weights, form)
        parts = [
            np.mean([largest_move(one, draw_noise(one, sigma, rng), rows) > 2 * margin for _ in range(200)])
            for one in (first, second)
        ]
        beyond = float(np.dot(weights, parts))
        cell = f"unequal weights, {name}: probability beyond 2 gamma"
        if form == "published":
            note = "printed for all weights; a rare network may move by gamma/(k p)"
            yield shown(cell, failure, beyond, note)
        else:
            note = "corrected: every network must bear the noise by itself"
            yield at_most(cell, failure, beyond, note=note)


def plain_network(weights: list[Array]) -> Network:
    """ReLU layers without biases."""
    return Network(weights, [np.zeros(w.shape[1]) for w in weights], ["relu", "identity"])


def largest_move(one: Network, other: Network, x: Array) -> float:
    """Largest |f(x) - f'(x)|."""
    return float(np.linalg.norm(one(x) - other(x), axis=1).max())


def margin_share(answers: Array, labels: IntArray, margin: float) -> float:
    """Share of rows whose own answer is above the others by ``margin`` at most."""
    own = answers[np.arange(len(labels)), labels]
    others = np.where(np.arange(answers.shape[1]) == labels[:, None], -np.inf, answers).max(axis=1)
    return float(np.mean(own <= others + margin))


def hidden_direction(rng: np.random.Generator) -> tuple[Network, Network]:
    """Two networks 3-3-1 that agree where the third input is zero; the second answers it, at length 700."""
    turn = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    first, second = np.zeros((2, 3, 3))
    first[:2, :2] = second[:2, :2] = turn
    first[2, 2], second[2, 2] = 1.0, 700.0
    outer = np.array([[0.7], [0.7], [0.1]]), np.array([[0.7], [0.7], [700.0]])
    return plain_network([first, outer[0]]), plain_network([second, outer[1]])
