"""Rules that can fail: a plausible bug in what an experiment measures must turn one of its figures red."""

from __future__ import annotations

import dataclasses
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from unweave.experiments import (
    EXPERIMENTS,
    certificates,
    circuits,
    constructions,
    deep,
    estimates,
    frames,
    gates,
    hermite,
    quadratic,
    risk_minima,
    robust,
    shallow,
    tensors,
)
from unweave.experiments.studies import (
    autoencoders,
    dictionaries,
    entangled,
    pac_bayes,
    teacher_student,
    transition,
    wide,
)
from unweave.gates.glm_tron import GlmTron
from unweave.networks.network import Network


def scaled(factor):
    """The function's result times a factor."""
    return lambda function: lambda *a, **k: factor * function(*a, **k)


def scaled_value(factor):
    """A constant times a factor."""
    return lambda value: factor * value


def with_field(**changes):
    """The function's result with fields changed by given functions."""

    def change(function):
        def changed(*a, **k):
            result = function(*a, **k)
            return dataclasses.replace(result, **{n: f(getattr(result, n)) for n, f in changes.items()})

        return changed

    return change


def without_a_unit(function):
    """The network that the function returns, with one unit of its last hidden layer missing."""

    def changed(*a, **k):
        network = function(*a, **k)
        if not network.hidden:
            return network
        weights = [*network.weights[:-2], network.weights[-2][:, 1:], network.weights[-1][1:]]
        biases = [*network.biases[:-2], network.biases[-2][1:], network.biases[-1]]
        return Network(weights, biases, network.activations, network.skip)

    return changed


def step_times(factor):
    """GLM-Tron whose steps are too long or too short."""
    end = GlmTron.end_pass

    def changed(self):
        self._sum = factor * self._sum
        return end(self)

    return changed


def method_with_step(factor):
    def change(function):
        def changed(*a, **k):
            found = function(*a, **k)
            step = found.step
            longer = (lambda t, g: factor * step(t, g)) if callable(step) else factor * step
            return dataclasses.replace(found, step=longer)

        return changed

    return change


def recovered(change):
    """A recovery whose network is changed."""

    def mutate(function):
        def changed(*a, **k):
            result = function(*a, **k)
            network = None if result.network is None else change(result.network)
            return SimpleNamespace(status=result.status, network=network)

        return changed

    return mutate


def off(network):
    """Weights that are a thousandth too long."""
    return Network([1.001 * w for w in network.weights], network.biases, network.activations, network.skip)


def found_directions(change):
    """Entangled weights of a published recovery, changed."""

    def mutate(function):
        def changed(*a, **k):
            result = function(*a, **k)
            entangled_weights = dataclasses.replace(
                result.entangled, directions=change(result.entangled.directions)
            )
            return dataclasses.replace(result, entangled=entangled_weights)

        return changed

    return mutate


def with_option(**changes):
    """A function of options, called with fields of its options changed."""

    def mutate(function):
        def changed(*a, **k):
            replaced = [
                dataclasses.replace(v, **{n: f(getattr(v, n)) for n, f in changes.items()})
                if dataclasses.is_dataclass(v) and all(hasattr(v, n) for n in changes)
                else v
                for v in a
            ]
            return function(*replaced, **k)

        return changed

    return mutate


def with_values(**changes):
    """A measurement whose values are changed."""

    def mutate(study):
        def measure(cell):
            values = dict(study.measure(cell))
            return {**values, **{name: change(values, cell) for name, change in changes.items()}}

        return dataclasses.replace(study, measure=measure)

    return mutate


def dropped_row(rows):
    return rows[1:]


def spurious(rows):
    extra = np.random.default_rng(0).standard_normal((1, rows.shape[1]))
    return np.concatenate([rows, extra / np.linalg.norm(extra)])


