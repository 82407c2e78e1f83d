"""
A sawtooth, and the gates that shallow networks need for it
===========================================================

A network with k hidden layers of w units can cut an interval into w^k pieces. Networks with fewer layers
cannot, unless they are much larger. This example counts the pieces exactly, in fractions. The count bounds
the size of every network that computes the same function.
"""

# %%
# Three layers of a random sawtooth with three sides each: 3, 9 and 27 pieces on [0, 1].
import random
from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np

from unweave.construct import as_float, bounds, hard, pieces_1d, size

rng = random.Random(0)
breaks = [[Fraction(rng.randint(20, 45), 100), Fraction(rng.randint(55, 80), 100)] for _ in range(3)]
x = np.linspace(-0.05, 1.05, 4001)[:, None]

figure, axes = plt.subplots(3, 1, sharex=True, figsize=(8, 6), layout="constrained")
for layers, axis in enumerate(axes, 1):
    net = hard.sawtooth(breaks[:layers])
    pieces = [piece for piece in pieces_1d(net) if piece.left is not None and 0 <= piece.left < 1]
    axis.plot(x, as_float(net)(x), linewidth=1)
    axis.plot([float(piece.left) for piece in pieces], [0] * len(pieces), "|", color="black")
    axis.set_title(f"{layers} hidden layers, {size(net)} gates: {len(pieces)} pieces on (0, 1)")
    assert len(pieces) == hard.sawtooth_pieces([3] * layers)
plt.show()

# %%
# The same function with fewer layers
# -----------------------------------
# A hidden layer of w units multiplies the number of pieces on a line by at most w + 1. So the 3^8 = 6561
# pieces of eight layers, 24 gates in all, need at least this many gates with fewer layers.
pieces_of_eight = hard.sawtooth_pieces([3] * 8)
hidden = range(1, 9)
sharp = [bounds.min_size(pieces_of_eight, k + 1) for k in hidden]
published = [bounds.min_size(pieces_of_eight, k + 1, published=True) for k in hidden]

figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
axis.semilogy(hidden, sharp, "o-", label="least size, product of (w + 1)")
axis.semilogy(hidden, published, "s--", label="least size, as published")
axis.axhline(size(hard.even_sawtooth(3, 8)), color="black", linewidth=1, label="the construction, 8 layers")
axis.set_xlabel("hidden layers")
axis.set_ylabel("gates")
axis.legend()
plt.show()

# %%
# In two dimensions
# -----------------
# The support function of a zonotope with m = 4 generators is linear on 2 (C(3, 0) + C(3, 1)) = 8 cones.
# Composed with it, a sawtooth of 2 layers with 2 sides has 8 * 2^2 = 32 pieces.
from unweave.construct import zonotope_maps  # noqa: E402

generators = [
    [Fraction(1, 4), Fraction(1, 2)],
    [Fraction(-1, 2), 0],
    [0, Fraction(-1, 4)],
    [Fraction(-1, 4)] * 2,
]
net = hard.zonotope(generators, [[Fraction(1, 2)]] * 2)
count = len(zonotope_maps(net, generators))
assert count == hard.zonotope_pieces(2, 4, [2, 2])

grid = np.linspace(-1.2, 1.2, 301)
plane = np.stack(np.meshgrid(grid, grid), axis=-1)
values = as_float(net)(plane.reshape(-1, 2)).reshape(plane.shape[:2])
figure, axis = plt.subplots(figsize=(6, 5), layout="constrained")
image = axis.pcolormesh(grid, grid, np.clip(values, 0, 1), shading="nearest")
figure.colorbar(image)
axis.set_title(f"{size(net)} gates, {count} pieces where the support function is below 1")
plt.show()
