"""
Noise that a network tolerates, and risk bounds against depth
=============================================================

How much noise may the weights of a network have before its answers move by more than a margin? And how do
risk bounds that build on this change with depth?
"""

# %%
# Layers scaled by c and 1/c
# --------------------------
# Two layers scaled by c and 1/c are the same function for every c. Noise of one size on all weights acts
# differently for every c, though. The published guarantee assumes layers of equal norm; at c = 100 every draw
# exceeds it. Of our two forms, one takes the layers as they are, the other scales the noise to each layer.
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from unweave import Network
from unweave.certify import (
    dist_from_init_bound,
    draw_noise,
    nbs_bound,
    noise_resilience_sigma,
    noise_resilience_sigmas,
)

rng = np.random.default_rng(0)
first, second = rng.standard_normal((2, 30, 30))
first, second = first / np.linalg.norm(first, 2), second / np.linalg.norm(second, 2)
x = rng.standard_normal((200, 30))
x /= np.linalg.norm(x, axis=1, keepdims=True)
factors, margin = [1, 3, 10, 30, 100], 0.5

moved: dict[str, list[float]] = {"published": [], "one sigma": [], "one per layer": []}
for c in factors:
    net = Network([c * first, second / c], [np.zeros(30)] * 2, ["relu", "identity"])
    sigmas = {
        "published": noise_resilience_sigma(net, 1.0, margin, form="published"),
        "one sigma": noise_resilience_sigma(net, 1.0, margin),
        "one per layer": noise_resilience_sigmas(net, 1.0, margin),
    }
    for name, sigma in sigmas.items():
        draws = [np.linalg.norm(draw_noise(net, sigma, rng)(x) - net(x), axis=1).max() for _ in range(30)]
        moved[name].append(float(np.max(draws)))

figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
for name, worst in moved.items():
    axis.loglog(factors, worst, "o-", label=name)
axis.axhline(margin, color="black", linewidth=1, label="margin")
axis.set_xlabel("scale c of the first layer, 1/c of the second")
axis.set_ylabel("largest move of an answer, 30 draws")
axis.legend()
plt.show()
assert max(moved["one sigma"] + moved["one per layer"]) <= margin < moved["published"][-1]

# %%
# Bounds against depth
# --------------------
# Classifiers have 30 units per layer, each layer of norm 1. They lie at a small distance from an assumed
# start of training, closer than training would leave them: only then do bounds fall below 1, where they begin
# to say something. A bound whose hypotheses fail is infinite and has no point in the picture.
inputs = rng.standard_normal((20000, 30))
inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
depths = range(2, 9)
from_norms, from_start = [], []
for depth in depths:
    widths = [30] * depth + [2]
    weights = [rng.standard_normal((a, b)) for a, b in pairwise(widths)]
    weights = [w / np.linalg.norm(w, 2) for w in weights]
    biases = [np.zeros(b) for b in widths[1:]]
    activations = ["relu"] * (depth - 1) + ["identity"]
    net = Network(weights, biases, activations)
    start = Network([w + 1e-4 * rng.standard_normal(w.shape) for w in weights], biases, activations)
    labels = net(inputs).argmax(axis=1)
    from_norms.append(nbs_bound(net, inputs, labels, 1.0, 1.0).complexity)
    from_start.append(dist_from_init_bound(net, start, inputs, labels, 1.0).complexity)

figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
axis.semilogy(depths, [b if np.isfinite(b) else np.nan for b in from_norms], "s--", label="from the norms")
axis.semilogy(depths, from_start, "o-", label="from the distance to the start")
axis.axhline(1, color="black", linewidth=1, label="vacuous above")
axis.set_xlabel("layers")
axis.set_ylabel("complexity term, margin 1")
axis.legend()
plt.show()