MUTATIONS = [
    ("glm-tron", "steps twice as long", (GlmTron, "end_pass"), lambda _: step_times(2.0)),
    ("glm-tron", "steps of the wrong sign", (GlmTron, "end_pass"), lambda _: step_times(-1.0)),
    ("benign-noise", "steps of the wrong sign", (GlmTron, "end_pass"), lambda _: step_times(-1.0)),
    (
        "benign-noise",
        "a pull that does not fall",
        (gates, "benign_noise"),
        with_field(effective_loss=lambda v: 2.0),
    ),
    ("certified-steps", "steps twice as long", (certificates, "certified_step"), method_with_step(2.0)),
    (
        "certified-steps",
        "steps thirty times as long",
        (certificates, "certified_step"),
        method_with_step(30.0),
    ),
    ("noise-resilience", "twice the deviation", (certificates, "noise_resilience_sigma"), scaled(2.0)),
    (
        "layer-rules",
        "gradients that grow along rays",
        (deep, "assign_by_rays"),
        lambda f: lambda s, d, *a: f(Turned(s), d, *a),
    ),
    (
        "layer-rules",
        "a radius that does not adapt",
        (deep, "assign_with_adaptive_radius"),
        lambda f: lambda *a: f(*a, most_radii=1),
    ),
    (
        "local-maximizers",
        "twice the second derivative",
        (frames, "spectral_optimality"),
        with_field(ratio=lambda v: 2 * v + 0.1),
    ),
    (
        "local-maximizers",
        "a distance of nothing",
        (frames, "distance_guarantee"),
        with_field(distance_at_most=lambda v: v / 1e6),
    ),
    ("local-maximizers", "bounds too large", (frames, "slope_bounds"), scaled(10.0)),
    (
        "whitened-weights",
        "a transform without its root",
        (frames, "whiten"),
        with_field(transform=lambda t: t @ t.T @ t),
    ),
    ("whitened-weights", "profiles of the wrong sign", (frames, "dual_profiles"), scaled(-1.0)),
    (
        "passive-derivatives",
        "scores without their Jacobian",
        (frames, "mixture_scores"),
        lambda f: lambda *a: (f(*a)[0], 0 * f(*a)[1]),
    ),
    (
        "passive-derivatives",
        "gradients of the wrong sign",
        (frames, "passive_derivatives"),
        with_field(gradient=lambda v: -v),
    ),
    (
        "robust-coefficients",
        "errors ten thousand times as large",
        (robust, "scalar_accuracy"),
        with_field(allowed_error=lambda v: 1e20 * v),
    ),
    ("robust-coefficients", "a bound too large", (robust, "khatri_rao_bound"), scaled(10.0)),
    (
        "robust-coefficients",
        "every term kept",
        (robust, "kept_terms"),
        lambda f: lambda *a: (f(*a)[0] * 1e3, f(*a)[1]),
    ),
    ("smoothed-analysis", "no noise", (robust, "smoothed"), lambda f: lambda u, t, r: f(u, 0.0, r)),
    (
        "smoothed-analysis",
        "noise of one size",
        (robust, "smoothed"),
        lambda f: lambda u, t, r: f(u, 0.3, r),
    ),
    (
        "gate-recursion",
        "one step fewer",
        (estimates, "recursion_steps"),
        with_field(steps=lambda v: v - 1),
    ),
    (
        "gate-recursion",
        "a step twice as long",
        (estimates, "recursion_steps"),
        with_field(step=lambda v: 2 * v),
    ),
    ("gate-recursion", "a tail too thin", (estimates, "azuma_tail"), scaled(0.01)),
    (
        "critical-dictionary",
        "no remainder",
        (estimates, "criticality_hypotheses"),
        with_field(remainder=lambda v: v / 1e4),
    ),
    (
        "critical-dictionary",
        "hypotheses that fail",
        (estimates, "criticality_hypotheses"),
        with_field(failing=lambda v: ("p < 1/2", "p < nu^2")),
    ),
    (
        "critical-dictionary",
        "a hundred times beta",
        (estimates, "proxy_gradient"),
        with_field(along_atom=lambda v: 100 * v),
    ),
    ("noisy-mixtures", "half the bound", (certificates, "pac_bayes_bound"), scaled(0.5)),
    ("noisy-mixtures", "a bound that is off", (certificates, "margin_pac_bayes_bound"), scaled(1.1)),
    ("noisy-mixtures", "far too much noise", (certificates, "mixture_resilience_sigma"), scaled(30.0)),
    ("noise-resilience", "three times the deviation", (certificates, "noise_resilience_sigma"), scaled(3.0)),
    (
        "support-recovery",
        "the published bias doubled",
        (certificates, "certify_support_recovery"),
        with_field(theorem_bias=lambda v: 3 * v),
    ),
    (
        "support-recovery",
        "a code too dense",
        (certificates, "support_rates"),
        with_field(exact=lambda v: v / 2),
    ),
    ("flat-networks", "one unit missing", (circuits, "flatten"), without_a_unit),
    ("flat-networks", "half the answers", (circuits, "flatten"), lambda f: lambda n: halved(f(n))),
    ("boolean-sizes", "one unit missing", (circuits, "boolean_net"), without_a_unit),
    (
        "boolean-sizes",
        "a count of gates too small",
        (circuits, "min_threshold_gates"),
        lambda f: lambda v: f(v) - 1,
    ),
    ("random-restrictions", "twice as many kept", (circuits, "kept_share"), scaled(2.0)),
    (
        "random-restrictions",
        "no fall with the number of inputs",
        (circuits, "kept_share"),
        lambda f: lambda *a: 0.0 * f(*a) + 0.1,
    ),
    ("ordered-circuits", "a bound too small", (circuits, "restricted_rank_bound"), scaled(0)),
    ("ordered-circuits", "no order", (circuits, "orders_alike"), lambda f: lambda w: not f(w)),
    (
        "hinge-erm",
        "a loss that is not the least",
        (risk_minima, "exact_erm"),
        with_field(loss=lambda v: v + 1e-3),
    ),
    ("hinge-erm", "no certificate", (risk_minima, "exact_erm"), with_field(certified=lambda v: False)),
    ("exact-erm", "one unit missing", (risk_minima, "exact_erm"), with_field(network=lambda n: dropped(n))),
    ("exact-erm", "no certificate", (risk_minima, "exact_erm"), with_field(certified=lambda v: False)),
    (
        "dichotomies",
        "one pattern missing",
        (risk_minima, "hyperplane_dichotomies"),
        lambda f: lambda x: f(x)[1:],
    ),
    (
        "dichotomies",
        "one pattern twice",
        (risk_minima, "hyperplane_dichotomies"),
        lambda f: lambda x: np.concatenate([f(x), f(x)[:1]]),
    ),
    ("network-sizes", "a maximum without a unit", (constructions, "max_net"), without_a_unit),
    ("network-sizes", "a parity without a unit", (constructions, "parity_net"), without_a_unit),
    ("piece-counts", "a piece not counted", (constructions, "pieces_1d"), lambda f: lambda n: f(n)[:-2]),
    (
        "piece-counts",
        "a map not counted",
        (constructions, "zonotope_maps"),
        lambda f: lambda *a: set(list(f(*a))[1:]),
    ),
    ("approximations", "a bound twice as far", (constructions, "sawtooth_distance"), scaled(2)),
    ("approximations", "twice the error of a jump", (constructions, "lq_distance"), scaled(2.0)),
    ("approximations", "more pieces elsewhere", (constructions, "montufar_pieces"), scaled(10**6)),
    (
        "sign-ambiguity",
        "never unique",
        (hermite, "solve_signs"),
        with_field(unique=lambda v: False),
    ),
    ("sign-ambiguity", "always unique", (hermite, "solve_signs"), with_field(unique=lambda v: True)),
    ("sample-barrier", "a barrier too high", (quadratic, "sample_barrier"), with_field(loss=lambda v: 3 * v)),
    (
        "sample-barrier",
        "a barrier too low",
        (quadratic, "sample_barrier"),
        with_field(loss=lambda v: v / 1e3),
    ),
    ("energy-barrier", "the constant without its factor", (quadratic, "population_barrier"), scaled(0.9)),
    ("energy-barrier", "half the risk", (quadratic, "population_risk"), scaled(0.5)),
    ("quadratic-threshold", "a rank too small", (quadratic, "span_test"), with_field(rank=lambda v: v - 1)),
    (
        "quadratic-threshold",
        "another network that does not fit",
        (quadratic, "counterexample"),
        with_field(empirical_risk=lambda v: v + 1e-6),
    ),
    ("quadratic-descent", "a start four times as large", (quadratic, "population_risk"), scaled(40.0)),
    (
        "quadratic-descent",
        "an end that is off",
        (quadratic, "quadratic_descent"),
        with_field(weights=lambda w: 1.001 * w),
    ),
    ("hermite-coefficients", "no factor of the density", (hermite, "relu_coefficient"), scaled(2.5)),
    ("hermite-coefficients", "half the risk", (hermite, "gaussian_risk"), scaled(0.5)),
    (
        "relu-from-coefficients",
        "a sign of the third coefficient",
        (hermite, "hermite_coefficients"),
        lambda f: lambda *a: flipped(f(*a)),
    ),
    (
        "relu-from-coefficients",
        "a network that is off",
        (hermite, "compare"),
        lambda f: lambda a, b: f(a, off(b)),
    ),
    ("activation-table", "sigma twice as large", (tensors, "rho"), lambda f: lambda n, s: f(n, 2 * s)),
    (
        "activation-table",
        "a value that is off",
        (tensors, "rho"),
        lambda f: lambda n, s: SimpleNamespace(value=1.1 * f(n, s).value),
    ),
    (
        "tensor-initialisation",
        "wrong signs",
        (tensors, "recover_from_tensors"),
        with_field(start=lambda s: dataclasses.replace(s, network=negated(s.network))),
    ),
    (
        "tensor-initialisation",
        "an end that is off",
        (tensors, "recover_from_tensors"),
        with_field(network=lambda n: off(n)),
    ),
    (
        "linear-time-start",
        "one round",
        (tensors, "iterated_frame"),
        lambda f: lambda *a: f(*a, rounds=0),
    ),
    (
        "linear-time-start",
        "labels in another order",
        (tensors, "tensor_start"),
        lambda f: lambda x, y, *a: f(x, y[::-1], *a),
    ),
    (
        "descent-rate",
        "a curvature twice as large",
        (tensors, "local_convexity"),
        with_field(smallest=lambda v: 2 * v),
    ),
    (
        "descent-rate",
        "a largest curvature three times too large",
        (tensors, "local_convexity"),
        with_field(largest=lambda v: 3 * v),
    ),
    (
        "flat-directions",
        "a ridge on the Hessian",
        (tensors, "empirical_hessian"),
        lambda f: lambda *a: ridged(f(*a)),
    ),
    (
        "flat-directions",
        "one direction lost",
        (tensors, "empirical_hessian"),
        lambda f: lambda *a: without_last(f(*a)),
    ),
    (
        "relu-gate",
        "steps of the wrong sign",
        (gates, "gate_update"),
        lambda f: lambda w, x, y, s: f(w, x, y, -s),
    ),
    (
        "relu-gate",
        "steps a tenth as long",
        (gates, "gate_update"),
        lambda f: lambda w, x, y, s: f(w, x, y, s / 10),
    ),
    (
        "poisoned-gate",
        "a floor ten times too low",
        (gates, "error_floor"),
        scaled(0.1),
    ),
    ("poisoned-gate", "attacks ten times as strong", (gates, "poison"), scaled(10.0)),
    (
        "learnability",
        "a tenth of alpha",
        (shallow, "expected_learnability"),
        with_field(alpha=lambda v: v / 10),
    ),
    (
        "learnability",
        "a tenth of what Hessians show",
        (shallow, "learnability_estimate"),
        lambda f: lambda *a: (f(*a)[0] / 10, f(*a)[1]),
    ),
    (
        "rank-one-components",
        "one component missing",
        (shallow, "subspace_power_method"),
        with_field(directions=dropped_row),
    ),
    (
        "rank-one-components",
        "a spurious component",
        (shallow, "subspace_power_method"),
        with_field(directions=spurious),
    ),
    ("wide-layers", "one unit missing", (shallow, "recover"), recovered(lambda n: dropped(n))),
    ("wide-layers", "weights off by a thousandth", (shallow, "recover"), recovered(off)),
    ("published-pipeline", "wrong signs", (shallow, "recover_published"), with_field(weights=lambda w: -w)),
    (
        "published-pipeline",
        "shifts off",
        (shallow, "recover_published"),
        with_field(shifts=lambda b: b + 0.2),
    ),
    # Studies: the same, on their quick cells.
    ("transition", "sites a thousand times too far", (transition, "uniform_starts"), scaled(1000.0)),
    (
        "transition",
        "a transition at half the place",
        (transition, "TRANSITION"),
        with_values(span=lambda v, c: float(c["m"] > 0.7 * c["D"] * c["outputs"]) + 1e-3),
    ),
    ("concentration", "sites ten times too far", (transition, "uniform_starts"), scaled(100.0)),
    (
        "concentration",
        "a weight of ten missing",
        (transition, "search_span"),
        with_field(directions=lambda rows: rows[: 9 * len(rows) // 10]),
    ),
    (
        "shift-bounds",
        "a weight missing",
        (wide, "recover_weights"),
        with_field(directions=lambda d: dataclasses.replace(d, directions=d.directions[1:])),
    ),
    (
        "shift-bounds",
        "errors that add up",
        (wide, "weight_error_terms"),
        with_field(accumulated=lambda v: 100 * v),
    ),
    ("wide-grid", "wrong signs", (wide, "recover_published"), with_field(weights=lambda w: -w)),
    ("wide-grid", "one unit missing", (wide, "recover"), recovered(lambda n: None)),
    ("gradient-table", "twice the bias", (dictionaries, "implied_bias"), scaled(2.0)),
    ("gradient-table", "no average over signals", (dictionaries, "autoencoder_gradient"), scaled(5000.0)),
    ("dictionary-slices", "ten times the bias", (dictionaries, "_WELL_BIAS"), scaled_value(10.0)),
    ("dictionary-slices", "no decoder", (dictionaries, "autoencoder_loss"), lambda f: lambda e, y, b: 1.0),
    (
        "dictionary-descent",
        "a start at the dictionary",
        (dictionaries, "near_dictionary"),
        lambda f: lambda a, d, r: f(a, 0.0, r),
    ),
    (
        "dictionary-descent",
        "starts a tenth as far",
        (dictionaries, "DICTIONARY_DESCENT"),
        with_values(zero=lambda v, c: v["zero"] - 50),
    ),
    (
        "pac-bayes",
        "a bound without its distance",
        (pac_bayes, "nbs_bound"),
        with_field(complexity=lambda v: v / 1e3),
    ),
    ("pac-bayes", "steps of the wrong sign", (pac_bayes, "train_classifier"), with_option(rate=lambda v: -v)),
    (
        "pac-bayes-digits",
        "steps of the wrong sign",
        (pac_bayes, "train_classifier"),
        with_option(rate=lambda v: -v),
    ),
    (
        "pac-bayes-digits",
        "a bound without its distance",
        (pac_bayes, "nbs_bound"),
        with_field(complexity=lambda v: v / 1e3),
    ),
    (
        "adaptive-shift",
        "the shift not used",
        (autoencoders, "Adam"),
        lambda f: lambda a, b, c, d: f(a, b, c, 1e-8),
    ),
    (
        "adaptive-shift",
        "gradients that rise with the shift",
        (autoencoders, "ADAPTIVE_SHIFT"),
        with_values(gradient=lambda v, c: [c["shift"] + 1.0]),
    ),
    (
        "hessian-along",
        "the eigenvalue of the wrong sign",
        (autoencoders, "curvature_range"),
        lambda f: lambda *a: tuple(-v for v in f(*a)),
    ),
    (
        "hessian-along",
        "the largest eigenvalue, falling",
        (autoencoders, "HESSIAN_ALONG"),
        with_values(lowest=lambda v, c: v["lowest"][::-1]),
    ),
    (
        "autoencoder-training",
        "steps of the wrong sign",
        (autoencoders, "TiedAutoencoder"),
        lambda f: type("Uphill", (f,), {"gradient": lambda self, *a: -f.gradient(self, *a)}),
    ),
    (
        "autoencoder-training",
        "no step",
        (autoencoders, "AUTOENCODER_TRAINING"),
        with_values(train=lambda v, c: [v["train"][0]] * 2),
    ),
    (
        "sgd-samples",
        "steps of the wrong sign",
        (teacher_student, "train_student"),
        with_option(rate=lambda v: 1e-9 * v),
    ),
    (
        "sgd-samples",
        "a student that is the teacher",
        (teacher_student, "train_student"),
        lambda f: lambda t, s, o, r: with_network(f(t, s, o, r), t),
    ),
    (
        "sgd-dimension",
        "a training a tenth as long in low dimension",
        (teacher_student, "SGD_DIMENSION"),
        with_values(uniform=lambda v, c: v["uniform"] * (10 if c["D"] < 10 else 1)),
    ),
    (
        "sgd-dimension",
        "a student that is the teacher in high dimension",
        (teacher_student, "train_student"),
        lambda f: lambda t, s, o, r: with_network(f(t, s, o, r), t if t.n_inputs > 10 else None),
    ),
    (
        "sgd-rates",
        "a student that is the teacher",
        (teacher_student, "train_student"),
        lambda f: lambda t, s, o, r: with_network(f(t, s, o, r), t),
    ),
    (
        "sgd-rates",
        "narrow networks not trained",
        (teacher_student, "SGD_RATES"),
        with_values(weights=lambda v, c: 10.0 if c["m"] < 10 else v["weights"]),
    ),
]


class Turned:
    """A source whose gradients are long where they should be short."""

    def __init__(self, source):
        self._source = source

    def gradients(self, points):
        found = self._source.gradients(points)
        return found / np.sum(found**2, axis=(1, 2), keepdims=True)


def with_network(fit, network):
    return fit if network is None else dataclasses.replace(fit, network=network)


def flipped(coefficients):
    return coefficients.plus(coefficients, -1.5)


def negated(network):
    weights = [*network.weights[:-1], -network.weights[-1]]
    return Network(weights, network.biases, network.activations, network.skip)


def ridged(matrix):
    return matrix + 1e-3 * np.eye(len(matrix)) * np.abs(matrix).max()


def without_last(matrix):
    changed = matrix.copy()
    changed[-1] = changed[:, -1] = 0.0
    return changed


SLOW_MUTATIONS = [
    (
        "entangled-weights",
        "one direction missing",
        (deep, "recover_deep_as_published"),
        found_directions(dropped_row),
    ),
    ("entangled-weights", "a span three times as far", (deep, "span_error"), scaled(3.0)),
    ("deep-networks", "one unit missing", (deep, "recover"), recovered(lambda n: dropped(n))),
    ("deep-networks", "weights off", (deep, "recover"), recovered(lambda n: off(off(n)))),
    (
        "sampled-coefficients",
        "errors that fall like 1/N",
        (hermite, "batches_of"),
        lambda f: lambda u, n, s: f(u, min(n, 100_000), s),
    ),
    (
        "sampled-coefficients",
        "labels of other units",
        (hermite, "hermite_coefficients"),
        lambda f: lambda u, n: f(u, n).plus(f(u, n), -0.5),
    ),
    (
        "entangled-tables",
        "one direction missing",
        (entangled, "recover_deep_as_published"),
        found_directions(dropped_row),
    ),
    (
        "entangled-tables",
        "a spurious direction",
        (entangled, "recover_deep_as_published"),
        found_directions(spurious),
    ),
    (
        "completion-curves",
        "steps of the wrong sign",
        (entangled, "complete_by_stochastic_gradients"),
        with_option(learning_rate=lambda v: 3.0),
    ),
    (
        "completion-curves",
        "given weights that are off",
        (entangled, "COMPLETION_CURVES"),
        with_values(last=lambda v, c: v["last"] * (10 if c["derivatives"] == "given" else 1)),
    ),
    (
        "sgd-depth",
        "rates the other way round",
        (teacher_student, "SGD_DEPTH"),
        with_values(last=lambda v, c: float(c["rate"])),
    ),
    (
        "sgd-depth",
        "four layers learned at once",
        (teacher_student, "SGD_DEPTH"),
        with_values(last=lambda v, c: v["last"] / (1e6 if len(c["widths"]) > 7 else 1)),
    ),
]


def halved(network):
    weights = [*network.weights[:-1], network.weights[-1] / 2]
    return Network(weights, network.biases, network.activations, network.skip)


def dropped(network):
    return without_a_unit(lambda: network)()


def cases():
    for mutations, marks in ((MUTATIONS, ()), (SLOW_MUTATIONS, (pytest.mark.slow,))):
        for name, bug, place, change in mutations:
            yield pytest.param(name, bug, place, change, marks=marks, id=f"{name}: {bug}")


@pytest.mark.parametrize(("name", "bug", "place", "change"), list(cases()))
def test_a_bug_is_seen(name, bug, place, change, monkeypatch):
    owner, attribute = place
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    with np.errstate(all="ignore"):
        figures = list(until_red(EXPERIMENTS[name].run(0, lambda text: None)))
    assert any(figure.agrees is False for figure in figures), f"{name} agrees with {bug}"


def until_red(figures):
    for figure in figures:
        yield figure
        if figure.agrees is False:
            return


def test_every_experiment_has_two_mutations():
    counts = Counter(name for name, *_ in (*MUTATIONS, *SLOW_MUTATIONS))
    assert {name: counts[name] for name in EXPERIMENTS if counts[name] < 2} == {}
