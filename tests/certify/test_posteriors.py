from __future__ import annotations

import math

import numpy as np
import pytest

from unweave.certify import (
    draw_mixture,
    draw_noise,
    margin_pac_bayes_bound,
    mixture_resilience_sigma,
    noise_resilience_sigma,
    pac_bayes_bound,
    shrunk_divergence,
    shrunk_posterior,
)
from unweave.errors import InvalidInput
from unweave.networks.network import Network


def divergence(q, p):
    kept = q > 0
    return float(np.sum(q[kept] * np.log(q[kept] / p[kept])))


def net(weights):
    return Network(weights, [np.zeros(w.shape[1]) for w in weights], ["relu", "identity"])


def test_bound_holds_for_posteriors_that_follow_the_samples() -> None:
    """16 coins of known risks, posteriors that put all weight on what the samples show to be best."""
    rng = np.random.default_rng(1000)
    risks, prior, m, delta = np.linspace(0.3, 0.6, 16), np.full(16, 1 / 16), 40, 0.2
    gaps = []
    for _ in range(500):
        seen = rng.binomial(m, risks) / m
        for sharpness in (0.0, 20.0, 200.0):
            q = np.exp(-sharpness * (seen - seen.min()))
            q /= q.sum()
            gaps.append(q @ risks - pac_bayes_bound(float(q @ seen), divergence(q, prior), m, delta))
    assert np.mean(np.array(gaps) > 0) <= delta
    assert max(gaps) > -0.5  # and not by far


def test_square_roots_as_printed() -> None:
    assert pac_bayes_bound(0.2, 3.0, 101, 0.1) == pytest.approx(0.2 + math.sqrt((3 + math.log(1010)) / 200))
    assert margin_pac_bayes_bound(0.2, 3.0, 101, 0.1) == pytest.approx(
        0.2 + math.sqrt((3 + math.log(3030)) / 100)
    )
    # What Thm. 6.1.2 uses: the price of the shrunk posterior is covered by the factor 3 and the lost half.
    for kl in (0.0, 1.0, 50.0):
        assert pac_bayes_bound(0, shrunk_divergence(kl, 0.5), 101) <= margin_pac_bayes_bound(0, kl, 101)


def test_divergence_of_a_conditioned_law() -> None:
    rng = np.random.default_rng(1000)
    for _ in range(50):
        mu, p = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
        kept = np.arange(6) < rng.integers(1, 6)
        share = float(mu[kept].sum())
        shrunk = np.where(kept, mu, 0) / share
        assert divergence(shrunk, p) <= shrunk_divergence(divergence(mu, p), share) + 1e-12
    assert shrunk_divergence(2.5, 1.0) == 2.5


def test_shrunk_posterior_keeps_the_margin_loss() -> None:
    rng = np.random.default_rng(1000)
    network = net([rng.standard_normal((5, 8)), rng.standard_normal((8, 3))])
    x, margin = rng.standard_normal((60, 5)), 2.0
    labels = np.argmax(network(x), axis=1)
    found = shrunk_posterior(network, lambda r: draw_noise(network, 0.025, r), x, margin, 20, rng)
    assert 0 < found.share < 1

    def losses(other, gamma):
        answers = other(x)
        own = answers[np.arange(60), labels]
        answers[np.arange(60), labels] = -np.inf
        return np.mean(own <= gamma + answers.max(axis=1))

    assert len(found.networks) == 20
    assert max(losses(other, 0.0) for other in found.networks) <= losses(network, margin / 2)
    assert not shrunk_posterior(network, lambda r: draw_noise(network, 99.0, r), x, 1.0, 2, rng, 5).networks


def test_mixtures_keep_twice_the_margin() -> None:
    rng = np.random.default_rng(1000)
    center = net([rng.standard_normal((6, 10)), rng.standard_normal((10, 2))])
    cluster = [draw_noise(center, 0.01, rng) for _ in range(4)]
    x = rng.standard_normal((200, 6))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    apart = max(float(np.linalg.norm(n(x) - center(x), axis=1).max()) for n in cluster)
    margin, p = 1.01 * apart, [0.4, 0.3, 0.2, 0.1]
    sigma = mixture_resilience_sigma(cluster, 1.0, margin, 0.1, p)
    draws = [draw_mixture(cluster, sigma, rng, p) for _ in range(200)]
    moved = [float(np.linalg.norm(n(x) - center(x), axis=1).max()) for n in draws]
    assert np.mean(np.array(moved) > 2 * margin) <= 0.1
    assert sigma == min(noise_resilience_sigma(n, 1.0, margin, 0.1) for n in cluster)


def test_the_printed_deviation_written_out() -> None:
    rng = np.random.default_rng(1000)
    cluster = [net([rng.standard_normal((3, 3)) for _ in range(2)]) for _ in range(2)]
    p, margin, delta = (0.25, 0.75), 0.5, 0.1
    betas = [math.sqrt(math.prod(np.linalg.norm(w, 2) for w in n.weights)) for n in cluster]
    least = min(min(b / 2, margin / (2 * math.e * 2 * 1.5 * q * b)) for b, q in zip(betas, p, strict=True))
    wanted = least / math.sqrt(2 * 3 * math.log(2 * 2 * 3 * 2 / delta))
    found = mixture_resilience_sigma(cluster, 1.5, margin, delta, p, "published")
    assert found == pytest.approx(wanted, rel=1e-12)


def test_errors() -> None:
    network = net([np.eye(2), np.eye(2)])
    for call, words in (
        (lambda: pac_bayes_bound(0.1, -1.0, 10), "divergence"),
        (lambda: margin_pac_bayes_bound(0.1, 1.0, 1), "samples"),
        (lambda: shrunk_divergence(1.0, 0.0), "share"),
        (lambda: mixture_resilience_sigma([], 1.0, 1.0), "networks"),
        (lambda: mixture_resilience_sigma([network], 1.0, 1.0, weights=[0.5]), "weights"),
    ):
        with pytest.raises(InvalidInput, match=words):
            call()
