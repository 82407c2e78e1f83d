"""Sparse codes through one layer: certified supports, dictionaries by descent, criticality.

- **descent**: mean cosine of the atoms found with the true ones, from columns moved by the given distance,
  64 inputs, 128 atoms, k = 2, values in [8, 10]; the parameter error is the largest error of an atom's
  entry after least squares on the supports found. Recovered: all supports of fresh codes come back;
- **support**: share of 2000 fresh codes whose support comes back exactly, with the middle of the certified
  interval of biases, or 2 m1 k (delta + mu) if it is empty; predicted: 1 if the exact certificate says yes, 0
  if it does not. Recovered: the certificate does not say yes to what then fails. **theorem** and
  **coherence** tell whether the hypothesis of Theorem 4.3.1 and the coherence certificate hold;
- **source's simulation**: 50 inputs, Gaussian atoms, values in [1, 10], as published;
- **criticality**: |gradient| per unit over max(m1^2, m2) k/h, against that of the exact proxy.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

import unweave
from harness import Row, Run, parser, peak_rss_mb, say, seeds_of, summarise, tell, unasked
from unweave.sparse_coding import (
    AutoencoderOptions,
    SparseModel,
    atom_cosines,
    certify_support_recovery,
    gaussian_dictionary,
    measure_criticality,
    near_dictionary,
    refine_dictionary,
    sparse_autoencoder_fit,
    spikes_and_waves,
    support_rates,
    training_bias,
)

SUPPORTS = (
    (256, 2, 0.0),
    (1024, 3, 0.0),
    (1024, 3, 0.01),
    (1024, 5, 0.005),
    (1024, 10, 0.0),
    (1024, 20, 0.0),
)
"""Inputs, sparsity, distance of the encoder's rows from the atoms."""
PUBLISHED_ATOMS = (256, 512)
DISTANCES = (0.05, 0.2, 0.5, 1.0)
DESCENT = (64, 2, 3000)
"""Inputs, sparsity, signals."""
CRITICAL = ((64, 0.0), (256, 0.0), (256, 0.1), (1024, 0.0))
QUICK_DESCENT = (16, 1, 400)
COLUMNS = {
    "measured": "measured",
    "predicted": "predicted",
    "theorem": "theorem",
    "coherent": "coherence",
    "missed": "missed",
    "false": "false",
    "steps": "steps",
    "distance": "distance at the end",
}


def descent(distance: float, setting: tuple[int, int, int], seed: int) -> Run:
    inputs, sparsity, count = setting
    rng = np.random.default_rng([seed, 0])
    model = SparseModel(spikes_and_waves(inputs), sparsity, 8.0, 10.0)
    signals = model.signals(model.codes(count, rng))
    start = near_dictionary(model.dictionary, distance, rng).T
    wall, cpu = time.perf_counter(), time.process_time()
    found = sparse_autoencoder_fit(signals, start, training_bias(model), AutoencoderOptions(steps=400))
    try:
        exact = refine_dictionary(signals, found.atoms, signals @ found.encoder.T > found.bias).atoms
        error = float(np.abs(exact - model.dictionary).max())
    except unweave.InvalidInput:  # some unit never fires: its atom is lost
        error = math.inf
    seconds, cpu = time.perf_counter() - wall, time.process_time() - cpu
    cosines, _ = atom_cosines(found.atoms, model.dictionary)
    fresh = model.codes(2000, rng)
    rates = support_rates(found.encoder, model.signals(fresh), fresh, found.bias)
    extra = {
        "measured": float(cosines.mean()),
        "predicted": 1.0,
        "missed": rates.missed,
        "false": rates.false,
        "steps": len(found.losses) - 1,
        "distance": float(np.linalg.norm(found.encoder.T - model.dictionary, axis=0).mean()),
    }
    return Run(
        seed,
        rates.exact == 1,
        error,
        seconds=seconds,
        cpu_seconds=cpu,
        same=bool(cosines.min() > 0.9),
        extra=extra,
    )


