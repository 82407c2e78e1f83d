"""Draw the picture of the README: python docs/picture.py docs/recovery.png"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import unweave


def draw(path: str) -> None:
    """Recover a planted network and draw its evidence."""
    net = unweave.random_network([20, 100, 1], seed=0, outer="signed", norms=(0.5, 2), bias=1)
    result = unweave.recover(lambda x: net(x), input_dim=20)
    assert result.network is not None
    fit, spectrum = result.evidence.fit_history, result.evidence.spectrum
    assert spectrum is not None
    width = result.evidence.width or 0
    true, found = matched_parameters(net, result.network)

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
    index = np.arange(1, len(spectrum) + 1)
    left.semilogy(index[:width], spectrum[:width], "o", ms=3, color="#1b4965")
    left.semilogy(index[width:], spectrum[width:], "x", ms=4, color="#c1121f")
    left.annotate(
        f"{width} units",
        (width, spectrum[width - 1]),
        (0.35 * width, spectrum[width - 1] * 1e-5),
        arrowprops={"arrowstyle": "->"},
    )
    left.set(title="Hessians tell the width", xlabel="index", ylabel="singular value")

    steps = np.arange(len(fit))
    middle.semilogy(steps, fit, "o-", color="#1b4965", ms=4)
    middle.axhline(result.evidence.fit_floor or 0, color="#888", ls="--", lw=1)
    middle.annotate("rounding of the answers", (0.3, 1.6 * (result.evidence.fit_floor or 1)), color="#555")
    middle.set(title="Gauss-Newton on all parameters", xlabel="step", ylabel="residual (rms)")
    middle.set_xticks(steps)

    right.plot([true.min(), true.max()], [true.min(), true.max()], color="#bbb", lw=1, zorder=0)
    right.plot(true, found, ".", ms=2.5, color="#1b4965")
    error = np.abs(true - found).max()
    right.set(
        title=f"{len(true):,} parameters, error < {10 ** np.ceil(np.log10(error)):.0e}",
        xlabel="true",
        ylabel="recovered",
    )
    figure.savefig(path, dpi=110)
    print(result)


def matched_parameters(net: unweave.Network, found: unweave.Network) -> tuple[np.ndarray, np.ndarray]:
    """All parameters of both networks, unit by unit, in the order of the first."""
    a, b = unweave.canonical(net), unweave.canonical(found)
    ((permutation, signs),) = unweave.compare(net, found).matching
    pairs = [
        (a.weights[0], b.weights[0][:, permutation] * signs),
        (a.biases[0], b.biases[0][permutation] * signs),
        (a.weights[1], b.weights[1][permutation] * signs[:, None]),
        (a.biases[1], b.biases[1]),
    ]
    true, recovered = (np.concatenate([pair[side].reshape(-1) for pair in pairs]) for side in (0, 1))
    return true, recovered


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "docs/recovery.png")
