"""
The best network of two units, with a proof
===========================================

Left: points in the plane with their labels as colors, all lines that divide them (one per dichotomy and its
complement), and the kinks of the certified optimum. Right: a few noise-free points that do not determine the
network; the picture shows the range of predictions of all networks that fit every label.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

from unweave.exact import enumerate_optima, exact_erm, hyperplane_dichotomies

POINTS, FEW, NOISE, SEED = 14, 8, 0.1, 1
SIDE = 2.6  # half the side of the pictures


def labels(x: np.ndarray) -> np.ndarray:
    """Evaluate a planted network of two units."""
    return np.maximum(x @ [1.2, 0.4] + 0.2, 0) - np.maximum(x @ [-0.3, 1.1] - 0.1, 0)


def dividing_lines(x: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Return a line a . x + b = 0 for every dichotomy with points on both sides."""
    lines = []
    for pattern in hyperplane_dichotomies(x):
        if pattern[0] or not pattern.any():  # complements share their line
            continue
        # The perceptron ends because the sides are separable; its line need only divide them.
        z = np.column_stack([x, np.ones(len(x))]) * np.where(pattern, 1.0, -1.0)[:, None]
        w = z.sum(axis=0)
        while (wrong := np.flatnonzero(z @ w <= 0)).size:
            w = w + z[wrong[0]]
        lines.append((w[:2], float(w[2])))
    return lines


def draw_line(axes: plt.Axes, slope: np.ndarray, offset: float, **style: object) -> None:
    """Draw the line a . x + b = 0 across the picture."""
    centre = -offset * slope / (slope @ slope)
    along = np.array([-slope[1], slope[0]]) / np.linalg.norm(slope) * 4 * SIDE
    axes.plot(*np.column_stack([centre - along, centre + along]), **style)


def main(path: str | None) -> None:
    """Fit the network, list all optima of fewer points, and draw both."""
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((POINTS, 2))
    y = labels(x) + NOISE * rng.standard_normal(POINTS)
    fit = exact_erm(x, y, width=2)
    print(fit)

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.4), layout="constrained")
    lines = dividing_lines(x)
    for slope, offset in lines:
        draw_line(left, slope, offset, color="0.8", linewidth=0.5, zorder=0)
    for unit, colour in zip(range(2), ("tab:red", "tab:blue"), strict=True):
        slope, offset = fit.network.weights[0][:, unit], fit.network.biases[0][unit]
        draw_line(left, slope, offset, color=colour, linewidth=2)
    shown = left.scatter(*x.T, c=y, cmap="viridis", edgecolor="black", zorder=3)
    figure.colorbar(shown, ax=left, label="label")
    state = "certified" if fit.certified else "not certified"
    left.set_title(f"{len(lines)} ways to divide {POINTS} points; kinks of the optimum, {state}", fontsize=9)

    few = np.random.default_rng(SEED + 2).standard_normal((FEW, 2))
    found = enumerate_optima(few, labels(few), width=2)
    grid = np.linspace(-SIDE, SIDE, 120)
    mesh = np.stack(np.meshgrid(grid, grid), axis=-1)
    low, high = found.range(mesh.reshape(-1, 2))
    spread = (high - low).reshape(len(grid), -1)
    print(
        f"{FEW} points: {len(found.optima)} optima, decided: {found.decided}, spread up to {spread.max():.2g}"
    )
    shown = right.pcolormesh(grid, grid, spread, cmap="magma_r", shading="nearest", rasterized=True)
    figure.colorbar(shown, ax=right, label="range of predictions")
    right.scatter(*few.T, c="white", edgecolor="black")
    verdict = "decide" if found.decided else "do not decide"
    right.set_title(f"{FEW} exact labels {verdict} the network: how far fits differ", fontsize=9)
    for axes in (left, right):
        axes.set(xlim=(-SIDE, SIDE), ylim=(-SIDE, SIDE), aspect="equal")
    if path is not None:
        figure.savefig(path, dpi=80)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