def support(model: SparseModel, distance: float, rng: np.random.Generator, seed: int) -> Run:
    encoder = near_dictionary(model.dictionary, distance, rng).T
    wall, cpu = time.perf_counter(), time.process_time()
    found = certify_support_recovery(encoder, model.dictionary, model.sparsity, model.low, model.high)
    seconds, cpu = time.perf_counter() - wall, time.process_time() - cpu
    codes = model.codes(2000, rng)
    bias = found.theorem_bias if found.bias is None else found.bias
    rates = support_rates(encoder, model.signals(codes), codes, bias)
    low, high = found.coherence_interval
    extra = {
        "measured": rates.exact,
        "predicted": float(found.certified),
        "theorem": float(found.theorem_holds),
        "coherent": float(low < high),
        "missed": rates.missed,
        "false": rates.false,
    }
    held = rates.exact == 1 or not found.certified
    return Run(seed, held, seconds=seconds, cpu_seconds=cpu, extra=extra)


def theorem_support(inputs: int, sparsity: int, distance: float, seed: int) -> Run:
    model = SparseModel(spikes_and_waves(inputs), sparsity, 8.0, 10.0)
    return support(model, distance, np.random.default_rng([seed, inputs, sparsity]), seed)


def published_support(atoms: int, seed: int) -> Run:
    rng = np.random.default_rng([seed, atoms])
    model = SparseModel(gaussian_dictionary(50, atoms, rng), 2, 1.0, 10.0)
    return support(model, 0.0, rng, seed)


def critical(inputs: int, distance: float, seed: int) -> Run:
    rng = np.random.default_rng([seed, inputs, 1])
    model = SparseModel(spikes_and_waves(inputs), 2, 8.0, 10.0)
    signals = model.signals(model.codes(4000, rng))
    wall, cpu = time.perf_counter(), time.process_time()
    found = measure_criticality(model, distance, training_bias(model), signals, 2, rng)
    extra = {"measured": found.each, "predicted": found.proxy}
    return Run(
        seed,
        bool(found.each < 1),
        found.gap,
        seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        extra=extra,
    )


def measure(setting: str, run: Callable[[int], Run], seeds: range) -> Row:
    """The row of one claim: medians of its figures."""
    say(f"sparse coding: {setting}")
    runs = [run(seed) for seed in seeds]
    figures = {
        key: float(np.median([entry.extra[key] for entry in runs])) if key in runs[0].extra else None
        for key in COLUMNS
    }
    row = summarise(setting, runs, **figures)
    row["peak_rss_mb"] = peak_rss_mb()
    return row


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:3", "16 and 64 inputs, 1 seed").parse_args(argv)
    quick, seeds = arguments.quick, seeds_of(arguments, 3, 1)
    n, k, count = DESCENT
    claims: list[tuple[str, Callable[[int], Run]]] = []
    if quick:
        claims += [("descent from 0.05, n=16, k=1", partial(descent, 0.05, QUICK_DESCENT))]
        claims += [("support, n=64, k=1, delta=0", partial(theorem_support, 64, 1, 0.0))]
        claims += [("criticality, n=64, delta=0", partial(critical, 64, 0.0))]
    else:
        claims += [(f"descent from {d}, n={n}, k={k}", partial(descent, d, (n, k, count))) for d in DISTANCES]
        claims += [
            (f"support, n={n}, k={k}, delta={d}", partial(theorem_support, n, k, d)) for n, k, d in SUPPORTS
        ]
        claims += [
            (f"source's simulation, h={h}, k=2", partial(published_support, h)) for h in PUBLISHED_ATOMS
        ]
        claims += [(f"criticality, n={n}, delta={d}", partial(critical, n, d)) for n, d in CRITICAL]
    rows = [measure(setting, run, seeds) for setting, run in claims]
    tell(rows, {**unasked("worst_fresh_error", "seconds"), **COLUMNS}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
