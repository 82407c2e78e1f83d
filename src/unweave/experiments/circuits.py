"""Flat networks and Boolean circuits: [mathematics] sections 2.2, 2.5 and 2.6."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np

from unweave.construct import (
    as_exact,
    boolean_net,
    flatten,
    fourier_coefficients,
    min_threshold_gates,
    signed_maxima,
    size,
)
from unweave.construct.restrictions import equal_parts, kept_share
from unweave.construct.sign_rank import communication_matrix, orders_alike, restricted_rank_bound
from unweave.experiments.experiment import Figure, Progress, at_least, at_most, equal
from unweave.networks.network import Network


def run_flat_networks(seed: int, progress: Progress) -> Iterator[Figure]:
    """[mathematics] Thm. 2.2.1: any network has one of ceil(log2(n + 1)) hidden layers.

    The source takes the signed sum of maxima of n + 1 affine functions from elsewhere; here it is computed,
    in fractions, for networks of small whole numbers. Compared exactly at 40 points. One network per setting.
    """
    for widths in ((1, 4, 4, 1), (2, 3, 3, 2, 1), (3, 3, 2, 2, 1)):
        cell = "-".join(map(str, widths))
        progress(cell)
        network = whole_numbers(widths, np.random.default_rng([seed, *widths]))
        flat = flatten(network)
        n = widths[0]
        points = np.random.default_rng([seed, n]).integers(-20, 21, (40, n))
        wrong = int(np.sum(flat(points) != network(points)))
        yield equal(f"{cell}: wrong answers of the flat network", 0, wrong)
        yield at_most(f"{cell}: hidden layers", int(np.ceil(np.log2(n + 1))), len(flat.hidden))
        if n > 1:
            most = max(len(lines) for _, lines in signed_maxima(network))
            yield at_most(f"{cell}: affine functions in a maximum", n + 1, most)


def whole_numbers(widths: tuple[int, ...], rng: np.random.Generator) -> Network:
    """A ReLU network whose output is not constant, with weights and biases from -2 to 2."""
    while True:
        weights = [rng.integers(-2, 3, shape).astype(float) for shape in pairwise(widths)]
        biases = [rng.integers(-2, 3, width).astype(float) for width in widths[1:]]
        network = Network(weights, biases, ["relu"] * (len(widths) - 2) + ["identity"])
        if np.ptp(network(rng.standard_normal((50, widths[0])))) > 0:
            return as_exact(network)


def run_boolean_sizes(seed: int, progress: Progress) -> Iterator[Figure]:
    """[mathematics] Lemma 2.5.1 and Prop. 2.5.3: gates of Boolean functions.

    Any function takes min(2^n, sum |S|) ReLU gates, S over its Fourier terms: parity of n bits n. The number
    that n bits write takes two, where threshold gates need n. All tables are compared exactly.
    """
    for n in (4, 8):
        progress(f"{n} bits")
        signs = np.array(list(product((-1, 1), repeat=n)))
        parity = np.prod(signs, axis=1)
        net = boolean_net(parity, exact=True)
        right = net(signs)[:, 0].tolist() == parity.tolist()
        yield equal(f"parity of {n} signs: gates, answers exact", n, size(net) if right else -1)
        chosen = np.random.default_rng([seed, n]).choice(n, (3, 2))
        few = sum(np.prod(signs[:, pair], axis=1) for pair in chosen)
        net, terms = boolean_net(few, exact=True), fourier_coefficients(few, exact=True)
        right = net(signs)[:, 0].tolist() == few.tolist()
        yield equal(
            f"three products of {n} signs: gates, answers exact",
            min(int(np.count_nonzero(few)), sum(map(len, terms))),
            size(net) if right else -1,
        )
        number = (signs > 0) @ (1 << np.arange(n))
        yield at_least(f"number of {n} bits: threshold gates", n, min_threshold_gates(number))


def run_random_restrictions(seed: int, progress: Progress) -> Iterator[Figure]:
    """[mathematics] Lemma 2.6.1: a random restriction removes most gates.

    All inputs but one of each of four parts are fixed at random. A gate remains with a probability of at most
    a constant times |parts| / sqrt(n): for the majority gate that constant is near 0.8, the central binomial
    coefficient, and for random weights less. 4000 restrictions of 64, 256 and 1024 inputs.
    """
    parts, trials = 4, 4000
    shares = []
    for n in (64, 256, 1024):
        progress(f"{n} inputs")
        rng = np.random.default_rng([seed, n])
        random_gates = rng.standard_normal((n, 4))
        weights = np.column_stack([np.ones(n), random_gates])
        biases = np.append(-n / 2, -random_gates.sum(axis=0) / 2)  # balanced: hardest to remove
        kept = kept_share(weights, biases, equal_parts(n, parts), trials, seed)
        shares.append(float(kept[0]))
        yield at_most(f"n = {n}: share of majority gates kept", parts / np.sqrt(n), shares[-1])
        yield at_most(f"n = {n}: largest share of random gates", parts / np.sqrt(n), float(kept[1:].max()))
    slope = float(np.log(shares[-1] / shares[0]) / np.log(16))
    yield Figure(
        "majority: slope of the share in n",
        -0.5,
        slope,
        abs(slope + 0.5) <= 0.1,
        "within 0.1 of -1/2: four parts are not few against eight",
    )


def run_ordered_circuits(seed: int, progress: Progress) -> Iterator[Figure]:
    """[mathematics] Lemma 2.E.1: an ordered first layer keeps the rank low.

    Circuits on 2 x 5 signs whose first layer has whole weights up to 4 that order the cube alike: rank of
    their matrix at most w_1 m W + 1 at any depth (the source multiplies the widths of all layers). Without
    the order the same sizes reach a higher rank. One circuit per depth.
    """
    m, largest, width = 5, 4, 2
    sharper = "sharper than the source, which multiplies the widths of all layers"
    for deeper in ((), (6,), (6, 6)):
        cell = f"{1 + len(deeper)} hidden layers"
        progress(cell)
        rng = np.random.default_rng([seed, len(deeper)])
        base = np.array([[1], [1], [2], [0], [1]])
        halves = [base[rng.permutation(m)] * rng.integers(1, 3, (1, width)) for _ in range(2)]
        ordered = np.vstack(halves)
        yield equal(f"{cell}: ordered alike", True, all(orders_alike(half) for half in halves))
        rank = circuit_rank(ordered, deeper, m, rng)
        yield at_most(f"{cell}: rank", restricted_rank_bound(width, m, largest), rank, note=sharper)
    progress("no order")
    rng = np.random.default_rng([seed, 9])
    rank = circuit_rank(rng.integers(-largest, largest + 1, (2 * m, 12)), (), m, rng)
    yield at_least("12 gates in no order: rank", 2**m, rank, "full: the order is what keeps it low")


def circuit_rank(first: np.ndarray, deeper: tuple[int, ...], m: int, rng: np.random.Generator) -> int:
    """Rank of the matrix of a random circuit behind the given first layer."""
    widths = (first.shape[1], *deeper, 1)
    weights = [first.astype(float), *(rng.standard_normal(shape) for shape in pairwise(widths))]
    biases = [rng.integers(-3, 4, widths[0]).astype(float), *(rng.standard_normal(w) for w in widths[1:])]
    network = Network(weights, biases, ["relu"] * (len(widths) - 1) + ["identity"])
    return int(np.linalg.matrix_rank(communication_matrix(network, m), tol=1e-9))
