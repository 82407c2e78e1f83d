"""Evaluate a network on many rows: in blocks that stay in cache, on all cores, always the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import pairwise

import numpy as np

from unweave.arrays import Array
from unweave.networks.activations import Activation
from unweave.numerics.threads import allowed_threads, single_threaded_blas

BLOCK_VALUES = 1 << 17
"""Numbers of the widest layer per block: 1 MB of float64, which stays in the second-level cache."""

MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 64, 2048

SMALL_PRODUCT = 1 << 15
"""Multiplications up to which BLAS stays on one thread by itself: such calls set no limit."""

THREADED_WORK = 1 << 21
"""Activations to compute (rows times units) beyond which a second thread pays for its start."""


def evaluate_layers(
    x: Array,
    weights: Sequence[Array],
    biases: Sequence[Array],
    activations: Sequence[Activation | None],
    skip: Array | None = None,
    workers: int | None = None,
) -> Array:
    """Return the outputs (n, K) of the network at x (n, D), C-contiguous float64.

    A None in the last place of ``activations`` stands for softmax. The result does not depend on ``workers``
    (default: `allowed_threads`), bit for bit: blocks are counted from row 0, and BLAS runs single-threaded
    inside a block. Cost: 2 n sum(n_in n_out) flops and n sum(hidden) activations.
    """
    widths = [w.shape[1] for w in weights]
    rows = int(np.clip(BLOCK_VALUES // max(widths), MIN_BLOCK_ROWS, MAX_BLOCK_ROWS))
    out = np.empty((x.shape[0], widths[-1]))
    starts = range(0, x.shape[0], rows)
    if workers is None:
        workers = allowed_threads() if x.shape[0] * sum(widths) >= THREADED_WORK else 1
    workers = max(1, min(workers, len(starts)))

    def run(own_starts: Sequence[int]) -> None:
        buffers = [np.empty((rows, width)) for width in widths[:-1]]
        for start in own_starts:
            block = values = x[start : start + rows]
            targets = [*(buffer[: len(block)] for buffer in buffers), out[start : start + rows]]
            for weight, bias, activation, target in zip(weights, biases, activations, targets, strict=True):
                np.matmul(values, weight, out=target)
                target += bias
                if skip is not None and target is targets[-1]:
                    target += block @ skip
                if activation is None:
                    softmax_in_place(target)
                else:
                    activation.apply_in_place(target)
                values = target

    small = x.shape[0] * max(w.size for w in weights) <= SMALL_PRODUCT
    with nullcontext() if small else single_threaded_blas():
        if workers == 1:
            run(starts)
        else:
            # Contiguous shares: every worker writes its own stretch of the result.
            cuts = np.linspace(0, len(starts), workers + 1).astype(int)
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(run, [starts[a:b] for a, b in pairwise(cuts)]))
    return out


def softmax_in_place(z: Array) -> None:
    """Replace each row of z (n, K) by exp(z_k) / sum_j exp(z_j), shifted by its maximum against overflow."""
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
