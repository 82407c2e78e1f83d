"""
Atoms of a dictionary, recovered to the last digit
==================================================

Signals are sums of two atoms out of 128, spikes and waves of length 64. Descent trains a weight-tied
autoencoder from rows that are as far from the atoms as they are long. It finds every support; least squares
on these supports then makes the atoms exact. Top: four true atoms, the start, the result of descent, the
result of least squares. Bottom: errors of all atoms, and the interval of biases that provably recover every
support.
"""

import matplotlib.pyplot as plt
import numpy as np

from unweave.sparse_coding import (
    SparseModel,
    certify_support_recovery,
    near_dictionary,
    refine_dictionary,
    sparse_autoencoder_fit,
    spikes_and_waves,
    support_rates,
    training_bias,
)

rng = np.random.default_rng(1000)
model = SparseModel(spikes_and_waves(64), sparsity=2, low=8.0, high=10.0)
codes = model.codes(3000, rng)
signals = model.signals(codes)
start = near_dictionary(model.dictionary, 1.0, rng)
fit = sparse_autoencoder_fit(signals, start.T, training_bias(model))
rates = support_rates(fit.encoder, signals, codes, fit.bias)
exact = refine_dictionary(signals, fit.atoms, signals @ fit.encoder.T > fit.bias)
print(f"supports recovered: {rates.exact:.1%}, residual after least squares: {exact.residual:.1e}")

figure = plt.figure(figsize=(10, 6), layout="constrained")
top, bottom = figure.subfigures(2, 1)
steps = (
    ("true", model.dictionary),
    ("start", start),
    ("descent", fit.atoms),
    ("least squares", exact.atoms),
)
for row, atom in enumerate((10, 66, 77, 90)):
    axes = top.add_subplot(1, 4, row + 1)
    for level, (name, atoms) in enumerate(steps):
        axes.plot(atoms[:, atom] - 1.2 * level, lw=0.8)
        axes.text(64, -1.2 * level, name, fontsize=7)
    axes.set(title=f"atom {atom}", xticks=[], yticks=[])

# %%
# The certificate bounds the bias from below and above, for encoders at growing distance from the atoms.

left, right = bottom.subplots(1, 2)
for name, atoms in steps[1:]:
    lengths = np.linalg.norm(atoms, axis=0)
    errors = np.sort(np.linalg.norm(atoms / lengths - model.dictionary, axis=0))
    left.semilogy(np.maximum(errors, 1e-17), label=name)
left.set(xlabel="atom, sorted", ylabel="error of its direction")
left.legend()

distances = np.linspace(0, 0.3, 16)
found = [
    certify_support_recovery(
        near_dictionary(model.dictionary, d, np.random.default_rng(0)).T, model.dictionary, 2, 8.0, 10.0
    )
    for d in distances
]
for label, intervals in (
    ("exact", [entry.interval for entry in found]),
    ("coherence", [entry.coherence_interval for entry in found]),
):
    low, high = np.array(intervals).T
    right.fill_between(distances, low, high, where=low < high, alpha=0.35, label=label)
right.set(xlabel="distance of the encoder's rows", ylabel="bias", title="biases that recover every support")
right.legend()
plt.show()
